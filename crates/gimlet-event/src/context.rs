//! What stands in the log when a conversation is made to fit its model's window.

use serde::{Deserialize, Serialize};

use crate::event::{Failure, ModelMessage};
use crate::message::{Finish, Usage};

/// What takes the place of old steps. Sizes are in tokens, as for `context.pruned`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Compacted {
    /// The conversation before.
    pub before: u64,
    /// And after.
    pub after: u64,
    /// The model's window; 0 when only its server knows.
    pub window: u32,
    /// The messages from the second to before this one gave way.
    pub until: usize,
    /// Steps taken so far.
    pub step: u32,
    /// The summary.
    pub summary: Summary,
    /// Who wrote it.
    pub by: Author,
    /// What stands in the conversation instead.
    pub text: String,
    /// Why the model did not write it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The model's words, as it wrote them.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reply: String,
    /// What it cost.
    pub usage: Usage,
    /// Why the reply ended.
    pub finish: Finish,
    /// How long it took.
    pub seconds: f64,
}

impl Compacted {
    /// The reply behind it.
    pub fn message(&self) -> ModelMessage {
        let (usage, finish) = (self.usage, self.finish);
        ModelMessage { text: self.reply.clone(), usage, finish, ..ModelMessage::default() }
    }
}

/// Who wrote a summary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// The model.
    Model,
    /// Code, since the model could not.
    #[default]
    Code,
}

/// A summary.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// What is to be reached.
    pub goal: Vec<String>,
    /// What must be minded.
    pub constraints: Vec<String>,
    /// What was decided and found out.
    pub decisions: Vec<String>,
    /// Files that matter, and why.
    pub files: Vec<String>,
    /// What is open.
    pub open_questions: Vec<String>,
}

/// A variable of the interpreter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// The name of its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// How long it is, where that means something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

impl Variable {
    /// Whether its name and type are words; a worker is not trusted to say anything else in a prompt.
    pub fn is_plain(&self) -> bool {
        let word = |text: &str| {
            !text.is_empty()
                && text.len() <= 80
                && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'))
        };
        word(&self.name) && word(&self.kind)
    }
}
