//! Anthropic: `/v1/messages` as server-sent events or as one object.

use gimlet::digest::digest;
use gimlet::message::{Finish, Usage};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::server::rules::{Rule, Violation};

use super::{
    Answer, Chat, Content, Outgoing, Said, SaidCall, Streaming, args_text, args_value, call_id, pieces, sse,
};

#[derive(Deserialize)]
struct Request {
    max_tokens: u64,
    system: Option<Content>,
    messages: Vec<Message>,
    #[serde(default)]
    stream: bool,
}

#[derive(Deserialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Message {
    User { content: Blocks },
    Assistant { content: Blocks },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Blocks {
    Text(String),
    Blocks(Vec<Value>),
}

/// A block of content. Read by its own step so that a wrong one is named, not just "no variant matched".
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        text: String,
    },
    Image {},
    Thinking {
        thinking: String,
        signature: String,
    },
    RedactedThinking {
        #[serde(rename = "data")]
        _data: String,
    },
    ToolUse {
        id: String,
        name: String,
        #[serde(rename = "input")]
        _input: Map<String, Value>,
    },
    ToolResult {
        tool_use_id: String,
        content: Option<Content>,
    },
}

pub(super) fn read(body: &Value, header: &dyn Fn(&str) -> bool) -> Result<Chat, String> {
    if !header("anthropic-version") {
        return Err("the header `anthropic-version` is missing".into());
    }
    let request = Request::deserialize(body).map_err(|error| error.to_string())?;
    if request.max_tokens == 0 {
        return Err("`max_tokens` is 0".into());
    }
    let mut said = Vec::new();
    let mut raw = Vec::new();
    let mut objections = Vec::new();
    if let Some(system) = &request.system {
        said.push(Said::System { text: system.text() });
        raw.push(json!({ "role": "system", "content": body.get("system") }));
    }
    for (index, message) in request.messages.into_iter().enumerate() {
        match message {
            Message::User { content } => user(blocks(content, index)?, index, &mut said)?,
            Message::Assistant { content } => {
                said.push(assistant(blocks(content, index)?, index, &mut objections)?)
            }
        }
    }
    raw.extend(super::raw_messages(body));
    raw.iter_mut().for_each(settle);
    Ok(Chat {
        model: super::model_name(body),
        stream: if request.stream { Streaming::Events } else { Streaming::Whole },
        said,
        raw,
        tools: super::tools::check_schemas(&without_cache_control(body.clone()))?,
        objections,
    })
}

fn blocks(content: Blocks, index: usize) -> Result<Vec<Block>, String> {
    let values = match content {
        Blocks::Text(text) => vec![json!({ "type": "text", "text": text })],
        Blocks::Blocks(values) => values,
    };
    if values.is_empty() {
        return Err(format!("message {index} is empty"));
    }
    let read = |(at, value): (usize, &Value)| {
        let block =
            Block::deserialize(value).map_err(|error| format!("message {index}, block {at}: {error}"))?;
        match &block {
            Block::Text { text } if text.trim().is_empty() => {
                Err(format!("message {index}, block {at}: a text must not be empty"))
            }
            _ => Ok(block),
        }
    };
    values.iter().enumerate().map(read).collect()
}

/// A user's message: results first, then text.
fn user(blocks: Vec<Block>, index: usize, said: &mut Vec<Said>) -> Result<(), String> {
    let mut text: Option<String> = None;
    for block in blocks {
        match block {
            Block::ToolResult { tool_use_id, content } => {
                if text.is_some() {
                    return Err(format!("message {index}: tool results must come before text"));
                }
                let content = content.map(|content| content.text()).unwrap_or_default();
                said.push(Said::Result { id: Some(tool_use_id), name: None, text: content });
            }
            Block::Text { text: more } => {
                let text = text.get_or_insert_default();
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(&more);
            }
            Block::Image {} => {
                text.get_or_insert_default();
            }
            Block::Thinking { .. } | Block::RedactedThinking { .. } | Block::ToolUse { .. } => {
                return Err(format!("message {index}: a user neither thinks nor calls tools"));
            }
        }
    }
    said.extend(text.map(|text| Said::User { text }));
    Ok(())
}

fn assistant(blocks: Vec<Block>, index: usize, objections: &mut Vec<Violation>) -> Result<Said, String> {
    let (mut text, mut calls) = (String::new(), Vec::new());
    for block in blocks {
        match block {
            Block::Text { text: more } => text.push_str(&more),
            Block::Thinking { thinking, signature } => {
                if signature != sign(&thinking) {
                    let detail = format!("message {index}: the signature does not belong to this thinking");
                    objections.push(Violation { rule: Rule::Thinking, detail });
                }
            }
            Block::RedactedThinking { .. } => {}
            Block::ToolUse { id, name, .. } => {
                let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                if !id.chars().all(plain) {
                    return Err(format!("message {index}: `{id}` is no id of letters, digits, `_` and `-`"));
                }
                calls.push(SaidCall { id: Some(id), name });
            }
            Block::Image {} | Block::ToolResult { .. } => {
                return Err(format!("message {index}: an assistant shows no images and answers no calls"));
            }
        }
    }
    Ok(Said::Assistant { text, calls })
}

