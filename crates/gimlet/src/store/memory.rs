//! A store in memory.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::{BoxFuture, ready};
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};
use serde_json::Value;
use tokio::sync::watch;

use super::{BlobId, Blobs, Lease, Line, OpenedRun, Repair, RunLog, StoreError};
use crate::event::Event;
use crate::ids::RunId;

/// A store that forgets when it is dropped: for library use without durability, and for tests. Clones share what they
/// keep.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    logs: Arc<Mutex<HashMap<RunId, Log>>>,
    held: Arc<Mutex<HashSet<RunId>>>,
    blobs: Arc<Mutex<HashMap<BlobId, Vec<u8>>>>,
}

#[derive(Debug, Default)]
struct Log {
    events: Vec<Event>,
    lists: HashMap<String, Vec<Value>>,
    /// Told how many events there are.
    length: watch::Sender<usize>,
}

impl MemoryStore {
    /// Looks at a log that exists.
    fn read<T>(&self, run: &RunId, look: impl FnOnce(&Log) -> T) -> Result<T, StoreError> {
        let logs = lock(&self.logs);
        let found = logs.get(run).filter(|log| !log.events.is_empty());
        found.map(look).ok_or_else(|| StoreError::NoSuchRun(run.clone()))
    }

    fn lines_now(&self, run: &RunId, after: u64, most: usize) -> Result<Vec<Line>, StoreError> {
        let skip = usize::try_from(after).unwrap_or(usize::MAX);
        self.read(run, |log| log.events.iter().skip(skip).take(most).map(line).collect())?
    }
}

fn line(event: &Event) -> Result<Line, StoreError> {
    let json = serde_json::to_string(event)
        .map_err(|error| StoreError::Backend(format!("event {} cannot be written: {error}", event.seq)))?;
    Ok(Line { seq: event.seq, json: json.into() })
}

impl RunLog for MemoryStore {
    fn open<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<OpenedRun, StoreError>> {
        let opened = self.read(run, |log| log.events.len() as u64).and_then(|events| {
            match lock(&self.held).insert(run.clone()) {
                true => Ok(OpenedRun { events, repair: Repair::Clean }),
                false => Err(StoreError::Locked(run.clone())),
            }
        });
        ready(opened).boxed()
    }

    fn close(&self, run: &RunId) {
        lock(&self.held).remove(run);
    }

    fn lease<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Lease, StoreError>> {
        let held = lock(&self.held).contains(run);
        ready(self.read(run, |_| if held { Lease::Held } else { Lease::Free })).boxed()
    }

    fn append(&self, event: &Event) -> BoxFuture<'_, Result<(), StoreError>> {
        let mut logs = lock(&self.logs);
        let log = logs.entry(event.run.clone()).or_default();
        log.events.push(event.clone());
        log.length.send_replace(log.events.len());
        lock(&self.held).insert(event.run.clone());
        ready(Ok(())).boxed()
    }

    fn load(&self, run: &RunId) -> BoxFuture<'_, Result<Vec<Event>, StoreError>> {
        ready(self.read(run, |log| log.events.clone())).boxed()
    }

    fn lines<'a>(
        &'a self,
        run: &'a RunId,
        after: u64,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<Line>, StoreError>> {
        ready(self.lines_now(run, after, most)).boxed()
    }

    fn follow(&self, run: &RunId, after: u64) -> BoxStream<'static, Result<Vec<Line>, StoreError>> {
        let length = match self.read(run, |log| log.length.subscribe()) {
            Ok(length) => length,
            Err(error) => return stream::once(ready(Err(error))).boxed(),
        };
        let from = (self.clone(), run.clone(), after, length);
        stream::unfold(from, async |(store, run, after, mut length)| {
            let seen = usize::try_from(after).unwrap_or(usize::MAX);
            length.wait_for(|length| *length > seen).await.ok()?;
            let lines = store.lines_now(&run, after, usize::MAX);
            let last = lines.as_ref().ok().and_then(|lines| lines.last()).map_or(after, |line| line.seq);
            Some((lines, (store, run, last, length)))
        })
        .boxed()
    }

    fn add_entry<'a>(
        &'a self,
        run: &'a RunId,
        list: &'a str,
        entry: Value,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let mut logs = lock(&self.logs);
        logs.entry(run.clone()).or_default().lists.entry(list.to_owned()).or_default().push(entry);
        ready(Ok(())).boxed()
    }

    fn entries<'a>(&'a self, run: &'a RunId, list: &'a str) -> BoxFuture<'a, Result<Vec<Value>, StoreError>> {
        let logs = lock(&self.logs);
        let found = logs.get(run).and_then(|log| log.lists.get(list)).cloned().unwrap_or_default();
        ready(Ok(found)).boxed()
    }
}

impl Blobs for MemoryStore {
    fn put<'a>(&'a self, bytes: &'a [u8]) -> BoxFuture<'a, Result<BlobId, StoreError>> {
        let blob = BlobId::of(bytes);
        lock(&self.blobs).insert(blob.clone(), bytes.to_vec());
        ready(Ok(blob)).boxed()
    }

    fn get<'a>(&'a self, blob: &'a BlobId) -> BoxFuture<'a, Result<Vec<u8>, StoreError>> {
        let found = lock(&self.blobs).get(blob).cloned();
        ready(found.ok_or_else(|| StoreError::NoSuchBlob(blob.clone()))).boxed()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
