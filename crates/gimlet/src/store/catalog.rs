//! Finding runs: lists, what a person calls a run, and names that stand for one.

use std::path::Path;
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::StoreError;
use crate::event::ActionFormat;
use crate::ids::RunId;

/// Knows which runs there are.
pub trait Catalog: Send + Sync {
    /// The newest runs, newest first.
    fn list(&self, limit: usize) -> BoxFuture<'_, Result<Vec<RunSummary>, StoreError>>;

    /// The run meant by a full id, an end of one that no other run shares, or `last`: the newest run of this folder,
    /// which is an absolute path.
    fn find<'a>(&'a self, text: &'a str, folder: &'a Path) -> BoxFuture<'a, Result<RunId, FindError>>;

    /// Lets a session's name stand for a run.
    fn name<'a>(&'a self, name: &'a str, run: &'a RunId) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The run that a session's name stands for. The run may have been removed since.
    fn named<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<RunId>, StoreError>>;

    /// Removes a run with all that belongs to it. One that somebody works on is [`StoreError::Locked`].
    fn delete<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Removes blobs that no log names, unless they are younger than `grace`: a run at work stores a text before it
    /// names it.
    fn sweep(&self, grace: Duration) -> BoxFuture<'_, Result<Swept, StoreError>>;
}

/// One run of a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunSummary {
    /// Its id.
    pub id: RunId,
    /// When it began.
    pub started: Timestamp,
    /// When something last happened.
    pub updated: Timestamp,
    /// The beginning of what it was asked to do.
    pub task: String,
    /// Name of its agent.
    pub agent: String,
    /// The model it asks.
    pub model: String,
    /// How it acts.
    pub action: ActionFormat,
    /// The folder it works in.
    pub root: String,
    /// Where it stands.
    #[serde(flatten)]
    pub status: RunStatus,
    /// Steps of the main agent.
    pub steps: u32,
    /// Tokens read and written, sub-agents included.
    pub tokens: u64,
    /// Seconds of work; the time between stopping and being resumed does not count.
    pub seconds: f64,
    /// Size of its log.
    pub log_bytes: u64,
    /// What is wrong with its log; the rest says how it stood before that line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
}

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum RunStatus {
    /// A process is working on it.
    Running,
    /// It waits for a person.
    Suspended {
        /// Id of the question.
        approval: String,
    },
    /// The person stopped it.
    Interrupted,
    /// A replay did something else than the log says.
    Diverged,
    /// It is over and answered.
    Answered,
    /// It is over because it ran out of steps, time or tokens.
    Limited,
    /// It broke.
    Failed,
    /// Its process died without saying anything.
    Crashed,
}

/// What was removed with the runs that named it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// How many long texts, and files that a crash left half-written.
    pub files: usize,
    /// How many bytes they had.
    pub bytes: u64,
}

/// Why a run was not found.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// There are no runs at all.
    #[error("there are no runs yet")]
    NoRuns,
    /// There are none of this folder.
    #[error("there are no runs in this folder")]
    NoneHere,
    /// No id begins or ends like that.
    #[error("no run begins or ends with `{0}`")]
    NotFound(String),
    /// More than one id does.
    #[error("`{text}` could be any of {}", shortened(candidates))]
    Ambiguous {
        /// What was asked for.
        text: String,
        /// The runs it could be, newest id first.
        candidates: Vec<RunId>,
    },
    /// The runs cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn shortened(candidates: &[RunId]) -> String {
    let shown = 5;
    let mut text = candidates.iter().take(shown).map(RunId::as_str).collect::<Vec<_>>().join(", ");
    if candidates.len() > shown {
        text.push_str(&format!(" and {} more", candidates.len() - shown));
    }
    text
}
