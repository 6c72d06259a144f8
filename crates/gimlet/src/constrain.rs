//! Holding a model to the form of an action: a JSON schema of everything it may do next.
//!
//! Servers that can decode under a schema then cannot give anything else; one that cannot says so and is asked without
//! (the wires mind that). What comes back is read by the same ladder as any other reply.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::effect::Effect;
use crate::event::ActionFormat;
use crate::state::{CallSummary, State};
use crate::tool::{Tells, ToolSpec, code};

/// When a model's replies are held to a schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Constrain {
    /// Once two replies in a row could not be read.
    #[default]
    AfterFailures,
    /// From the first reply on, for models too small to begin by themselves, until a call has told them something of the
    /// matter, and again after a refused answer until a call has succeeded: held any longer they go on calling and never
    /// answer. Code is left free until it fails: the same models write it better in a fence than in a string.
    Always,
    /// Not at all.
    Never,
}

impl Constrain {
    /// Whether the next reply is held to a schema. The last answer of a run is prose, and a model that goes round in
    /// circles is let go: held to the form of a call, it makes the same one again.
    pub fn applies(self, state: &State, tools: &[Arc<ToolSpec>]) -> bool {
        let held = match self {
            Constrain::AfterFailures => state.constrained,
            Constrain::Always => {
                let waits = !has_looked(state, tools) || sent_back(state);
                state.constrained || (waits && !writes_code(state))
            }
            Constrain::Never => false,
        };
        held && state.closing.is_none() && !circles(state)
    }
}

/// Whether the last call was made before, with nothing changed in between, or was refused for being made too often.
fn circles(state: &State) -> bool {
    let Some((last, earlier)) = of_task(state).split_last() else { return false };
    let changes = |call: &&CallSummary| call.effects.iter().any(Effect::changes_world);
    let mut since = earlier.iter().rev().take_while(|call| !changes(call));
    let again = since.any(|call| call.tool == last.tool && call.args == last.args);
    again || last.error.as_deref() == Some(code::LOOP_DETECTED)
}

/// The calls of the present task.
fn of_task(state: &State) -> &[CallSummary] {
    state.history.get(state.before_task..).unwrap_or_default()
}

/// So many calls in vain tell something as well: that it is not there.
const IN_VAIN: usize = 3;

/// Whether a call of the present task has told something of the matter. Names of files do not, nor does a search that found
/// nothing: a small model that has seen nothing else makes up the rest.
fn has_looked(state: &State, tools: &[Arc<ToolSpec>]) -> bool {
    let only_where =
        |name: &str| tools.iter().any(|tool| tool.name == name && tool.manner.tells == Tells::Where);
    let found_nothing = |call: &&CallSummary| call.error.is_some() || call.count == Some(0);
    let calls = of_task(state);
    calls.iter().any(|call| !found_nothing(&call) && !only_where(&call.tool))
        || calls.iter().filter(found_nothing).count() >= IN_VAIN
}

/// Whether an answer was refused and nothing was achieved since: another one in other words would be refused as well.
fn sent_back(state: &State) -> bool {
    let since = state.refused.as_ref().and_then(|refused| state.history.get(refused.after..));
    since.is_some_and(|calls| calls.iter().all(|call| call.error.is_some()))
}

fn writes_code(state: &State) -> bool {
    state.action == ActionFormat::Code
}

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
    use crate::tool::Manner;

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
