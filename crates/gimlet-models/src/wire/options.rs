//! What a wire needs to know beyond the request: the model's name there, its profile, and its server's quirks.

use std::fmt;
use std::sync::Arc;

use gimlet::model::Sampling;
use serde::{Deserialize, Serialize};

/// Everything about a model and its server that shapes a body.
#[derive(Debug, Clone, PartialEq)]
pub struct WireOptions {
    /// The model's name on the server, without a provider prefix.
    pub model: String,
    /// Randomness when the request names none.
    pub temperature: Option<f32>,
    /// Longest reply when the request names none.
    pub max_tokens: u32,
    /// What a reply may grow to where it must; less than `max_tokens` counts for nothing.
    pub longest_reply: u32,
    /// The model's window in tokens; always sent where the protocol takes it.
    pub context: u32,
    /// How long an idle model stays loaded, in the server's words (`5m`, `-1`).
    pub keep_alive: Option<String>,
    /// How much it shall think.
    pub think: Think,
    /// Whether to mark the stable prefix for the provider's cache.
    pub caching: Caching,
    /// A grammar (GBNF) every reply must match when the request has no schema; llama.cpp only.
    pub grammar: Option<Arc<str>>,
    /// What is different about this server.
    pub quirks: Quirks,
}

impl WireOptions {
    /// Options for a model with nothing known about it.
    pub fn new(model: impl Into<String>) -> Self {
        WireOptions {
            model: model.into(),
            temperature: Some(0.1),
            max_tokens: 1024,
            longest_reply: 1024,
            context: 8192,
            keep_alive: None,
            think: Think::Default,
            caching: Caching::Off,
            grammar: None,
            quirks: Quirks::default(),
        }
    }

    pub(super) fn temperature(&self, sampling: &Sampling) -> Option<f32> {
        self.sends(Extra::Temperature).then_some(sampling.temperature.or(self.temperature)).flatten()
    }

    pub(super) fn max_tokens(&self, sampling: &Sampling) -> u32 {
        sampling.max_tokens.unwrap_or(self.max_tokens)
    }

    pub(super) fn sends(&self, extra: Extra) -> bool {
        !self.quirks.without.contains(extra)
    }
}

/// How much a model shall think before it answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Think {
    /// As the server does by itself.
    #[default]
    Default,
    /// Not at all.
    Off,
    /// A little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
}

/// Whether the stable prefix is marked for the provider's cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Caching {
    /// No marks.
    #[default]
    Off,
    /// Marks after the instructions and after the last message.
    Marked,
}

/// What is different about a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quirks {
    /// The field that limits the reply.
    pub length: LengthField,
    /// Whether reasoning goes back to the server.
    pub reasoning: Reasoning,
    /// Fields it refuses.
    pub without: Extras,
}

/// The field that limits the length of a reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LengthField {
    /// `max_tokens`, which nearly every server knows.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`, which OpenAI's newer models want.
    MaxCompletionTokens,
}

/// Whether a model's reasoning goes back to it with the conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reasoning {
    /// It stays here: it costs window, and some servers refuse it.
    #[default]
    Keep,
    /// It goes back, for servers that want it.
    Return,
}

/// A field a server may refuse and a reply can do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extra {
    /// `tool_choice`.
    ToolChoice,
    /// `stop`, `stop_sequences`.
    Stop,
    /// `stream_options`.
    StreamOptions,
    /// `temperature`.
    Temperature,
    /// `seed`.
    Seed,
    /// `response_format`, `format`, `grammar`, `output_config`.
    Schema,
    /// `think`, `thinking`, `reasoning_effort`.
    Think,
    /// `cache_control`.
    Cache,
}

impl Extra {
    /// Every one of them.
    pub const ALL: [Extra; 8] = [
        Extra::ToolChoice,
        Extra::Stop,
        Extra::StreamOptions,
        Extra::Temperature,
        Extra::Seed,
        Extra::Schema,
        Extra::Think,
        Extra::Cache,
    ];

    /// The names servers call it by.
    pub fn fields(self) -> &'static [&'static str] {
        match self {
            Extra::ToolChoice => &["tool_choice"],
            Extra::Stop => &["stop", "stop_sequences"],
            Extra::StreamOptions => &["stream_options"],
            Extra::Temperature => &["temperature"],
            Extra::Seed => &["seed"],
            Extra::Schema => &["response_format", "json_schema", "grammar", "format", "output_config"],
            Extra::Think => &["think", "thinking", "reasoning_effort"],
            Extra::Cache => &["cache_control"],
        }
    }

    /// What is lost without it, for the person.
    pub fn loss(self) -> &'static str {
        match self {
            Extra::ToolChoice => "the model decides by itself whether to call a tool",
            Extra::Stop => "replies may run past their end",
            Extra::StreamOptions => "the server may not report the tokens it used",
            Extra::Temperature => "the server's own temperature applies",
            Extra::Seed => "replies are not repeatable",
            Extra::Schema => "replies are not held to a schema",
            Extra::Think => "the server's own setting for thinking applies",
            Extra::Cache => "the provider caches nothing on our request",
        }
    }
}

/// A set of fields.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Extra>", into = "Vec<Extra>")]
pub struct Extras(u16);

impl Extras {
    /// Whether it holds the field.
    pub fn contains(self, extra: Extra) -> bool {
        self.0 & (1 << extra as u16) != 0
    }

    /// The set with the field.
    #[must_use]
    pub fn with(self, extra: Extra) -> Self {
        Extras(self.0 | (1 << extra as u16))
    }

    /// Everything in either.
    #[must_use]
    pub fn union(self, other: Extras) -> Self {
        Extras(self.0 | other.0)
    }

    /// The set as bits, to be kept in an atomic.
    pub(crate) fn bits(self) -> u16 {
        self.0
    }

    /// The set of these bits.
    pub(crate) fn from_bits(bits: u16) -> Self {
        Extras(bits)
    }

    fn iter(self) -> impl Iterator<Item = Extra> {
        Extra::ALL.into_iter().filter(move |extra| self.contains(*extra))
    }
}

impl From<Vec<Extra>> for Extras {
    fn from(extras: Vec<Extra>) -> Self {
        extras.into_iter().fold(Extras::default(), Extras::with)
    }
}

impl From<Extras> for Vec<Extra> {
    fn from(extras: Extras) -> Self {
        extras.iter().collect()
    }
}

impl fmt::Debug for Extras {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
