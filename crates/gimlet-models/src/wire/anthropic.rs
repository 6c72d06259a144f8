//! Anthropic's `/v1/messages`: typed blocks, thinking with signatures, and marks for the prefix cache.
//!
//! Turns must alternate, so tool results and texts that follow each other share one user turn. Marks are the only
//! thing that moves from one request to the next; without them the message array is append-only as on every wire.

use gimlet::message::{Finish, Message, Thinking, ToolCall, Usage};
use gimlet::model::{ModelError, ModelEvent, Request};
use serde::ser::{SerializeSeq, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::args::Object;
use super::calls::{Args, Calls, Piece};
use super::{Caching, DecodeFrame, Extra, Think, WireOptions};
use crate::status;

/// Stands for a reply without content, which the protocol refuses.
const EMPTY: &str = "(no reply)";
/// Marks a signature that is the data of a redacted block.
const REDACTED: &str = "redacted:";

/// The body of a request.
pub fn encode(request: &Request, options: &WireOptions) -> Result<Vec<u8>, ModelError> {
    let sampling = &request.sampling;
    let mark = options.caching == Caching::Marked && options.sends(Extra::Cache);
    let thinking = thinking(options);
    let budget = thinking.as_ref().and_then(|thinking| thinking.budget_tokens);
    let system = request.messages.iter().find_map(|message| match message.as_ref() {
        Message::System { text } if !text.trim().is_empty() => Some(text.as_str()),
        _ => None,
    });
    let body = Body {
        model: &options.model,
        // The budget for thinking counts against the limit.
        max_tokens: options.max_tokens(sampling).saturating_add(budget.unwrap_or_default()),
        system: system.map(|text| [Block::Text { text, cache_control: mark.then_some(EPHEMERAL) }]),
        messages: Messages { request, mark },
        tools: (!request.tools.is_empty()).then_some(Tools { request, mark: mark && system.is_none() }),
        stream: true,
        // With thinking on, only the default temperature is taken.
        temperature: options.temperature(sampling).filter(|_| budget.is_none()),
        stop_sequences: if options.sends(Extra::Stop) { &sampling.stop } else { &[] },
        thinking,
        output_config: sampling
            .schema
            .as_deref()
            .filter(|_| options.sends(Extra::Schema))
            .map(|schema| OutputConfig { format: Format { r#type: "json_schema", schema } }),
    };
    super::to_body(&body, request)
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Tools<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[Block<'a>; 1]>,
    messages: Messages<'a>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop_sequences: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<ThinkingSwitch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'a>>,
}

#[derive(Serialize)]
struct OutputConfig<'a> {
    format: Format<'a>,
}

#[derive(Serialize)]
struct Format<'a> {
    r#type: &'static str,
    schema: &'a Value,
}

#[derive(Serialize)]
struct ThinkingSwitch {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget_tokens: Option<u32>,
}

fn thinking(options: &WireOptions) -> Option<ThinkingSwitch> {
    if !options.sends(Extra::Think) {
        return None;
    }
    let enabled = |tokens| Some(ThinkingSwitch { r#type: "enabled", budget_tokens: Some(tokens) });
    match options.think {
        Think::Default => None,
        Think::Off => Some(ThinkingSwitch { r#type: "disabled", budget_tokens: None }),
        Think::Low => enabled(1024),
        Think::Medium => enabled(4096),
        Think::High => enabled(16_384),
    }
}

#[derive(Clone, Copy, Serialize)]
struct CacheControl {
    r#type: &'static str,
}

const EPHEMERAL: CacheControl = CacheControl { r#type: "ephemeral" };

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: Object<'a>,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
}

struct Tools<'a> {
    request: &'a Request,
    mark: bool,
}

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Tool<'a> {
            name: &'a str,
            description: &'a str,
            input_schema: &'a Value,
            #[serde(skip_serializing_if = "Option::is_none")]
            cache_control: Option<CacheControl>,
        }
        let last = self.request.tools.len().saturating_sub(1);
        serializer.collect_seq(self.request.tools.iter().enumerate().map(|(index, tool)| Tool {
            name: &tool.name,
            description: &tool.description,
            input_schema: &tool.input,
            cache_control: (self.mark && index == last).then_some(EPHEMERAL),
        }))
    }
}

struct Messages<'a> {
    request: &'a Request,
    mark: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Role {
    User,
    Assistant,
}

#[derive(Serialize)]
struct Turn<'a> {
    role: Role,
    content: Vec<Block<'a>>,
}

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(None)?;
        let mut open: Option<Turn<'_>> = None;
        for message in &self.request.messages {
            let role = match message.as_ref() {
                Message::System { .. } => continue,
                Message::User { .. } | Message::Tool { .. } => Role::User,
                Message::Assistant { .. } => Role::Assistant,
            };
            if let Some(turn) = open.take_if(|turn| turn.role != role || role == Role::Assistant) {
                seq.serialize_element(&turn)?;
            }
            let turn = open.get_or_insert_with(|| Turn { role, content: Vec::new() });
            add_blocks(message, &mut turn.content);
        }
        if let Some(mut turn) = open {
            if self.mark {
                mark_last(&mut turn.content);
            }
            seq.serialize_element(&turn)?;
        }
        seq.end()
    }
}

