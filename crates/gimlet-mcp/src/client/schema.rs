//! A server's schema, made fit for the guard and for a small model: no references to other documents, nothing that
//! costs time to check, no more words than a model can bear. The result is never stricter than the original, so a
//! call it turns away would have been turned away by the server, too.

use serde_json::{Map, Value, json};

/// So deep do structures go; below, anything is taken.
const DEPTH: usize = 8;
/// So many parts a schema has; what comes later takes anything.
const PARTS: usize = 400;
/// So many choices are listed.
const CHOICES: usize = 100;
/// Bytes of the whole, written as JSON.
const SIZE: usize = 6000;
/// Characters of a description inside.
const WORDS: usize = 300;

/// A schema that can be used.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Clean {
    /// The schema.
    pub(super) schema: Value,
    /// Whether it says less than the original.
    pub(super) shrunk: bool,
}

/// Cleans the schema of a tool's arguments.
pub(super) fn clean(original: &Map<String, Value>) -> Clean {
    let root = Value::Object(original.clone());
    let mut shrunk = false;
    // Ever fewer words, then ever less depth, until it fits.
    for (words, depth) in [(WORDS, DEPTH), (120, DEPTH), (40, 4), (0, 3), (0, 2), (0, 1)] {
        let mut cleaner = Cleaner { root: &root, words, parts: PARTS, lost: false };
        let mut schema = cleaner.schema(&root, depth, &mut Vec::new());
        if let Some(map) = schema.as_object_mut() {
            map.insert("type".into(), json!("object"));
            map.entry("properties").or_insert_with(|| json!({}));
            map.shift_remove("description");
        }
        if schema.to_string().len() <= SIZE {
            return Clean { schema, shrunk: shrunk || cleaner.lost };
        }
        shrunk = true;
    }
    Clean { schema: json!({"type": "object", "properties": {}}), shrunk: true }
}

struct Cleaner<'a> {
    root: &'a Value,
    words: usize,
    /// Parts that may still be made.
    parts: usize,
    lost: bool,
}

impl<'a> Cleaner<'a> {
    /// One schema; `open` holds the references that are being followed, so that a circle ends.
    fn schema(&mut self, from: &'a Value, depth: usize, open: &mut Vec<&'a str>) -> Value {
        let Some(map) = from.as_object() else {
            // `true` takes anything; `false`, which takes nothing, is not worth its trouble.
            return json!({});
        };
        if self.parts == 0 {
            self.lost = true;
            return json!({});
        }
        self.parts -= 1;
        if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
            let target = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
            return match target {
                Some(target) if !open.contains(&reference) && open.len() < 32 => {
                    open.push(reference);
                    let followed = self.schema(target, depth, open);
                    open.pop();
                    followed
                }
                _ => {
                    self.lost = true;
                    json!({})
                }
            };
        }
        let mut clean = Map::new();
        for (key, value) in map {
            if let Some(value) = self.keyword(key, value, depth, open) {
                // More than one match must not be an error once parts of the branches are gone.
                clean.insert(if key == "oneOf" { "anyOf".into() } else { key.clone() }, value);
            }
        }
        Value::Object(clean)
    }

    /// What is kept of a keyword. Everything that is not named here is dropped: a server checks what it needs itself.
    fn keyword(
        &mut self,
        key: &str,
        value: &'a Value,
        depth: usize,
        open: &mut Vec<&'a str>,
    ) -> Option<Value> {
        match key {
            "type" => kind(value),
            "description" => value.as_str().and_then(|text| self.short(text)),
            "default" | "const" => (value.to_string().len() <= 200).then(|| value.clone()),
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
                value.is_number().then(|| value.clone())
            }
            "minLength" | "maxLength" | "minItems" | "maxItems" => value.is_u64().then(|| value.clone()),
            "format" => value.as_str().filter(|text| text.len() <= 30).map(|_| value.clone()),
            "required" => Some(Value::Array(
                value.as_array()?.iter().filter(|name| name.is_string()).take(PARTS).cloned().collect(),
            )),
            "enum" => {
                let choices = value.as_array().filter(|choices| !choices.is_empty())?;
                let fits = choices.len() <= CHOICES && value.to_string().len() <= SIZE / 3;
                self.lost |= !fits;
                fits.then(|| value.clone())
            }
            "properties" => {
                let properties = value.as_object()?;
                if depth == 0 {
                    self.lost = true;
                    return None;
                }
                let mut kept = Map::new();
                for (name, schema) in properties {
                    kept.insert(name.clone(), self.schema(schema, depth - 1, open));
                }
                Some(Value::Object(kept))
            }
            "items" | "additionalProperties" if value.is_object() => {
                if depth == 0 {
                    self.lost = true;
                    return None;
                }
                Some(self.schema(value, depth - 1, open))
            }
            "additionalProperties" => value.as_bool().map(Value::Bool),
            "anyOf" | "oneOf" | "allOf" => {
                let branches = value.as_array().filter(|branches| !branches.is_empty())?;
                if depth == 0 || branches.len() > 20 {
                    self.lost = true;
                    return None;
                }
                Some(branches.iter().map(|branch| self.schema(branch, depth - 1, open)).collect())
            }
            _ => None,
        }
    }

    fn short(&mut self, text: &str) -> Option<Value> {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let short = super::content::clip(&text, self.words);
        self.lost |= short != text;
        (self.words > 0 && !short.is_empty()).then(|| Value::String(short))
    }
}

