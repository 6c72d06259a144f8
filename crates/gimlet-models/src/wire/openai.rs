//! OpenAI's `/v1/chat/completions`, as the many servers that imitate it really speak it.
//!
//! The reply ends with `[DONE]`, or, where a server forgets it, with the body after a finish reason; usage comes in
//! between, so the calls, the usage and the end are said together.

use gimlet::message::{Finish, Message, Thinking, ToolCall, Usage};
use gimlet::model::{ModelError, ModelEvent, Request};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::args::{Functions, Messages, Text, reasoning};
use super::calls::{Args, Calls, Piece};
use super::{DecodeFrame, Extra, LengthField, Think, WireOptions};
use crate::status;

/// Marks a signature that Gemini put on a tool call and wants back there.
pub(super) const GOOGLE: &str = "google:";

/// The body of a request.
pub fn encode(request: &Request, options: &WireOptions) -> Result<Vec<u8>, ModelError> {
    let sampling = &request.sampling;
    let max_tokens = options.max_tokens(sampling);
    let (max_tokens, max_completion_tokens) = match options.quirks.length {
        LengthField::MaxTokens => (Some(max_tokens), None),
        LengthField::MaxCompletionTokens => (None, Some(max_tokens)),
    };
    let schema = sampling.schema.as_deref().filter(|_| options.sends(Extra::Schema));
    let body = Body {
        model: &options.model,
        messages: Messages { request, options, line },
        tools: (!request.tools.is_empty()).then_some(Functions(&request.tools)),
        tool_choice: (!request.tools.is_empty() && options.sends(Extra::ToolChoice)).then_some("auto"),
        stream: true,
        stream_options: options.sends(Extra::StreamOptions).then_some(StreamOptions { include_usage: true }),
        max_tokens,
        max_completion_tokens,
        temperature: options.temperature(sampling),
        seed: sampling.seed.filter(|_| options.sends(Extra::Seed)),
        stop: if options.sends(Extra::Stop) { &sampling.stop } else { &[] },
        response_format: schema.map(|schema| ResponseFormat {
            r#type: "json_schema",
            json_schema: JsonSchema { name: "reply", strict: true, schema },
        }),
        grammar: options
            .grammar
            .as_deref()
            .filter(|_| sampling.schema.is_none() && options.sends(Extra::Schema)),
        reasoning_effort: effort(options),
    };
    super::to_body(&body, request)
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Messages<'a, Line<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Functions<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    grammar: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct ResponseFormat<'a> {
    r#type: &'static str,
    json_schema: JsonSchema<'a>,
}

#[derive(Serialize)]
struct JsonSchema<'a> {
    name: &'static str,
    strict: bool,
    schema: &'a Value,
}

fn effort(options: &WireOptions) -> Option<&'static str> {
    if !options.sends(Extra::Think) {
        return None;
    }
    match options.think {
        Think::Default => None,
        Think::Off => Some("none"),
        Think::Low => Some("low"),
        Think::Medium => Some("medium"),
        Think::High => Some("high"),
    }
}

#[derive(Serialize)]
struct Line<'a> {
    role: &'static str,
    content: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<ToolCalls<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

fn line<'a>(message: &'a Message, options: &WireOptions) -> Line<'a> {
    let plain =
        |role, content| Line { role, content, reasoning_content: None, tool_calls: None, tool_call_id: None };
    match message {
        Message::System { text } => plain("system", text),
        Message::User { text } => plain("user", text),
        Message::Assistant { text, thinking, calls } => Line {
            reasoning_content: reasoning(thinking, options),
            tool_calls: (!calls.is_empty())
                .then(|| ToolCalls { calls, signature: google_signature(thinking) }),
            ..plain("assistant", text)
        },
        Message::Tool { id, text, .. } => Line { tool_call_id: Some(id), ..plain("tool", text) },
    }
}

fn google_signature(thinking: &[Thinking]) -> Option<&str> {
    thinking.iter().find_map(|thought| thought.signature.as_deref()?.strip_prefix(GOOGLE))
}

