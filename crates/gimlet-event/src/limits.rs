//! What a run may spend.

use serde::{Deserialize, Serialize};

/// Limits of an agent. Part of the log, so that a resumed run has them too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Most replies asked of the agent's own model.
    pub max_steps: u32,
    /// Most steps of the agent and of all agents below it, together; see [`Limits::steps_together`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_budget: Option<u32>,
    /// Most seconds of work; waiting for a person between two processes does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_seconds: Option<f64>,
    /// Most tokens, read and written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// How often a final answer may be refused by checks, for the same reason, before it is taken with a note.
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
            step_budget: None,
            max_seconds: None,
            max_tokens: None,
            max_refusals: 2,
            max_depth: 4,
            max_agents: 64,
            max_parallel: 8,
        }
    }
}

impl Limits {
    /// How many steps an agent and those below it may take together. Where nobody says, it is enough for a team of ten
    /// that work as long as their leader: a bound on what runs away, and out of the way of what does not.
    pub fn steps_together(&self) -> u32 {
        const TEAM: u32 = 10;
        self.step_budget.unwrap_or(self.max_steps.saturating_mul(TEAM))
    }
}
