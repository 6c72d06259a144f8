//! The wires: each file reads its provider's request and writes its provider's reply, nothing else.
//!
//! `Chat` is what the rules see: the same words for all of them, beside the messages exactly as they were sent.

mod anthropic;
mod ollama;
mod openai;
mod responses;
mod tools;

use gimlet_models::script::{ScriptCall, ScriptReply};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::server::rules::Violation;

pub(crate) use ollama::{loaded, running, show, studio, tags, version};
pub(crate) use openai::models;

/// When everything here pretends to have been made: replies must not depend on the clock.
const CREATED: &str = "2026-01-01T00:00:00Z";
const CREATED_UNIX: u64 = 1_767_225_600;

/// A provider's protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    /// Ollama's `/api/chat`.
    Ollama,
    /// OpenAI's `/v1/chat/completions`.
    OpenAi,
    /// Anthropic's `/v1/messages`.
    Anthropic,
    /// OpenAI's `/v1/responses`.
    Responses,
}

/// A request, read.
#[derive(Debug, Clone)]
pub(crate) struct Chat {
    /// The model it names; empty when it names none.
    pub(crate) model: String,
    /// Whether the reply is to come in pieces.
    pub(crate) stream: Streaming,
    /// The conversation in common words.
    pub(crate) said: Vec<Said>,
    /// The conversation as it was sent, the system prompt first, without what may change from request to request.
    pub(crate) raw: Vec<Value>,
    /// The tools as they were sent.
    pub(crate) tools: Value,
    /// What the wire could read but this provider would refuse.
    pub(crate) objections: Vec<Violation>,
}

/// How the reply is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Streaming {
    /// In one piece.
    Whole,
    /// As events.
    Events,
    /// As events, with one more for the usage.
    EventsAndUsage,
}

/// One thing said in a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    System { text: String },
    User { text: String },
    Assistant { text: String, calls: Vec<SaidCall> },
    Result { id: Option<String>, name: Option<String>, text: String },
}

/// A tool call in an assistant's message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SaidCall {
    /// Absent only on wires that know calls without ids.
    pub(crate) id: Option<String>,
    pub(crate) name: String,
}

/// A reply on its way out: its type, and its events one by one.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) content_type: &'static str,
    pub(crate) events: Vec<Vec<u8>>,
}

/// What a wire needs to write a reply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outgoing<'a> {
    pub(crate) model: &'a str,
    pub(crate) stream: Streaming,
    pub(crate) reply: &'a ScriptReply,
    /// Replies before this one in the conversation; makes ids that differ without a counter.
    pub(crate) turn: usize,
}

impl Chat {
    /// The first thing the person said, which names the conversation.
    pub(crate) fn task(&self) -> &str {
        self.said
            .iter()
            .find_map(|said| if let Said::User { text } = said { Some(text.as_str()) } else { None })
            .unwrap_or("")
    }

    /// The standing instructions.
    pub(crate) fn system(&self) -> &str {
        match self.said.first() {
            Some(Said::System { text }) => text,
            Some(_) | None => "",
        }
    }

    /// The last thing said.
    pub(crate) fn last(&self) -> &str {
        match self.said.last() {
            Some(
                Said::System { text }
                | Said::User { text }
                | Said::Assistant { text, .. }
                | Said::Result { text, .. },
            ) => text,
            None => "",
        }
    }

    /// Replies of the model so far.
    pub(crate) fn replies(&self) -> usize {
        self.said.iter().filter(|said| matches!(said, Said::Assistant { .. })).count()
    }
}

impl Wire {
    /// The wire whose chat endpoint this is.
    pub fn of_path(path: &str) -> Option<Wire> {
        match path {
            "/api/chat" => Some(Wire::Ollama),
            "/v1/chat/completions" => Some(Wire::OpenAi),
            "/v1/messages" => Some(Wire::Anthropic),
            "/v1/responses" => Some(Wire::Responses),
            _ => None,
        }
    }

    /// Reads a request, or says what is wrong with its shape.
    pub(crate) fn read(self, body: &Value, header: &dyn Fn(&str) -> bool) -> Result<Chat, String> {
        match self {
            Wire::Ollama => ollama::read(body),
            Wire::OpenAi => openai::read(body),
            Wire::Anthropic => anthropic::read(body, header),
            Wire::Responses => responses::read(body),
        }
    }

    /// Writes a reply.
    pub(crate) fn write(self, out: &Outgoing<'_>) -> Answer {
        match self {
            Wire::Ollama => ollama::write(out),
            Wire::OpenAi => openai::write(out),
            Wire::Anthropic => anthropic::write(out),
            Wire::Responses => responses::write(out),
        }
    }

    /// An error the way this provider words it.
    pub(crate) fn error(self, status: u16, message: &str) -> Value {
        match self {
            Wire::Ollama => json!({ "error": message }),
            Wire::OpenAi | Wire::Responses => openai::error(status, message),
            Wire::Anthropic => anthropic::error(status, message),
        }
    }
}

/// Text that is either bare or a list of parts.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

/// A part of a text; parts that are not text (images) have none.
#[derive(Debug, Clone, Deserialize)]
struct Part {
    #[serde(rename = "type")]
    _kind: String,
    #[serde(default)]
    text: String,
}

impl Content {
    fn text(&self) -> String {
        match self {
            Content::Text(text) => text.clone(),
            Content::Parts(parts) => {
                parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join("\n")
            }
        }
    }
}

/// Longest piece of a text in one event, in characters: small enough that words and arguments are cut, large
/// enough that a megabyte does not become a hundred thousand events.
const PIECE: usize = 12;
const MOST_PIECES: usize = 64;

/// A text in the pieces in which events carry it.
fn pieces(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(PIECE.max(chars.len().div_ceil(MOST_PIECES))).map(|piece| piece.iter().collect()).collect()
}

/// The id of a scripted call.
fn call_id(call: &ScriptCall, prefix: &str, turn: usize, index: usize) -> String {
    call.id.clone().unwrap_or_else(|| format!("{prefix}_{turn}_{index}"))
}

/// The arguments as an object for wires that send one; what the script wrote as text stays text.
fn args_value(call: &ScriptCall) -> Value {
    if call.args.is_null() { json!({}) } else { call.args.clone() }
}

/// The arguments as text for wires that send that.
fn args_text(call: &ScriptCall) -> String {
    match args_value(call) {
        Value::String(text) => text,
        value => value.to_string(),
    }
}

/// The messages of a request as they were sent.
fn raw_messages(body: &Value) -> Vec<Value> {
    body.get("messages").and_then(Value::as_array).cloned().unwrap_or_default()
}

/// The model a request names; wires read it alike, and its absence is a rule of its own.
fn model_name(body: &Value) -> String {
    body.get("model").and_then(Value::as_str).unwrap_or_default().trim().to_owned()
}

/// One server-sent event.
fn sse(name: Option<&str>, data: &str) -> Vec<u8> {
    match name {
        Some(name) => format!("event: {name}\ndata: {data}\n\n"),
        None => format!("data: {data}\n\n"),
    }
    .into_bytes()
}
