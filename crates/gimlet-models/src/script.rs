//! The script format: what a pretended model says, in order, and how its server misbehaves.
//!
//! One format drives the in-process [`ScriptedModel`](crate::ScriptedModel) and the test kit's HTTP server, so a
//! script can move from one to the other unchanged.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use gimlet::guided::ask;
use gimlet::message::{Finish, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A whole script, as TOML (or JSON in a `.json` file).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    /// How the next reply is found.
    pub order: Order,
    /// What it says when it is asked what a task wants. That question uses up no reply.
    pub aim: ScriptedAim,
    /// The replies of the only conversation, or of every one that matches none below.
    pub reply: Vec<ScriptReply>,
    /// Replies for several conversations at once, told apart by their task.
    pub conversation: Vec<Conversation>,
}

/// What a pretended model says a task wants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptedAim {
    /// An answer in words.
    #[default]
    Answer,
    /// A change of files.
    Change,
    /// A command.
    Run,
    /// Nothing by itself: the question uses up a reply like any other.
    Scripted,
}

/// How the next reply is found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// One reply a request, in order: a reply with a fault is used up by the attempt that meets it.
    #[default]
    Sequence,
    /// By the number of replies already in the conversation: any number of conversations may run the same script.
    Turns,
}

/// Replies for the conversations whose first user message holds a text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conversation {
    /// The text to look for.
    #[serde(rename = "match")]
    pub matches: String,
    /// What it says when it is asked what such a task wants; as the whole script does by default.
    #[serde(default)]
    pub aim: Option<ScriptedAim>,
    /// The replies.
    #[serde(default)]
    pub reply: Vec<ScriptReply>,
}

/// One reply.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptReply {
    /// Visible text.
    pub text: String,
    /// Reasoning.
    pub thinking: String,
    /// Native tool calls.
    pub calls: Vec<ScriptCall>,
    /// What it pretends to cost.
    pub usage: Usage,
    /// Why it ends; `tool_calls` by default when there are calls.
    pub finish: Option<Finish>,
    /// Pieces of at most this many bytes, cut anywhere; whole when absent.
    pub chunk_bytes: Option<usize>,
    /// Wait before each piece.
    pub delay_ms: u64,
    /// What goes wrong.
    pub fault: Option<Fault>,
    /// Texts the request's last message must hold, else the script fails.
    pub expect: Vec<String>,
}

/// A tool call of a script.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptCall {
    /// Its id; made up when absent, left empty when empty.
    pub id: Option<String>,
    /// Name of the tool.
    pub name: String,
    /// Its arguments; a string is sent as it is, valid JSON or not.
    #[serde(default)]
    pub args: Value,
}

/// What goes wrong with a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// The server answers with a status.
    Status {
        /// HTTP status.
        status: u16,
        /// Seconds to wait, as `Retry-After`.
        retry_after: Option<u64>,
        /// The body; a JSON error by default.
        body: Option<String>,
        /// Its type; JSON by default.
        content_type: Option<String>,
    },
    /// The connection breaks after so many bytes of the body.
    Drop {
        /// Bytes sent before.
        #[serde(default)]
        after_bytes: usize,
    },
    /// The body ends, cleanly but too early.
    Truncate {
        /// Bytes sent before.
        #[serde(default)]
        after_bytes: usize,
    },
    /// The body is something else.
    Garbage {
        /// The body.
        body: String,
    },
    /// Nothing is ever sent.
    Hang,
}

/// Why a script cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// It cannot be read.
    #[error("cannot read the script {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is not a script.
    #[error("the script {path} is not valid: {reason}")]
    Invalid {
        /// The file.
        path: String,
        /// What is wrong, with its place.
        reason: String,
    },
}

impl Script {
    /// Reads a script from a file.
    pub fn load(path: &Path) -> Result<Self, ScriptError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|source| ScriptError::Read { path: name.clone(), source })?;
        let invalid = |reason: String| ScriptError::Invalid { path: name, reason };
        if path.extension().is_some_and(|ext| ext == "json") {
            serde_json::from_str(&text).map_err(|error| invalid(error.to_string()))
        } else {
            toml::from_str(&text).map_err(|error| invalid(error.to_string()))
        }
    }
}

impl ScriptedAim {
    fn reply(self) -> Option<&'static str> {
        match self {
            ScriptedAim::Answer => Some("{\"aim\": \"answer\"}"),
            ScriptedAim::Change => Some("{\"aim\": \"change\"}"),
            ScriptedAim::Run => Some("{\"aim\": \"run\"}"),
            ScriptedAim::Scripted => None,
        }
    }
}

impl ScriptReply {
    /// Why this reply ends.
    pub fn finish(&self) -> Finish {
        self.finish.unwrap_or(if self.calls.is_empty() { Finish::Stop } else { Finish::ToolCalls })
    }

    /// Wait before each piece.
    pub fn delay(&self) -> Duration {
        Duration::from_millis(self.delay_ms)
    }
}

/// What a player needs to know of a request to find the reply to it.
#[derive(Debug, Clone, Copy)]
pub struct Turn<'a> {
    /// The standing instructions.
    pub system: &'a str,
    /// The first user message.
    pub task: &'a str,
    /// The last message.
    pub last: &'a str,
    /// Replies of the model already in the conversation.
    pub replies: usize,
}

/// Plays a script: finds the reply to each request.
#[derive(Debug, Default)]
pub struct Player {
    script: Script,
    /// Next reply of each conversation, by its place in the script (`None` is the unnamed one); grows only to the
    /// number of conversations.
    positions: Mutex<HashMap<Option<usize>, usize>>,
}

impl Player {
    /// A player at the start of the script.
    pub fn new(script: Script) -> Self {
        Player { script, positions: Mutex::default() }
    }

    /// The reply to this request, or what is wrong: the script is over, or it expected something else.
    pub fn next(&self, turn: Turn<'_>) -> Result<ScriptReply, String> {
        let aim = || {
            let mut conversations = self.script.conversation.iter();
            let which = conversations.find(|conversation| turn.last.contains(&conversation.matches));
            which.and_then(|conversation| conversation.aim).unwrap_or(self.script.aim)
        };
        if ask::is_aim(turn.system)
            && let Some(text) = aim().reply()
        {
            return Ok(ScriptReply { text: text.to_owned(), ..ScriptReply::default() });
        }
        let which = self.script.conversation.iter().position(|c| turn.task.contains(&c.matches));
        let replies = match which {
            Some(index) => &self.script.conversation[index].reply,
            None => &self.script.reply,
        };
        let index = match self.script.order {
            Order::Turns => turn.replies,
            Order::Sequence => {
                let mut positions = self.positions.lock().unwrap_or_else(PoisonError::into_inner);
                let position = positions.entry(which).or_default();
                *position += 1;
                *position - 1
            }
        };
        let reply = replies.get(index).ok_or_else(|| {
            format!("the script has no reply {} (it ends after {})", index + 1, replies.len())
        })?;
        match reply.expect.iter().find(|text| !turn.last.contains(text.as_str())) {
            None => Ok(reply.clone()),
            Some(text) => Err(format!(
                "reply {} of the script expects {text:?} in the last message, which is {:?}",
                index + 1,
                turn.last.chars().take(400).collect::<String>()
            )),
        }
    }
}
