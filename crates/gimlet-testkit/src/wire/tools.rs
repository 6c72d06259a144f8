//! The lists of tools that requests carry, in both shapes.

use std::collections::HashSet;

use serde_json::Value;

/// Checks `{"type":"function","function":{"name","description","parameters"}}`, as Ollama and OpenAI want it.
pub(super) fn check_functions(body: &Value) -> Result<Value, String> {
    check(body, |tool| {
        if tool.get("type").and_then(Value::as_str) != Some("function") {
            return Err("its `type` is not `function`".to_owned());
        }
        let function = tool.get("function").ok_or("it has no `function`")?;
        Ok(Some((function, "parameters")))
    })
}

/// Checks `{"type":"function","name","description","parameters"}`, as OpenAI's responses want it. The tools that the provider
/// itself would run have types of their own and come back unread.
pub(super) fn check_flat_functions(body: &Value) -> Result<Value, String> {
    check(body, |tool| match tool.get("type").and_then(Value::as_str) {
        Some("function") => Ok(Some((tool, "parameters"))),
        Some(_) => Ok(None),
        None => Err("it has no `type`".to_owned()),
    })
}

/// Checks `{"name","description","input_schema"}`, as Anthropic wants it.
pub(super) fn check_schemas(body: &Value) -> Result<Value, String> {
    check(body, |tool| Ok(Some((tool, "input_schema"))))
}

/// Checks each tool that `open` finds a function in, and hands the list back; no list and an empty one are the same.
fn check(
    body: &Value,
    open: impl Fn(&Value) -> Result<Option<(&Value, &'static str)>, String>,
) -> Result<Value, String> {
    let tools = match body.get("tools") {
        None | Some(Value::Null) => return Ok(Value::Array(Vec::new())),
        Some(Value::Array(tools)) => tools,
        Some(_) => return Err("`tools` is not a list".into()),
    };
    let mut names = HashSet::new();
    for (index, tool) in tools.iter().enumerate() {
        let wrong = |what: String| format!("tool {index} is not valid: {what}");
        let Some((inner, schema)) = open(tool).map_err(wrong)? else { continue };
        let name = inner.get("name").and_then(Value::as_str).unwrap_or_default();
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
            return Err(wrong(format!("`{name}` is not a name of 1 to 64 letters, digits, `_` and `-`")));
        }
        if !names.insert(name) {
            return Err(wrong(format!("the name `{name}` is there twice")));
        }
        if inner.get(schema).and_then(|schema| schema.get("type")).and_then(Value::as_str) != Some("object") {
            return Err(wrong(format!("its `{schema}` is not the schema of an object")));
        }
    }
    Ok(Value::Array(tools.clone()))
}
