//! A worker that code has taken over says what it likes; the parent's limits hold all the same.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "what fails here fails the test")]

mod common;

use std::sync::Arc;

use common::{Outcome, run};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::cell::{CellEnd, Executor, ExecutorError, Session};
use gimlet::worker::{Launched, Launcher, WorkerLife};
use gimlet_python::{Limits, PythonExecutor};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;

/// Launches workers that answer a cell by what is written in its code: a list of messages, the last for ever.
struct Liar;

impl Launcher for Liar {
    fn kind(&self) -> &'static str {
        "liar"
    }

    fn launch(&self) -> BoxFuture<'_, Result<Launched, ExecutorError>> {
        async {
            let (input, theirs) = tokio::io::duplex(1 << 20);
            let (mine, output) = tokio::io::duplex(1 << 20);
            let life = Box::new(Life(tokio::spawn(lie(theirs, mine))));
            Ok(Launched {
                input: Box::new(input),
                output: Box::new(output),
                errors: Box::new(tokio::io::empty()),
                life,
            })
        }
        .boxed()
    }
}

struct Life(JoinHandle<()>);

impl WorkerLife for Life {
    fn kill(&mut self) {
        self.0.abort();
    }
}

async fn lie(mut input: DuplexStream, mut output: DuplexStream) {
    while let Ok(length) = input.read_u32_le().await {
        let mut body = vec![0; length as usize];
        input.read_exact(&mut body).await.unwrap();
        let message: Value = serde_json::from_slice(&body).unwrap();
        let said = match message["type"].as_str().unwrap() {
            "start" => json!([{"type": "ready", "weaknesses": []}]),
            "cell" => serde_json::from_str(message["code"].as_str().unwrap()).unwrap(),
            _ => continue,
        };
        let said = said.as_array().unwrap();
        let last = said.last().unwrap();
        let ends = matches!(last["type"].as_str(), Some("ready" | "ended"));
        let more = std::iter::repeat(last).take_while(|_| !ends);
        for (place, message) in said.iter().chain(more).enumerate() {
            let mut message = message.clone();
            if message["type"] == "call" {
                message["id"] = place.into();
            }
            let body = message.to_string();
            let sent = async {
                output.write_u32_le(u32::try_from(body.len()).unwrap()).await?;
                output.write_all(body.as_bytes()).await
            };
            if sent.await.is_err() {
                return;
            }
        }
    }
}

async fn session() -> Box<dyn Session> {
    let limits = Limits { output: 1000, calls: 3, value: 50, ..Limits::default() };
    PythonExecutor::launched_by(Arc::new(Liar), limits).start(&common::spec()).await.unwrap()
}

async fn told(session: &mut dyn Session, messages: Value) -> Outcome {
    run(session, &messages.to_string()).await
}

fn ended(number: u32, end: &CellEnd) -> Value {
    json!({"type": "ended", "number": number, "end": end, "fate": "whole", "health": "good"})
}

#[tokio::test]
async fn prints_are_counted_by_the_parent() {
    for text in ["0123456789", ""] {
        let mut session = session().await;
        let outcome =
            told(&mut *session, json!([{"type": "printed", "stream": "stdout", "text": text}])).await;
        assert!(
            outcome.limit().starts_with("the code printed more than 1000 characters in one cell"),
            "{outcome:?}"
        );
        assert!(outcome.stdout.len() <= 1100);
        let end = CellEnd::Done { value: None };
        assert_eq!(told(&mut *session, json!([ended(2, &end)])).await.end, end, "the session goes on");
    }
}

#[tokio::test]
async fn calls_are_counted_by_the_parent() {
    let calls = json!([{"type": "call", "id": 0, "tool": "echo", "args": {"value": 1}}]).to_string();
    let mut session = session().await;
    let mut cell = session.cell(&calls).await.unwrap();
    for _ in 0..3 {
        let gimlet::cell::CellEvent::HostCall { id, .. } = cell.next().await.unwrap() else { panic!() };
        cell.resume(id, Ok(Value::Null)).await.unwrap();
    }
    // What such a session has done cannot be done again; that is for a person to look at.
    let error = cell.next().await.unwrap_err();
    assert!(matches!(error, ExecutorError::Diverged(_)), "{error}");
}

#[tokio::test]
async fn ends_are_shortened_by_the_parent() {
    let long = "x".repeat(1000);
    let mut session = session().await;
    for (number, end) in (1..).zip([
        CellEnd::Done { value: Some(long.clone()) },
        CellEnd::Raised { kind: long.clone(), traceback: long.clone() },
        CellEnd::Limited { message: long.clone() },
        CellEnd::Crashed { message: long.clone() },
    ]) {
        let outcome = told(&mut *session, json!([ended(number, &end)])).await;
        let shown = serde_json::to_string(&outcome.end).unwrap();
        assert!(shown.len() < 500 && shown.contains("xxx…"), "{shown}");
    }
    let variables: Vec<Value> = (0..500).map(|n| json!({"name": format!("v{n}"), "type": "int"})).collect();
    let mut end = ended(5, &CellEnd::Done { value: None });
    end["variables"] = variables.into();
    told(&mut *session, json!([end])).await;
    assert_eq!(session.variables().len(), 50);
}

/// As a process that the code has forked may say it once more.
#[tokio::test]
async fn the_end_of_another_cell_is_not_the_end_of_this_one() {
    let mut session = session().await;
    let (first, second) =
        (CellEnd::Done { value: Some("1".into()) }, CellEnd::Done { value: Some("2".into()) });
    assert_eq!(told(&mut *session, json!([ended(1, &first)])).await.end, first);
    assert_eq!(told(&mut *session, json!([ended(1, &first), ended(2, &second)])).await.end, second);
}
