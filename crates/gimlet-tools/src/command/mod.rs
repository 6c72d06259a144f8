//! Running programs: what a command is, what comes back, and who runs it.
//!
//! [`CommandRunner`] is the door behind which a jail may stand; [`HostRunner`] is the plain one.

mod environment;
mod host;
mod simple;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

pub use environment::{ALLOWED_VARIABLES, Environment};
pub use host::HostRunner;
pub(crate) use host::{Capture, Process, execute};
pub use simple::Invocation;

/// A command, ready to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The exact text that was judged and approved.
    pub text: String,
    /// How it is started.
    pub invocation: Invocation,
    /// Where, as an absolute path.
    pub cwd: PathBuf,
    /// All variables it sees.
    pub environment: Environment,
    /// Longest run; then its whole process group is killed.
    pub timeout: Duration,
    /// Most bytes kept of each stream; the end survives.
    pub keep: usize,
}

/// How a command went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// How it ended.
    pub end: End,
    /// The end of what it wrote.
    pub stdout: Captured,
    /// The end of what it complained about.
    pub stderr: Captured,
    /// How long it took.
    pub duration: Duration,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By itself, with this code.
    Exited(i32),
    /// By a signal of someone else.
    Signalled(i32),
    /// Killed because its time was up.
    TimedOut,
    /// Killed because the call was stopped.
    Cancelled,
}

/// What was kept of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// How many others were dropped.
    pub dropped: u64,
}

impl Captured {
    /// The text, unreadable bytes replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// Someone who runs commands.
pub trait CommandRunner: Send + Sync {
    /// What is said about where commands run, such as `host`.
    fn name(&self) -> &str;

    /// Runs a command to its end. Dropping the future kills it.
    fn run<'a>(
        &'a self,
        command: &'a Command,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, io::Result<Finished>>;
}
