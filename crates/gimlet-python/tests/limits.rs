//! Limits hold, cannot be swallowed, and leave the parent and the session alive.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "what fails here fails the test")]

mod common;

use std::time::{Duration, Instant};

use common::{quick, run, session, with_limits};
use gimlet::cell::CellEnd;

#[tokio::test]
async fn a_loop_is_stopped_and_variables_stay() {
    let mut session = session(quick(300)).await;
    let began = Instant::now();
    let outcome = run(&mut *session, "x = 41\nwhile True:\n    x = 42").await;
    assert!(outcome.limit().starts_with("TimeoutError"), "{outcome:?}");
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(run(&mut *session, "x").await.value(), "42");
}

#[tokio::test]
async fn no_except_outlives_the_limit() {
    let mut session = session(quick(200)).await;
    for code in [
        "while True:\n    try:\n        while True: pass\n    except:\n        pass",
        "def f():\n    try:\n        while True: pass\n    except BaseException:\n        f()\nf()",
        "def g():\n    while True:\n        try:\n            yield 1\n        except GeneratorExit:\n            pass\nfor _ in g(): pass",
        "class C:\n    def __del__(self):\n        while True: pass\nfor _ in iter(int, 1):\n    C()",
        "import contextlib\nwhile True:\n    with contextlib.suppress(BaseException):\n        while True: pass",
    ] {
        let outcome = run(&mut *session, code).await;
        assert!(outcome.limit().starts_with("TimeoutError"), "{code}: {outcome:?}");
    }
    assert_eq!(run(&mut *session, "1 + 1").await.value(), "2");
}

#[tokio::test]
async fn a_native_hang_is_killed_and_the_session_restored() {
    let mut session = session(quick(300)).await;
    run(&mut *session, "kept = [1, 2]\ndef f(): return kept").await;
    let began = Instant::now();
    let outcome = run(&mut *session, "lost = 1\nsum(range(10**11))").await;
    assert!(outcome.limit().contains("inside one operation"), "{outcome:?}");
    assert!(outcome.limit().ends_with("lost or reset: lost"), "{outcome:?}");
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(run(&mut *session, "f()").await.value(), "[1, 2]");
    assert!(matches!(run(&mut *session, "lost").await.end, CellEnd::Raised { .. }));
}

#[tokio::test]
async fn memory_is_limited_slowly_and_suddenly() {
    let mut session = session(with_limits(|limits| limits.memory = 128 << 20)).await;
    run(&mut *session, "kept = 'here'").await;
    let slowly = run(&mut *session, "x = []\nwhile True:\n    x.append('y' * 10000)").await;
    assert!(slowly.limit().starts_with("MemoryError"), "{slowly:?}");
    assert_eq!(run(&mut *session, "kept").await.value(), "'here'");
    let suddenly = run(&mut *session, "b = bytearray(10**10)").await;
    let memory_error = matches!(&suddenly.end, CellEnd::Raised { kind, .. } if kind == "MemoryError")
        || matches!(&suddenly.end, CellEnd::Limited { message } if message.starts_with("MemoryError"));
    assert!(memory_error, "{suddenly:?}");
    assert_eq!(run(&mut *session, "kept").await.value(), "'here'");
}

#[tokio::test]
async fn recursion_is_an_error_and_deep_recursion_works() {
    let mut session = session(common::config()).await;
    let outcome = run(&mut *session, "def f(n): return f(n + 1)\nf(0)").await;
    assert!(outcome.traceback().contains("RecursionError: maximum recursion depth exceeded"));
    let deep =
        "import sys\nsys.setrecursionlimit(10**6)\ndef g(n): return 0 if n == 0 else 1 + g(n - 1)\ng(5000)";
    assert_eq!(run(&mut *session, deep).await.value(), "5000");
    // Without a limit of its own, recursion takes memory until that is used up.
    let outcome = run(&mut *session, "f(0)").await;
    let refused = match &outcome.end {
        CellEnd::Raised { kind, .. } => kind == "RecursionError",
        CellEnd::Limited { message } => message.starts_with("MemoryError"),
        CellEnd::Done { .. } | CellEnd::Answer { .. } | CellEnd::Crashed { .. } => false,
    };
    assert!(refused, "{outcome:?}");
    assert_eq!(run(&mut *session, "1 + 1").await.value(), "2");
}

#[tokio::test]
async fn host_calls_are_counted() {
    let mut session = session(with_limits(|limits| limits.calls = 3)).await;
    let outcome = run(
        &mut *session,
        "n = 0\nwhile True:\n    try:\n        echo(n)\n    except:\n        pass\n    n += 1",
    )
    .await;
    assert_eq!(outcome.calls.len(), 3);
    assert!(outcome.limit().contains("more than 3 tool calls"), "{outcome:?}");
    assert_eq!(run(&mut *session, "n").await.value(), "3");
}

#[tokio::test]
async fn waiting_for_a_host_call_costs_no_time() {
    use gimlet::cell::CellEvent;
    let mut session = session(quick(300)).await;
    let mut cell = session.cell("x = echo(1)\nx").await.unwrap();
    let CellEvent::HostCall { id, .. } = cell.next().await.unwrap() else { panic!("no call") };
    // The worker must not notice a person who thinks for longer than the limit.
    tokio::time::sleep(Duration::from_millis(900)).await;
    cell.resume(id, Ok(5.into())).await.unwrap();
    assert_eq!(cell.next().await.unwrap(), CellEvent::Ended(CellEnd::Done { value: Some("5".into()) }));
}

#[tokio::test]
async fn deep_source_is_a_syntax_error() {
    let mut session = session(common::config()).await;
    for code in [
        format!("{}1{}", "(".repeat(5000), ")".repeat(5000)),
        format!("x = {}1", "-".repeat(200_000)),
        format!("x = {}", "[".repeat(100_000)),
        (0..300).map(|depth| format!("{}if 1:\n", " ".repeat(depth))).collect::<String>(),
    ] {
        let outcome = run(&mut *session, &code).await;
        assert!(matches!(&outcome.end, CellEnd::Raised { kind, .. } if kind == "SyntaxError"), "{outcome:?}");
    }
    assert_eq!(run(&mut *session, "1 + 1").await.value(), "2");
}