const KINDS: &[&str] = &["null", "boolean", "object", "array", "number", "string", "integer"];

fn kind(value: &Value) -> Option<Value> {
    let known = |value: &Value| value.as_str().is_some_and(|kind| KINDS.contains(&kind));
    match value {
        Value::String(_) => known(value).then(|| value.clone()),
        Value::Array(kinds) => (!kinds.is_empty() && kinds.len() <= KINDS.len() && kinds.iter().all(known))
            .then(|| {
                let mut once: Vec<Value> = Vec::new();
                for kind in kinds {
                    if !once.contains(kind) {
                        once.push(kind.clone());
                    }
                }
                Value::Array(once)
            }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(schema: Value) -> Clean {
        clean(schema.as_object().unwrap())
    }

    #[test]
    fn what_models_need_is_kept() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object", "title": "Args", "description": "said elsewhere",
            "properties": {
                "path": {"type": "string", "description": "Where.", "pattern": "(a+)+$"},
                "mode": {"enum": ["r", "w"], "default": "r"},
                "item": {"$ref": "#/$defs/Item"},
            },
            "required": ["path"],
            "additionalProperties": false,
            "$defs": {"Item": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0}}}},
        });
        assert_eq!(
            cleaned(schema),
            Clean {
                schema: json!({
                    "type": "object",
                    "properties": {
                        "path": {"type": "string", "description": "Where."},
                        "mode": {"enum": ["r", "w"], "default": "r"},
                        "item": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0}}},
                    },
                    "required": ["path"],
                    "additionalProperties": false,
                }),
                shrunk: false,
            }
        );
    }

    #[test]
    fn remote_and_circular_references_take_anything() {
        let clean = cleaned(json!({"properties": {
            "far": {"$ref": "https://example.com/schema.json"},
            "file": {"$ref": "other.json#/x"},
            "me": {"$ref": "#"},
        }}));
        assert!(clean.shrunk);
        let text = clean.schema.to_string();
        assert!(!text.contains("$ref") && !text.contains("example.com"), "{text}");
        assert_eq!(clean.schema["properties"]["far"], json!({}));
    }

    #[test]
    fn bombs_are_small_afterwards() {
        // Each level doubles the one before: two to the power of sixty when followed.
        let mut definitions = Map::new();
        for level in 0..60 {
            let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
            definitions.insert(format!("l{level}"), json!({"properties": {"a": next.clone(), "b": next}}));
        }
        let doubling = json!({"properties": {"x": {"$ref": "#/$defs/l0"}}, "$defs": definitions});
        let wide = json!({"properties": (0..5000).map(|i| (format!("p{i}"), json!({"type": "string"}))).collect::<Map<_, _>>()});
        let mut deep = json!({"type": "string"});
        for _ in 0..100 {
            deep = json!({"type": "object", "properties": {"d": deep}});
        }
        let wordy = json!({"properties": {"a": {"description": "word ".repeat(100_000)}}});
        let choosy = json!({"properties": {"a": {"enum": (0..10_000).collect::<Vec<_>>()}}});
        for bomb in [doubling, wide, deep, wordy, choosy] {
            let clean = cleaned(bomb);
            assert!(clean.shrunk);
            assert!(clean.schema.to_string().len() <= SIZE);
            assert_eq!(clean.schema["type"], "object");
        }
    }

    #[test]
    fn nonsense_is_dropped() {
        let clean = cleaned(json!({
            "type": ["object", 7], "required": "all",
            "properties": {"a": {"type": "strng", "minimum": "x", "exclusiveMinimum": true, "enum": []}, "b": 5},
        }));
        assert_eq!(clean.schema, json!({"type": "object", "properties": {"a": {}, "b": {}}}));
    }
}
