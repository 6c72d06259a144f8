//! Programs put together at random: whatever they do, the worker answers or dies inside its limits, and the parent
//! goes on.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "what fails here fails the test")]

mod common;
#[path = "../../../fuzz/src/programs.rs"]
mod programs;

use common::{run, session, with_limits};
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
    let mut crashes = Vec::new();
    for _ in 0..3000 {
        let code = programs::program(&bytes.new_tree(&mut runner).unwrap().current());
        let outcome = run(&mut *session, &code).await;
        if let gimlet::cell::CellEnd::Crashed { message } = outcome.end {
            crashes.push(format!("{code}\n  {message}"));
        }
    }
    assert_eq!(run(&mut *session, "1 + 1").await.value(), "2");
    // A crash is contained; a new one is still worth a look.
    eprintln!("{} of 3000 programs crashed their worker\n{}", crashes.len(), crashes.join("\n"));
}
