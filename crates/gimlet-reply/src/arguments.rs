//! Makes the arguments fit the tool's schema, or says why they do not.
//!
//! Harmless slips of small models are mended (`"5"` for 5, null for "leave it out"); everything else is an error that
//! shows the right signature.

use std::sync::Arc;

use gimlet_event::tool::{ToolFailure, ToolSpec, code};
use serde_json::{Map, Value};

use crate::signature::signature;

/// A tool's schema is not one.
#[derive(Debug, thiserror::Error)]
#[error("the schema of tool `{tool}` is not valid: {reason}")]
pub struct BadSchema {
    /// The tool.
    pub tool: String,
    /// What is wrong.
    pub reason: String,
}

/// Checks the arguments of one tool.
pub struct Arguments {
    spec: Arc<ToolSpec>,
    validator: jsonschema::Validator,
}

impl Arguments {
    /// A check against a tool's schema.
    pub fn of(spec: &Arc<ToolSpec>) -> Result<Self, BadSchema> {
        let validator = jsonschema::validator_for(&spec.input)
            .map_err(|error| BadSchema { tool: spec.name.clone(), reason: error.to_string() })?;
        Ok(Arguments { spec: spec.clone(), validator })
    }

    /// The arguments, mended where their meaning is plain, or what is wrong with them.
    pub fn fit(&self, args: Value) -> Result<Value, ToolFailure> {
        self.check(args).map_err(|message| {
            let mut failure = ToolFailure::new(code::VALIDATION_FAILED, message);
            failure.context.insert("usage".into(), signature(&self.spec).into());
            failure
        })
    }

    fn check(&self, args: Value) -> Result<Value, String> {
        let args = Value::Object(mend(args, &self.spec.input)?);
        let problems = problems(&self.validator, &args);
        if problems.is_empty() { Ok(args) } else { Err(problems.join("; ")) }
    }
}

/// What is wrong with a value, in a few words for a model.
pub fn problems(validator: &jsonschema::Validator, value: &Value) -> Vec<String> {
    let errors = validator.iter_errors(value).take(3);
    errors
        .map(|error| {
            let place = error.instance_path().to_string();
            let place = place.trim_start_matches('/').replace('/', ".");
            if place.is_empty() { error.to_string() } else { format!("`{place}`: {error}") }
        })
        .collect()
}

/// The arguments as an object without nulls that mean "default", with harmless slips mended.
fn mend(args: Value, schema: &Value) -> Result<Map<String, Value>, String> {
    let given = match args {
        Value::Object(map) => map,
        Value::Null => Map::new(),
        Value::String(text) if text.trim().is_empty() => Map::new(),
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(Value::Object(map)) => map,
            Ok(other) => return Err(format!("the arguments must be a JSON object, not {other}")),
            Err(error) => return Err(format!("the arguments are not valid JSON: {error}")),
        },
        other => return Err(format!("the arguments must be a JSON object, not {other}")),
    };
    let empty = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let required = |name: &str| {
        schema.get("required").and_then(Value::as_array).is_some_and(|names| names.iter().any(|n| n == name))
    };
    let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    let mut mended = Map::new();
    for (name, value) in given {
        match properties.get(&name) {
            None if closed => return Err(unknown(&name, properties)),
            Some(_) if value.is_null() && !required(&name) => {}
            Some(property) => {
                mended.insert(name, coerce(value, property));
            }
            None => {
                mended.insert(name, value);
            }
        }
    }
    Ok(mended)
}

fn unknown(name: &str, properties: &Map<String, Value>) -> String {
    let closest = closest(name, properties.keys().map(String::as_str));
    let guess = closest.map(|closest| format!("; did you mean `{closest}`?")).unwrap_or_default();
    format!("there is no argument `{name}`{guess}")
}

