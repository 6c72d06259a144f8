//! Calls written as tags: `<function=read_file><parameter=path>a.rs</parameter></function>`, as some coder models do.

use serde_json::{Map, Value};

use super::{ParsedCall, call, json};

/// How such a call begins.
pub(super) const OPEN: &str = "<function=";

/// The calls in a text that begins with [`OPEN`], or what is wrong with it.
pub(super) fn read(text: &str) -> Result<Vec<ParsedCall>, String> {
    text.split(OPEN).skip(1).map(read_one).collect()
}

fn read_one(text: &str) -> Result<ParsedCall, String> {
    let (name, rest) = text.split_once('>').ok_or("the tag with its name is not closed")?;
    let body = rest.split("</function>").next().unwrap_or(rest);
    let name = name.trim().trim_matches('"').to_owned();
    if name.is_empty() {
        return Err("it has no name".into());
    }
    if body.trim_start().starts_with('{') {
        let args = json::read_one(body.trim())
            .map_err(|problem| format!("its arguments are not valid JSON: {problem}"))?;
        return Ok(ParsedCall { name, args: call::arguments(&args) });
    }
    let args = body.split("<parameter=").skip(1).map(parameter).collect::<Result<Map<_, _>, _>>()?;
    Ok(ParsedCall { name, args: Value::Object(args) })
}

/// Values stay strings: only the schema, which is not known here, tells `5` from `"5"`.
fn parameter(text: &str) -> Result<(String, Value), String> {
    let (key, rest) = text.split_once('>').ok_or("the tag of a parameter is not closed")?;
    let value = rest.split("</parameter>").next().unwrap_or(rest);
    let value = value.strip_prefix('\n').unwrap_or(value);
    let value = value.strip_suffix('\n').unwrap_or(value);
    Ok((key.trim().trim_matches('"').to_owned(), Value::String(value.to_owned())))
}
