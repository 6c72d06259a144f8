//! The store on files: who writes which run, and the way from the trait to logs and blobs.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use gimlet::event::Event;
use gimlet::ids::RunId;
use gimlet::store::{BlobId, Store, StoreError};

use crate::blobs;
use crate::files::{create_dir, io_error};
use crate::log::Lines;
use crate::writer::{Needs, Open, OpenedRun, Writer, out_of_order, synced};

/// Runs and blobs in a folder:
///
/// ```text
/// home/runs/<run>/log.jsonl   the events
/// home/blobs/ab/abcd…         long texts, by hash
/// home/index.sqlite           what `list` knows; may be deleted at any time
/// ```
///
/// The first event of a run creates it and takes its lock; an event of an existing run takes the lock too, though
/// [`open_run`](FileStore::open_run) is the better way to go on with one. The lock is given back by
/// [`close_run`](FileStore::close_run), when the store is dropped, or when the process dies.
#[derive(Debug)]
pub struct FileStore {
    /// Where everything is.
    home: PathBuf,
    /// Runs this store writes; each is closed by `close_run` or when the store is dropped.
    writers: Mutex<HashMap<RunId, Arc<Writer>>>,
}

impl FileStore {
    /// Opens the store in a folder, making it if need be.
    pub fn open(home: &Path) -> Result<Self, StoreError> {
        for dir in [home.join("runs"), home.join("blobs")] {
            create_dir(&dir).map_err(io_error("creating", &dir))?;
        }
        Ok(FileStore { home: home.into(), writers: Mutex::default() })
    }

    /// The folder everything is in.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Where a run's log is, whether or not it exists.
    pub fn log_path(&self, run: &RunId) -> PathBuf {
        self.run_dir(run).join("log.jsonl")
    }

    pub(crate) fn run_dir(&self, run: &RunId) -> PathBuf {
        self.home.join("runs").join(run.as_str())
    }

    /// Takes an existing run for writing, before it is loaded to go on with: from here on nobody else can change it.
    /// A run that is already open, here or in another process, is [`StoreError::Locked`].
    pub async fn open_run(&self, run: &RunId) -> Result<OpenedRun, StoreError> {
        if self.writers().contains_key(run) {
            return Err(StoreError::Locked(run.clone()));
        }
        let (home, name) = (self.home.clone(), run.clone());
        let (writer, opened) = blocking(move || Writer::open(&home, &name, Open::Existing)).await?;
        self.writers().insert(run.clone(), Arc::new(writer));
        Ok(opened)
    }

    /// Gives a run's lock back. Does nothing when this store does not write it.
    pub fn close_run(&self, run: &RunId) {
        if let Some(writer) = self.writers().remove(run) {
            writer.close();
        }
    }

    fn writers(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, Arc<Writer>>> {
        self.writers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer(&self, event: &Event) -> Result<Arc<Writer>, StoreError> {
        match self.writers().entry(event.run.clone()) {
            Entry::Occupied(open) => Ok(open.get().clone()),
            Entry::Vacant(place) => {
                let how = if event.seq == 1 { Open::OrCreate } else { Open::Existing };
                let (writer, opened) = Writer::open(&self.home, &event.run, how)?;
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

impl Store for FileStore {
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

    fn put<'a>(&'a self, bytes: &'a [u8]) -> BoxFuture<'a, Result<BlobId, StoreError>> {
        let (blobs, bytes) = (self.home.join("blobs"), bytes.to_vec());
        blocking(move || blobs::put(&blobs, &bytes)).boxed()
    }

    fn get<'a>(&'a self, blob: &'a BlobId) -> BoxFuture<'a, Result<Vec<u8>, StoreError>> {
        let (blobs, blob) = (self.home.join("blobs"), blob.clone());
        blocking(move || blobs::get(&blobs, &blob)).boxed()
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(StoreError::Backend(format!("the work was not finished: {error}"))),
    }
}
