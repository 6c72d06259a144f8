//! A session against the real worker, with tools answered by the test.
#![allow(
    dead_code,
    clippy::result_large_err,
    reason = "each test file uses its own part; failures are core's type"
)]

use std::sync::Arc;
use std::time::Duration;

use gimlet::cell::{CellEnd, CellEvent, Executor, Session, SessionSpec, Stream};
use gimlet::tool::{Manner, ToolFailure, ToolSpec};
use gimlet_python::{Limits, Program, PythonConfig, PythonExecutor};
use serde_json::{Value, json};

pub(crate) const WORKER: &str = env!("CARGO_BIN_EXE_gimlet-python-worker");

/// How a cell went.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) calls: Vec<(String, Value)>,
    pub(crate) end: CellEnd,
}

impl Outcome {
    pub(crate) fn value(&self) -> &str {
        match &self.end {
            CellEnd::Done { value: Some(value) } => value,
            other => panic!("expected a value, got {other:?}"),
        }
    }

    pub(crate) fn traceback(&self) -> &str {
        match &self.end {
            CellEnd::Raised { traceback, .. } => traceback,
            other => panic!("expected an exception, got {other:?}"),
        }
    }

    pub(crate) fn limit(&self) -> &str {
        match &self.end {
            CellEnd::Limited { message } => message,
            other => panic!("expected a limit, got {other:?}"),
        }
    }
}

pub(crate) fn config() -> PythonConfig {
    PythonConfig::new(Program { path: WORKER.into(), args: Vec::new() })
}

pub(crate) fn with_limits(change: impl FnOnce(&mut Limits)) -> PythonConfig {
    let mut config = config();
    change(&mut config.limits);
    config
}

pub(crate) fn quick(wall_ms: u64) -> PythonConfig {
    with_limits(|limits| limits.wall = Duration::from_millis(wall_ms))
}

pub(crate) fn spec() -> SessionSpec {
    let tool = |name: &str, input: Value| {
        Arc::new(ToolSpec {
            name: name.into(),
            description: format!("The tool {name}."),
            input,
            output: None,
            manner: Manner::default(),
        })
    };
    let tools = vec![
        tool(
            "read_file",
            json!({"type": "object", "properties": {"path": {"type": "string"}, "start": {"type": "integer"}},
                   "required": ["path"], "additionalProperties": false}),
        ),
        tool("echo", json!({"type": "object", "properties": {"value": {}}, "required": ["value"]})),
        tool("fail", json!({"type": "object", "properties": {}})),
    ];
    SessionSpec { tools: tools.into(), seed: 7, epoch_ms: 1_700_000_000_000 }
}

pub(crate) async fn session(config: PythonConfig) -> Box<dyn Session> {
    PythonExecutor::new(config).start(&spec()).await.unwrap()
}

/// Answers like the tools of [`spec`].
pub(crate) fn answer(tool: &str, args: &Value) -> Result<Value, ToolFailure> {
    match tool {
        "read_file" => Ok(json!(format!("text of {}", args["path"].as_str().unwrap_or("?")))),
        "echo" => Ok(args["value"].clone()),
        "fail" => {
            let mut failure = ToolFailure::new("FILE_NOT_FOUND", "no such file");
            failure.tool = "fail".into();
            failure.context.insert("path".into(), json!("x.py"));
            Err(failure)
        }
        other => panic!("no tool {other}"),
    }
}

/// Runs a cell to its end.
pub(crate) async fn run(session: &mut dyn Session, code: &str) -> Outcome {
    let mut cell = session.cell(code).await.unwrap();
    let (mut stdout, mut stderr, mut calls) = (String::new(), String::new(), Vec::new());
    loop {
        match cell.next().await.unwrap() {
            CellEvent::Printed { text, stream: Stream::Stdout } => stdout.push_str(&text),
            CellEvent::Printed { text, stream: Stream::Stderr } => stderr.push_str(&text),
            CellEvent::HostCall { id, tool, args } => {
                let result = answer(&tool, &args);
                calls.push((tool, args));
                cell.resume(id, result).await.unwrap();
            }
            CellEvent::Ended(end) => return Outcome { stdout, stderr, calls, end },
        }
    }
}

/// Runs one cell in a session of its own.
pub(crate) async fn once(code: &str) -> Outcome {
    run(&mut *session(config()).await, code).await
}
