//! Running code that a model wrote. A session keeps variables; a cell is one piece of code running in it.
//!
//! The code touches the world only through host calls, which the loop answers from the toolbox, or from the log
//! when a run is resumed. That is what makes a run in the middle of a line of Python durable.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::context::Variable;
use crate::tool::{ToolFailure, ToolSpec};

pub use gimlet_event::cell::{CellEnd, Stream};

/// Starts sessions.
pub trait Executor: Send + Sync {
    /// A fresh session. The same spec always starts the same session.
    fn start<'a>(&'a self, spec: &'a SessionSpec) -> BoxFuture<'a, Result<Box<dyn Session>, ExecutorError>>;

    /// What it must be made with again for a replay to be the same; kept in the log with the run's start.
    fn settings(&self) -> Value {
        Value::Null
    }

    /// What a model must know of the place where its code runs; empty where the standing prompt says it all.
    fn told(&self) -> &'static str {
        ""
    }
}

/// What a session is given.
#[derive(Debug, Clone, Default)]
pub struct SessionSpec {
    /// Tools the code may call as functions.
    pub tools: Arc<[Arc<ToolSpec>]>,
    /// Seed for everything random, so that a replay is the same.
    pub seed: u64,
    /// What the session's clock shows when it starts, in milliseconds of Unix time; it moves only as the code uses it.
    pub epoch_ms: i64,
}

/// An interpreter with its variables. Dropping it ends it.
pub trait Session: Send + Sync {
    /// Runs a piece of code; the cell must reach its end before the next one starts.
    fn cell<'a>(&'a mut self, code: &'a str) -> BoxFuture<'a, Result<Box<dyn Cell + 'a>, ExecutorError>>;

    /// Whether it can run another cell. A dead session is rebuilt by replay.
    fn is_alive(&self) -> bool {
        true
    }

    /// The variables there are after the last cell, the latest last; none when nobody knows.
    fn variables(&self) -> Vec<Variable> {
        Vec::new()
    }

    /// What weakens this session, such as a missing kernel layer; told to the person once.
    fn weaknesses(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A piece of code while it runs. Dropping it before its end abandons it: the session keeps what was assigned so far.
pub trait Cell: Send {
    /// What happens next.
    fn next(&mut self) -> BoxFuture<'_, Result<CellEvent, ExecutorError>>;

    /// Answers a host call.
    fn resume<'a>(
        &'a mut self,
        id: u64,
        result: Result<Value, ToolFailure>,
    ) -> BoxFuture<'a, Result<(), ExecutorError>>;
}

/// What a running cell does.
#[derive(Debug, Clone, PartialEq)]
pub enum CellEvent {
    /// It printed.
    Printed {
        /// The text.
        text: String,
        /// Where to.
        stream: Stream,
    },
    /// It called a tool and waits.
    HostCall {
        /// Counts the calls of this cell from 0.
        id: u64,
        /// Name of the tool.
        tool: String,
        /// The arguments, bound to their names.
        args: Value,
    },
    /// It ended.
    Ended(CellEnd),
}

/// The executor itself failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ExecutorError {
    /// It cannot start.
    #[error("the code executor cannot start: {0}")]
    Start(String),
    /// It died while nothing ran, or in a way that no replay mends.
    #[error("the code executor died: {0}")]
    Died(String),
    /// A replay did something else than the log says.
    #[error("replay diverged from the log: {0}")]
    Diverged(String),
    /// It spoke nonsense.
    #[error("the code executor broke its protocol: {0}")]
    Protocol(String),
    /// Something took too long.
    #[error("the code executor did not answer within {} s", .0.as_secs_f32())]
    Timeout(Duration),
}
