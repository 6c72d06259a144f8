//! One writer per run, held by the kernel: a lock dies with its process, so there is nothing stale to clean up.
//!
//! Asking whether a run is locked means taking its lock for a moment. So that a question never makes a writer fail,
//! both are done while holding the *door*, a lock of the whole home that is only ever held that long.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::files::private;

/// The right to write a run; given back when dropped.
#[derive(Debug)]
pub(crate) struct RunLock {
    /// Holds the kernel's lock for as long as it is open.
    file: File,
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // Closing would do, were it not for a child that is just being started and shares the descriptor for a moment.
        // There is nobody to tell of a failure, and closing follows anyway.
        let _ = self.file.unlock();
    }
}

/// What came of trying to lock a run.
#[derive(Debug)]
pub(crate) enum Attempt {
    Held(RunLock),
    /// Another writer has it.
    Busy,
}

/// The door of a home, open while this value lives.
#[derive(Debug)]
pub(crate) struct Door {
    _file: File,
}

impl Door {
    /// Waits for whoever is at the door, which takes microseconds.
    pub(crate) fn enter(home: &Path) -> io::Result<Self> {
        let file = open(&home.join("door.lock"))?;
        file.lock()?;
        Ok(Door { _file: file })
    }

    /// Takes a run for writing.
    pub(crate) fn lock(&self, run_dir: &Path) -> io::Result<Attempt> {
        let file = open(&lock_path(run_dir))?;
        match file.try_lock() {
            Ok(()) => Ok(Attempt::Held(RunLock { file })),
            Err(TryLockError::WouldBlock) => Ok(Attempt::Busy),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Whether somebody writes the run. What cannot be asked counts as nobody.
    pub(crate) fn is_locked(&self, run_dir: &Path) -> bool {
        let Ok(file) = File::open(lock_path(run_dir)) else { return false };
        matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
    }
}

/// Beside the log and not on it, because some systems keep readers away from a locked file.
fn lock_path(run_dir: &Path) -> PathBuf {
    run_dir.join("lock")
}

fn open(path: &Path) -> io::Result<File> {
    private().write(true).create(true).truncate(false).open(path)
}
