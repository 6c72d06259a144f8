//! A tool's schema as a Python signature: what code agents read, and what a model is shown after a wrong call.

use std::sync::Arc;

use serde_json::Value;

use gimlet_event::tool::ToolSpec;

/// `read_file(path: str, start_line: int = 1)`.
pub fn signature(spec: &ToolSpec) -> String {
    let required: Vec<&str> = spec
        .input
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let empty = serde_json::Map::new();
    let properties = spec.input.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let mut parameters: Vec<(bool, String)> = properties
        .iter()
        .map(|(name, schema)| {
            let kind = python_type(schema);
            if required.contains(&name.as_str()) {
                (false, format!("{name}: {kind}"))
            } else {
                let default = schema.get("default").map_or("None".into(), python_literal);
                (true, format!("{name}: {kind} = {default}"))
            }
        })
        .collect();
    // Python wants parameters without a default first; the sort keeps the order otherwise.
    parameters.sort_by_key(|(optional, _)| *optional);
    let parameters: Vec<String> = parameters.into_iter().map(|(_, text)| text).collect();
    format!("{}({})", spec.name, parameters.join(", "))
}

/// A call as a model writes it in text. Small models copy what they are shown, so it is a real one: of a tool that needs
/// no arguments, if there is one.
pub fn example(tools: &[Arc<ToolSpec>]) -> String {
    let Some((spec, required)) = easiest(tools) else {
        return r#"{"name": "look", "arguments": {}}"#.to_owned();
    };
    let arguments: Vec<String> = required
        .iter()
        .map(|name| {
            let kind = spec.input.pointer(&format!("/properties/{name}/type")).and_then(Value::as_str);
            let value = match kind {
                Some("integer" | "number") => "1",
                Some("boolean") => "true",
                Some("array") => "[]",
                Some("object") => "{}",
                Some(_) | None => "\"README.md\"",
            };
            format!("\"{name}\": {value}")
        })
        .collect();
    format!(r#"{{"name": "{}", "arguments": {{{}}}}}"#, spec.name, arguments.join(", "))
}

/// The tool that needs the fewest arguments, and those.
pub fn easiest(tools: &[Arc<ToolSpec>]) -> Option<(&ToolSpec, Vec<&str>)> {
    let needed =
        |spec: &Arc<ToolSpec>| spec.input.get("required").and_then(Value::as_array).map_or(0, Vec::len);
    let spec = tools.iter().min_by_key(|spec| needed(spec))?;
    let names = spec.input.get("required").and_then(Value::as_array);
    Some((spec, names.into_iter().flatten().filter_map(Value::as_str).collect()))
}

fn python_type(schema: &Value) -> String {
    let name = |kind: &str| match kind {
        "string" => "str".to_owned(),
        "integer" => "int".to_owned(),
        "number" => "float".to_owned(),
        "boolean" => "bool".to_owned(),
        "array" => schema.get("items").map_or("list".into(), |items| format!("list[{}]", python_type(items))),
        "object" => "dict".to_owned(),
        "null" => "None".to_owned(),
        other => other.to_owned(),
    };
    if let Some(Value::Array(options)) = schema.get("enum") {
        let options: Vec<String> = options.iter().map(python_literal).collect();
        return format!("Literal[{}]", options.join(", "));
    }
    match schema.get("type") {
        Some(Value::String(kind)) => return name(kind),
        Some(Value::Array(kinds)) => {
            let kinds: Vec<String> = kinds.iter().filter_map(Value::as_str).map(name).collect();
            return kinds.join(" | ");
        }
        _ => {}
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(Value::Array(options)) = schema.get(key) {
            return options.iter().map(python_type).collect::<Vec<_>>().join(" | ");
        }
    }
    "Any".into()
}

fn python_literal(value: &Value) -> String {
    match value {
        Value::Null => "None".into(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gimlet_event::tool::Manner;
    use serde_json::json;

    #[test]
    fn schemas_read_like_python() {
        let spec = ToolSpec {
            name: "f".into(),
            description: String::new(),
            input: json!({
                "type": "object",
                "properties": {
                    "limit": {"type": "integer", "default": 100},
                    "path": {"type": "string"},
                    "deep": {"type": ["boolean", "null"], "default": null},
                    "names": {"type": "array", "items": {"type": "string"}, "default": []},
                    "mode": {"enum": ["a", "b"], "default": "a"},
                    "x": {"anyOf": [{"type": "number"}, {"type": "null"}]},
                },
                "required": ["path"],
            }),
            output: None,
            manner: Manner::default(),
        };
        assert_eq!(
            signature(&spec),
            "f(path: str, limit: int = 100, deep: bool | None = None, names: list[str] = [], \
             mode: Literal[\"a\", \"b\"] = \"a\", x: float | None = None)"
        );
    }
}
