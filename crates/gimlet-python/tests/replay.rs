//! A session can be rebuilt at any host call, in this process or another, and goes on as if nothing had happened.
//! One test, since it kills every worker that this process has started.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "what fails here fails the test")]

mod common;

use common::{answer, config, quick, run, session};
use gimlet::cell::{CellEnd, CellEvent, Session, Stream};
use serde_json::Value;

/// Cells that touch everything a replay must repeat.
const CELLS: [&str; 4] = [
    "import random, uuid, time, datetime\nnoise = [random.random(), str(uuid.uuid4()), hash('x')]",
    "log = []\nfor i in range(3):\n    log.append(echo([i, random.randint(0, 10**9), time.time()]))\nprint(len(log))",
    "class Box:\n    def __init__(self, v): self.v = v\nbox = Box(read_file('a'))\nlog = log[:3]\ntry:\n    fail()\nexcept ToolError as e:\n    log.append(e.error)\nlog.append(echo(str(datetime.datetime.now())))",
    "echo([noise, log, box.v, sorted({'b', 'a'}), random.random(), uuid.uuid4().hex, time.perf_counter()])",
];

/// Runs all cells; kills the worker at the call with this number, counted over all cells.
async fn run_all(
    session: &mut dyn Session,
    kill_at: Option<usize>,
) -> (Vec<(String, Value)>, String, Vec<CellEnd>) {
    let (mut calls, mut printed, mut ends) = (Vec::new(), String::new(), Vec::new());
    for code in CELLS {
        // A cell in which the worker dies is told to the model, which runs it again.
        let mut attempts = 0;
        loop {
            let (before, before_printed) = (calls.len(), printed.len());
            let mut killed = false;
            let mut cell = session.cell(code).await.unwrap();
            let end = loop {
                match cell.next().await.unwrap() {
                    CellEvent::Printed { text, stream: Stream::Stdout } => printed.push_str(&text),
                    CellEvent::Printed { .. } => {}
                    CellEvent::HostCall { id, tool, args } => {
                        if kill_at == Some(calls.len()) && attempts == 0 {
                            kill_children();
                            killed = true;
                        }
                        let result = answer(&tool, &args);
                        calls.push((tool, args));
                        cell.resume(id, result).await.unwrap();
                    }
                    CellEvent::Ended(end) => break end,
                }
            };
            drop(cell);
            if !killed {
                ends.push(end);
                break;
            }
            let CellEnd::Crashed { message } = end else { panic!("the worker was killed, yet {end:?}") };
            assert!(message.contains("the session was restored"), "{message}");
            calls.truncate(before);
            printed.truncate(before_printed);
            attempts += 1;
        }
    }
    (calls, printed, ends)
}

/// Kills every child of this process, as the kernel would when memory is short.
fn kill_children() {
    let mut killed = 0;
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let children = std::fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default();
        for pid in children.split_whitespace() {
            let status = std::process::Command::new("kill").args(["-9", pid]).status().unwrap();
            killed += usize::from(status.success());
        }
    }
    assert!(killed > 0, "no worker to kill");
}

#[tokio::test(flavor = "current_thread")]
async fn sessions_come_back() {
    let (calls, printed, ends) = run_all(&mut *session(config()).await, None).await;
    assert_eq!(calls.len(), 7);
    assert!(ends.iter().all(|end| matches!(end, CellEnd::Done { .. })), "{ends:?}");

    // Another process: the same cells and results give the same calls, to the last random number.
    let again = run_all(&mut *session(config()).await, None).await;
    assert_eq!(again, (calls.clone(), printed.clone(), ends.clone()));

    // The worker killed at every call in turn: what earlier cells left is there, exactly.
    for kill_at in 0..calls.len() {
        let (killed_calls, killed_printed, killed_ends) =
            run_all(&mut *session(config()).await, Some(kill_at)).await;
        assert_eq!(killed_ends.len(), ends.len());
        assert_eq!(killed_printed, printed, "killed at {kill_at}");
        let tools = |calls: &[(String, Value)]| calls.iter().map(|call| call.0.clone()).collect::<Vec<_>>();
        assert_eq!(tools(&killed_calls), tools(&calls), "killed at {kill_at}");
        // The noise of the first cell is repeated exactly.
        let noise = |calls: &[(String, Value)]| calls.last().map(|call| call.1["value"][0].clone());
        assert_eq!(noise(&killed_calls), noise(&calls), "killed at {kill_at}");
    }

    dropped_at_a_call().await;
    cut_cells_are_replayed_to_their_last_call().await;
    divergence_is_said().await;
}

/// A cell that is given up while it waits keeps what it had done; one that computes is rebuilt.
async fn dropped_at_a_call() {
    let mut session = session(config()).await;
    let mut cell = session.cell("a = 1\nb = echo(2)\nc = echo(3)\nd = 4").await.unwrap();
    let CellEvent::HostCall { id, .. } = cell.next().await.unwrap() else { panic!() };
    cell.resume(id, Ok(2.into())).await.unwrap();
    let CellEvent::HostCall { .. } = cell.next().await.unwrap() else { panic!() };
    drop(cell);
    assert_eq!(
        run(&mut *session, "a, b, 'c' in globals(), 'd' in globals()").await.value(),
        "(1, 2, False, False)"
    );

    let mut cell = session.cell("e = 5\necho(6)\nwhile True: pass").await.unwrap();
    let CellEvent::HostCall { id, .. } = cell.next().await.unwrap() else { panic!() };
    cell.resume(id, Ok(6.into())).await.unwrap();
    drop(cell);
    assert_eq!(run(&mut *session, "a, b, e").await.value(), "(1, 2, 5)");
}

async fn cut_cells_are_replayed_to_their_last_call() {
    let mut session = session(quick(300)).await;
    let outcome = run(&mut *session, "a = 1\nb = echo(2)\nc = 3\nwhile True: pass").await;
    assert!(outcome.limit().contains("variables keep"), "{outcome:?}");
    assert_eq!(run(&mut *session, "a, b, c").await.value(), "(1, 2, 3)");
    kill_children();
    let outcome = run(&mut *session, "1").await;
    let CellEnd::Crashed { message } = &outcome.end else { panic!("{outcome:?}") };
    assert!(message.ends_with("lost or reset: b, c"), "{message}");
    assert_eq!(run(&mut *session, "a, 'b' in globals()").await.value(), "(1, False)");
}

async fn divergence_is_said() {
    // The address of an object differs between processes; code that sends it cannot be replayed.
    let mut session = session(config()).await;
    run(&mut *session, "keep = [object() for _ in range(1000)]\necho([id(k) for k in keep])").await;
    kill_children();
    let outcome = run(&mut *session, "1").await;
    let CellEnd::Crashed { message } = &outcome.end else { panic!("{outcome:?}") };
    assert!(
        message.contains("replay diverged from the log") && message.contains("all variables are lost"),
        "{message}"
    );
    assert_eq!(run(&mut *session, "'keep' in globals()").await.value(), "False");
}
