//! What a session costs, and how fast its code is beside CPython's and smolagents' in the same run.
//!
//! `cargo bench-python` prints three tables. CPython is the `python3` on the path, or what `GIMLET_BENCH_PYTHON` names;
//! smolagents is used if `GIMLET_BENCH_SMOLAGENTS` names a Python that has it.
#![expect(clippy::print_stdout, reason = "a bench prints its results")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a bench has nobody to report to")]

mod costs;
mod process;
mod rival;
mod speed;

use std::sync::Arc;
use std::time::Duration;

use gimlet::cell::{CellEnd, CellEvent, Session, SessionSpec};
use gimlet::tool::{Manner, ToolSpec};
use gimlet_python::{Program, PythonConfig, PythonExecutor, Warmth};
use serde_json::json;

fn executor(warmth: Warmth) -> PythonExecutor {
    limited(warmth, Duration::from_secs(600))
}

fn limited(warmth: Warmth, wall: Duration) -> PythonExecutor {
    let path = env!("CARGO_BIN_EXE_gimlet-python-worker").into();
    let mut config = PythonConfig::new(Program { path, args: Vec::new() });
    config.limits.calls = 1_000_000;
    config.limits.wall = wall;
    config.warmth = warmth;
    PythonExecutor::new(config)
}

fn spec() -> SessionSpec {
    let echo = ToolSpec {
        name: "echo".into(),
        description: "Gives its argument back.".into(),
        input: json!({"type": "object", "properties": {"value": {}}, "required": ["value"]}),
        output: None,
        manner: Manner::default(),
    };
    SessionSpec { tools: vec![Arc::new(echo)].into(), seed: 1, epoch_ms: 0 }
}

async fn run(session: &mut dyn Session, code: &str) {
    let mut cell = session.cell(code).await.unwrap();
    loop {
        match cell.next().await.unwrap() {
            CellEvent::Printed { .. } => {}
            CellEvent::HostCall { id, args, .. } => cell.resume(id, Ok(args["value"].clone())).await.unwrap(),
            CellEvent::Ended(CellEnd::Done { .. }) => return,
            CellEvent::Ended(end) => panic!("{code}: {end:?}"),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    if cfg!(debug_assertions) {
        println!("NOT OPTIMISED: run this as a bench, or believe none of it\n");
    }
    costs::show().await;
    speed::show().await;
}
