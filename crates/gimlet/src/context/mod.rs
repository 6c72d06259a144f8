//! What fits a model's window: how large a conversation is, and what gives way when it grows too large.
//!
//! What gives way is decided by pure functions of the state ([`next_relief`]), recorded as an event before the next
//! request and applied by the fold, so that a resumed run sends the same messages; between two such events a
//! conversation only grows. Old observations give way first ([`prune`]), then old steps ([`summary`]).

pub(crate) mod diary;
pub mod prune;
mod room;
mod size;
pub mod summary;
pub mod variables;

pub use diary::Diary;
pub use gimlet_event::context::{Compacted, Summary, Variable};
pub use prune::{Observation, everything};
pub use room::{Compaction, Relief, compaction, next_relief};
pub(crate) use room::{after, guessed, question};
pub(crate) use size::tool_bytes;
pub use size::{Measured, bytes};

/// How much a model can take at once, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The whole window: what it reads and what it writes.
    pub tokens: u32,
    /// What is set aside for its reply.
    pub reply: u32,
    /// What a reply may grow to where it must, such as one that rewrites a file; `reply` where a person set that.
    pub longest_reply: u32,
}

impl Window {
    /// How large a prompt may be. The reply never takes more than half, and a little is left for what a server adds.
    pub fn room(&self) -> u64 {
        let whole = u64::from(self.tokens);
        whole - u64::from(self.reply).min(whole / 2) - whole / 32
    }
}
