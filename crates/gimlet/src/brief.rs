//! A tool in few words, for models that run locally: every request carries all tools, and a small window is precious.
//! Names and types tell most of it. What is left out still holds, since calls are checked against the whole schema.

use serde_json::{Map, Value, json};

use crate::tool::ToolSpec;

/// Arguments whose default is nearly always right.
const SELDOM: [&str; 2] = ["limit", "timeout"];

/// The tool with the first sentence of its description, and of its arguments what a call must have.
pub(crate) fn brief(spec: &ToolSpec) -> ToolSpec {
    let mut input = json!({ "type": "object", "properties": {} });
    let required = spec.input.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let properties = spec.input.get("properties").and_then(Value::as_object);
    let brief: Map<String, Value> = properties
        .into_iter()
        .flatten()
        .filter(|(name, _)| !SELDOM.contains(&name.as_str()) || required.iter().any(|needed| needed == *name))
        .map(|(name, schema)| {
            let mut short = kind(schema);
            // One argument is what the tool's own description speaks of; which of several is which must be said.
            let is_told = required.len() > 1 && required.iter().any(|needed| needed == name);
            if let Some(text) = schema.get("description").and_then(Value::as_str).filter(|_| is_told) {
                short["description"] = first_sentence(text).into();
            }
            (name.clone(), short)
        })
        .collect();
    input["properties"] = Value::Object(brief);
    if !required.is_empty() {
        input["required"] = Value::Array(required);
    }
    ToolSpec { description: first_sentence(&spec.description).to_owned(), input, ..spec.clone() }
}

/// A property's type without its bounds; one of several values stays one of them.
fn kind(schema: &Value) -> Value {
    let mut short = json!({});
    match schema.get("type") {
        Some(Value::Array(kinds)) => {
            if let Some(kind) = kinds.iter().find(|kind| **kind != "null") {
                short["type"] = kind.clone();
            }
        }
        Some(kind) => short["type"] = kind.clone(),
        None => {}
    }
    if let Some(values) = schema.get("enum") {
        short["enum"] = values.clone();
    }
    if short["type"] == "array" {
        short["items"] = match schema.pointer("/items/type") {
            Some(kind) => json!({ "type": kind }),
            None => json!({ "type": "string" }),
        };
    }
    short
}

fn first_sentence(text: &str) -> &str {
    text.find(". ").map_or(text, |end| &text[..=end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::Manner;

    #[test]
    fn names_types_and_needs_stay() {
        let spec = ToolSpec {
            name: "edit".into(),
            description: "Change a file. Be careful.".into(),
            input: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "description": "Where. Below the root." },
                    "text": { "type": "string", "description": "What." },
                    "limit": { "type": "integer" },
                    "times": { "type": ["integer", "null"], "minimum": 1, "default": 1, "description": "How often." },
                    "rights": { "type": "array", "items": { "$ref": "#/$defs/Right" } },
                },
                "required": ["path", "text"],
                "additionalProperties": false,
                "$defs": { "Right": { "enum": ["a"] } },
            }),
            output: None,
            manner: Manner::default(),
        };
        let short = brief(&spec);
        assert_eq!(short.description, "Change a file.");
        assert_eq!(
            short.input,
            json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "description": "Where." },
                    "text": { "type": "string", "description": "What." },
                    "times": { "type": "integer" },
                    "rights": { "type": "array", "items": { "type": "string" } },
                },
                "required": ["path", "text"],
            })
        );
    }
}
