//! The line language: one line of text to one thing to do.

use gimlet::cell::{CellEnd, Stream};
use serde_json::Value;

use super::{Variables, stream};

/// What a line does.
#[derive(Debug, PartialEq)]
pub(super) enum Line {
    Nothing,
    Print { text: String, stream: Stream },
    Set { variable: String, value: Value },
    Show { value: Value },
    Call { variable: Option<String>, tool: String, args: Value, on_failure: OnFailure },
    End(CellEnd),
    Hang,
}

/// What a failed call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnFailure {
    Raise,
    Keep,
}

/// An exception.
#[derive(Debug, PartialEq)]
pub(super) struct Raise {
    pub(super) kind: String,
    pub(super) message: String,
}

fn raise<T>(kind: &str, message: impl Into<String>) -> Result<T, Raise> {
    Err(Raise { kind: kind.into(), message: message.into() })
}

/// Reads a line, with the variables it names put in.
pub(super) fn parse(text: &str, variables: &Variables) -> Result<Line, Raise> {
    let text = text.trim();
    if text.is_empty() || text.starts_with('#') {
        return Ok(Line::Nothing);
    }
    if text.starts_with('$') {
        return Ok(Line::Show { value: value(text, variables)? });
    }
    let (word, rest) = split(text);
    match word {
        "print" | "warn" => {
            let text = match rest.strip_prefix('$') {
                Some(name) => shown(&lookup(name, variables)?),
                None => rest.to_owned(),
            };
            Ok(Line::Print { text, stream: stream(word) })
        }
        "set" => {
            let (variable, rest) = split(rest);
            Ok(Line::Set { variable: variable.to_owned(), value: value(rest, variables)? })
        }
        "call" | "try" => call(None, text, variables),
        "raise" => {
            let (kind, message) = split(rest);
            raise(if kind.is_empty() { "Exception" } else { kind }, message)
        }
        "answer" => Ok(Line::End(CellEnd::Answer { value: value(rest, variables)? })),
        "limit" => Ok(Line::End(CellEnd::Limited { message: rest.to_owned() })),
        "crash" => Ok(Line::End(CellEnd::Crashed { message: rest.to_owned() })),
        "hang" => Ok(Line::Hang),
        _ => match rest.strip_prefix('=') {
            Some(action) => call(Some(word.to_owned()), action.trim(), variables),
            None => raise("SyntaxError", format!("cannot read the line: {text}")),
        },
    }
}

/// `call TOOL {json}` or `try call TOOL {json}`.
fn call(variable: Option<String>, text: &str, variables: &Variables) -> Result<Line, Raise> {
    let (on_failure, text) = match text.strip_prefix("try ") {
        Some(rest) => (OnFailure::Keep, rest.trim()),
        None => (OnFailure::Raise, text),
    };
    let ("call", rest) = split(text) else {
        return raise("SyntaxError", format!("expected `call TOOL {{…}}`: {text}"));
    };
    let (tool, args) = split(rest);
    if tool.is_empty() {
        return raise("SyntaxError", "a call names its tool");
    }
    let args = value(if args.is_empty() { "{}" } else { args }, variables)?;
    Ok(Line::Call { variable, tool: tool.to_owned(), args, on_failure })
}

/// The first word, and the rest.
fn split(text: &str) -> (&str, &str) {
    match text.split_once(char::is_whitespace) {
        Some((word, rest)) => (word, rest.trim()),
        None => (text, ""),
    }
}

/// A variable, or JSON in which texts of the form `$name` stand for variables.
fn value(text: &str, variables: &Variables) -> Result<Value, Raise> {
    if let Some(name) = text.strip_prefix('$') {
        return lookup(name, variables);
    }
    match serde_json::from_str(text) {
        Ok(value) => fill(value, variables),
        Err(error) => raise("SyntaxError", format!("not JSON: {error}")),
    }
}

fn fill(value: Value, variables: &Variables) -> Result<Value, Raise> {
    match value {
        Value::String(text) => match text.strip_prefix('$') {
            Some(name) => lookup(name, variables),
            None => Ok(Value::String(text)),
        },
        Value::Array(items) => items.into_iter().map(|item| fill(item, variables)).collect(),
        Value::Object(map) => map.into_iter().map(|(key, item)| Ok((key, fill(item, variables)?))).collect(),
        plain => Ok(plain),
    }
}

fn lookup(name: &str, variables: &Variables) -> Result<Value, Raise> {
    match variables.get(name) {
        Some(value) => Ok(value.clone()),
        None => raise("NameError", format!("name '{name}' is not defined")),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
