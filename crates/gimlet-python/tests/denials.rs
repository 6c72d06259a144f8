//! Attempts to take everything. Each ends inside its limit, the parent lives, and the session goes on.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "what fails here fails the test")]

mod common;

use std::time::{Duration, Instant};

use common::{run, session, with_limits};
use gimlet::cell::CellEnd;

const CORPUS: &str = include_str!("corpus/denials.py.txt");

#[tokio::test]
async fn nothing_takes_everything() {
    let config = with_limits(|limits| {
        limits.wall = Duration::from_millis(500);
        limits.memory = 128 << 20;
    });
    let cases: Vec<(&str, &str)> =
        CORPUS.split("\n### ").skip(1).map(|case| case.split_once('\n').unwrap()).collect();
    assert!(cases.len() >= 60, "{}", cases.len());
    let mut session = session(config.clone()).await;
    let mut report = String::new();
    for (place, (name, code)) in cases.into_iter().enumerate() {
        // A fresh session now and then: every rebuilding runs all of its past again.
        if place % 8 == 0 {
            session = common::session(config.clone()).await;
        }
        let began = Instant::now();
        let outcome = run(&mut *session, code).await;
        let took = began.elapsed();
        // The limit, the grace before the kill and the rebuilding, on a machine that may be busy with other things.
        assert!(took < Duration::from_secs(20), "{name} took {took:?}");
        let (kind, text) = match &outcome.end {
            CellEnd::Done { .. } => ("done", String::new()),
            CellEnd::Answer { .. } => ("answer", String::new()),
            CellEnd::Raised { kind, .. } => ("raised", kind.clone()),
            CellEnd::Limited { message } => ("limited", message.clone()),
            CellEnd::Crashed { message } => ("crashed", message.clone()),
        };
        report.push_str(&format!("{name}: {kind} {text} ({} ms)\n", took.as_millis()));
        let after = run(&mut *session, "1 + 1").await;
        assert_eq!(after.end, CellEnd::Done { value: Some("2".into()) }, "after {name}: {report}");
    }
    // Shown with `--nocapture`, and on failure.
    eprintln!("{report}");
}
