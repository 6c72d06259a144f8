//! Python sessions of a program: its code runs in the sandbox, and the functions it calls run in the program. This is what
//! the executor for smolagents is made of; no model and no run is part of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gimlet::cell::{CellEvent, Executor, Session, SessionSpec, Stream};
use gimlet_runtime::parts::python::{Limits, Warmth};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::params::{ProgramTool, read};
use crate::program;
use crate::wire::{Peer, RpcError};

/// The sessions of a client, by id.
#[derive(Default)]
pub(crate) struct Cells {
    open: Mutex<BTreeMap<String, OpenSession>>,
    next: AtomicU64,
}

/// A session, and what stops the code that runs in it when it is closed.
#[derive(Clone)]
struct OpenSession {
    session: Arc<Mutex<Box<dyn Session>>>,
    closed: CancellationToken,
}

#[derive(Deserialize)]
#[serde(default)]
struct Open {
    tools: Vec<ProgramTool>,
    imports: Vec<String>,
    /// Longest computation, in seconds.
    timeout: f64,
    seed: u64,
}

impl Default for Open {
    fn default() -> Self {
        Open { tools: Vec::new(), imports: Vec::new(), timeout: 30.0, seed: 0 }
    }
}

#[derive(Deserialize)]
struct Run {
    id: String,
    code: String,
}

#[derive(Deserialize)]
struct Close {
    id: String,
}

impl Cells {
    /// Starts a session.
    pub(crate) async fn open(&self, params: Value) -> Result<Value, RpcError> {
        let Open { tools, imports, timeout, seed } = read(params)?;
        let wall =
            Duration::try_from_secs_f64(timeout).map_err(|error| RpcError::params(error.to_string()))?;
        let limits = Limits { wall, ..Limits::default() };
        let executor = gimlet_runtime::python(limits, &imports, Warmth::Cold)?;
        let spec = SessionSpec {
            tools: tools.iter().map(|tool| Arc::new(program::spec(tool))).collect(),
            seed,
            epoch_ms: Timestamp::now().as_millisecond(),
        };
        let session = executor.start(&spec).await.map_err(anyhow::Error::from)?;
        let weaknesses = session.weaknesses();
        let id = format!("python_{}", self.next.fetch_add(1, Ordering::Relaxed));
        let opened = OpenSession { session: Arc::new(Mutex::new(session)), closed: CancellationToken::new() };
        self.open.lock().await.insert(id.clone(), opened);
        Ok(json!({ "id": id, "warnings": weaknesses }))
    }

    /// Runs code in a session. Functions it calls are asked of the program under the session's id.
    pub(crate) async fn run(&self, peer: &Peer, params: Value) -> Result<Value, RpcError> {
        let Run { id, code } = read(params)?;
        let OpenSession { session, closed } =
            self.open.lock().await.get(&id).cloned().ok_or_else(|| unknown(&id))?;
        tokio::select! {
            done = run_in(peer, session, &id, &code) => done,
            () = closed.cancelled() => {
                Err(RpcError::new(RpcError::INTERNAL, "the Python session was closed while code ran in it"))
            }
        }
    }

    /// Ends a session, and the code that runs in it.
    pub(crate) async fn close(&self, params: Value) -> Result<Value, RpcError> {
        let Close { id } = read(params)?;
        let closed = self.open.lock().await.remove(&id).ok_or_else(|| unknown(&id))?;
        closed.closed.cancel();
        Ok(json!({}))
    }
}

async fn run_in(
    peer: &Peer,
    session: Arc<Mutex<Box<dyn Session>>>,
    id: &str,
    code: &str,
) -> Result<Value, RpcError> {
    let mut session = session.lock().await;
    let (mut stdout, mut stderr) = (String::new(), String::new());
    let mut cell = session.cell(code).await.map_err(anyhow::Error::from)?;
    let end = loop {
        match cell.next().await.map_err(anyhow::Error::from)? {
            CellEvent::Printed { text, stream: Stream::Stdout } => stdout.push_str(&text),
            CellEvent::Printed { text, stream: Stream::Stderr } => stderr.push_str(&text),
            CellEvent::HostCall { id: call, tool, args } => {
                let params = json!({ "sessionId": id, "id": call, "name": tool, "args": args });
                let result = program::ask(peer, params).await;
                cell.resume(call, result).await.map_err(anyhow::Error::from)?;
            }
            CellEvent::Ended(end) => break end,
        }
    };
    drop(cell);
    Ok(json!({ "stdout": stdout, "stderr": stderr, "end": end, "alive": session.is_alive() }))
}

fn unknown(id: &str) -> RpcError {
    RpcError::new(RpcError::NOT_FOUND, format!("there is no Python session `{id}`"))
}