fn add_blocks<'a>(message: &'a Message, blocks: &mut Vec<Block<'a>>) {
    match message {
        Message::System { .. } => {}
        Message::User { text } => blocks.push(Block::Text { text: filled(text), cache_control: None }),
        Message::Tool { id, text, ok, .. } => blocks.push(Block::ToolResult {
            tool_use_id: id,
            content: text,
            is_error: !ok,
            cache_control: None,
        }),
        Message::Assistant { text, thinking, calls } => {
            blocks.extend(thinking.iter().filter_map(thought));
            // Trailing space is refused at the end of a reply; it says nothing anyway.
            if !text.trim().is_empty() {
                blocks.push(Block::Text { text: text.trim_end(), cache_control: None });
            }
            blocks.extend(calls.iter().map(tool_use));
            if text.trim().is_empty() && calls.is_empty() {
                blocks.push(Block::Text { text: EMPTY, cache_control: None });
            }
        }
    }
}

/// A thought with its signature; one without, or with another provider's, would be refused here.
fn thought(thinking: &Thinking) -> Option<Block<'_>> {
    let signature =
        thinking.signature.as_deref().filter(|signature| !signature.starts_with(super::openai::GOOGLE))?;
    Some(match signature.strip_prefix(REDACTED) {
        Some(data) => Block::RedactedThinking { data },
        None => Block::Thinking { thinking: &thinking.text, signature },
    })
}

fn tool_use(call: &ToolCall) -> Block<'_> {
    Block::ToolUse { id: &call.id, name: &call.name, input: Object(&call.args) }
}

/// Empty text blocks are refused.
fn filled(text: &str) -> &str {
    if text.trim().is_empty() { "(nothing)" } else { text }
}

