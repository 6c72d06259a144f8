//! Programs put together at random: whatever they do, the worker answers or dies inside its limits, and the parent
//! goes on.
#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here fails the test")]

mod common;
#[expect(unreachable_pub, reason = "it is a part of a library there")]
#[path = "../../../fuzz/src/programs.rs"]
mod programs;

use common::{run, session, spec, with_limits};
use gimlet::cell::CellEnd;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};

#[tokio::test]
async fn the_parent_outlives_every_program() {
    let mut session = session(with_limits(|limits| {
        limits.wall = std::time::Duration::from_millis(500);
        limits.memory = 128 << 20;
    }))
    .await;
    for module in programs::IMPORTS {
        // Some are not allowed here; what uses them then raises.
        run(&mut *session, &format!("import {module}")).await;
    }
    let bytes = proptest::collection::vec(any::<u8>(), 3..24);
    let mut runner = TestRunner::new_with_rng(
        Config::default(),
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    let tools = spec().tools;
    let (mut crashes, mut done, mut raised) = (Vec::new(), 0, 0);
    for _ in 0..3000 {
        let code = programs::program(&bytes.new_tree(&mut runner).unwrap().current());
        let outcome = run(&mut *session, &code).await;
        let known = |name: &str| tools.iter().any(|tool| tool.name == name);
        assert!(outcome.calls.iter().all(|(name, _)| known(name)), "it called what it does not have: {code}");
        match outcome.end {
            CellEnd::Crashed { message } => crashes.push(format!("{code}\n  {message}")),
            CellEnd::Done { .. } => done += 1,
            CellEnd::Raised { .. } => raised += 1,
            CellEnd::Answer { .. } | CellEnd::Limited { .. } => {}
        }
    }
    assert_eq!(run(&mut *session, "1 + 1").await.value(), "2");
    // The programs are always the same, so one that ends its worker is a fault that was not there before.
    assert!(crashes.is_empty(), "{} programs crashed their worker\n{}", crashes.len(), crashes.join("\n"));
    // Both ends are reached often: programs that all fail at their first word would show nothing.
    assert!(done > 200 && raised > 200, "{done} done, {raised} raised");
}
