//! The words of the three protocols, and nothing else: a request becomes a body, bytes become events.
//!
//! Everything here is pure. Bytes may arrive cut anywhere; the events do not depend on where. The message array a
//! wire writes is append-only: each request's array, without its closing bracket, begins the next one's, so that a
//! server's prefix cache stays valid.

pub mod anthropic;
mod args;
mod calls;
mod frame;
pub mod ollama;
pub mod openai;
mod options;

use gimlet::message::Finish;
use gimlet::model::{ModelError, ModelEvent, Request};
use serde::{Deserialize, Serialize};

pub use frame::Framing;
pub use options::{Caching, Extra, Extras, LengthField, Quirks, Reasoning, Think, WireOptions};

/// A protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wire {
    /// Ollama's own `/api/chat`.
    Ollama,
    /// OpenAI's `/v1/chat/completions` and everything that imitates it.
    OpenAi,
    /// Anthropic's `/v1/messages`.
    Anthropic,
}

impl Wire {
    /// The body of a request.
    pub fn encode(self, request: &Request, options: &WireOptions) -> Result<Vec<u8>, ModelError> {
        match self {
            Wire::Ollama => ollama::encode(request, options),
            Wire::OpenAi => openai::encode(request, options),
            Wire::Anthropic => anthropic::encode(request, options),
        }
    }

    /// A decoder for one reply.
    pub fn decoder(self, framing: Framing, options: &WireOptions) -> Decoder {
        let wire: Box<dyn DecodeFrame> = match self {
            Wire::Ollama => Box::new(ollama::Frames::new(options)),
            Wire::OpenAi => Box::new(openai::Frames::new(options)),
            Wire::Anthropic => Box::new(anthropic::Frames::new(options)),
        };
        let allowance = Allowance::of(options.max_tokens);
        Decoder { framer: frame::Framer::new(framing), wire, state: State::Empty, allowance }
    }

    /// How this protocol cuts a streamed reply into frames.
    pub fn framing(self) -> Framing {
        match self {
            Wire::Ollama => Framing::Lines,
            Wire::OpenAi | Wire::Anthropic => Framing::Events,
        }
    }
}

/// What a wire makes of one frame.
trait DecodeFrame: Send {
    /// Adds the events of a frame; the last one of a reply is `Done`.
    fn frame(&mut self, data: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), ModelError>;

    /// The body is over: adds what was held back. `Cut` unless the reply was complete.
    fn end(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError>;
}

/// Turns the bytes of one reply into events, wherever the bytes are cut.
pub struct Decoder {
    framer: frame::Framer,
    wire: Box<dyn DecodeFrame>,
    state: State,
    /// What the reply may still bring.
    allowance: Allowance,
}

/// How many more bytes of frames a reply may have: what was asked for, with room to spare. A server that does not end
/// would fill the memory otherwise.
#[derive(Debug, Clone, Copy)]
struct Allowance(usize);

impl Allowance {
    /// A frame with one token takes a few hundred bytes.
    const BYTES_PER_TOKEN: usize = 2048;
    /// Thinking may come on top of what was asked for.
    const LEAST: usize = 32 << 20;
    const MOST: usize = 256 << 20;

    fn of(max_tokens: u32) -> Self {
        let tokens = usize::try_from(max_tokens).unwrap_or(usize::MAX);
        Allowance(tokens.saturating_mul(Self::BYTES_PER_TOKEN).clamp(Self::LEAST, Self::MOST))
    }

    /// Whether so many bytes were still allowed; they are used up.
    fn take(&mut self, bytes: usize) -> bool {
        let left = self.0.checked_sub(bytes);
        self.0 = left.unwrap_or(0);
        left.is_some()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No byte yet.
    Empty,
    /// Bytes, but no frame.
    Bytes,
    /// In the middle of a reply.
    Frames,
    /// `Done` was said, or an error.
    Over,
}

impl Decoder {
    /// Lets the reply be as long as this request asks for.
    #[must_use]
    pub fn allowing(mut self, max_tokens: Option<u32>) -> Self {
        if let Some(max_tokens) = max_tokens {
            self.allowance = Allowance::of(max_tokens);
        }
        self
    }

