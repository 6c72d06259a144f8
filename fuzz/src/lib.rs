//! What is fuzzed: one module for each target, an ordinary function over bytes that panics when it finds something.
//!
//! libFuzzer drives them guided by coverage (`fuzz_targets/`), and `soak` with chance on a stable compiler.

pub mod action_parser;
pub mod chance;
pub mod event_log;
pub mod programs;
pub mod python_worker;
pub mod shell_policy;
pub mod unified_diff;
pub mod wire_decoders;
pub mod worker_protocol;

use std::sync::LazyLock;

use tokio::runtime::{Builder, Runtime};

/// What drives the targets that wait.
static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_all().build().expect("a runtime"));

/// Takes one input; says what came of it in a few words, so that a soak can count. Panics on a finding.
pub type Run = fn(&[u8]) -> &'static str;

/// Every target by its name.
pub const TARGETS: &[(&str, Run)] = &[
    ("action_parser", action_parser::run),
    ("event_log", event_log::run),
    ("python_worker", python_worker::run),
    ("shell_policy", shell_policy::run),
    ("unified_diff", unified_diff::run),
    ("wire_decoders", wire_decoders::run),
    ("worker_protocol", worker_protocol::run),
];
