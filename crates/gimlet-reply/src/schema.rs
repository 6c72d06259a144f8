//! The form of an action as a JSON schema: everything a model may do next. Servers that can decode under a schema then
//! cannot give anything else.

use std::sync::Arc;

use gimlet_event::event::ActionFormat;
use gimlet_event::tool::ToolSpec;
use serde_json::{Map, Value, json};

/// The schema of an action: one of the calls there are, or a program.
pub fn schema(action: ActionFormat, tools: &[Arc<ToolSpec>]) -> Value {
    match action {
        ActionFormat::Tools | ActionFormat::Guided => one_of_calls(tools),
        ActionFormat::Code => object([("code", json!({ "type": "string", "minLength": 1 }))]),
    }
}

fn one_of_calls(tools: &[Arc<ToolSpec>]) -> Value {
    let mut shared = Map::new();
    let mut calls: Vec<Value> = tools
        .iter()
        .map(|tool| {
            let mut input = tool.input.clone();
            hoist(&mut input, &tool.name, &mut shared);
            call(&tool.name, input)
        })
        .collect();
    calls.push(call("final_answer", object([("answer", json!({ "type": "string" }))])));
    let mut schema = json!({ "oneOf": calls });
    if !shared.is_empty() {
        schema["$defs"] = Value::Object(shared);
    }
    schema
}

fn call(name: &str, arguments: Value) -> Value {
    object([("name", json!({ "const": name })), ("arguments", arguments)])
}

/// An object with exactly these fields.
fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let required: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    json!({
        "type": "object",
        "required": required,
        "additionalProperties": false,
        "properties": fields.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect::<Map<_, _>>(),
    })
}

/// Moves what a tool's schema defines for itself to the whole schema's definitions, where its references lead from
/// inside, under names of its own.
fn hoist(schema: &mut Value, tool: &str, shared: &mut Map<String, Value>) {
    let defined = schema.as_object_mut().and_then(|map| {
        map.remove("$schema");
        map.remove("$defs").or_else(|| map.remove("definitions"))
    });
    rename(schema, tool);
    if let Some(Value::Object(defined)) = defined {
        for (name, mut definition) in defined {
            rename(&mut definition, tool);
            shared.insert(format!("{tool}.{name}"), definition);
        }
    }
}

fn rename(schema: &mut Value, tool: &str) {
    match schema {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                let target = value.as_str().filter(|_| key == "$ref").and_then(|target| {
                    target.strip_prefix("#/$defs/").or_else(|| target.strip_prefix("#/definitions/"))
                });
                match target {
                    Some(name) => *value = Value::String(format!("#/$defs/{tool}.{name}")),
                    None => rename(value, tool),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, tool)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gimlet_event::tool::Manner;

    fn tool(name: &str, input: Value) -> Arc<ToolSpec> {
        let description = String::new();
        Arc::new(ToolSpec { name: name.into(), description, input, output: None, manner: Manner::default() })
    }

    #[test]
    fn an_action_is_one_of_the_calls_with_its_own_arguments() {
        let path = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"],
            "additionalProperties": false});
        let edit = json!({"$schema": "x", "type": "object", "properties": {"edit": {"$ref": "#/$defs/Edit"}},
            "$defs": {"Edit": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Edit"}}}}});
        let schema = schema(ActionFormat::Tools, &[tool("read_file", path), tool("edit", edit)]);
        let valid = jsonschema::validator_for(&schema).unwrap();
        for (action, fits) in [
            (json!({"name": "read_file", "arguments": {"path": "a"}}), true),
            (json!({"name": "read_file", "arguments": {}}), false),
            (json!({"name": "write_file", "arguments": {"path": "a"}}), false),
            (json!({"name": "edit", "arguments": {"edit": {"next": {}}}}), true),
            (json!({"name": "edit", "arguments": {"edit": {"next": 1}}}), false),
            (json!({"name": "final_answer", "arguments": {"answer": "42"}}), true),
            (json!({"name": "final_answer", "arguments": {}}), false),
            (json!("42"), false),
        ] {
            assert_eq!(valid.is_valid(&action), fits, "{action}");
        }
    }

    #[test]
    fn a_program_is_a_field() {
        let schema = schema(ActionFormat::Code, &[]);
        let valid = jsonschema::validator_for(&schema).unwrap();
        assert!(valid.is_valid(&json!({"code": "print(1)"})));
        assert!(!valid.is_valid(&json!({"code": ""})) && !valid.is_valid(&json!({})));
    }
}
