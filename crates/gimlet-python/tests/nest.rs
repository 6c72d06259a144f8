//! Workers from a nest are workers like any other: jailed, killed, restored; and they share what they do not change.
//! One test, since it looks at all children of this process.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "what fails here fails the test")]

mod common;

use common::{quick, run, spec};

/// Sessions that live at the same time.
const MANY: usize = 200;
/// Most kilobytes that an idle one may have of its own.
const MOST_PRIVATE: u64 = 4096;
use gimlet::cell::{CellEnd, Executor};
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

fn kill(pids: &[String]) {
    assert!(std::process::Command::new("kill").arg("-9").args(pids).status().unwrap().success());
}

/// Kilobytes of a process that no other shares.
fn private_kb(pid: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let lines = text.lines().filter(|line| line.starts_with("Private_"));
    lines.map(|line| line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()).sum()
}

#[tokio::test]
async fn nestlings() {
    let mut config = quick(3000);
    config.warmth = Warmth::Warm;
    let executor = PythonExecutor::new(config);
    let mut sessions = Vec::new();
    for number in 0..MANY {
        let mut session = executor.start(&spec()).await.unwrap();
        assert_eq!(
            run(&mut *session, &format!("import json\nmine = {number}\nmine")).await.value(),
            number.to_string()
        );
        sessions.push(session);
    }
    // One child of ours, the nest; all others are its own.
    let nests = children("self");
    assert_eq!(nests.len(), 1, "{nests:?}");
    let workers = children(&nests[0]);
    assert_eq!(workers.len(), MANY, "{workers:?}");
    for pid in &workers {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        assert!(status.contains("Seccomp:\t2") && status.contains("NoNewPrivs:\t1"), "{status}");
        let targets: Vec<String> = std::fs::read_dir(format!("/proc/{pid}/fd"))
            .unwrap()
            .map(|entry| std::fs::read_link(entry.unwrap().path()).unwrap().display().to_string())
            .collect();
        assert!(targets.iter().all(|to| to.starts_with("pipe:") || to.ends_with("/statm")), "{targets:?}");
    }
    let mut private: Vec<u64> = workers.iter().map(|pid| private_kb(pid)).collect();
    private.sort_unstable();
    assert!(private[MANY / 2] < MOST_PRIVATE, "{private:?}");
    // Each still has its own variables.
    for (number, session) in sessions.iter_mut().enumerate() {
        assert_eq!(run(&mut **session, "mine").await.value(), number.to_string());
    }

    // A hang is killed through the nest, and the session comes back in another worker.
    let session = &mut sessions[7];
    let outcome = run(&mut **session, "sum(range(10**13))").await;
    assert!(outcome.limit().contains("inside one operation"), "{outcome:?}");
    assert_eq!(run(&mut **session, "mine").await.value(), "7");
    assert!(!children(&nests[0]).is_empty());

    // A nest knows how its workers died.
    kill(&children(&nests[0]));
    let outcome = run(&mut **session, "1").await;
    assert!(
        matches!(&outcome.end, CellEnd::Crashed { message } if message.contains("signal: 9")),
        "{outcome:?}"
    );
    assert_eq!(run(&mut **session, "mine").await.value(), "7");

    // Sessions end with their handles, the nest with the executor.
    drop(sessions);
    let mut last = executor.start(&spec()).await.unwrap();
    assert_eq!(run(&mut *last, "1").await.value(), "1");
    drop((last, executor));
    while std::path::Path::new(&format!("/proc/{}/exe", nests[0])).exists() {
        tokio::task::yield_now().await;
    }
}
