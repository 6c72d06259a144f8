//! What guided work writes into the log: the fields of the `guided.*` events.

use serde::{Deserialize, Serialize};

use crate::event::{Failure, ModelMessage};
use crate::message::{Finish, Usage};

/// What a task wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aim {
    /// An answer in words; no file changes.
    Answer,
    /// A change of files.
    Change,
    /// A command is to be run, and its result told.
    Run,
}

/// Who made a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecidedBy {
    /// The model chose.
    Model,
    /// The task's own words decided; the model was not asked.
    Task,
    /// The model's reply was unusable, so the usual choice was taken.
    Default,
}

/// `guided.aimed`: what the task wants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Aimed {
    /// The aim.
    pub aim: Aim,
    /// Who decided.
    pub by: DecidedBy,
    /// The reply, where the model was asked beside its steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Box<AimReply>>,
}

/// A reply to the question for what a task wants, asked beside the steps.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AimReply {
    /// Its text.
    pub text: String,
    /// What it cost.
    pub usage: Usage,
    /// Why it ended.
    pub finish: Finish,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

impl AimReply {
    /// As a message of the model.
    pub fn message(&self) -> ModelMessage {
        let (text, usage, finish) = (self.text.clone(), self.usage, self.finish);
        ModelMessage { text, usage, finish, ..ModelMessage::default() }
    }
}

/// A file the task may be about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// Path relative to the root.
    pub path: String,
    /// Why it may be the one, in a few words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// `guided.found`: candidates of which the model picks. Also what a guide returns that looks for the files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Files to change that the task names and that exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<String>,
    /// Files that the task names and that do not exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Test files that judge the result; shown, never written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<String>,
    /// The check command that the task names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Other files, the likeliest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Candidate>,
}

/// `guided.located`: the files to work on and the check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Located {
    /// Files to change or to create.
    pub files: Vec<String>,
    /// Test files that judge the result; shown, never written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<String>,
    /// The command that checks the result; none if nothing tells how to check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Who chose the files.
    pub by: DecidedBy,
}

/// What an edit makes of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEdit {
    /// Path relative to the root.
    pub path: String,
    /// The text before the task began; none for a file that did not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The text the edit gives it; none if it removes the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// What a reply to the question for an edit came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum EditOutcome {
    /// A complete edit that can be written: all files in which it differs from the state before the task.
    Usable {
        /// The files.
        files: Vec<FileEdit>,
    },
    /// The same edit as an earlier one, to the letter.
    Repeated,
    /// Nothing that can be written.
    Unusable {
        /// Why, in words for the model.
        problem: String,
    },
    /// The reply was cut at the token limit; the rest is asked for.
    Cut,
}

/// `guided.edited`: a reply was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edited {
    /// Counts the replies of the task that were asked for as edits, from 1.
    pub attempt: u32,
    /// What it came to.
    #[serde(flatten)]
    pub outcome: EditOutcome,
}

/// What a check says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    /// The command ended with exit code 0.
    Passed,
    /// It ended with another exit code.
    Failed,
    /// It could not be run: refused, timed out, or not there.
    NotRun,
}

/// `guided.checked`: the check of an edit, or the command that the task asked for, came to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// The command.
    pub command: String,
    /// What it says.
    pub result: CheckOutcome,
    /// Its exit code, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i64>,
    /// Tests that passed, if the output tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<u32>,
    /// Tests that failed, if the output tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<u32>,
    /// The output reduced to what helps; why it could not be run where it was not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}
