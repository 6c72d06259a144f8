//! JSON as people read it: names and values, long texts as blocks, diffs as diffs.

use maud::{Markup, html};
use serde_json::Value;

use crate::colour::{self, Language};
use crate::diff::{diff, is_diff};
use crate::text::{block, clip, line};

/// Deeper values are shown as JSON.
const MOST_DEPTH: usize = 3;

/// All of a value.
pub(crate) fn value(value: &Value) -> Markup {
    match value {
        Value::Object(fields) => {
            let file = ["file_path", "path", "file"].iter().find_map(|name| fields.get(*name)?.as_str());
            html! { dl.fields { @for (name, field) in fields { (pair(name, field, file, 0)) } } }
        }
        other => inner(other, None, 0),
    }
}

fn pair(name: &str, field: &Value, file: Option<&str>, depth: usize) -> Markup {
    html! { div { dt { (line(name)) } dd { (inner(field, file, depth)) } } }
}

fn inner(value: &Value, file: Option<&str>, depth: usize) -> Markup {
    match value {
        Value::Null => html! { span.dim { "–" } },
        Value::Bool(_) | Value::Number(_) => html! { (value.to_string()) },
        Value::String(text) if is_diff(text) => diff(text),
        Value::String(text) if text.contains('\n') => {
            html! { pre.out { (colour::block(&block(text), file.and_then(Language::of))) } }
        }
        Value::String(text) if text.is_empty() => html! { span.dim { "empty" } },
        Value::String(text) => html! { (line(text)) },
        Value::Array(list) if list.is_empty() => html! { span.dim { "none" } },
        Value::Array(list) if list.iter().all(|entry| entry.is_string() || entry.is_number()) => {
            html! { ul.plain { @for entry in list { li { (inner(entry, file, depth + 1)) } } } }
        }
        Value::Array(list) if depth < MOST_DEPTH => {
            html! { ol.plain { @for entry in list { li { (inner(entry, file, depth + 1)) } } } }
        }
        Value::Object(fields) if depth < MOST_DEPTH => {
            html! { dl.fields { @for (name, field) in fields { (pair(name, field, file, depth + 1)) } } }
        }
        Value::Array(_) | Value::Object(_) => html! { code { (line(&value.to_string())) } },
    }
}

/// The beginning of a call's arguments, for a line.
pub(crate) fn brief(args: &Value) -> String {
    let text = match args {
        Value::Object(fields) => {
            let parts: Vec<String> = fields
                .iter()
                .map(|(name, value)| match value {
                    Value::String(text) => format!("{name}: {text}"),
                    other => format!("{name}: {other}"),
                })
                .collect();
            parts.join(", ")
        }
        other => other.to_string(),
    };
    clip(&text, 110)
}
