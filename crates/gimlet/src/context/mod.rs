//! What fits a model's window: how large a conversation is, and what gives way when it grows too large.
//!
//! Plans are pure functions of the state. What a plan takes away is recorded as an event before the next request and
//! applied by the fold, so that a resumed run sends the same messages; between two such events a conversation only
//! grows. Old observations give way first; a summary of old steps would be another plan beside [`prune`].

pub mod prune;
mod size;

pub use prune::{Observation, plan, relief};
pub(crate) use size::tool_bytes;
pub use size::{Measured, bytes};

/// How much a model can take at once, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The whole window: what it reads and what it writes.
    pub tokens: u32,
    /// What is set aside for its reply.
    pub reply: u32,
}

impl Window {
    /// How large a prompt may be. The reply never takes more than half, and a little is left for what a server adds.
    pub fn room(&self) -> u64 {
        let whole = u64::from(self.tokens);
        whole - u64::from(self.reply).min(whole / 2) - whole / 32
    }
}
