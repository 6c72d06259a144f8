//! Workers from a nest are workers like any other: jailed, killed, restored; and they share what they do not change.
//! One test, since it looks at all children of this process.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "what fails here fails the test")]

mod common;

use common::{quick, run, spec};
use gimlet::cell::Executor;
use gimlet_python::{PythonExecutor, Warmth};

fn children(of: &str) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{of}/task")).unwrap();
    tasks
        .flat_map(|task| {
            let path = task.unwrap().path().join("children");
            let text = std::fs::read_to_string(path).unwrap_or_default();
            text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect()
}

/// Kilobytes of a process that no other shares.
fn private_kb(pid: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let lines = text.lines().filter(|line| line.starts_with("Private_"));
    lines.map(|line| line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()).sum()
}

#[tokio::test]
async fn nestlings() {
    let mut config = quick(300);
    config.warmth = Warmth::Warm;
    let executor = PythonExecutor::new(config);
    let mut sessions = Vec::new();
    for number in 0..20 {
        let mut session = executor.start(&spec()).await.unwrap();
        assert_eq!(
            run(&mut *session, &format!("import json\nmine = {number}\nmine")).await.value(),
            number.to_string()
        );
        sessions.push(session);
    }
    // One child of ours, the nest; twenty of its own.
    let nests = children("self");
    assert_eq!(nests.len(), 1, "{nests:?}");
    let workers = children(&nests[0]);
    assert_eq!(workers.len(), 20, "{workers:?}");
    for pid in &workers {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        assert!(status.contains("Seccomp:\t2") && status.contains("NoNewPrivs:\t1"), "{status}");
        let targets: Vec<String> = std::fs::read_dir(format!("/proc/{pid}/fd"))
            .unwrap()
            .map(|entry| std::fs::read_link(entry.unwrap().path()).unwrap().display().to_string())
            .collect();
        assert!(targets.iter().all(|to| to.starts_with("pipe:") || to.ends_with("/statm")), "{targets:?}");
    }
    let private: Vec<u64> = workers.iter().map(|pid| private_kb(pid)).collect();
    eprintln!("private memory of idle sessions: {private:?} kB; of the nest: {} kB", private_kb(&nests[0]));

    // A hang is killed through the nest, and the session comes back in another worker.
    let session = &mut sessions[7];
    let outcome = run(&mut **session, "sum(range(10**13))").await;
    assert!(outcome.limit().contains("inside one operation"), "{outcome:?}");
    assert_eq!(run(&mut **session, "mine").await.value(), "7");
    assert!(!children(&nests[0]).is_empty());

    // Sessions end with their handles, the nest with the executor.
    drop(sessions);
    let mut last = executor.start(&spec()).await.unwrap();
    assert_eq!(run(&mut *last, "1").await.value(), "1");
    drop((last, executor));
    while std::path::Path::new(&format!("/proc/{}/exe", nests[0])).exists() {
        tokio::task::yield_now().await;
    }
}
