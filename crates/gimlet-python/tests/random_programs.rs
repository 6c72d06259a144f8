//! Programs put together at random: whatever they do, the worker answers or dies inside its limits, and the parent
//! goes on.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "what fails here fails the test")]

mod common;

use common::{run, session, with_limits};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};

/// Pieces that have broken interpreters before: odd receivers, dunders, huge numbers, half-open syntax.
const ATOMS: &[&str] = &[
    "0",
    "-1",
    "2**70",
    "10**400",
    "1e308",
    "''",
    "'é' * 9",
    "b'x'",
    "[]",
    "()",
    "{}",
    "set()",
    "None",
    "...",
    "x",
    "object()",
    "type",
    "int",
    "range(3)",
    "(i for i in [1])",
    "lambda: x",
    "x.__class__",
    "x.__dict__",
    "__builtins__",
    "iter([])",
    "slice(1, 2)",
    "memoryview(b'ab')",
    "bytearray(3)",
    "float('nan')",
    "complex(1, 2)",
    "NotImplemented",
    "Exception",
    "echo",
    "open",
    "super",
    "property()",
    "(1).__add__",
    "[].append",
    "str.join",
    "dict.fromkeys",
];
const SHAPES: &[&str] = &[
    "x = {a}",
    "x = {a} + {b}",
    "x = {a}[{b}]",
    "x = {a}({b})",
    "x = {a}.__init__({b})",
    "del {a}",
    "for x in {a}: {b}",
    "while {a}: x = {b}; break",
    "try:\n    {a}\nexcept {b}: pass",
    "class x({a}): y = {b}",
    "def x(a={a}): return {b}",
    "x = [{a} for x in {b}]",
    "x = {{{a}: {b}}}",
    "with {a} as x: {b}",
    "x = {a} if {b} else x",
    "print({a}, {b})",
    "x = f'{{{a}!r}}'",
    "raise {a} from {b}",
    "x = {a} @ {b}",
    "x = {a} < {b}",
    "x = not {a}",
    "match {a}:\n    case {b}: pass",
    "x = type('T', ({a},), {{}})",
    "setattr({a}, 'y', {b})",
    "x = getattr({a}, '__call__')({b})",
    "x = hash({a})",
    "x = repr({a})",
    "async def x(): await {a}",
    "def x(): yield {a}; yield from {b}",
    "x = sorted({a}, key={b})",
    "x = '%s' % {a}",
    "x = '{{}}'.format({a})",
    "assert {a}, {b}",
    "{a} = {b}",
    "x = {a}(",
];

fn program() -> impl Strategy<Value = String> {
    let line =
        (proptest::sample::select(SHAPES), proptest::sample::select(ATOMS), proptest::sample::select(ATOMS))
            .prop_map(|(shape, a, b)| {
                shape
                    .replace("{{", "\u{1}")
                    .replace("}}", "\u{2}")
                    .replace("{a}", a)
                    .replace("{b}", b)
                    .replace('\u{1}', "{")
                    .replace('\u{2}', "}")
            });
    proptest::collection::vec(line, 1..8).prop_map(|lines| lines.join("\n"))
}

#[tokio::test]
async fn the_parent_outlives_every_program() {
    let mut session = session(with_limits(|limits| {
        limits.wall = std::time::Duration::from_millis(500);
        limits.memory = 128 << 20;
    }))
    .await;
    let mut runner = TestRunner::new_with_rng(
        Config::default(),
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    let mut crashes = Vec::new();
    for _ in 0..3000 {
        let code = program().new_tree(&mut runner).unwrap().current();
        let outcome = run(&mut *session, &code).await;
        if let gimlet::cell::CellEnd::Crashed { message } = outcome.end {
            crashes.push(format!("{code}\n  {message}"));
        }
    }
    assert_eq!(run(&mut *session, "1 + 1").await.value(), "2");
    // A crash is contained; a new one is still worth a look.
    eprintln!("{} of 3000 programs crashed their worker\n{}", crashes.len(), crashes.join("\n"));
}
