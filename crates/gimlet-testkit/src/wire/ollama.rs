//! Ollama: `/api/chat` as lines of JSON or as one object, and the endpoints that describe models.

use crate::server::Windows;
use gimlet::message::Finish;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Answer, CREATED, Chat, Outgoing, Said, SaidCall, Streaming, args_value, call_id, pieces};

#[derive(Deserialize)]
struct Request {
    messages: Vec<Message>,
    stream: Option<bool>,
}

#[derive(Deserialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Message {
    System {
        content: String,
    },
    User {
        content: String,
    },
    Assistant {
        #[serde(default)]
        content: String,
        #[serde(default)]
        tool_calls: Vec<Call>,
    },
    Tool {
        content: String,
        tool_name: Option<String>,
        tool_call_id: Option<String>,
    },
}

#[derive(Deserialize)]
struct Call {
    id: Option<String>,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    #[serde(rename = "arguments")]
    _arguments: Map<String, Value>,
}

pub(super) fn read(body: &Value) -> Result<Chat, String> {
    let request = Request::deserialize(body).map_err(|error| error.to_string())?;
    let said = request.messages.into_iter().map(|message| match message {
        Message::System { content } => Said::System { text: content },
        Message::User { content } => Said::User { text: content },
        Message::Assistant { content, tool_calls } => {
            let calls = tool_calls.into_iter().map(|call| SaidCall { id: call.id, name: call.function.name });
            Said::Assistant { text: content, calls: calls.collect() }
        }
        Message::Tool { content, tool_name, tool_call_id } => {
            Said::Result { id: tool_call_id, name: tool_name, text: content }
        }
    });
    Ok(Chat {
        model: super::model_name(body),
        stream: if request.stream == Some(false) { Streaming::Whole } else { Streaming::Events },
        said: said.collect(),
        raw: super::raw_messages(body),
        tools: super::tools::check_functions(body)?,
        objections: Vec::new(),
    })
}

pub(super) fn write(out: &Outgoing<'_>) -> Answer {
    let reply = out.reply;
    let calls = reply.calls.iter().enumerate().map(|(index, call)| {
        json!({
            "id": call_id(call, "call", out.turn, index),
            "function": { "index": index, "name": call.name, "arguments": args_value(call) },
        })
    });
    let calls: Vec<Value> = calls.collect();
    match out.stream {
        Streaming::Whole => {
            let mut message = json!({ "role": "assistant", "content": reply.text });
            if !reply.thinking.is_empty() {
                message["thinking"] = reply.thinking.clone().into();
            }
            if !calls.is_empty() {
                message["tool_calls"] = calls.into();
            }
            let body = last(out, message).to_string().into_bytes();
            Answer { content_type: "application/json; charset=utf-8", events: vec![body] }
        }
        Streaming::Events | Streaming::EventsAndUsage => {
            let thoughts = pieces(&reply.thinking)
                .into_iter()
                .map(|piece| json!({ "role": "assistant", "content": "", "thinking": piece }));
            let texts =
                pieces(&reply.text).into_iter().map(|piece| json!({ "role": "assistant", "content": piece }));
            // Ollama parses calls as the model writes them and sends each whole, on a line of its own.
            let calls = calls
                .into_iter()
                .map(|call| json!({ "role": "assistant", "content": "", "tool_calls": [call] }));
            let mut lines: Vec<Value> =
                thoughts.chain(texts).chain(calls).map(|m| middle(out.model, m)).collect();
            lines.push(last(out, json!({ "role": "assistant", "content": "" })));
            let events = lines.iter().map(|line| format!("{line}\n").into_bytes()).collect();
            Answer { content_type: "application/x-ndjson", events }
        }
    }
}

/// What Ollama says when it is asked to load a model and nothing else.
pub(crate) fn loaded(model: &str) -> Answer {
    let body = json!({
        "model": model,
        "created_at": CREATED,
        "message": { "role": "assistant", "content": "" },
        "done_reason": "load",
        "done": true,
    });
    Answer { content_type: "application/json; charset=utf-8", events: vec![body.to_string().into_bytes()] }
}

fn middle(model: &str, message: Value) -> Value {
    json!({ "model": model, "created_at": CREATED, "message": message, "done": false })
}

fn last(out: &Outgoing<'_>, message: Value) -> Value {
    let reason = match out.reply.finish() {
        // Ollama has no words of its own for calls and for filtered replies.
        Finish::Stop | Finish::ToolCalls | Finish::Filtered => "stop",
        Finish::Length => "length",
    };
    json!({
        "model": out.model,
        "created_at": CREATED,
        "message": message,
        "done": true,
        "done_reason": reason,
        "total_duration": 3_000_000,
        "load_duration": 1_000_000,
        "prompt_eval_count": out.reply.usage.input,
        "prompt_eval_duration": 1_000_000,
        "eval_count": out.reply.usage.output,
        "eval_duration": 1_000_000,
    })
}

/// The answer of `/api/version`.
pub(crate) fn version() -> Value {
    json!({ "version": "0.12.6" })
}

/// The answer of `/api/tags`.
pub(crate) fn tags(models: &[String]) -> Value {
    let models = models.iter().map(|name| {
        json!({
            "name": name,
            "model": name,
            "modified_at": CREATED,
            "size": 1_000_000,
            "digest": "0".repeat(64),
            "details": details(),
        })
    });
    json!({ "models": models.collect::<Vec<_>>() })
}

/// The answer of `/api/ps`.
pub(crate) fn running(models: &[String], windows: Windows) -> Value {
    let models: Vec<Value> = match windows {
        Windows::Running(tokens) => models
            .iter()
            .map(|name| json!({ "name": name, "model": name, "size": 1_000_000, "context_length": tokens }))
            .collect(),
        Windows::Set | Windows::Untold | Windows::Studio { .. } => Vec::new(),
    };
    json!({ "models": models })
}

/// The answer of LM Studio's `/api/v0/models`.
pub(crate) fn studio(models: &[String], windows: Windows, most: u64) -> Value {
    let loaded = match windows {
        Windows::Studio { loaded } => Some(loaded),
        Windows::Set | Windows::Untold | Windows::Running(_) => None,
    };
    let models = models.iter().map(|name| {
        json!({
            "id": name,
            "object": "model",
            "type": "llm",
            "quantization": "Q4_K_M",
            "state": "loaded",
            "max_context_length": most,
            "loaded_context_length": loaded,
            "capabilities": ["tool_use"],
        })
    });
    json!({ "object": "list", "data": models.collect::<Vec<_>>() })
}

/// The answer of `/api/show`.
pub(crate) fn show(context: u64, windows: Windows) -> Value {
    let parameters = match windows {
        Windows::Set => format!("num_ctx                        {context}"),
        Windows::Untold | Windows::Running(_) | Windows::Studio { .. } => String::new(),
    };
    json!({
        "modelfile": "FROM scripted",
        "parameters": parameters,
        "template": "{{ .Prompt }}",
        "details": details(),
        "model_info": {
            "general.architecture": "scripted",
            "general.parameter_count": 7_000_000_000_u64,
            "scripted.context_length": context,
            "scripted.embedding_length": 4096,
        },
        "capabilities": ["completion", "tools", "thinking"],
        "modified_at": CREATED,
    })
}

fn details() -> Value {
    json!({
        "parent_model": "",
        "format": "gguf",
        "family": "scripted",
        "families": ["scripted"],
        "parameter_size": "7.0B",
        "quantization_level": "Q4_K_M",
    })
}
