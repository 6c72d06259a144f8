//! The form of a log: one JSON event a line, sequence number equal to line number.
//!
//! A line counts once its newline is there. What follows the last newline is a torn write that nobody was told had
//! succeeded; it is skipped. Anything else that does not fit is damage and named with its line.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use gimlet::event::Event;
use gimlet::ids::RunId;
use gimlet::store::{self, StoreError};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::files::io_error;
use crate::json;

/// The part of a line that keeps a log in order.
pub(crate) trait Line: DeserializeOwned {
    fn run(&self) -> &RunId;
    fn seq(&self) -> u64;
}

impl Line for Event {
    fn run(&self) -> &RunId {
        &self.run
    }
    fn seq(&self) -> u64 {
        self.seq
    }
}

/// A line of which only the order matters; cheaper to read than an event.
#[derive(Deserialize)]
pub(crate) struct Head {
    run: RunId,
    seq: u64,
}

impl Line for Head {
    fn run(&self) -> &RunId {
        &self.run
    }
    fn seq(&self) -> u64 {
        self.seq
    }
}

/// The bytes of an event's line, newline included.
pub(crate) fn encode(event: &Event) -> Result<Vec<u8>, StoreError> {
    let mut line = json::encode(event)
        .map_err(|error| StoreError::Backend(format!("event {} cannot be written: {error}", event.seq)))?;
    line.push(b'\n');
    Ok(line)
}

/// At most so many complete lines after this number, as they are in the file.
pub(crate) fn raw(path: &Path, run: &RunId, after: u64, most: usize) -> Result<Vec<store::Line>, StoreError> {
    let mut reader = BufReader::new(open(path, run)?);
    let mut lines = Vec::new();
    let mut buffer = Vec::new();
    for seq in 1.. {
        buffer.clear();
        reader.read_until(b'\n', &mut buffer).map_err(io_error("reading", path))?;
        // What follows the last newline is not written yet.
        if lines.len() == most || buffer.pop_if(|last| *last == b'\n').is_none() {
            break;
        }
        if seq > after {
            lines.push(store::Line { seq, json: String::from_utf8_lossy(&buffer).into() });
        }
    }
    Ok(lines)
}

/// Opens a log for reading; an absent one is an absent run.
fn open(path: &Path, run: &RunId) -> Result<File, StoreError> {
    File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => StoreError::NoSuchRun(run.clone()),
        _ => io_error("opening", path)(error),
    })
}

/// Reads a log line by line, checking order as it goes. Ends after the first error.
pub(crate) struct Lines<'a, T> {
    reader: BufReader<File>,
    path: PathBuf,
    run: &'a RunId,
    buffer: Vec<u8>,
    /// Complete lines read so far.
    lines: u64,
    /// Their length in bytes: where the next line begins.
    bytes: u64,
    /// Length of what follows the last newline; known at the end.
    torn: u64,
    done: bool,
    form: PhantomData<T>,
}

impl<'a, T: Line> Lines<'a, T> {
    /// Opens a log for reading; an absent one is an absent run.
    pub(crate) fn open(path: &Path, run: &'a RunId) -> Result<Self, StoreError> {
        Ok(Lines {
            reader: BufReader::with_capacity(64 * 1024, open(path, run)?),
            path: path.into(),
            run,
            buffer: Vec::new(),
            lines: 0,
            bytes: 0,
            torn: 0,
            done: false,
            form: PhantomData,
        })
    }

    /// Complete lines read so far.
    pub(crate) fn lines(&self) -> u64 {
        self.lines
    }

    /// Bytes of the complete lines read so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes after the last newline, once the end is reached.
    pub(crate) fn torn(&self) -> u64 {
        self.torn
    }

    fn read(&mut self) -> Result<Option<T>, StoreError> {
        self.buffer.clear();
        self.reader.read_until(b'\n', &mut self.buffer).map_err(io_error("reading", &self.path))?;
        let length = self.buffer.len() as u64;
        if self.buffer.pop_if(|last| *last == b'\n').is_none() {
            self.torn = length;
            return Ok(None);
        }
        let number = self.lines + 1;
        let line = json::decode::<T>(&self.buffer)
            .map_err(|error| error.to_string())
            .and_then(|line| in_order(line, self.run, number))
            .map_err(|reason| StoreError::Corrupt {
                path: self.path.display().to_string(),
                line: usize::try_from(number).unwrap_or(usize::MAX),
                reason,
            })?;
        self.lines = number;
        self.bytes += length;
        Ok(Some(line))
    }
}

impl<T: Line> Iterator for Lines<'_, T> {
    type Item = Result<T, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.read().transpose();
        self.done = !matches!(next, Some(Ok(_)));
        next
    }
}

fn in_order<T: Line>(line: T, run: &RunId, number: u64) -> Result<T, String> {
    if line.run() != run {
        return Err(format!("it belongs to run `{}`", line.run()));
    }
    if line.seq() != number {
        return Err(format!("event {number} is expected and {} is there", line.seq()));
    }
    Ok(line)
}
