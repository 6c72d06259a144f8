//! What is said in a conversation: messages, the tool calls inside them, and what they cost.
//!
//! These types are written into logs that outlive the binary, so a field is never renamed and new fields have
//! defaults. They carry no provider's words; the wires translate.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One entry of the conversation a model sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// The standing instructions; first, and only once.
    System {
        /// The instructions.
        text: String,
    },
    /// Something said by the person, or by the runtime on their behalf (observations of code, feedback).
    User {
        /// What was said.
        text: String,
    },
    /// A reply of the model.
    Assistant {
        /// The visible text, without thinking.
        #[serde(default)]
        text: String,
        /// Reasoning the model showed, kept for providers that want it back.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        thinking: Vec<Thinking>,
        /// The tools it asked for, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolCall>,
    },
    /// The result of one tool call.
    Tool {
        /// Id of the call this answers.
        id: String,
        /// Name of the tool.
        name: String,
        /// The result as the model reads it.
        text: String,
        /// False when the result is an error.
        ok: bool,
    },
}

impl Message {
    /// A message of the person.
    pub fn user(text: impl Into<String>) -> Self {
        Message::User { text: text.into() }
    }

    /// The standing instructions.
    pub fn system(text: impl Into<String>) -> Self {
        Message::System { text: text.into() }
    }
}

/// A piece of reasoning. Some providers sign it and refuse it back unsigned.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thinking {
    /// The reasoning.
    pub text: String,
    /// The provider's signature, opaque to us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// A model's wish to call a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Unique within a run; repaired by the loop when a model leaves it empty or repeats it.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// The arguments: an object, or the raw text when the model wrote something that is not JSON.
    pub args: Value,
}

/// Tokens spent. Sums are saturating: a server that reports nonsense must not end a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens read, cached ones included.
    pub input: u64,
    /// Tokens written, reasoning included.
    pub output: u64,
    /// Part of `input` served from the provider's prefix cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached: u64,
    /// Part of `output` spent on reasoning.
    #[serde(skip_serializing_if = "is_zero")]
    pub reasoning: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Usage {
    /// Everything read and written.
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached = self.cached.saturating_add(other.cached);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}

/// Why a model stopped writing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// It was done.
    #[default]
    Stop,
    /// It wants its tool calls answered.
    ToolCalls,
    /// It hit the token limit: the reply is cut and must not be read as whole.
    Length,
    /// The provider withheld the reply.
    Filtered,
}