/// The name most like a misspelt one, if any is like it at all.
pub fn closest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    known
        .map(|candidate| {
            let part = name.contains(candidate) || candidate.contains(&name);
            let likeness = strsim::jaro_winkler(&name, &candidate.to_lowercase());
            (if part { likeness.max(0.8) } else { likeness }, candidate)
        })
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// Mends a value whose meaning is plain but whose type is off; leaves anything else to the validator.
fn coerce(value: Value, schema: &Value) -> Value {
    let wants = |kind: &str| has_type(schema, kind);
    match &value {
        Value::String(text) if !wants("string") => {
            let text = text.trim();
            let parsed = serde_json::from_str::<Value>(text).ok();
            match parsed {
                Some(Value::Number(n)) if wants("number") || (wants("integer") && !n.is_f64()) => {
                    Value::Number(n)
                }
                Some(parsed @ Value::Array(_)) if wants("array") => parsed,
                Some(parsed @ Value::Object(_)) if wants("object") => parsed,
                _ if wants("boolean") && text.eq_ignore_ascii_case("true") => Value::Bool(true),
                _ if wants("boolean") && text.eq_ignore_ascii_case("false") => Value::Bool(false),
                _ if wants("null")
                    && (text.eq_ignore_ascii_case("null") || text.eq_ignore_ascii_case("none")) =>
                {
                    Value::Null
                }
                _ => value,
            }
        }
        Value::Number(n) if !wants("number") && wants("integer") => match n.as_f64() {
            // 5.0 where 5 is wanted.
            Some(whole) if n.is_f64() && whole.fract() == 0.0 && whole.abs() < 9e15 => {
                #[expect(clippy::cast_possible_truncation, reason = "a whole number below 2^53 fits")]
                let whole = whole as i64;
                Value::from(whole)
            }
            _ => value,
        },
        Value::Number(n) if wants("string") && !wants("number") && !wants("integer") => {
            Value::String(n.to_string())
        }
        _ => value,
    }
}

fn has_type(schema: &Value, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(only)) => return only == kind,
        Some(Value::Array(kinds)) => return kinds.iter().any(|k| k == kind),
        _ => {}
    }
    ["anyOf", "oneOf"].iter().any(|key| {
        schema
            .get(key)
            .and_then(Value::as_array)
            .is_some_and(|options| options.iter().any(|o| has_type(o, kind)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "limit": {"type": "integer"},
                "deep": {"type": ["boolean", "null"]},
                "names": {"type": "array", "items": {"type": "string"}},
                "end_line": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            },
            "required": ["path"],
            "additionalProperties": false,
        })
    }

    fn mended(args: Value) -> Result<Value, String> {
        mend(args, &schema()).map(Value::Object)
    }

    #[test]
    fn harmless_slips_are_mended() {
        assert_eq!(mended(json!({"path": "a", "limit": "5"})), Ok(json!({"path": "a", "limit": 5})));
        assert_eq!(mended(json!({"path": "a", "limit": 5.0})), Ok(json!({"path": "a", "limit": 5})));
        assert_eq!(mended(json!({"path": "a", "deep": "True"})), Ok(json!({"path": "a", "deep": true})));
        assert_eq!(
            mended(json!({"path": "a", "names": "[\"x\"]"})),
            Ok(json!({"path": "a", "names": ["x"]}))
        );
        assert_eq!(mended(json!({"path": "a", "end_line": "7"})), Ok(json!({"path": "a", "end_line": 7})));
        assert_eq!(mended(json!({"path": 7})), Ok(json!({"path": "7"})));
        assert_eq!(mended(json!("{\"path\": \"a\"}")), Ok(json!({"path": "a"})));
    }

    #[test]
    fn null_means_default_only_where_there_is_one() {
        assert_eq!(mended(json!({"path": "a", "limit": null})), Ok(json!({"path": "a"})));
        assert_eq!(mended(json!({"path": null})), Ok(json!({"path": null})));
        assert_eq!(mended(Value::Null), Ok(json!({})));
    }

    #[test]
    fn what_is_not_harmless_is_left_for_the_validator() {
        assert_eq!(mended(json!({"path": "a", "limit": "many"})), Ok(json!({"path": "a", "limit": "many"})));
        assert_eq!(mended(json!({"path": "a", "limit": "5.5"})), Ok(json!({"path": "a", "limit": "5.5"})));
        assert_eq!(mended(json!({"path": "5"})), Ok(json!({"path": "5"})));
    }

    #[test]
    fn an_unknown_argument_names_the_closest() {
        assert_eq!(
            mended(json!({"path": "a", "limits": 3})),
            Err("there is no argument `limits`; did you mean `limit`?".into())
        );
        assert_eq!(
            mended(json!({"file_path": "a"})),
            Err("there is no argument `file_path`; did you mean `path`?".into())
        );
        assert_eq!(mended(json!({"zzz": 3})), Err("there is no argument `zzz`".into()));
    }

    #[test]
    fn arguments_that_are_no_object_are_an_error() {
        assert!(mended(json!([1])).unwrap_err().contains("must be a JSON object"));
        assert!(mended(json!("{not json")).unwrap_err().contains("not valid JSON"));
    }
}