struct ToolCalls<'a> {
    calls: &'a [ToolCall],
    signature: Option<&'a str>,
}

impl Serialize for ToolCalls<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Call<'a> {
            id: &'a str,
            r#type: &'static str,
            function: Function<'a>,
            #[serde(skip_serializing_if = "Option::is_none")]
            extra_content: Option<ExtraContent<&'a str>>,
        }
        #[derive(Serialize)]
        struct Function<'a> {
            name: &'a str,
            arguments: Text<'a>,
        }
        serializer.collect_seq(self.calls.iter().enumerate().map(|(index, call)| Call {
            id: &call.id,
            r#type: "function",
            function: Function { name: &call.name, arguments: Text(&call.args) },
            // The signature stands on the first call of a reply.
            extra_content: self.signature.filter(|_| index == 0).map(|signature| ExtraContent {
                google: Some(Google { thought_signature: Some(signature) }),
            }),
        }))
    }
}

/// What Gemini adds to a tool call.
#[derive(Serialize, Deserialize)]
struct ExtraContent<T> {
    google: Option<Google<T>>,
}

#[derive(Serialize, Deserialize)]
struct Google<T> {
    thought_signature: Option<T>,
}

/// Decodes the events of one reply.
#[derive(Default)]
pub(super) struct Frames {
    calls: Calls,
    usage: Option<Usage>,
    finish: Option<Finish>,
    /// Something of the protocol was seen, so that what is unknown may be an addition to it.
    known: bool,
}

impl Frames {
    pub(super) fn new(_options: &WireOptions) -> Self {
        Frames::default()
    }

    fn finish(&mut self, reason: Option<Finish>, out: &mut Vec<ModelEvent>) {
        let before = out.len();
        out.extend(self.calls.finish().map(ModelEvent::Call));
        let called = out.len() > before;
        out.extend(self.usage.take().map(ModelEvent::Usage));
        out.push(ModelEvent::Done(match reason {
            // Several servers say "stop" although they called tools.
            None | Some(Finish::Stop | Finish::ToolCalls) if called => Finish::ToolCalls,
            None | Some(Finish::ToolCalls) => Finish::Stop,
            Some(reason) => reason,
        }));
    }

    /// An event that is none of this protocol: an error in other words, or something a server added to it.
    fn unknown(&self, data: &[u8]) -> Result<(), ModelError> {
        let event: Value = super::parse(data)?;
        if event.get("message").is_some_and(Value::is_string) {
            return Err(status::in_stream(&event));
        }
        match self.known {
            true => Ok(()),
            false => Err(ModelError::Protocol(format!(
                "an event without choices: {}",
                super::frame::excerpt(data)
            ))),
        }
    }

    fn delta(&mut self, delta: Delta, out: &mut Vec<ModelEvent>) {
        let thinking = delta.reasoning_content.or(delta.reasoning);
        out.extend(thinking.filter(|text| !text.is_empty()).map(ModelEvent::Thinking));
        let content = delta.content.and_then(Content::into_text).or(delta.refusal);
        out.extend(content.filter(|text| !text.is_empty()).map(ModelEvent::Text));
        for call in delta.tool_calls.into_iter().flatten() {
            let google = call.extra_content.and_then(|extra| extra.google);
            let signature = google.and_then(|google| google.thought_signature);
            out.extend(signature.map(|signature| ModelEvent::Signature(format!("{GOOGLE}{signature}"))));
            let (name, args) = match call.function {
                None => (None, Args::None),
                Some(function) => (
                    function.name,
                    match function.arguments {
                        None | Some(Value::Null) => Args::None,
                        Some(Value::String(text)) => Args::Text(text),
                        Some(value) => Args::Whole(value),
                    },
                ),
            };
            self.calls.push(Piece { index: call.index, id: call.id, name, args });
        }
    }
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    #[serde(default)]
    usage: Option<ChunkUsage>,
    #[serde(default)]
    x_groq: Option<Groq>,
    #[serde(default)]
    timings: Option<Timings>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    /// `message` in a reply that is not streamed.
    #[serde(default, alias = "message")]
    delta: Option<Delta>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    #[serde(default)]
    content: Option<Content>,
    #[serde(default)]
    reasoning_content: Option<String>,
    #[serde(default)]
    reasoning: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<DeltaCall>>,
}

