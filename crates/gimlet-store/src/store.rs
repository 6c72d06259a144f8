//! The store on files: who writes which run, and the way from the traits to logs and blobs.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use futures_util::stream::BoxStream;
use gimlet::event::Event;
use gimlet::ids::RunId;
use gimlet::store::{BlobId, Blobs, Lease, Line, OpenedRun, RunLog, StoreError};
use serde_json::Value;

use crate::approvals::Approvals;
use crate::blobs;
use crate::files::{create_dir, io_error};
use crate::follow::Logs;
use crate::home::Home;
use crate::lock::Door;
use crate::log::{Lines, raw};
use crate::writer::{Needs, Open, Writer, out_of_order, synced};

/// Runs and blobs in a folder:
///
/// ```text
/// home/runs/<run>/log.jsonl      the events
/// home/runs/<run>/<list>.jsonl   what belongs to the run and is no event
/// home/blobs/ab/abcd…            long texts, by hash
/// home/sessions/<name>           the run that a name stands for
/// home/approvals.sqlite          questions, answers and lasting approvals
/// home/index.sqlite              what `list` knows; may be deleted at any time
/// ```
///
/// A run's lease is a lock that the kernel holds. The first event of a run creates it and takes its lock; an event of an
/// existing run takes the lock too, though [`open`](RunLog::open) is the better way to go on with one. The lock is given
/// back by [`close`](RunLog::close), when the store is dropped, or when the process dies.
#[derive(Debug)]
pub struct FileStore {
    /// Where everything is.
    pub(crate) home: Home,
    /// Runs this store writes; each is closed by `close` or when the store is dropped.
    writers: Mutex<HashMap<RunId, Arc<Writer>>>,
    /// Opened when it is first needed.
    pub(crate) approvals: Arc<OnceLock<Approvals>>,
    /// Logs that somebody follows.
    followed: Logs,
}

impl FileStore {
    /// Opens the store in a folder, making it if need be.
    pub fn open(home: &Path) -> Result<Self, StoreError> {
        let home = Home(home.into());
        for dir in [home.runs(), home.blobs()] {
            create_dir(&dir).map_err(io_error("creating", &dir))?;
        }
        Ok(FileStore {
            home,
            writers: Mutex::default(),
            approvals: Arc::default(),
            followed: Logs::default(),
        })
    }

    /// The folder everything is in.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Where a run's log is, whether or not it exists.
    pub fn log_path(&self, run: &RunId) -> PathBuf {
        self.home.log_path(run)
    }

    fn writers(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, Arc<Writer>>> {
        self.writers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer(&self, event: &Event) -> Result<Arc<Writer>, StoreError> {
        match self.writers().entry(event.run.clone()) {
            Entry::Occupied(open) => Ok(open.get().clone()),
            Entry::Vacant(place) => {
                let how = if event.seq == 1 { Open::OrCreate } else { Open::Existing };
                let (writer, opened) = Writer::open(self.home(), &event.run, how)?;
                if event.seq != opened.events + 1 {
                    // Dropping the writer gives back a lock that only an event in its place may take.
                    return Err(out_of_order(event, opened.events));
                }
                Ok(place.insert(Arc::new(writer)).clone())
            }
        }
    }
}

impl Drop for FileStore {
    fn drop(&mut self) {
        for writer in self.writers().values() {
            writer.close();
        }
    }
}

impl RunLog for FileStore {
    fn open<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<OpenedRun, StoreError>> {
        async move {
            if self.writers().contains_key(run) {
                return Err(StoreError::Locked(run.clone()));
            }
            let (home, name) = (self.home.clone(), run.clone());
            let opening = blocking(move || Writer::open(home.path(), &name, Open::Existing));
            let (writer, opened) = opening.await?;
            self.writers().insert(run.clone(), Arc::new(writer));
            Ok(opened)
        }
        .boxed()
    }

    fn close(&self, run: &RunId) {
        if let Some(writer) = self.writers().remove(run) {
            writer.close();
        }
    }

    fn lease<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Lease, StoreError>> {
        let (home, run) = (self.home.clone(), run.clone());
        blocking(move || {
            if !home.log_path(&run).exists() {
                return Err(StoreError::NoSuchRun(run));
            }
            let door = Door::enter(home.path()).map_err(io_error("locking", home.path()))?;
            Ok(if door.is_locked(&home.run_dir(&run)) { Lease::Held } else { Lease::Free })
        })
        .boxed()
    }

    fn append(&self, event: &Event) -> BoxFuture<'_, Result<(), StoreError>> {
        let written = self.writer(event).and_then(|writer| Ok((writer.append(event)?, writer)));
        match written {
            Ok((Needs::Nothing, _)) => ready(Ok(())).boxed(),
            Ok((Needs::Sync, writer)) => synced(writer).boxed(),
            Err(error) => ready(Err(error)).boxed(),
        }
    }

    fn load(&self, run: &RunId) -> BoxFuture<'_, Result<Vec<Event>, StoreError>> {
        let (path, run) = (self.log_path(run), run.clone());
        blocking(move || {
            let events = Lines::open(&path, &run)?.collect::<Result<Vec<Event>, _>>()?;
            if events.is_empty() { Err(StoreError::NoSuchRun(run)) } else { Ok(events) }
        })
        .boxed()
    }

    fn lines<'a>(
        &'a self,
        run: &'a RunId,
        after: u64,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<Line>, StoreError>> {
        let (path, run) = (self.log_path(run), run.clone());
        blocking(move || raw(&path, &run, after, most)).boxed()
    }

    fn follow(&self, run: &RunId, after: u64) -> BoxStream<'static, Result<Vec<Line>, StoreError>> {
        self.followed.watch(run, &self.log_path(run), after)
    }

    fn add_entry<'a>(
        &'a self,
        run: &'a RunId,
        list: &'a str,
        entry: Value,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let (home, run, list) = (self.home.clone(), run.clone(), list.to_owned());
        blocking(move || home.add_entry(&run, &list, &entry)).boxed()
    }

    fn entries<'a>(&'a self, run: &'a RunId, list: &'a str) -> BoxFuture<'a, Result<Vec<Value>, StoreError>> {
        let (home, run, list) = (self.home.clone(), run.clone(), list.to_owned());
        blocking(move || home.entries(&run, &list)).boxed()
    }
}

impl Blobs for FileStore {
    fn put<'a>(&'a self, bytes: &'a [u8]) -> BoxFuture<'a, Result<BlobId, StoreError>> {
        let (blobs, bytes) = (self.home.blobs(), bytes.to_vec());
        blocking(move || blobs::put(&blobs, &bytes)).boxed()
    }

    fn get<'a>(&'a self, blob: &'a BlobId) -> BoxFuture<'a, Result<Vec<u8>, StoreError>> {
        let (blobs, blob) = (self.home.blobs(), blob.clone());
        blocking(move || blobs::get(&blobs, &blob)).boxed()
    }
}

/// Does what blocks on files where that is allowed. It begins at once and is finished even if nobody waits for it.
pub(crate) fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> impl Future<Output = Result<T, StoreError>> + Send + 'static {
    let done = tokio::task::spawn_blocking(work);
    async {
        done.await
            .unwrap_or_else(|error| Err(StoreError::Backend(format!("the work was not finished: {error}"))))
    }
}
