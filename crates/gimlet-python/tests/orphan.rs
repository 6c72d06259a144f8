//! A worker whose parent is gone ends by itself, even in the middle of something that never would.
#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here fails the test")]

mod common;

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use gimlet_python::protocol::{FromWorker, Start, ToWorker, read_frame, write_frame};

fn worker(code: Option<&str>) -> Child {
    let mut child = Command::new(common::WORKER)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut start = Start::default();
    start.limits.wall = Duration::from_millis(200);
    let input = child.stdin.as_mut().unwrap();
    write_frame(input, &ToWorker::Start(Box::new(start))).unwrap();
    assert!(matches!(read_frame(child.stdout.as_mut().unwrap()), Ok(Some(FromWorker::Ready { .. }))));
    if let Some(code) = code {
        write_frame(input, &ToWorker::Cell { number: 1, code: code.into() }).unwrap();
    }
    child
}

#[test]
fn an_orphan_ends() {
    for code in
        [None, Some("while True: pass"), Some("sum(range(10**13))"), Some("while True: print('x' * 1000)")]
    {
        let mut child = worker(code);
        drop((child.stdin.take(), child.stdout.take()));
        // It ends, or this test does not.
        child.wait().unwrap();
    }
}