/// Text, or a list of parts as some servers send it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    text: Option<String>,
}

impl Content {
    fn into_text(self) -> Option<String> {
        match self {
            Content::Text(text) => Some(text),
            Content::Parts(parts) => Some(parts.into_iter().filter_map(|part| part.text).collect()),
        }
    }
}

#[derive(Deserialize)]
struct DeltaCall {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<DeltaFunction>,
    #[serde(default)]
    extra_content: Option<ExtraContent<String>>,
}

#[derive(Deserialize)]
struct DeltaFunction {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<Value>,
}

#[derive(Deserialize)]
struct Groq {
    #[serde(default)]
    usage: Option<ChunkUsage>,
}

#[derive(Deserialize)]
struct Timings {
    /// Prompt tokens that llama.cpp found in its cache.
    #[serde(default)]
    cache_n: Option<u64>,
}

#[derive(Deserialize)]
struct ChunkUsage {
    #[serde(default)]
    prompt_tokens: Option<u64>,
    #[serde(default)]
    completion_tokens: Option<u64>,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default)]
    completion_tokens_details: Option<CompletionDetails>,
    /// DeepSeek's name for cached tokens.
    #[serde(default)]
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct CompletionDetails {
    #[serde(default)]
    reasoning_tokens: Option<u64>,
}

impl ChunkUsage {
    fn read(&self) -> Usage {
        let cached = self.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens);
        Usage {
            input: self.prompt_tokens.unwrap_or_default(),
            output: self.completion_tokens.unwrap_or_default(),
            cached: cached.or(self.prompt_cache_hit_tokens).unwrap_or_default(),
            reasoning: self
                .completion_tokens_details
                .as_ref()
                .and_then(|details| details.reasoning_tokens)
                .unwrap_or_default(),
        }
    }
}

impl DecodeFrame for Frames {
    fn frame(&mut self, data: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if data.trim_ascii() == b"[DONE]" {
            let reason = self.finish.take();
            self.finish(reason, out);
            return Ok(());
        }
        let chunk: Chunk = super::parse(data)?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(status::in_stream(&error));
        }
        if chunk.choices.is_none() && chunk.usage.is_none() {
            return self.unknown(data);
        }
        self.known = true;
        if let Some(usage) = chunk.usage.or(chunk.x_groq.and_then(|groq| groq.usage)) {
            self.usage = Some(usage.read());
        }
        if let (Some(cached), Some(usage)) =
            (chunk.timings.and_then(|timings| timings.cache_n), &mut self.usage)
        {
            usage.cached = usage.cached.max(cached);
        }
        // Only the first choice was asked for.
        if let Some(choice) = chunk.choices.into_iter().flatten().next() {
            if let Some(delta) = choice.delta {
                self.delta(delta, out);
            }
            match choice.finish_reason.as_deref() {
                None | Some("") => {}
                Some("error") => {
                    return Err(ModelError::Server {
                        status: 500,
                        message: "the provider broke off the reply".to_owned(),
                        retry_after: None,
                    });
                }
                Some("length" | "max_tokens") => self.finish = Some(Finish::Length),
                Some("content_filter" | "safety") => self.finish = Some(Finish::Filtered),
                Some("tool_calls" | "function_call") => self.finish = Some(Finish::ToolCalls),
                Some(_) => self.finish = Some(Finish::Stop),
            }
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        match self.finish.take() {
            Some(reason) => {
                self.finish(Some(reason), out);
                Ok(())
            }
            None => Err(ModelError::Cut),
        }
    }
}
