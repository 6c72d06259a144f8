//! The line language, run as the loop runs cells.

use std::sync::Arc;

use futures_util::FutureExt;
use gimlet::cell::{CellEnd, CellEvent, Executor, ExecutorError, Session, SessionSpec, Stream};
use gimlet::tool::{Manner, ToolFailure, ToolSpec};
use gimlet_testkit::ScriptedExecutor;
use proptest::prelude::*;
use serde_json::{Value, json};

fn spec() -> SessionSpec {
    let tool = ToolSpec {
        name: "look".into(),
        description: String::new(),
        input: json!({ "type": "object" }),
        output: None,
        manner: Manner::default(),
    };
    SessionSpec { tools: Arc::from([Arc::new(tool)]), ..SessionSpec::default() }
}

async fn session(executor: &ScriptedExecutor) -> Box<dyn Session> {
    executor.start(&spec()).await.unwrap()
}

/// Runs a cell; calls are answered by `tool`. What happened is told in order.
async fn run(
    session: &mut dyn Session,
    code: &str,
    tool: &(dyn Fn(&Value) -> Result<Value, Box<ToolFailure>> + Sync),
) -> Vec<CellEvent> {
    let mut cell = session.cell(code).await.unwrap();
    let mut events = Vec::new();
    loop {
        let event = cell.next().await.unwrap();
        events.push(event.clone());
        match event {
            CellEvent::Printed { .. } => {}
            CellEvent::HostCall { id, args, .. } => {
                cell.resume(id, tool(&args).map_err(|failure| *failure)).await.unwrap()
            }
            CellEvent::Ended(_) => return events,
        }
    }
}

fn echo(args: &Value) -> Result<Value, Box<ToolFailure>> {
    Ok(args.clone())
}

fn fail(_args: &Value) -> Result<Value, Box<ToolFailure>> {
    Err(Box::new(ToolFailure::new("FILE_NOT_FOUND", "no such file")))
}

fn printed(text: &str) -> CellEvent {
    CellEvent::Printed { text: format!("{text}\n"), stream: Stream::Stdout }
}

fn ended(events: &[CellEvent]) -> &CellEnd {
    match events.last() {
        Some(CellEvent::Ended(end)) => end,
        other => panic!("did not end: {other:?}"),
    }
}

#[tokio::test]
async fn variables_live_on_and_calls_count_from_zero_in_each_cell() {
    let executor = ScriptedExecutor::new();
    let mut session = session(&executor).await;
    let first = "# begins\nset n [1, 2]\nprint Hello there\nx = call look {\"n\": \"$n\", \"s\": \"plain\"}\ncall look\n\nprint $x\nwarn careful\n$n\n";
    let events = run(&mut *session, first, &echo).await;
    assert_eq!(
        events,
        [
            printed("Hello there"),
            CellEvent::HostCall { id: 0, tool: "look".into(), args: json!({ "n": [1, 2], "s": "plain" }) },
            CellEvent::HostCall { id: 1, tool: "look".into(), args: json!({}) },
            printed("{\"n\":[1,2],\"s\":\"plain\"}"),
            CellEvent::Printed { text: "careful\n".into(), stream: Stream::Stderr },
            CellEvent::Ended(CellEnd::Done { value: Some("[1,2]".into()) }),
        ]
    );
    let second = "y = call look {\"again\": \"$x\"}\nset s \"text\"\nprint $s\nanswer $y";
    let events = run(&mut *session, second, &echo).await;
    let whole = json!({ "again": { "n": [1, 2], "s": "plain" } });
    assert_eq!(events[0], CellEvent::HostCall { id: 0, tool: "look".into(), args: whole.clone() });
    assert_eq!(events[1], printed("text"));
    assert_eq!(ended(&events), &CellEnd::Answer { value: whole });
    assert_eq!(executor.cells(), [first, second]);
    assert_eq!(executor.sessions(), 1);
}

