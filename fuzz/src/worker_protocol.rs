//! Whatever a worker says, the parent lives: it hears a cell's story or names the nonsense, and never waits for ever.

use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::cell::{CellEnd, CellEvent, Executor, ExecutorError, SessionSpec};
use gimlet::worker::{Launched, Launcher, WorkerLife};
use gimlet_python::protocol::{FromWorker, encode};
use gimlet_python::{Limits, PythonExecutor};
use serde_json::Value;

/// More than any worker's bytes can ask for; a parent that is still busy then waits for something that never comes.
const PATIENCE: Duration = Duration::from_secs(20);
const MOST_EVENTS: usize = 10_000;

/// Lets a worker say the bytes while the parent runs a cell. An odd first byte puts a sound greeting before them.
pub fn run(data: &[u8]) -> &'static str {
    let Some((first, bytes)) = data.split_first() else { return "too short" };
    let mut said = Vec::new();
    if first % 2 == 1 {
        said = encode(&FromWorker::Ready { weaknesses: Vec::new() }).expect("a frame");
    }
    said.extend_from_slice(bytes);
    let parrot = Arc::new(Parrot { said });
    crate::RUNTIME.block_on(async {
        tokio::time::timeout(PATIENCE, listen(parrot)).await.expect("the parent waits for ever")
    })
}

async fn listen(parrot: Arc<Parrot>) -> &'static str {
    let executor = PythonExecutor::launched_by(parrot, Limits::default());
    let mut session = match executor.start(&SessionSpec::default()).await {
        Ok(session) => session,
        Err(_) => return "no session",
    };
    let mut cell = match session.cell("1 + 1").await {
        Ok(cell) => cell,
        Err(_) => return "no cell",
    };
    for _ in 0..MOST_EVENTS {
        match cell.next().await {
            Ok(CellEvent::Printed { .. }) => {}
            Ok(CellEvent::HostCall { id, .. }) => {
                if cell.resume(id, Ok(Value::Null)).await.is_err() {
                    return "hung up in a call";
                }
            }
            Ok(CellEvent::Ended(end)) => return how(&end),
            Err(_) => return "nonsense in a cell",
        }
    }
    "talkative"
}

fn how(end: &CellEnd) -> &'static str {
    match end {
        CellEnd::Done { .. } => "done",
        CellEnd::Answer { .. } => "answered",
        CellEnd::Raised { .. } => "raised",
        CellEnd::Limited { .. } => "limited",
        CellEnd::Crashed { .. } => "crashed",
    }
}

/// A worker that says one thing and listens to nothing.
struct Parrot {
    said: Vec<u8>,
}

impl Launcher for Parrot {
    fn kind(&self) -> &'static str {
        "parrot"
    }

    fn launch(&self) -> BoxFuture<'_, Result<Launched, ExecutorError>> {
        async move {
            Ok(Launched {
                input: Box::new(tokio::io::sink()),
                output: Box::new(Cursor::new(self.said.clone())),
                errors: Box::new(tokio::io::empty()),
                life: Box::new(Done),
            })
        }
        .boxed()
    }
}

struct Done;

impl WorkerLife for Done {
    fn kill(&mut self) {}
}
