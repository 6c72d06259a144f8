//! Where events go to be safe. The log is the truth; everything else can be rebuilt from it.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::digest::digest;
use crate::event::Event;
use crate::ids::RunId;

/// A place for events and for texts too long to show.
pub trait Store: Send + Sync {
    /// Adds an event to its run's log. The order of *calls* is the order in the log, so an implementation takes the
    /// event before it returns; the future resolves once the event survives the death of this process and, when
    /// [`Event::is_barrier`] says so, of the machine.
    fn append(&self, event: &Event) -> BoxFuture<'_, Result<(), StoreError>>;

    /// All events of a run, oldest first.
    fn load(&self, run: &RunId) -> BoxFuture<'_, Result<Vec<Event>, StoreError>>;

    /// Keeps bytes under an address made from their content.
    fn put<'a>(&'a self, bytes: &'a [u8]) -> BoxFuture<'a, Result<BlobId, StoreError>>;

    /// The bytes at an address.
    fn get<'a>(&'a self, blob: &'a BlobId) -> BoxFuture<'a, Result<Vec<u8>, StoreError>>;
}

/// Address of stored bytes: `blob:` and the SHA-256 of the content.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BlobId(String);

impl BlobId {
    /// The address of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        BlobId(digest(bytes))
    }

    /// The hex digest alone, for file names.
    pub fn hex(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "blob:{}", self.0)
    }
}

impl FromStr for BlobId {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        let hex = text.strip_prefix("blob:").unwrap_or(text);
        if hex.len() == 64 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            Ok(BlobId(hex.into()))
        } else {
            Err(StoreError::BadAddress(text.into()))
        }
    }
}

impl TryFrom<String> for BlobId {
    type Error = StoreError;

    fn try_from(text: String) -> Result<Self, StoreError> {
        text.parse()
    }
}

impl From<BlobId> for String {
    fn from(blob: BlobId) -> String {
        blob.to_string()
    }
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
    #[error("`{0}` is not an address: blob: and 64 hex digits")]
    BadAddress(String),
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

/// A store that forgets when it is dropped: for library use without durability, and for tests.
#[derive(Debug, Default)]
pub struct MemoryStore {
    logs: Mutex<HashMap<RunId, Vec<Event>>>,
    blobs: Mutex<HashMap<BlobId, Vec<u8>>>,
}

impl Store for MemoryStore {
    fn append(&self, event: &Event) -> BoxFuture<'_, Result<(), StoreError>> {
        let mut logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        logs.entry(event.run.clone()).or_default().push(event.clone());
        std::future::ready(Ok(())).boxed()
    }

    fn load(&self, run: &RunId) -> BoxFuture<'_, Result<Vec<Event>, StoreError>> {
        let logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        let found = logs.get(run).cloned().ok_or_else(|| StoreError::NoSuchRun(run.clone()));
        std::future::ready(found).boxed()
    }

    fn put<'a>(&'a self, bytes: &'a [u8]) -> BoxFuture<'a, Result<BlobId, StoreError>> {
        let blob = BlobId::of(bytes);
        let mut blobs = self.blobs.lock().unwrap_or_else(PoisonError::into_inner);
        blobs.insert(blob.clone(), bytes.to_vec());
        std::future::ready(Ok(blob)).boxed()
    }

    fn get<'a>(&'a self, blob: &'a BlobId) -> BoxFuture<'a, Result<Vec<u8>, StoreError>> {
        let blobs = self.blobs.lock().unwrap_or_else(PoisonError::into_inner);
        let found = blobs.get(blob).cloned().ok_or_else(|| StoreError::NoSuchBlob(blob.clone()));
        std::future::ready(found).boxed()
    }
}
