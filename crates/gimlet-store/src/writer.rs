//! The one writer of a run's log.
//!
//! A line is handed to the kernel in one write before `append` returns, so it outlives this process; a barrier is
//! also synced. After a failed write or sync the writer refuses everything: a log may end early but never has a gap.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use gimlet::event::Event;
use gimlet::ids::RunId;
use gimlet::store::{OpenedRun, Repair, StoreError};

use crate::files::{create_dir, io_error, private, sync_dir};
use crate::lock::{Attempt, Door, RunLock};
use crate::log::{Head, Lines, encode};

/// Whether opening may make the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Open {
    Existing,
    OrCreate,
}

/// Owned by the store while the run is open in it, and by each sync under way.
#[derive(Debug)]
pub(crate) struct Writer {
    run: RunId,
    path: PathBuf,
    /// Opened for appending; only written under `state`.
    log: File,
    /// Folders whose entries lead to the log, until they have been synced once by this writer.
    unsynced: Mutex<Vec<PathBuf>>,
    /// Never held across an await.
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Open {
        last: u64,
        /// Held until the writer is closed or dropped.
        _lock: RunLock,
    },
    /// A write or sync failed, as the text says. The lock is kept: what is on the disk is not known.
    Broken {
        why: String,
        _lock: RunLock,
    },
    Closed,
}

/// What an appended event still needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    Nothing,
    Sync,
}

impl Writer {
    /// Locks a run, mends the end of its log and finds where it stands.
    pub(crate) fn open(home: &Path, run: &RunId, how: Open) -> Result<(Self, OpenedRun), StoreError> {
        let runs = home.join("runs");
        let dir = runs.join(run.as_str());
        match how {
            Open::Existing if !dir.is_dir() => return Err(StoreError::NoSuchRun(run.clone())),
            Open::OrCreate => create_dir(&dir).map_err(io_error("creating", &dir))?,
            Open::Existing => {}
        }
        let attempt =
            Door::enter(home).and_then(|door| door.lock(&dir)).map_err(io_error("locking", &dir))?;
        let lock = match attempt {
            Attempt::Held(lock) => lock,
            Attempt::Busy => return Err(StoreError::Locked(run.clone())),
        };
        let path = dir.join("log.jsonl");
        let log =
            private().append(true).create(how == Open::OrCreate).open(&path).map_err(|error| match error
                .kind()
            {
                io::ErrorKind::NotFound => StoreError::NoSuchRun(run.clone()),
                _ => io_error("opening", &path)(error),
            })?;
        let opened = mend(&log, &path, run)?;
        if how == Open::Existing && opened.events == 0 {
            return Err(StoreError::NoSuchRun(run.clone()));
        }
        let writer = Writer {
            run: run.clone(),
            path,
            log,
            unsynced: Mutex::new(vec![dir, runs, home.into()]),
            state: Mutex::new(State::Open { last: opened.events, _lock: lock }),
        };
        Ok((writer, opened))
    }

    /// Writes an event. Blocks no longer than the kernel needs to take the bytes.
    pub(crate) fn append(&self, event: &Event) -> Result<Needs, StoreError> {
        let line = encode(event)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let last = match &mut *state {
            State::Open { last, .. } => last,
            State::Broken { why, .. } => return Err(self.broken(why)),
            State::Closed => {
                return Err(StoreError::Backend(format!("the log of run `{}` is closed", self.run)));
            }
        };
        if event.seq != *last + 1 {
            return Err(out_of_order(event, *last));
        }
        match (&self.log).write_all(&line) {
            Ok(()) => *last = event.seq,
            Err(error) => {
                break_off(&mut state, &error);
                return Err(io_error("writing", &self.path)(error));
            }
        }
        Ok(if event.is_barrier() || event.seq == 1 { Needs::Sync } else { Needs::Nothing })
    }

    /// Makes everything written so far survive a power cut. Blocks.
    pub(crate) fn sync(&self) -> Result<(), StoreError> {
        self.try_sync().map_err(|error| {
            break_off(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner), &error);
            io_error("syncing", &self.path)(error)
        })
    }

    fn try_sync(&self) -> io::Result<()> {
        self.log.sync_data()?;
        // Held while syncing, so that a second barrier does not overtake the first one's folders.
        let mut unsynced = self.unsynced.lock().unwrap_or_else(PoisonError::into_inner);
        for dir in unsynced.iter() {
            sync_dir(dir)?;
        }
        unsynced.clear();
        Ok(())
    }

    /// Gives the lock back, whoever still holds this writer.
    pub(crate) fn close(&self) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = State::Closed;
    }

    fn broken(&self, why: &str) -> StoreError {
        StoreError::Backend(format!(
            "{}: nothing more is written after a failure: {why}",
            self.path.display()
        ))
    }
}

/// An event that would leave a gap or repeat a number.
pub(crate) fn out_of_order(event: &Event, last: u64) -> StoreError {
    StoreError::Backend(format!("run `{}`: event {} cannot follow event {last}", event.run, event.seq))
}

fn break_off(state: &mut State, error: &io::Error) {
    *state = match std::mem::replace(state, State::Closed) {
        State::Open { _lock, .. } => State::Broken { why: error.to_string(), _lock },
        broken @ State::Broken { .. } => broken,
        State::Closed => State::Closed,
    };
}

/// Checks a log, cuts a torn last line off and counts its events.
fn mend(log: &File, path: &Path, run: &RunId) -> Result<OpenedRun, StoreError> {
    let mut lines = Lines::<Head>::open(path, run)?;
    for line in &mut lines {
        line?;
    }
    let repair = match lines.torn() {
        0 => Repair::Clean,
        bytes => {
            log.set_len(lines.bytes()).and_then(|()| log.sync_data()).map_err(io_error("mending", path))?;
            Repair::TornLine { bytes }
        }
    };
    Ok(OpenedRun { events: lines.lines(), repair })
}

/// A sync that has to happen before an append is acknowledged.
pub(crate) async fn synced(writer: Arc<Writer>) -> Result<(), StoreError> {
    match tokio::task::spawn_blocking(move || writer.sync()).await {
        Ok(result) => result,
        Err(error) => Err(StoreError::Backend(format!("the log could not be synced: {error}"))),
    }
}
