//! HumanEval and MBPP reference programs, each in a session of its own with the default imports.
//!
//! The files are not part of this repository: `GIMLET_CONFORMANCE` names their folder, or they lie beside the
//! workspace. Without them the test says so, and fails only on CI.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "what fails here fails the test")]

mod common;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{config, run, session};
use gimlet::cell::CellEnd;
use serde_json::Value;

fn folder() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("GIMLET_CONFORMANCE") {
        return Some(named.into());
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().map(|above| above.join("shared/conformance")).find(|folder| folder.is_dir())
}

fn cases(name: &str) -> Option<Vec<Value>> {
    let path = folder().map(|folder| folder.join(name)).filter(|path| path.is_file());
    let Some(path) = path else {
        eprintln!("CONFORMANCE FILES ARE MISSING: {name} was not run (set GIMLET_CONFORMANCE)");
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "conformance files are needed on CI");
        return None;
    };
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    Some(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn field<'a>(case: &'a Value, name: &str) -> &'a str {
    case[name].as_str().unwrap_or_else(|| panic!("no {name} in {case}"))
}

/// Runs all programs, a few at a time; returns those that failed.
async fn failures(programs: Vec<(String, String)>) -> Vec<(String, CellEnd)> {
    let gate = Arc::new(tokio::sync::Semaphore::new(2));
    let mut tasks = tokio::task::JoinSet::new();
    for (name, code) in programs {
        let gate = gate.clone();
        tasks.spawn(async move {
            let _turn = gate.acquire_owned().await.unwrap();
            // A busy machine is no reason to fail: the limits have tests of their own.
            let mut config = config();
            config.limits.wall = std::time::Duration::from_secs(300);
            let outcome = run(&mut *session(config).await, &code).await;
            (name, outcome.end)
        });
    }
    let mut failed: Vec<_> =
        tasks.join_all().await.into_iter().filter(|(_, end)| !matches!(end, CellEnd::Done { .. })).collect();
    failed.sort_by(|a, b| a.0.cmp(&b.0));
    failed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn human_eval() {
    let Some(cases) = cases("humaneval.jsonl.gz") else { return };
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
    let Some(cases) = cases("mbpp.jsonl.gz") else { return };
    let programs: Vec<_> = cases
        .iter()
        .map(|case| {
            let tests: Vec<&str> =
                case["test_list"].as_array().unwrap().iter().map(|test| test.as_str().unwrap()).collect();
            let code =
                format!("{}\n{}\n{}", field(case, "test_setup_code"), field(case, "code"), tests.join("\n"));
            (case["task_id"].to_string(), code.replace("\r\n", "\n"))
        })
        .collect();
    let total = programs.len();
    let failed = failures(programs).await;
    for (name, end) in &failed {
        eprintln!("MBPP {name}: {end:?}");
    }
    // Two of the 974 fail in CPython itself.
    let passed = total - failed.len();
    assert!(passed >= 970, "MBPP: {passed} of {total}");
}
