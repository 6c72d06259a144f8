//! The pipe to the parent and what the code printed on the way there.
//!
//! Prints are gathered for a few milliseconds, since a loop may print a hundred thousand lines; the watchdog sends
//! what has waited, so text shows while the code still computes.

use std::fs::File;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gimlet::cell::Stream;

use crate::protocol::{FromWorker, write_frame};

const GATHER: Duration = Duration::from_millis(5);
const GATHER_BYTES: usize = 16 << 10;

/// The worker's side of the pipe. Shared by the interpreter's thread and the watchdog; ends with the process.
pub(crate) struct Output {
    inner: Mutex<Inner>,
}

struct Inner {
    pipe: File,
    waiting: String,
    stream: Stream,
    sent_at: Instant,
    left: usize,
    dropped: usize,
}

impl Output {
    pub(crate) fn new(pipe: File) -> Self {
        let inner = Inner {
            pipe,
            waiting: String::new(),
            stream: Stream::Stdout,
            sent_at: Instant::now(),
            left: 0,
            dropped: 0,
        };
        Output { inner: Mutex::new(inner) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a cell, which may print this many characters.
    pub(crate) fn begin(&self, characters: usize) {
        let mut inner = self.lock();
        inner.left = characters;
        inner.dropped = 0;
    }

    /// Takes printed text.
    pub(crate) fn print(&self, stream: Stream, text: &str) {
        let mut inner = self.lock();
        let length = text.chars().count();
        if length > inner.left {
            inner.dropped += length - inner.left;
        }
        let kept: String = text.chars().take(inner.left).collect();
        inner.left -= kept.chars().count();
        if kept.is_empty() {
            return;
        }
        if stream != inner.stream {
            inner.send_waiting();
            inner.stream = stream;
        }
        inner.waiting.push_str(&kept);
        let due = inner.waiting.len() >= GATHER_BYTES || inner.sent_at.elapsed() >= GATHER;
        if due && inner.waiting.ends_with('\n') || inner.waiting.len() >= 2 * GATHER_BYTES {
            inner.send_waiting();
        }
    }

    /// Sends what has waited.
    pub(crate) fn flush(&self) {
        self.lock().send_waiting();
    }

    /// Ends a cell's prints, saying what was cut.
    pub(crate) fn finish(&self) {
        let mut inner = self.lock();
        if inner.dropped > 0 {
            let note = format!("\n[output limit reached: {} more characters were not kept]\n", inner.dropped);
            inner.waiting.push_str(&note);
            inner.dropped = 0;
        }
        inner.send_waiting();
    }

    /// Sends a message after everything printed before it.
    pub(crate) fn send(&self, message: &FromWorker) -> std::io::Result<()> {
        let mut inner = self.lock();
        inner.send_waiting();
        write_frame(&mut inner.pipe, message)
    }
}

impl Inner {
    fn send_waiting(&mut self) {
        self.sent_at = Instant::now();
        if self.waiting.is_empty() {
            return;
        }
        let text = std::mem::take(&mut self.waiting);
        // A parent that is gone kills this process; there is nobody to tell.
        let _ = write_frame(&mut self.pipe, &FromWorker::Printed { stream: self.stream, text });
    }
}
