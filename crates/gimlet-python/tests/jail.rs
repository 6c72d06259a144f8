//! Each layer of the jail, proven by trying what it forbids in a process that has only that layer.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "what fails here fails the test")]

mod common;

use std::process::Command;

use common::{WORKER, config, run, session};

/// Builds a layer in a process that has inherited a descriptor it should not have.
fn probe(stage: &str) -> String {
    let output = Command::new("/bin/sh")
        .args(["-c", "exec \"$0\" probe \"$1\" 7</etc/passwd", WORKER, stage])
        .env_clear()
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn without_a_jail_the_probe_succeeds() {
    // Else the other tests would prove nothing.
    let text = probe("none");
    assert_eq!(text.matches("DONE").count(), 5, "{text}");
    assert!(!text.contains("refused") && text.contains("privileges: 0"), "{text}");
}

#[test]
fn inherited_descriptors_are_gone() {
    let text = probe("descriptors");
    assert!(text.contains("use an inherited descriptor: refused (9)"), "{text}");
}

#[test]
fn the_kernels_limits_alone_bound_what_is_taken() {
    let text = probe("limit");
    assert!(!text.contains("DONE") && !text.contains("weakness"), "{text}");
    assert!(text.contains("open a descriptor: refused (24)"), "{text}");
    assert!(text.contains("take memory: refused (12)"), "{text}");
    assert!(text.contains("most core: 0\nmost processes: 0\nmost cpu: 14400\n"), "{text}");
}

#[test]
fn landlock_alone_closes_all_paths_ports_and_signals() {
    let text = probe("enter");
    assert!(text.contains("privileges: 1"), "{text}");
    if text.contains("weakness: Landlock") {
        assert!(std::env::var_os("CI").is_none(), "CI needs a kernel with Landlock: {text}");
        eprintln!("THIS KERNEL HAS NO LANDLOCK: {text}");
        return;
    }
    assert!(!text.contains("DONE"), "{text}");
    assert!(text.contains("open for reading: refused (13)"), "{text}");
    assert!(text.contains("connect: refused (13)"), "{text}");
    assert!(text.contains("signal the parent: refused (1)"), "{text}");
}

#[test]
fn the_filter_alone_closes_everything_else() {
    let text = probe("filter");
    assert!(!text.contains("DONE"), "{text}");
    assert!(!text.contains("weakness"), "{text}");
    let refused = text.lines().filter(|line| line.contains("refused (1)")).count();
    // Every attempt but none by its own error: the filter's EPERM is the only answer.
    assert_eq!(refused, text.lines().filter(|line| line.contains("refused")).count(), "{text}");
    assert!(refused >= 20, "{text}");
}

#[tokio::test]
async fn a_session_names_its_weaknesses() {
    let mut session = session(config()).await;
    let weaknesses = session.weaknesses();
    assert!(weaknesses.iter().all(|weakness| weakness.contains("Landlock")), "{weaknesses:?}");
    assert_eq!(run(&mut *session, "1").await.value(), "1");
}

#[tokio::test]
async fn a_worker_has_its_pipes_and_nothing_else() {
    let session = session(config()).await;
    let pid = worker_pid();
    let descriptors: Vec<String> = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .map(|entry| std::fs::read_link(entry.unwrap().path()).unwrap().display().to_string())
        .collect();
    let others: Vec<_> = descriptors.iter().filter(|target| !target.starts_with("pipe:")).collect();
    assert_eq!(others.len(), 1, "{descriptors:?}");
    assert!(others[0].ends_with("/statm"), "{descriptors:?}");
    assert_eq!(std::fs::read_to_string(format!("/proc/{pid}/environ")).unwrap(), "");
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    assert!(status.contains("Seccomp:\t2") && status.contains("NoNewPrivs:\t1"), "{status}");
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        assert!(status.contains("Seccomp:\t2"), "{status}");
    }
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    assert!(
        limits.lines().any(|line| line.starts_with("Max open files") && line.contains(" 0 ")),
        "{limits}"
    );
    drop(session);
}

/// The worker that the calling thread has started last.
fn worker_pid() -> String {
    let thread = std::fs::read_link("/proc/thread-self").unwrap();
    let children =
        std::fs::read_to_string(std::path::Path::new("/proc").join(thread).join("children")).unwrap();
    children.split_whitespace().last().unwrap().to_owned()
}
