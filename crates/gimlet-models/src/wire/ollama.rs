//! Ollama's `/api/chat`: one JSON document a line, tool calls whole, the window sent with every request.
//!
//! `truncate` and `shift` are switched off: Ollama would drop the front of a long conversation, instructions first,
//! and answer as if nothing had happened.

use gimlet::message::{Finish, Message, ToolCall, Usage};
use gimlet::model::{ModelError, ModelEvent, Request};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::args::{Functions, Messages, Object, reasoning};
use super::calls::{Args, Calls, Piece};
use super::{DecodeFrame, Extra, Think, WireOptions};
use crate::status;

/// The body of a request.
pub fn encode(request: &Request, options: &WireOptions) -> Result<Vec<u8>, ModelError> {
    let sampling = &request.sampling;
    let body = Body {
        model: &options.model,
        messages: Messages { request, options, line },
        tools: (!request.tools.is_empty()).then_some(Functions(&request.tools)),
        stream: true,
        format: sampling.schema.as_deref().filter(|_| options.sends(Extra::Schema)),
        think: think(options),
        keep_alive: options.keep_alive.as_deref().map(KeepAlive),
        truncate: false,
        shift: false,
        options: Options {
            num_ctx: options.context,
            num_predict: options.max_tokens(sampling),
            temperature: options.temperature(sampling),
            seed: sampling.seed.filter(|_| options.sends(Extra::Seed)),
            stop: if options.sends(Extra::Stop) { &sampling.stop } else { &[] },
        },
    };
    super::to_body(&body, request)
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Messages<'a, Line<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Functions<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<ThinkValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep_alive: Option<KeepAlive<'a>>,
    truncate: bool,
    shift: bool,
    options: Options<'a>,
}

#[derive(Serialize)]
struct Options<'a> {
    num_ctx: u32,
    num_predict: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop: &'a [String],
}

#[derive(Serialize)]
#[serde(untagged)]
enum ThinkValue {
    Switch(bool),
    Level(&'static str),
}

fn think(options: &WireOptions) -> Option<ThinkValue> {
    if !options.sends(Extra::Think) {
        return None;
    }
    // Only one family has levels; for the others a level is an error.
    let level = |level| match options.model.starts_with("gpt-oss") {
        true => Some(ThinkValue::Level(level)),
        false => Some(ThinkValue::Switch(true)),
    };
    match options.think {
        Think::Default => None,
        Think::Off => Some(ThinkValue::Switch(false)),
        Think::Low => level("low"),
        Think::Medium => level("medium"),
        Think::High => level("high"),
    }
}

/// A duration such as `5m`, or a number of seconds, which must be a number in JSON.
struct KeepAlive<'a>(&'a str);

impl Serialize for KeepAlive<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.parse::<i64>() {
            Ok(seconds) => serializer.serialize_i64(seconds),
            Err(_) => serializer.serialize_str(self.0),
        }
    }
}

#[derive(Serialize)]
struct Line<'a> {
    role: &'static str,
    content: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<ToolCalls<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<&'a str>,
}

fn line<'a>(message: &'a Message, options: &WireOptions) -> Line<'a> {
    let plain = |role, content| Line { role, content, thinking: None, tool_calls: None, tool_name: None };
    match message {
        Message::System { text } => plain("system", text),
        Message::User { text } => plain("user", text),
        Message::Assistant { text, thinking, calls } => Line {
            thinking: reasoning(thinking, options),
            tool_calls: (!calls.is_empty()).then_some(ToolCalls(calls)),
            ..plain("assistant", text)
        },
        Message::Tool { name, text, .. } => Line { tool_name: Some(name), ..plain("tool", text) },
    }
}

struct ToolCalls<'a>(&'a [ToolCall]);

impl Serialize for ToolCalls<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Call<'a> {
            function: Function<'a>,
        }
        #[derive(Serialize)]
        struct Function<'a> {
            name: &'a str,
            arguments: Object<'a>,
        }
        serializer.collect_seq(
            self.0
                .iter()
                .map(|call| Call { function: Function { name: &call.name, arguments: Object(&call.args) } }),
        )
    }
}

/// Decodes the lines of one reply.
pub(super) struct Frames {
    calls: Calls,
    called: bool,
    context: u32,
}

impl Frames {
    pub(super) fn new(options: &WireOptions) -> Self {
        Frames { calls: Calls::default(), called: false, context: options.context }
    }
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    message: Option<ChunkMessage>,
    #[serde(default)]
    done: bool,
    #[serde(default)]
    done_reason: Option<String>,
    #[serde(default)]
    prompt_eval_count: Option<u64>,
    #[serde(default)]
    eval_count: Option<u64>,
    #[serde(default)]
    error: Option<Value>,
    /// Some versions tell a call that they cannot read in this way.
    #[serde(default, rename = "error parsing tool call")]
    unreadable_call: Option<Value>,
}

#[derive(Deserialize)]
struct ChunkMessage {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<ChunkCall>>,
}

#[derive(Deserialize)]
struct ChunkCall {
    #[serde(default)]
    id: Option<String>,
    function: ChunkFunction,
}

#[derive(Deserialize)]
struct ChunkFunction {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Value,
}

impl DecodeFrame for Frames {
    fn frame(&mut self, data: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let chunk: Chunk = super::parse(data)?;
        if let Some(error) = &chunk.error {
            return Err(status::in_stream(error));
        }
        if let Some(error) = &chunk.unreadable_call {
            return Err(ModelError::UnreadableCall { message: status::message_of(error) });
        }
        if chunk.message.is_none() && !chunk.done {
            return Err(ModelError::Protocol(format!(
                "a line without a message: {}",
                super::frame::excerpt(data)
            )));
        }
        if let Some(message) = chunk.message {
            out.extend(message.thinking.filter(|text| !text.is_empty()).map(ModelEvent::Thinking));
            out.extend(message.content.filter(|text| !text.is_empty()).map(ModelEvent::Text));
            for call in message.tool_calls.into_iter().flatten() {
                let ChunkFunction { name, arguments } = call.function;
                self.calls.push(Piece { index: None, id: call.id, name, args: Args::Whole(arguments) });
                out.extend(self.calls.finish().map(ModelEvent::Call));
                self.called = true;
            }
        }
        if chunk.done {
            let usage = Usage {
                input: chunk.prompt_eval_count.unwrap_or_default(),
                output: chunk.eval_count.unwrap_or_default(),
                ..Usage::default()
            };
            let window = u64::from(self.context);
            if usage.input.saturating_mul(10) >= window.saturating_mul(9) {
                out.push(ModelEvent::Notice(format!(
                    "the conversation fills {} of the model's {window} tokens; an older server may have dropped its \
                     beginning",
                    usage.input
                )));
            }
            out.push(ModelEvent::Usage(usage));
            out.push(ModelEvent::Done(match chunk.done_reason.as_deref() {
                Some("length") => Finish::Length,
                _ if self.called => Finish::ToolCalls,
                _ => Finish::Stop,
            }));
        }
        Ok(())
    }

    fn end(&mut self, _out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        Err(ModelError::Cut)
    }
}