fn mark_last(blocks: &mut [Block<'_>]) {
    match blocks.last_mut() {
        Some(Block::Text { cache_control, .. } | Block::ToolResult { cache_control, .. }) => {
            *cache_control = Some(EPHEMERAL);
        }
        Some(Block::Thinking { .. } | Block::RedactedThinking { .. } | Block::ToolUse { .. }) | None => {}
    }
}

/// Decodes the events of one reply.
#[derive(Default)]
pub(super) struct Frames {
    calls: Calls,
    signature: String,
    usage: Usage,
    finish: Option<Finish>,
}

impl Frames {
    pub(super) fn new(_options: &WireOptions) -> Self {
        Frames::default()
    }
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Start,
    },
    ContentBlockStart {
        #[serde(default)]
        index: Option<u64>,
        content_block: BlockStart,
    },
    ContentBlockDelta {
        #[serde(default)]
        index: Option<u64>,
        delta: Change,
    },
    ContentBlockStop {},
    MessageDelta {
        delta: MessageDelta,
        #[serde(default)]
        usage: Option<EventUsage>,
    },
    MessageStop {},
    Error {
        error: Value,
    },
    /// A whole reply, from a server that does not stream.
    Message {
        content: Vec<BlockStart>,
        #[serde(default)]
        stop_reason: Option<String>,
        #[serde(default)]
        usage: Option<EventUsage>,
    },
    /// `ping` and whatever is added later.
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Start {
    #[serde(default)]
    usage: Option<EventUsage>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockStart {
    Text {
        #[serde(default)]
        text: String,
    },
    Thinking {
        #[serde(default)]
        thinking: String,
        #[serde(default)]
        signature: String,
    },
    RedactedThinking {
        data: String,
    },
    ToolUse {
        #[serde(default)]
        id: String,
        #[serde(default)]
        name: String,
        #[serde(default)]
        input: Value,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Change {
    TextDelta {
        text: String,
    },
    ThinkingDelta {
        thinking: String,
    },
    SignatureDelta {
        signature: String,
    },
    InputJsonDelta {
        partial_json: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct MessageDelta {
    #[serde(default)]
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct EventUsage {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default)]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
}

impl EventUsage {
    /// Later counts replace earlier ones, where they are given.
    fn update(&self, usage: &mut Usage) {
        if let Some(input) = self.input_tokens {
            let created = self.cache_creation_input_tokens.unwrap_or_default();
            let read = self.cache_read_input_tokens.unwrap_or_default();
            usage.input = input.saturating_add(created).saturating_add(read);
            usage.cached = read;
        }
        if let Some(output) = self.output_tokens {
            usage.output = output;
        }
    }
}

impl Frames {
    fn start(&mut self, index: Option<u64>, block: BlockStart, out: &mut Vec<ModelEvent>) {
        match block {
            BlockStart::Text { text } => out.extend(said(text).map(ModelEvent::Text)),
            BlockStart::Thinking { thinking, signature } => {
                out.extend(said(thinking).map(ModelEvent::Thinking));
                self.signature = signature;
            }
            BlockStart::RedactedThinking { data } => self.signature = format!("{REDACTED}{data}"),
            BlockStart::ToolUse { id, name, input } => {
                // The stream begins with an empty object and then writes the real one.
                let args = match input {
                    Value::Object(map) if map.is_empty() => Args::None,
                    Value::Null => Args::None,
                    whole => Args::Whole(whole),
                };
                self.calls.push(Piece { index, id: Some(id), name: Some(name), args });
            }
            BlockStart::Other => {}
        }
    }

    /// The end of a block: a thought gets its signature, a call is complete.
    fn stop(&mut self, out: &mut Vec<ModelEvent>) {
        out.extend(said(std::mem::take(&mut self.signature)).map(ModelEvent::Signature));
        out.extend(self.calls.finish().map(ModelEvent::Call));
    }

    fn done(&mut self, out: &mut Vec<ModelEvent>) {
        self.stop(out);
        out.push(ModelEvent::Usage(self.usage));
        out.push(ModelEvent::Done(self.finish.take().unwrap_or_default()));
    }
}

fn said(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

fn finish(reason: &str) -> Finish {
    match reason {
        "tool_use" => Finish::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => Finish::Length,
        "refusal" => Finish::Filtered,
        _ => Finish::Stop,
    }
}

impl DecodeFrame for Frames {
    fn frame(&mut self, data: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        match super::parse::<Event>(data)? {
            Event::MessageStart { message } => {
                if let Some(usage) = message.usage {
                    usage.update(&mut self.usage);
                }
            }
            Event::ContentBlockStart { index, content_block } => self.start(index, content_block, out),
            Event::ContentBlockDelta { index, delta } => match delta {
                Change::TextDelta { text } => out.extend(said(text).map(ModelEvent::Text)),
                Change::ThinkingDelta { thinking } => out.extend(said(thinking).map(ModelEvent::Thinking)),
                Change::SignatureDelta { signature } => self.signature.push_str(&signature),
                Change::InputJsonDelta { partial_json } => {
                    self.calls.push(Piece { index, args: Args::Text(partial_json), ..Piece::default() });
                }
                Change::Other => {}
            },
            Event::ContentBlockStop {} => self.stop(out),
            Event::MessageDelta { delta, usage } => {
                if let Some(usage) = usage {
                    usage.update(&mut self.usage);
                }
                if let Some(reason) = delta.stop_reason {
                    self.finish = Some(finish(&reason));
                }
            }
            Event::MessageStop {} => self.done(out),
            Event::Error { error } => return Err(status::in_stream(&error)),
            Event::Message { content, stop_reason, usage } => {
                for block in content {
                    self.start(None, block, out);
                    self.stop(out);
                }
                if let Some(usage) = usage {
                    usage.update(&mut self.usage);
                }
                self.finish = stop_reason.as_deref().map(finish);
                self.done(out);
            }
            Event::Other => {}
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        // A server that forgets the last event has still said why it stopped.
        if self.finish.is_some() {
            self.done(out);
            return Ok(());
        }
        Err(ModelError::Cut)
    }
}
