//! What a session may spend.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Deepest brackets, indentation or prefixes of a cell, unless a session says otherwise.
pub(crate) const NESTING: usize = 100;

/// Most variables that are told of, the latest ones.
pub(crate) const VARIABLES: usize = 50;

/// Limits of one session; each holds for every cell of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Longest a cell may compute; waiting for a host call does not count.
    pub wall: Duration,
    /// Most memory of the session, in bytes.
    pub memory: u64,
    /// Most characters a cell may print.
    pub output: usize,
    /// Most characters of a last expression's value.
    pub value: usize,
    /// Most host calls of a cell.
    pub calls: u64,
    /// Deepest Python recursion to begin with; the code may raise it up to what the stack holds.
    pub recursion: usize,
    /// Deepest brackets in a cell's source.
    pub nesting: usize,
    /// Longest source of a cell, in bytes.
    pub source: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            wall: Duration::from_secs(30),
            memory: 512 << 20,
            output: 200_000,
            value: 20_000,
            calls: 1_000,
            recursion: 1_000,
            nesting: NESTING,
            source: 1 << 20,
        }
    }
}

/// How long after the limit a worker may take to end a cell by itself before it is killed.
pub const GRACE: Duration = Duration::from_millis(300);
