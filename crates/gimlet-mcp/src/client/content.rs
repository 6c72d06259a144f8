//! What a server answers, as a model and a Python cell see it: structure where there is some, else text. Pictures and
//! sounds are noted, not shown.

use gimlet::tool::ToolError;
use rmcp::model::{CallToolResult, ContentBlock, ReadResourceResult, ResourceContents};
use serde_json::{Value, json};

use super::code;

/// So many things that cannot be shown are named one by one.
const MOST_NOTES: usize = 8;

/// Whether a server wraps a plain value into `{"result": …}` to make it an object, as FastMCP does and says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrapping {
    /// What comes is what is meant.
    None,
    /// The value of `result` is meant.
    Result,
}

/// A tool's result.
pub(super) fn result(result: CallToolResult, wrapping: Wrapping) -> Result<Value, ToolError> {
    if result.is_error == Some(true) {
        let mut text = text_of(&result.content);
        if text.is_empty() {
            text = result
                .structured_content
                .map_or("the tool failed and did not say why".into(), |v| v.to_string());
        }
        return Err(ToolError::failed(code::MCP_TOOL_FAILED, clip(&text, 4000)));
    }
    match (result.structured_content, wrapping) {
        (Some(Value::Object(mut map)), Wrapping::Result) if map.len() == 1 && map.contains_key("result") => {
            Ok(map.remove("result").unwrap_or_default())
        }
        (Some(structure), _) => Ok(structure),
        (None, _) => Ok(Value::String(text_of(&result.content))),
    }
}

/// All texts in order; what is no text is noted.
fn text_of(content: &[ContentBlock]) -> String {
    let mut parts = Vec::new();
    let mut notes = 0;
    for block in content {
        let note = match block {
            ContentBlock::Text(text) => {
                parts.push(text.text.clone());
                continue;
            }
            ContentBlock::Resource(embedded) => match &embedded.resource {
                ResourceContents::TextResourceContents { uri, text, .. } => {
                    parts.push(format!("[{uri}]\n{text}"));
                    continue;
                }
                ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                    format!("[{uri}: {}, {} bytes, not shown]", kind(mime_type.as_deref()), bytes(blob))
                }
                _ => "[a resource of a kind this program does not know]".into(),
            },
            ContentBlock::Image(image) => {
                format!("[image: {}, {} bytes, not shown]", image.mime_type, bytes(&image.data))
            }
            ContentBlock::Audio(audio) => {
                format!("[audio: {}, {} bytes, not shown]", audio.mime_type, bytes(&audio.data))
            }
            ContentBlock::ResourceLink(link) => format!("[resource {}: {}]", link.name, link.uri),
            _ => "[content of a kind this program does not know]".into(),
        };
        notes += 1;
        if notes <= MOST_NOTES {
            parts.push(note);
        }
    }
    if notes > MOST_NOTES {
        parts.push(format!("[and {} more that are not shown]", notes - MOST_NOTES));
    }
    parts.join("\n")
}

/// A resource that was read.
pub(super) fn resource(result: ReadResourceResult) -> Value {
    let blocks: Vec<ContentBlock> = result.contents.into_iter().map(ContentBlock::resource).collect();
    match blocks.as_slice() {
        [ContentBlock::Resource(one)]
            if matches!(one.resource, ResourceContents::TextResourceContents { .. }) =>
        {
            Value::String(one.get_text())
        }
        many => Value::String(text_of(many)),
    }
}

/// A prompt: who says what.
pub(super) fn prompt(result: rmcp::model::GetPromptResult) -> Value {
    let messages: Vec<Value> = result
        .messages
        .iter()
        .map(|message| {
            let role = serde_json::to_value(&message.role).unwrap_or_default();
            json!({ "role": role, "text": text_of(std::slice::from_ref(&message.content)) })
        })
        .collect();
    json!({ "description": result.description.unwrap_or_default(), "messages": messages })
}

fn kind(mime: Option<&str>) -> &str {
    mime.unwrap_or("unknown kind")
}

/// Bytes behind a text in base 64.
fn bytes(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

/// The beginning of a text from outside, without control characters.
pub(super) fn clip(text: &str, most: usize) -> String {
    let clean = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    let mut kept: String = text.chars().filter(clean).take(most + 1).collect();
    if kept.chars().count() > most {
        kept.pop();
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(value: Value) -> CallToolResult {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn structure_beats_text() {
        let both =
            content(json!({"content": [{"type": "text", "text": "{}"}], "structuredContent": {"a": 1}}));
        assert_eq!(result(both, Wrapping::None).unwrap(), json!({"a": 1}));
        let wrapped = content(json!({"content": [], "structuredContent": {"result": [1, 2]}}));
        assert_eq!(result(wrapped.clone(), Wrapping::Result).unwrap(), json!([1, 2]));
        assert_eq!(result(wrapped, Wrapping::None).unwrap(), json!({"result": [1, 2]}));
        let text =
            content(json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}));
        assert_eq!(result(text, Wrapping::Result).unwrap(), json!("a\nb"));
    }

    #[test]
    fn pictures_are_noted_and_counted() {
        let image = json!({"type": "image", "data": "AAAAAAAA", "mimeType": "image/png"});
        let many = content(json!({"content": vec![image; 11]}));
        let text = result(many, Wrapping::None).unwrap();
        let text = text.as_str().unwrap();
        assert!(text.starts_with("[image: image/png, 6 bytes, not shown]\n"), "{text}");
        assert!(text.ends_with("[and 3 more that are not shown]") && text.lines().count() == 9, "{text}");
    }

    #[test]
    fn a_failure_is_an_error_value() {
        let failed = content(
            json!({"content": [{"type": "text", "text": "no such thing\u{1b}[31m"}], "isError": true}),
        );
        let error = result(failed, Wrapping::None).unwrap_err().to_string();
        assert_eq!(error, "MCP_TOOL_FAILED: no such thing[31m");
    }
}
