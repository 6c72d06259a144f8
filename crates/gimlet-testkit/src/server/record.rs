//! What a server has seen.

use serde::Serialize;
use serde_json::Value;

use super::history::History;
use super::rules::Violation;
use crate::wire::Wire;

/// A request to a model, as it came.
#[derive(Debug, Clone, Serialize)]
pub struct Recorded {
    /// Its wire.
    pub wire: Wire,
    /// The path it came to.
    pub path: String,
    /// The first user message, which names the conversation; empty when it could not be read.
    pub task: String,
    /// Whether it asks what a task wants, beside every conversation.
    pub asks_aim: bool,
    /// The body; a string when it was no JSON.
    pub body: Value,
    /// Length of the body in bytes, as it came.
    pub bytes: usize,
    /// When it had come whole, in microseconds since the epoch; a bench tells the time between requests by it.
    pub at_us: u64,
    /// What was wrong with it.
    pub violations: Vec<Violation>,
    /// Its headers, names in lower case. Not written into logs: they may hold keys.
    #[serde(skip)]
    pub headers: Vec<(String, String)>,
}

impl Recorded {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The messages of the body.
    pub fn messages(&self) -> &[Value] {
        self.body.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Everything a server remembers; lives as long as the server's last handle.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    /// Model calls, in the order in which they came.
    pub(crate) requests: Vec<Recorded>,
    /// Every request, as `METHOD path`.
    pub(crate) visits: Vec<String>,
    /// Tasks whose next request may begin anew; each is taken out by that request.
    pub(crate) compacted: Vec<String>,
    /// What each conversation said.
    pub(crate) history: History,
}