#[tokio::test]
async fn a_failed_call_raises_unless_it_is_tried() {
    let executor = ScriptedExecutor::new();
    let mut session = session(&executor).await;
    let events = run(&mut *session, "print before\nx = call look {}\nprint never", &fail).await;
    let traceback = "Traceback (most recent call last):\n  File \"<cell>\", line 2\nToolError: FILE_NOT_FOUND: no such file";
    assert_eq!(ended(&events), &CellEnd::Raised { kind: "ToolError".into(), traceback: traceback.into() });
    assert_eq!(events.len(), 3);
    let events = run(&mut *session, "x = try call look {}\nanswer $x", &fail).await;
    let CellEnd::Answer { value } = ended(&events) else { panic!("{events:?}") };
    assert_eq!(value["error"], "FILE_NOT_FOUND");
}

#[tokio::test]
async fn ways_to_end() {
    let executor = ScriptedExecutor::new();
    let mut session = session(&executor).await;
    for (code, kind, holds) in [
        ("raise ValueError no such thing", "ValueError", "line 1\nValueError: no such thing"),
        ("print $nobody", "NameError", "name 'nobody' is not defined"),
        ("call unknown_tool {}", "NameError", "unknown_tool"),
        ("\nset x {", "SyntaxError", "line 2"),
        ("what is this", "SyntaxError", "what is this"),
        ("x = 7", "SyntaxError", "expected `call TOOL"),
        ("call", "SyntaxError", "names its tool"),
    ] {
        let events = run(&mut *session, code, &echo).await;
        let CellEnd::Raised { kind: found, traceback } = ended(&events) else { panic!("{code}: {events:?}") };
        assert_eq!(found, kind, "{code}");
        assert!(traceback.contains(holds), "{traceback}");
    }
    assert_eq!(
        ended(&run(&mut *session, "answer {\"n\": 1}", &echo).await),
        &CellEnd::Answer { value: json!({ "n": 1 }) }
    );
    assert_eq!(ended(&run(&mut *session, "", &echo).await), &CellEnd::Done { value: None });
    assert_eq!(
        ended(&run(&mut *session, "limit too slow", &echo).await),
        &CellEnd::Limited { message: "too slow".into() }
    );
    assert_eq!(
        ended(&run(&mut *session, "crash oom", &echo).await),
        &CellEnd::Crashed { message: "oom".into() }
    );
    assert!(matches!(session.cell("print x").await.err(), Some(ExecutorError::Died(_))));
}

#[tokio::test]
async fn a_hanging_cell_waits_until_it_is_dropped() {
    let executor = ScriptedExecutor::new();
    let mut session = session(&executor).await;
    let mut cell = session.cell("hang").await.unwrap();
    assert!(cell.next().now_or_never().is_none());
    drop(cell);
    assert!(session.is_alive() && session.cell("print x").await.is_ok(), "a cell may be left in the middle");
}

#[tokio::test]
async fn the_protocol_is_kept() {
    let executor = ScriptedExecutor::new();
    let mut session = session(&executor).await;
    let mut cell = session.cell("call look {}").await.unwrap();
    let protocol = |error: ExecutorError| assert!(matches!(error, ExecutorError::Protocol(_)), "{error}");
    protocol(cell.resume(0, Ok(json!(null))).await.unwrap_err());
    cell.next().await.unwrap();
    protocol(cell.next().await.unwrap_err());
    protocol(cell.resume(1, Ok(json!(null))).await.unwrap_err());
    cell.resume(0, Ok(json!(null))).await.unwrap();
    assert!(matches!(cell.next().await.unwrap(), CellEvent::Ended(CellEnd::Done { .. })));
    protocol(cell.next().await.unwrap_err());
}

proptest! {
    /// Whatever the lines are, a cell ends, and a second session does the same.
    #[test]
    fn the_same_code_does_the_same(lines in proptest::collection::vec(
        prop_oneof![
            "[ -~]{0,20}",
            "(set|print|answer|raise|call|try) [a-z$\\{\\}\":0-9 ]{0,12}",
            Just("x = call look {\"a\": \"$x\"}".to_owned()),
            Just("set x 1".to_owned()),
        ], 0..8)) {
        let code = lines.iter().filter(|line| line.trim() != "hang").cloned().collect::<Vec<_>>().join("\n");
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let once = || runtime.block_on(async {
            let executor = ScriptedExecutor::new();
            let mut session = session(&executor).await;
            run(&mut *session, &code, &echo).await
        });
        prop_assert_eq!(once(), once());
    }
}
