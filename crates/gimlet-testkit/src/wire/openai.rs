//! OpenAI: `/v1/chat/completions` as server-sent events or as one object, and `/v1/models`.

use gimlet::message::{Finish, Usage};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Answer, CREATED_UNIX, Chat, Content, Outgoing, Said, SaidCall, Streaming, args_text, call_id, pieces, sse,
};

#[derive(Deserialize)]
struct Request {
    messages: Vec<Message>,
    #[serde(default)]
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

#[derive(Deserialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Message {
    #[serde(alias = "developer")]
    System {
        content: Content,
    },
    User {
        content: Content,
    },
    Assistant {
        content: Option<Content>,
        tool_calls: Option<Vec<Call>>,
    },
    Tool {
        content: Content,
        tool_call_id: String,
    },
}

#[derive(Deserialize)]
struct Call {
    id: String,
    #[serde(rename = "type")]
    _kind: FunctionKind,
    function: Function,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum FunctionKind {
    Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    #[serde(rename = "arguments")]
    _arguments: String,
}

pub(super) fn read(body: &Value) -> Result<Chat, String> {
    let request = Request::deserialize(body).map_err(|error| error.to_string())?;
    let mut said = Vec::with_capacity(request.messages.len());
    for (index, message) in request.messages.into_iter().enumerate() {
        said.push(match message {
            Message::System { content } => Said::System { text: content.text() },
            Message::User { content } => Said::User { text: content.text() },
            Message::Tool { content, tool_call_id } => {
                Said::Result { id: Some(tool_call_id), name: None, text: content.text() }
            }
            Message::Assistant { content, tool_calls } => {
                if tool_calls.as_ref().is_some_and(Vec::is_empty) {
                    return Err(format!("message {index}: `tool_calls` is an empty list"));
                }
                if content.is_none() && tool_calls.is_none() {
                    return Err(format!("message {index}: an assistant says nothing and calls nothing"));
                }
                let calls = tool_calls.unwrap_or_default().into_iter();
                let calls = calls.map(|call| SaidCall { id: Some(call.id), name: call.function.name });
                let text = content.map(|content| content.text()).unwrap_or_default();
                Said::Assistant { text, calls: calls.collect() }
            }
        });
    }
    let stream = match (request.stream, request.stream_options) {
        (Some(true), Some(StreamOptions { include_usage: true })) => Streaming::EventsAndUsage,
        (Some(true), _) => Streaming::Events,
        (_, None) => Streaming::Whole,
        (_, Some(_)) => return Err("`stream_options` is only for streams".into()),
    };
    let tools = super::tools::check_functions(body)?;
    Ok(Chat {
        model: super::model_name(body),
        stream,
        said,
        raw: super::raw_messages(body),
        tools,
        objections: Vec::new(),
    })
}

pub(super) fn write(out: &Outgoing<'_>) -> Answer {
    match out.stream {
        Streaming::Whole => {
            Answer { content_type: "application/json", events: vec![whole(out).to_string().into_bytes()] }
        }
        Streaming::Events | Streaming::EventsAndUsage => {
            let mut events: Vec<Vec<u8>> =
                chunks(out).iter().map(|chunk| sse(None, &chunk.to_string())).collect();
            events.push(sse(None, "[DONE]"));
            Answer { content_type: "text/event-stream", events }
        }
    }
}

fn whole(out: &Outgoing<'_>) -> Value {
    let reply = out.reply;
    let calls = reply.calls.iter().enumerate().map(|(index, call)| {
        json!({
            "id": call_id(call, "call", out.turn, index),
            "type": "function",
            "function": { "name": call.name, "arguments": args_text(call) },
        })
    });
    let calls: Vec<Value> = calls.collect();
    let content =
        if reply.text.is_empty() && !calls.is_empty() { Value::Null } else { reply.text.clone().into() };
    let mut message = json!({ "role": "assistant", "content": content, "refusal": null });
    if !reply.thinking.is_empty() {
        message["reasoning_content"] = reply.thinking.clone().into();
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    json!({
        "id": format!("chatcmpl-{}", out.turn),
        "object": "chat.completion",
        "created": CREATED_UNIX,
        "model": out.model,
        "choices": [{ "index": 0, "message": message, "logprobs": null, "finish_reason": finish(reply.finish()) }],
        "usage": usage(reply.usage),
        "system_fingerprint": "fp_scripted",
    })
}

fn chunks(out: &Outgoing<'_>) -> Vec<Value> {
    let reply = out.reply;
    let mut deltas = vec![json!({ "role": "assistant", "content": "" })];
    deltas.extend(pieces(&reply.thinking).into_iter().map(|piece| json!({ "reasoning_content": piece })));
    deltas.extend(pieces(&reply.text).into_iter().map(|piece| json!({ "content": piece })));
    for (index, call) in reply.calls.iter().enumerate() {
        deltas.push(json!({ "tool_calls": [{
            "index": index,
            "id": call_id(call, "call", out.turn, index),
            "type": "function",
            "function": { "name": call.name, "arguments": "" },
        }] }));
        let arguments = pieces(&args_text(call)).into_iter();
        deltas.extend(
            arguments.map(
                |piece| json!({ "tool_calls": [{ "index": index, "function": { "arguments": piece } }] }),
            ),
        );
    }
    let choice = |delta: Value, reason: Value| json!([{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": reason }]);
    let mut choices: Vec<Value> = deltas.into_iter().map(|delta| choice(delta, Value::Null)).collect();
    choices.push(choice(json!({}), finish(reply.finish()).into()));
    let asked_usage = out.stream == Streaming::EventsAndUsage;
    if asked_usage {
        choices.push(json!([]));
    }
    let count = choices.len();
    let chunk = |(index, choices): (usize, Value)| {
        let mut chunk = json!({
            "id": format!("chatcmpl-{}", out.turn),
            "object": "chat.completion.chunk",
            "created": CREATED_UNIX,
            "model": out.model,
            "system_fingerprint": "fp_scripted",
            "choices": choices,
        });
        if asked_usage {
            // Once asked for, the key is in every chunk, and only the last one fills it.
            chunk["usage"] = if index + 1 == count { usage(reply.usage) } else { Value::Null };
        }
        chunk
    };
    choices.into_iter().enumerate().map(chunk).collect()
}

fn finish(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::ToolCalls => "tool_calls",
        Finish::Length => "length",
        Finish::Filtered => "content_filter",
    }
}

fn usage(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.total(),
        "prompt_tokens_details": { "cached_tokens": usage.cached },
        "completion_tokens_details": { "reasoning_tokens": usage.reasoning },
    })
}

pub(super) fn error(status: u16, message: &str) -> Value {
    let (kind, code) = match status {
        401 => ("invalid_request_error", Some("invalid_api_key")),
        404 => ("invalid_request_error", Some("model_not_found")),
        429 => ("requests", Some("rate_limit_exceeded")),
        500.. => ("server_error", None),
        _ => ("invalid_request_error", None),
    };
    json!({ "error": { "message": message, "type": kind, "param": null, "code": code } })
}

/// The answer of `/v1/models`.
pub(crate) fn models(models: &[String]) -> Value {
    let data = models.iter().map(
        |name| json!({ "id": name, "object": "model", "created": CREATED_UNIX, "owned_by": "scripted" }),
    );
    json!({ "object": "list", "data": data.collect::<Vec<_>>() })
}