/// Brings a message to one form, so that a moved cache marker or a text written as a block is no change.
fn settle(message: &mut Value) {
    let mut settled = without_cache_control(message.take());
    if let Some(text) = settled.get("content").and_then(Value::as_str) {
        let text = text.to_owned();
        settled["content"] = json!([{ "type": "text", "text": text }]);
    }
    *message = settled;
}

fn without_cache_control(value: Value) -> Value {
    match value {
        Value::Object(map) => map
            .into_iter()
            .filter(|(key, _)| key != "cache_control")
            .map(|(key, value)| (key, without_cache_control(value)))
            .collect(),
        Value::Array(list) => list.into_iter().map(without_cache_control).collect(),
        plain => plain,
    }
}

/// The signature of a thought: made from the text, so that a changed thought is noticed when it comes back.
fn sign(thinking: &str) -> String {
    format!("scripted-{}", &digest(thinking.as_bytes())[..32])
}

pub(super) fn write(out: &Outgoing<'_>) -> Answer {
    match out.stream {
        Streaming::Whole => {
            Answer { content_type: "application/json", events: vec![whole(out).to_string().into_bytes()] }
        }
        Streaming::Events | Streaming::EventsAndUsage => {
            let events = events(out);
            let events = events.iter().map(|data| sse(data["type"].as_str(), &data.to_string())).collect();
            Answer { content_type: "text/event-stream; charset=utf-8", events }
        }
    }
}

fn message(out: &Outgoing<'_>, content: Value, reason: Option<&str>, usage: Value) -> Value {
    json!({
        "id": format!("msg_{}", out.turn),
        "type": "message",
        "role": "assistant",
        "model": out.model,
        "content": content,
        "stop_reason": reason,
        "stop_sequence": null,
        "usage": usage,
    })
}

fn whole(out: &Outgoing<'_>) -> Value {
    let reply = out.reply;
    let mut content = Vec::new();
    if !reply.thinking.is_empty() {
        content.push(
            json!({ "type": "thinking", "thinking": reply.thinking, "signature": sign(&reply.thinking) }),
        );
    }
    if !reply.text.is_empty() {
        content.push(json!({ "type": "text", "text": reply.text }));
    }
    content.extend(reply.calls.iter().enumerate().map(|(index, call)| {
        let id = call_id(call, "toolu", out.turn, index);
        json!({ "type": "tool_use", "id": id, "name": call.name, "input": args_value(call) })
    }));
    message(out, content.into(), Some(stop_reason(reply.finish())), usage(reply.usage, reply.usage.output))
}

fn events(out: &Outgoing<'_>) -> Vec<Value> {
    let reply = out.reply;
    let mut blocks: Vec<(Value, Vec<Value>)> = Vec::new();
    if !reply.thinking.is_empty() {
        let mut deltas: Vec<Value> = pieces(&reply.thinking)
            .into_iter()
            .map(|piece| json!({ "type": "thinking_delta", "thinking": piece }))
            .collect();
        deltas.push(json!({ "type": "signature_delta", "signature": sign(&reply.thinking) }));
        blocks.push((json!({ "type": "thinking", "thinking": "", "signature": "" }), deltas));
    }
    if !reply.text.is_empty() {
        let deltas =
            pieces(&reply.text).into_iter().map(|piece| json!({ "type": "text_delta", "text": piece }));
        blocks.push((json!({ "type": "text", "text": "" }), deltas.collect()));
    }
    for (index, call) in reply.calls.iter().enumerate() {
        let id = call_id(call, "toolu", out.turn, index);
        let partial = |piece: String| json!({ "type": "input_json_delta", "partial_json": piece });
        // The first delta of a call is empty; what follows adds up to the arguments.
        let deltas = std::iter::once(String::new()).chain(pieces(&args_text(call))).map(partial);
        blocks.push((
            json!({ "type": "tool_use", "id": id, "name": call.name, "input": {} }),
            deltas.collect(),
        ));
    }

    let start = message(out, json!([]), None, usage(reply.usage, 1));
    let mut events = vec![json!({ "type": "message_start", "message": start })];
    for (index, (block, deltas)) in blocks.into_iter().enumerate() {
        events.push(json!({ "type": "content_block_start", "index": index, "content_block": block }));
        if index == 0 {
            events.push(json!({ "type": "ping" }));
        }
        let delta = |delta| json!({ "type": "content_block_delta", "index": index, "delta": delta });
        events.extend(deltas.into_iter().map(delta));
        events.push(json!({ "type": "content_block_stop", "index": index }));
    }
    events.push(json!({
        "type": "message_delta",
        "delta": { "stop_reason": stop_reason(reply.finish()), "stop_sequence": null },
        "usage": { "output_tokens": reply.usage.output },
    }));
    events.push(json!({ "type": "message_stop" }));
    events
}

/// Anthropic counts cached tokens beside the others, not among them.
fn usage(usage: Usage, output: u64) -> Value {
    json!({
        "input_tokens": usage.input.saturating_sub(usage.cached),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": output,
    })
}

fn stop_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "end_turn",
        Finish::ToolCalls => "tool_use",
        Finish::Length => "max_tokens",
        Finish::Filtered => "refusal",
    }
}

pub(super) fn error(status: u16, message: &str) -> Value {
    let kind = match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    };
    json!({ "type": "error", "error": { "type": kind, "message": message }, "request_id": "req_scripted" })
}
