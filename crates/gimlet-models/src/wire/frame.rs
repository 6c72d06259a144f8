//! Cutting a body into frames: lines of JSON, server-sent events, or one whole JSON document.
//!
//! Works on bytes and only looks for line ends, so that a character, an escape or a line end may be cut anywhere.

use gimlet::model::ModelError;
use serde::{Deserialize, Serialize};

/// How a body is cut into frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Framing {
    /// One JSON document a line.
    Lines,
    /// Server-sent events; a frame is an event's data.
    Events,
    /// The whole body is one document, as from a server that does not stream.
    Whole,
}

/// Longest frame: more is not a reply but an attack or a fault.
const MAX_FRAME: usize = 16 * 1024 * 1024;
/// How much of a body is kept to show what came instead of a reply.
const SEEN: usize = 200;

/// Cuts bytes into frames. Its buffers are used again and again: a frame costs no allocation.
#[derive(Debug)]
pub(super) struct Framer {
    framing: Framing,
    /// The line that is not complete yet (the whole body for [`Framing::Whole`]).
    line: Vec<u8>,
    /// The line was handed out and is void.
    line_is_over: bool,
    /// Data of the event that is not complete yet.
    data: Vec<u8>,
    event: Event,
    /// The last line ended in CR; a LF that follows belongs to it.
    after_cr: bool,
    /// Beginning of the body.
    seen: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// No data line yet.
    None,
    /// At least one data line.
    Open,
    /// Complete and handed out; its data is void.
    HandedOut,
}

impl Framer {
    pub(super) fn new(framing: Framing) -> Self {
        Framer {
            framing,
            line: Vec::new(),
            line_is_over: false,
            data: Vec::new(),
            event: Event::None,
            after_cr: false,
            seen: Vec::new(),
        }
    }

    /// Takes bytes from the front of `bytes`, at most to the end of a line; the frame, if that completes one.
    pub(super) fn push<'f, 'b: 'f>(
        &'f mut self,
        bytes: &mut &'b [u8],
    ) -> Result<Option<&'f [u8]>, ModelError> {
        self.forget();
        if std::mem::take(&mut self.after_cr) && bytes.first() == Some(&b'\n') {
            *bytes = &bytes[1..];
        }
        let end = match self.framing {
            Framing::Whole => None,
            Framing::Lines | Framing::Events => memchr::memchr2(b'\n', b'\r', bytes),
        };
        let Some(end) = end else {
            let all = std::mem::take(bytes);
            self.grow(all)?;
            return Ok(None);
        };
        let (line, rest) = bytes.split_at(end);
        self.after_cr = rest[0] == b'\r';
        *bytes = &rest[1..];
        self.line_is_over = true;
        if self.line.is_empty() {
            // A line that came in one piece is used where it is.
            return Ok(end_of_line(self.framing, line, &mut self.data, &mut self.event));
        }
        self.grow(line)?;
        Ok(end_of_line(self.framing, &self.line, &mut self.data, &mut self.event))
    }

    /// The body is over: the last frame, if its end was missing.
    pub(super) fn finish(&mut self) -> Option<&[u8]> {
        self.forget();
        self.line_is_over = true;
        match self.framing {
            Framing::Whole | Framing::Lines => Some(self.line.as_slice()).filter(|line| !is_blank(line)),
            Framing::Events => {
                if !self.line.is_empty() {
                    end_of_line(self.framing, &self.line, &mut self.data, &mut self.event);
                }
                (self.event == Event::Open).then_some(&self.data)
            }
        }
    }

    /// Remembers the beginning of the body.
    pub(super) fn note(&mut self, bytes: &[u8]) {
        let room = SEEN.saturating_sub(self.seen.len());
        self.seen.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// The beginning of the body, for an error message.
    pub(super) fn seen(&self) -> String {
        excerpt(&self.seen)
    }

    /// Empties the buffers of what was handed out.
    fn forget(&mut self) {
        if std::mem::take(&mut self.line_is_over) {
            self.line.clear();
        }
        if self.event == Event::HandedOut {
            self.event = Event::None;
            self.data.clear();
        }
    }

    fn grow(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        if self.line.len() + bytes.len() + self.data.len() > MAX_FRAME {
            return Err(ModelError::Protocol(format!(
                "a piece of the reply is longer than {MAX_FRAME} bytes"
            )));
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }
}

/// The frame that a line completes.
fn end_of_line<'a>(
    framing: Framing,
    line: &'a [u8],
    data: &'a mut Vec<u8>,
    event: &mut Event,
) -> Option<&'a [u8]> {
    match framing {
        Framing::Lines | Framing::Whole => Some(line).filter(|line| !is_blank(line)),
        Framing::Events if line.is_empty() => {
            let complete = *event == Event::Open;
            complete.then(|| {
                *event = Event::HandedOut;
                data.as_slice()
            })
        }
        Framing::Events => {
            if let Some(value) = field_data(line) {
                if *event == Event::Open {
                    data.push(b'\n');
                }
                *event = Event::Open;
                data.extend_from_slice(value);
            }
            None
        }
    }
}

/// The value of a `data` field. Other fields and comments carry nothing that the data does not say again.
fn field_data(line: &[u8]) -> Option<&[u8]> {
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
    let value = line.strip_prefix(b"data")?;
    match value.first() {
        None => Some(value),
        Some(b':') => Some(value[1..].strip_prefix(b" ").unwrap_or(&value[1..])),
        Some(_) => None,
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

/// The beginning of something unexpected, on one line.
pub(super) fn excerpt(data: &[u8]) -> String {
    let text = String::from_utf8_lossy(&data[..data.len().min(4 * SEEN)]);
    let mut short: String =
        text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(SEEN).collect();
    if short.len() < text.trim().len() {
        short.push('…');
    }
    format!("{short:?}")
}
