//! What a piece of code in a session came to.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Standard output or standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// How a cell ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum CellEnd {
    /// To its last line; the value of a last expression, as Python would show it.
    Done {
        /// `repr` of the value, unless it is None.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<String>,
    },
    /// By `final_answer(value)`.
    Answer {
        /// The answer.
        value: Value,
    },
    /// By an exception nobody caught.
    Raised {
        /// Its class.
        kind: String,
        /// The traceback as Python prints it.
        traceback: String,
    },
    /// By a limit; variables may be lost, and the text names them.
    Limited {
        /// Which limit and what was lost.
        message: String,
    },
    /// By the death of the interpreter; the session is rebuilt by replay.
    Crashed {
        /// What is known.
        message: String,
    },
}
