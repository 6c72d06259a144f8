//! Recognises the many shapes in which models write a call as JSON.

use serde_json::{Map, Value};

use super::ParsedCall;
use super::json::{self, Reading};

/// The name by which a model ends a run.
pub(super) const FINAL_ANSWER: &str = "final_answer";

/// Keys under which models write a tool's name.
pub(super) const NAME_KEYS: [&str; 6] = ["name", "tool", "tool_name", "function", "function_name", "action"];

/// Keys under which they write its arguments.
const ARG_KEYS: [&str; 9] = [
    "arguments",
    "parameters",
    "args",
    "input",
    "action_input",
    "tool_input",
    "params",
    "kwargs",
    "tool_args",
];

/// Keys that hold a call or a list of calls.
const WRAPPERS: [&str; 6] = ["tool_calls", "tool_call", "function_call", "calls", "function", "action"];

/// Keys that say something about a call and are no argument.
const ASIDES: [&str; 5] = ["id", "type", "thought", "reasoning", "explanation"];

/// How surely a value is a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Certainty {
    /// It has the shape of a call, which other data may have too: a call only if nothing else is in the reply.
    Alone,
    /// It names a tool.
    Named,
}

/// Calls found in a value.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) calls: Vec<ParsedCall>,
    pub(super) certainty: Certainty,
}

/// The calls in a value, if it is one or more of them.
pub(super) fn find(value: &Value, known: &[&str]) -> Option<Found> {
    match value {
        Value::Array(items) => all(items, known),
        Value::Object(map) => in_object(map, known),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// The calls in a sequence, if every value is one. One that names a tool vouches for its neighbours.
pub(super) fn all(values: &[Value], known: &[&str]) -> Option<Found> {
    let mut found = Found { calls: Vec::new(), certainty: Certainty::Alone };
    for value in values {
        let next = find(value, known)?;
        found.calls.extend(next.calls);
        found.certainty = found.certainty.max(next.certainty);
    }
    (!found.calls.is_empty()).then_some(found)
}

/// The calls in a text that was marked as one, or what is wrong with it.
pub(super) fn in_marked(text: &str, known: &[&str]) -> Result<Vec<ParsedCall>, String> {
    let text = text.trim();
    if !text.starts_with(['{', '[']) {
        return Err(if text.is_empty() { "it is empty".into() } else { "it is not a JSON object".into() });
    }
    match json::read(text) {
        Reading::Broken(problem) => Err(format!("it is not valid JSON: {problem}")),
        Reading::Values(values) => all(&values, known)
            .map(|found| found.calls)
            .ok_or_else(|| "it has no \"name\" and \"arguments\"".into()),
    }
}

/// The text of a final answer given as a call.
pub(super) fn answer(args: &Value) -> Option<String> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match args {
        Value::Null => None,
        Value::Object(map) if map.is_empty() => None,
        Value::Object(map) => match (map.get("answer"), map.values().next()) {
            (Some(answer), _) => Some(text(answer)),
            (None, Some(only)) if map.len() == 1 => Some(text(only)),
            _ => Some(args.to_string()),
        },
        other => Some(text(other)),
    }
}

fn in_object(map: &Map<String, Value>, known: &[&str]) -> Option<Found> {
    let is_tool = |name: &str| name == FINAL_ANSWER || known.contains(&name);
    let named = NAME_KEYS.iter().find_map(|key| Some((*key, map.get(*key)?.as_str()?.trim())));
    let given = ARG_KEYS.iter().find_map(|key| map.get(*key));
    if let Some((key, name)) = named {
        let flat = || map.iter().filter(|(k, _)| *k != key && !ASIDES.contains(&k.as_str()));
        return match given {
            _ if name.is_empty() => None,
            Some(args) => Some(one(
                name,
                arguments(args),
                if is_tool(name) { Certainty::Named } else { Certainty::Alone },
            )),
            // `{"name": "read_file", "path": "a"}`: the arguments lie beside the name.
            None if is_tool(name) => {
                let args: Map<_, _> = flat().map(|(k, v)| (k.clone(), v.clone())).collect();
                let certainty = if args.is_empty() { Certainty::Named } else { Certainty::Alone };
                Some(one(name, Value::Object(args), certainty))
            }
            None => None,
        };
    }
    if let Some(inner) = WRAPPERS.iter().find_map(|key| map.get(*key)) {
        return find(inner, known);
    }
    // `{"read_file": {"path": "a"}}`
    match map.iter().next() {
        Some((name, args)) if map.len() == 1 && name == FINAL_ANSWER => {
            Some(one(name, args.clone(), Certainty::Named))
        }
        Some((name, args)) if map.len() == 1 && args.is_object() && is_tool(name) => {
            Some(one(name, args.clone(), Certainty::Alone))
        }
        _ => None,
    }
}

fn one(name: &str, args: Value, certainty: Certainty) -> Found {
    Found { calls: vec![ParsedCall { name: name.to_owned(), args }], certainty }
}

/// Arguments as an object, where they can be read as one.
pub(super) fn arguments(given: &Value) -> Value {
    match given {
        Value::Null => Value::Object(Map::new()),
        Value::String(text) => from_text(text),
        other => other.clone(),
    }
}

/// Arguments written as JSON inside a string, sometimes twice over. What is no JSON object stays the text it is.
fn from_text(text: &str) -> Value {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Value::Object(Map::new());
    }
    let inner = match serde_json::from_str(trimmed) {
        Ok(Value::String(inner)) => inner,
        _ => trimmed.to_owned(),
    };
    match inner.trim().starts_with('{').then(|| json::read_one(inner.trim())) {
        Some(Ok(object @ Value::Object(_))) => object,
        _ => Value::String(text.to_owned()),
    }
}
