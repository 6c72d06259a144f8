//! HumanEval and MBPP reference programs, each in a session of its own with the default imports.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "what fails here fails the test")]

mod common;

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use common::{config, run, spec};
use gimlet::cell::{CellEnd, Executor};
use gimlet_python::{PythonExecutor, Warmth};
use serde_json::Value;

/// Programs of MBPP that fail in CPython itself.
const BROKEN: [&str; 2] = ["367", "927"];

/// Programs of MBPP that depend on where CPython's table keeps a set's elements after some were removed: see the known
/// differences in the documentation.
const DIFFERENT: [&str; 1] = ["579"];

fn cases(name: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance").join(name);
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn field<'a>(case: &'a Value, name: &str) -> &'a str {
    case[name].as_str().unwrap_or_else(|| panic!("no {name} in {case}"))
}

/// Runs all programs, a few at a time; returns those that failed.
async fn failures(programs: Vec<(String, String)>) -> Vec<(String, CellEnd)> {
    let mut config = config();
    // A busy machine is no reason to fail: the limits have tests of their own.
    config.limits.wall = std::time::Duration::from_secs(300);
    config.warmth = Warmth::Warm;
    let executor = Arc::new(PythonExecutor::new(config));
    let gate = Arc::new(tokio::sync::Semaphore::new(2));
    let mut tasks = tokio::task::JoinSet::new();
    for (name, code) in programs {
        let (gate, executor) = (gate.clone(), executor.clone());
        tasks.spawn(async move {
            let _turn = gate.acquire_owned().await.unwrap();
            let mut session = executor.start(&spec()).await.unwrap();
            (name, run(&mut *session, &code).await.end)
        });
    }
    let mut failed: Vec<_> =
        tasks.join_all().await.into_iter().filter(|(_, end)| !matches!(end, CellEnd::Done { .. })).collect();
    failed.sort_by(|a, b| a.0.cmp(&b.0));
    failed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn human_eval() {
    let cases = cases("humaneval.jsonl.gz");
    assert_eq!(cases.len(), 164);
    let programs = cases
        .iter()
        .map(|case| {
            let [prompt, solution, test, entry] =
                ["prompt", "canonical_solution", "test", "entry_point"].map(|name| field(case, name));
            (field(case, "task_id").to_owned(), format!("{prompt}{solution}\n{test}\ncheck({entry})\n"))
        })
        .collect();
    assert_eq!(failures(programs).await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mbpp() {
    let cases = cases("mbpp.jsonl.gz");
    let programs: Vec<_> = cases
        .iter()
        .filter(|case| !BROKEN.contains(&case["task_id"].to_string().as_str()))
        .map(|case| {
            let tests: Vec<&str> =
                case["test_list"].as_array().unwrap().iter().map(|test| test.as_str().unwrap()).collect();
            let code =
                format!("{}\n{}\n{}", field(case, "test_setup_code"), field(case, "code"), tests.join("\n"));
            (case["task_id"].to_string(), code.replace("\r\n", "\n"))
        })
        .collect();
    assert_eq!(programs.len(), 972);
    let failed = failures(programs).await;
    let names: Vec<&str> = failed.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, DIFFERENT, "{failed:#?}");
}
