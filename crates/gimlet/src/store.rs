//! Where events go to be safe. The log is the truth; everything else can be rebuilt from it.
//!
//! What a backend offers is four traits: [`RunLog`] and [`Blobs`], which the loop needs, and [`Catalog`] and [`Inbox`],
//! which front ends need. All are object-safe, so a program puts another backend in without touching a front end.

mod catalog;
mod inbox;
mod memory;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use serde_json::Value;

use crate::event::Event;
use crate::ids::RunId;

pub use catalog::{Catalog, FindError, RunStatus, RunSummary, Swept};
pub use gimlet_event::blob::{BadAddress, BlobId};
pub use inbox::{Grant, Inbox, InboxError, Question, Reach};
pub use memory::MemoryStore;

/// The logs of runs. One writer at a time holds a run's lease; anybody may read.
pub trait RunLog: Send + Sync {
    /// Takes the lease of an existing run, before it is loaded to go on with: from here on nobody else can change it. A
    /// run whose lease is held, here or elsewhere, is [`StoreError::Locked`]. The first event of a new run takes its
    /// lease, too.
    fn open<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<OpenedRun, StoreError>>;

    /// Gives a run's lease back, without waiting. Does nothing when it is not held here.
    fn close(&self, run: &RunId);

    /// Whether somebody holds the lease of a run. One that does not exist is [`StoreError::NoSuchRun`].
    fn lease<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Lease, StoreError>>;

    /// Adds an event to its run's log. The order of *calls* is the order in the log, so an implementation takes the
    /// event before it returns; the future resolves once the event survives the death of this process and, when
    /// [`Event::is_barrier`] says so, of the machine.
    fn append(&self, event: &Event) -> BoxFuture<'_, Result<(), StoreError>>;

    /// All events of a run, oldest first.
    fn load(&self, run: &RunId) -> BoxFuture<'_, Result<Vec<Event>, StoreError>>;

    /// At most so many events after this number, as they are stored.
    fn lines<'a>(
        &'a self,
        run: &'a RunId,
        after: u64,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<Line>, StoreError>>;

    /// The events after this number as they are stored, then those that are added, whoever adds them, without gap or
    /// double. It goes on until it is dropped.
    fn follow(&self, run: &RunId, after: u64) -> BoxStream<'static, Result<Vec<Line>, StoreError>>;

    /// Adds an entry to one of a run's lists: what has to outlive the process and is no event, such as how to take a
    /// change back. Resolves when the entry is durable. A list is named by lowercase letters.
    fn add_entry<'a>(
        &'a self,
        run: &'a RunId,
        list: &'a str,
        entry: Value,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The entries of a run's list, oldest first; none where nothing was added.
    fn entries<'a>(&'a self, run: &'a RunId, list: &'a str) -> BoxFuture<'a, Result<Vec<Value>, StoreError>>;
}

/// Texts too long to show, kept under an address made from their content.
pub trait Blobs: Send + Sync {
    /// Keeps bytes; they are durable when this resolves.
    fn put<'a>(&'a self, bytes: &'a [u8]) -> BoxFuture<'a, Result<BlobId, StoreError>>;

    /// The bytes at an address.
    fn get<'a>(&'a self, blob: &'a BlobId) -> BoxFuture<'a, Result<Vec<u8>, StoreError>>;
}

/// What a run writes to: logs and long texts.
pub trait Store: RunLog + Blobs {}

impl<S: RunLog + Blobs + ?Sized> Store for S {}

/// Everything that a program keeps of runs. The parts may be one value or several.
#[derive(Clone)]
pub struct Backend {
    /// Logs and long texts.
    pub store: Arc<dyn Store>,
    /// Which runs there are.
    pub catalog: Arc<dyn Catalog>,
    /// Questions and answers.
    pub inbox: Arc<dyn Inbox>,
}

impl Backend {
    /// A backend that is one value.
    pub fn of(all: Arc<impl Store + Catalog + Inbox + 'static>) -> Backend {
        Backend { store: all.clone(), catalog: all.clone(), inbox: all }
    }
}

/// Whether somebody works on a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lease {
    /// Nobody does.
    Free,
    /// Somebody does, here or elsewhere.
    Held,
}

/// A run that was opened for writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenedRun {
    /// How many events its log holds.
    pub events: u64,
    /// Whether the end of the log had to be mended.
    pub repair: Repair,
}

/// What opening a log for writing had to mend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repair {
    /// Nothing.
    Clean,
    /// The last line was cut short by a crash and is removed; nobody was told that it was written.
    TornLine {
        /// How many bytes of it there were.
        bytes: u64,
    },
}

/// An event as it is stored. A kind of event that this version does not know keeps all of its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The event's number.
    pub seq: u64,
    /// The event as JSON, on one line.
    pub json: Arc<str>,
}

/// Why the store could not do it. A log that cannot be written ends the run.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No such run.
    #[error("there is no run `{0}`")]
    NoSuchRun(RunId),
    /// Nothing is stored there.
    #[error("nothing is stored at {0}")]
    NoSuchBlob(BlobId),
    /// Not an address.
    #[error(transparent)]
    BadAddress(#[from] BadAddress),
    /// Another process writes this run.
    #[error("run `{0}` is in use by another process")]
    Locked(RunId),
    /// A line of a log is damaged, and it is not a torn last one.
    #[error("{path}:{line}: the log is damaged: {reason}")]
    Corrupt {
        /// The log file.
        path: String,
        /// Line number, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// The file system said no.
    #[error("{doing} {path}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// Anything else a backend has to say.
    #[error("{0}")]
    Backend(String),
}