    /// Adds the events of the next bytes to `out`. On an error, the events before it are in `out` too.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if self.state == State::Empty && !bytes.is_empty() {
            self.state = State::Bytes;
        }
        self.framer.note(bytes);
        let mut bytes = bytes;
        while self.state != State::Over && !bytes.is_empty() {
            let decoded = match self.framer.push(&mut bytes) {
                Ok(None) => continue,
                Ok(Some(data)) => {
                    self.state = State::Frames;
                    match self.allowance.take(data.len()) {
                        true => self.wire.frame(data, out),
                        false => {
                            stop(out);
                            Ok(())
                        }
                    }
                }
                Err(error) => Err(error),
            };
            self.settle(decoded, out)?;
        }
        Ok(())
    }

    /// The body ended. An error unless the reply was complete.
    pub fn end(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if self.state == State::Over {
            return Ok(());
        }
        if let Some(data) = self.framer.finish() {
            let decoded = if is_half(data) {
                Err(ModelError::Cut)
            } else {
                self.state = State::Frames;
                self.wire.frame(data, out)
            };
            self.settle(decoded, out)?;
        }
        let ended = match self.state {
            State::Over => return Ok(()),
            State::Empty => Err(ModelError::Cut),
            State::Bytes => Err(ModelError::Protocol(format!("no reply in {}", self.framer.seen()))),
            State::Frames => self.wire.end(out),
        };
        self.state = State::Over;
        ended
    }

    /// Whether the reply is over and the rest of the body does not matter.
    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    fn settle(&mut self, decoded: Result<(), ModelError>, out: &[ModelEvent]) -> Result<(), ModelError> {
        if decoded.is_err() || matches!(out.last(), Some(ModelEvent::Done(_))) {
            self.state = State::Over;
        }
        decoded
    }
}

/// Ends a reply that is longer than anything that was asked for. It is told as one that was cut for its length.
fn stop(out: &mut Vec<ModelEvent>) {
    out.push(ModelEvent::Notice("the model's reply is far longer than asked for and was stopped".into()));
    out.push(ModelEvent::Done(Finish::Length));
}

/// Serialises a body that borrows everything from the request.
fn to_body(body: &impl Serialize, request: &Request) -> Result<Vec<u8>, ModelError> {
    let mut bytes = Vec::with_capacity(size_hint(request));
    serde_json::to_writer(&mut bytes, body)
        .map_err(|error| ModelError::Protocol(format!("the request cannot be written: {error}")))?;
    Ok(bytes)
}

/// About the size of the body, so that it is allocated once.
fn size_hint(request: &Request) -> usize {
    use gimlet::message::Message;
    let texts: usize = request
        .messages
        .iter()
        .map(|message| match message.as_ref() {
            Message::System { text } | Message::User { text } | Message::Tool { text, .. } => text.len(),
            Message::Assistant { text, calls, .. } => text.len() + calls.len() * 256,
        })
        .sum();
    texts + texts / 8 + request.messages.len() * 64 + request.tools.len() * 1024 + 1024
}

/// Whether a frame is the beginning of a JSON document, and no more.
fn is_half(data: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(data).is_err_and(|error| error.is_eof())
}

/// Reads a frame as JSON, with an error that shows what came instead.
fn parse<'a, T: Deserialize<'a>>(data: &'a [u8]) -> Result<T, ModelError> {
    serde_json::from_slice(data).map_err(|error| {
        let what =
            if std::str::from_utf8(data).is_err() { "not valid UTF-8" } else { "not the expected JSON" };
        ModelError::Protocol(format!("{what} ({error}): {}", frame::excerpt(data)))
    })
}
