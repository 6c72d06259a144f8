//! Recovery hints are data: for an error, a call that would help. They are returned, never made.

use std::collections::HashMap;
use std::sync::LazyLock;

use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior};
use serde::Deserialize;
use serde_json::Value;

use crate::message::ToolCall;
use crate::tool::{SuggestedCall, Suggestion, ToolFailure};

#[derive(Deserialize)]
struct Hint {
    name: String,
    arguments: Value,
    rationale: String,
}

/// The shipped table. It is part of the program and tested to parse, so an empty one cannot reach anybody.
static HINTS: LazyLock<HashMap<String, Hint>> =
    LazyLock::new(|| serde_json::from_str(include_str!("hints.json")).unwrap_or_default());

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.add_filter("default", minijinja::filters::default);
    environment.add_filter("basename", |path: String| path.rsplit('/').next().unwrap_or_default().to_owned());
    environment
});

/// The hint for a failed call, if there is one whose blanks its arguments or the failure's context can fill.
pub(super) fn suggest(failure: &ToolFailure, call: &ToolCall) -> Option<Suggestion> {
    let hint = HINTS.get(&failure.error)?;
    let mut facts = failure.context.clone();
    facts.extend(call.args.as_object().cloned().unwrap_or_default());
    // What was asked for says more than the part of it at which the search ended.
    if let Some(path) = call.args.get("file_path").cloned() {
        facts.insert("path".into(), path);
    }
    let arguments = fill(&hint.arguments, &Value::Object(facts))?;
    Some(Suggestion {
        tool_call: SuggestedCall { name: hint.name.clone(), arguments },
        rationale: hint.rationale.clone(),
    })
}

fn fill(template: &Value, facts: &Value) -> Option<Value> {
    Some(match template {
        Value::String(text) => Value::String(TEMPLATES.render_str(text, Serde(facts)).ok()?),
        Value::Object(map) => Value::Object(
            map.iter().map(|(key, value)| Some((key.clone(), fill(value, facts)?))).collect::<Option<_>>()?,
        ),
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| fill(item, facts)).collect::<Option<_>>()?)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => template.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(args: Value) -> ToolCall {
        ToolCall { id: "c".into(), name: "read_file".into(), args }
    }

    fn suggest(error: &str, call: &ToolCall) -> Option<Suggestion> {
        super::suggest(&ToolFailure::new(error, ""), call)
    }

    #[test]
    fn what_the_arguments_do_not_name_the_failure_may() {
        let mut failure = ToolFailure::new("INVALID_DIFF", "");
        let unified = call(json!({"unified_diff": "…"}));
        assert_eq!(super::suggest(&failure, &unified), None);
        failure.context.insert("path".into(), json!("a.py"));
        let hint = super::suggest(&failure, &unified).unwrap();
        assert_eq!(hint.tool_call.arguments, json!({"path": "a.py", "start_line": 1, "end_line": 200}));
    }

    #[test]
    fn the_table_parses_and_fills_its_blanks() {
        assert!(HINTS.len() >= 5);
        let hint = suggest("FILE_NOT_FOUND", &call(json!({"path": "src/lib/utils.py"}))).unwrap();
        assert_eq!(hint.tool_call.name, "list_files");
        assert_eq!(hint.tool_call.arguments, json!({"glob": "**/utils.py", "limit": 50}));
        let hint = suggest("RG_FAILED", &call(json!({"pattern": "("}))).unwrap();
        assert_eq!(hint.tool_call.arguments["glob"], "**/*");
    }

    #[test]
    fn a_hint_whose_blanks_cannot_be_filled_is_not_given() {
        assert_eq!(suggest("FILE_NOT_FOUND", &call(json!({"other": 1}))), None);
        assert_eq!(suggest("NO_SUCH_ERROR", &call(json!({"path": "a"}))), None);
    }
}
