//! What a run may spend.

use serde::{Deserialize, Serialize};

/// Limits of an agent. Part of the log, so that a resumed run has them too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Most replies asked of the model.
    pub max_steps: u32,
    /// Most seconds of work; waiting for a person between two processes does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_seconds: Option<f64>,
    /// Most tokens, read and written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// How often a final answer may be refused by checks before it is taken with a note.
    pub max_refusals: u32,
    /// How deep agents may call agents.
    pub max_depth: usize,
    /// Most sub-agents of a whole run, however deep; one that was started counts, whatever became of it.
    pub max_agents: u32,
    /// Most tool calls of one reply that run at the same time.
    pub max_parallel: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            max_steps: 25,
            max_seconds: None,
            max_tokens: None,
            max_refusals: 2,
            max_depth: 4,
            max_agents: 64,
            max_parallel: 8,
        }
    }
}
