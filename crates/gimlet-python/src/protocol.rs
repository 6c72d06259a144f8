//! What parent and worker say to each other: frames of JSON, each after its length in four little-endian bytes.
//!
//! Any program that speaks this on its standard input and output can be a worker; the interpreter of this crate is
//! one. The parent speaks first (`Start`), then for each cell it sends `Cell` and answers `Call` until `Ended`.

use std::io::{self, Read, Write};

use gimlet::cell::{CellEnd, Stream};
use gimlet::context::Variable;
use gimlet::tool::ToolFailure;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::limits::Limits;

/// Longest frame either side accepts; anything longer is nonsense or an attack on the other's memory.
pub const MAX_FRAME: usize = 64 << 20;

/// From the parent to the worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToWorker {
    /// Sets the session up; the worker answers `Ready`.
    Start(Box<Start>),
    /// In place of `Start`: the worker becomes a nest, which forks workers on demand. Its standard input is a socket
    /// that carries orders of [`NEST_ORDER`] bytes from then on.
    Nest,
    /// Runs a piece of code; the worker ends its reports with `Ended`.
    Cell {
        /// Counts the cells of the session from 1; tracebacks name it.
        number: u32,
        /// The code.
        code: String,
    },
    /// Answers a call.
    Result {
        /// The call.
        id: u64,
        /// What came of it.
        #[serde(flatten)]
        result: CallResult,
    },
    /// Ends the cell at the call it waits for, as if it had been the last line.
    Stop,
}

/// Length of an order to a nest: what to do, then a process id in four little-endian bytes.
pub const NEST_ORDER: usize = 5;
/// Order to fork a worker; standard input, output and error come with it as descriptors. The nest answers with the
/// worker's process id in four little-endian bytes, or 0.
pub const NEST_FORK: u8 = b'F';
/// Order to kill a worker.
pub const NEST_KILL: u8 = b'K';
/// Question how a worker ended. The nest answers with its wait status in four little-endian bytes, or [`NEST_ALIVE`].
pub const NEST_STATUS: u8 = b'S';
/// The answer about a worker that has not ended, or that is not known.
pub const NEST_ALIVE: u32 = u32::MAX;

/// What a session is given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// Functions the code may call.
    pub tools: Vec<ToolShape>,
    /// Seed for everything random.
    pub seed: u64,
    /// What the clock shows when the session starts, in milliseconds of Unix time.
    pub epoch_ms: i64,
    /// Modules the code may import; a name covers its submodules.
    pub imports: Vec<String>,
    /// What the session may spend.
    pub limits: Limits,
}

/// What a worker knows of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolShape {
    /// Its name.
    pub name: String,
    /// Its docstring.
    pub description: String,
    /// JSON schema of its arguments.
    pub input: Value,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallResult {
    /// Its value.
    Ok(Value),
    /// Its failure, raised as `ToolError`.
    Failed(Box<ToolFailure>),
}

/// From the worker to the parent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromWorker {
    /// The session stands.
    Ready {
        /// Layers of the jail that this kernel could not give.
        weaknesses: Vec<String>,
    },
    /// The code printed.
    Printed {
        /// Where to.
        stream: Stream,
        /// The text.
        text: String,
    },
    /// The code called a tool and waits for `Result`.
    Call {
        /// Counts the calls of this cell from 0.
        id: u64,
        /// Name of the tool.
        tool: String,
        /// The arguments, bound to their names.
        args: Value,
    },
    /// The cell ended.
    Ended {
        /// Its number.
        number: u32,
        /// How.
        end: CellEnd,
        /// Whether it would end the same way again.
        fate: Fate,
        /// Whether the session can go on in this process.
        health: Health,
        /// The variables of the session, the latest last.
        #[serde(default)]
        variables: Vec<Variable>,
    },
    /// The cell ended because of `Stop`.
    Stopped {
        /// The line of the cell that made the call.
        line: Option<u32>,
    },
}

/// Whether a cell would end the same way if it ran again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It would: a replay runs it whole.
    Whole,
    /// A clock or a gauge ended it somewhere: a replay runs it to its last host call.
    Cut,
}

/// Whether the session can go on after a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// It can.
    Good,
    /// The cell left no memory to work with: a fresh process must take over.
    Spent,
}

/// Writes one frame.
pub fn write_frame(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    to.write_all(&encode(message)?)?;
    to.flush()
}

/// One frame as bytes.
pub fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, message)?;
    let length = frame.len() - 4;
    if length > MAX_FRAME {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("a message of {length} bytes is too long"),
        ));
    }
    frame[..4].copy_from_slice(&(length as u32).to_le_bytes());
    Ok(frame)
}

/// Reads one frame; `None` when the other side has closed the pipe between two frames.
pub fn read_frame<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut body = vec![0; checked_length(length)?];
    from.read_exact(&mut body)?;
    Ok(Some(serde_json::from_slice(&body)?))
}

/// The length a frame announces, if it is believable.
pub fn checked_length(length: [u8; 4]) -> io::Result<usize> {
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_FRAME {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("a message of {length} bytes is too long"),
        ));
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn frames_survive_the_pipe() {
        let messages = [
            ToWorker::Cell { number: 1, code: "print('é')".into() },
            ToWorker::Result { id: 3, result: CallResult::Ok(json!({"a": [1, null]})) },
            ToWorker::Result { id: 4, result: CallResult::Failed(Box::new(ToolFailure::new("X", "y"))) },
            ToWorker::Stop,
        ];
        let mut pipe = Vec::new();
        for message in &messages {
            write_frame(&mut pipe, message).unwrap();
        }
        let mut pipe = pipe.as_slice();
        for message in &messages {
            assert_eq!(read_frame::<ToWorker>(&mut pipe).unwrap().as_ref(), Some(message));
        }
        assert_eq!(read_frame::<ToWorker>(&mut pipe).unwrap(), None);
    }

    #[test]
    fn an_absurd_length_is_refused_before_it_is_allocated() {
        let error = read_frame::<ToWorker>(&mut [0xff, 0xff, 0xff, 0xff, 0].as_slice()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
