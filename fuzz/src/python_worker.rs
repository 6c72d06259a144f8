//! Random programs in a jailed Python worker. It may refuse, raise, hit a limit, even panic; it must never corrupt its
//! memory, break the protocol or fail to start again.
//!
//! The worker is the ordinary build (`cargo build -p gimlet-python`), found in the workspace's `target/debug` or named by
//! `GIMLET_FUZZ_WORKER`. This side speaks its wire format and nothing else, so that a target builds in seconds.

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::programs::{IMPORTS, program};

/// Longest a worker may be silent in a cell whose limit is far below. One that is, hangs in native code, which its real
/// parent would kill as this one does.
const PATIENCE: Duration = Duration::from_secs(5);
/// Programs that share a session before a fresh one takes over.
const SHARED: u32 = 200;

static WORKER: Mutex<Option<Worker>> = Mutex::new(None);

/// Runs one program. The first byte chooses between text as it is and a program put together from pieces.
pub fn run(data: &[u8]) -> &'static str {
    let Some((first, rest)) = data.split_first() else { return "empty" };
    let code = if first % 4 == 0 { String::from_utf8_lossy(rest).into_owned() } else { program(rest) };
    let mut slot = WORKER.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut worker = match slot.take() {
        Some(worker) if worker.ran < SHARED => worker,
        Some(_) | None => Worker::start(),
    };
    match worker.cell(&code) {
        Met::Ended(how) => {
            *slot = Some(worker);
            how
        }
        Met::Hang => "hung and was killed",
        Met::Gone => worker.death(&code),
    }
}

enum Met {
    Ended(&'static str),
    Hang,
    Gone,
}

/// A worker with a session; killed with its handle.
struct Worker {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    ran: u32,
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It fails only when the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Worker {
    fn start() -> Worker {
        let path = std::env::var_os("GIMLET_FUZZ_WORKER").map_or_else(
            || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/debug/gimlet-python-worker")),
            PathBuf::from,
        );
        let mut child = Command::new(&path)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| {
                panic!(
                    "{}: {error}\nhint: cargo build -p gimlet-python --ignore-rust-version",
                    path.display()
                )
            });
        let (input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let (send, messages) = channel();
        std::thread::spawn(move || read(output, |message| send.send(message).is_ok()));
        let mut worker = Worker { child, input, messages, ran: 0 };
        worker.send(&json!({
            "type": "start", "seed": 1, "epoch_ms": 0, "imports": ["*"],
            "tools": [{"name": "echo", "description": "", "input": {"properties": {"value": {}}, "required": ["value"]}}],
            "limits": {"wall": {"secs": 1, "nanos": 0}, "memory": 134_217_728, "calls": 50},
        }));
        let ready = worker.messages.recv_timeout(Duration::from_secs(60)).expect("the worker starts");
        assert_eq!(ready["type"], "ready", "{ready}");
        for module in IMPORTS {
            // On a busy machine the limit may cut an import short, again and again; what uses the module then raises.
            let import = format!("import {module}");
            let _there = (0..20).any(|_| matches!(worker.cell(&import), Met::Ended("done")));
        }
        worker
    }

    fn send(&mut self, message: &Value) {
        let body = message.to_string();
        let mut frame = (body.len() as u32).to_le_bytes().to_vec();
        frame.extend_from_slice(body.as_bytes());
        // A worker that is gone shows itself at the next message.
        let _ = self.input.write_all(&frame);
    }

    fn cell(&mut self, code: &str) -> Met {
        self.ran += 1;
        let number = self.ran;
        self.send(&json!({"type": "cell", "number": number, "code": code}));
        loop {
            let message = match self.messages.recv_timeout(PATIENCE) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => return Met::Hang,
                Err(RecvTimeoutError::Disconnected) => return Met::Gone,
            };
            match message["type"].as_str() {
                Some("printed") => {}
                Some("call") => {
                    assert_eq!(message["tool"], "echo", "a tool that was never offered: {message}\n{code}");
                    self.send(
                        &json!({"type": "result", "id": message["id"], "ok": message["args"]["value"]}),
                    );
                }
                Some("ended") => {
                    let end = message["end"]["end"].as_str().unwrap_or_default();
                    let known =
                        ["done", "answer", "raised", "limited"].into_iter().find(|known| *known == end);
                    let how = known.unwrap_or_else(|| panic!("an end that is none: {message}\n{code}"));
                    return if message["health"] == "spent" { Met::Gone } else { Met::Ended(how) };
                }
                _ => panic!("the worker broke its protocol: {message}\n{code}"),
            }
        }
    }

    /// How it died. A signal that means broken memory is a finding; what Rust itself ends is contained.
    fn death(mut self, code: &str) -> &'static str {
        let _ = self.child.kill();
        let status = self.child.wait().expect("it was started");
        match status.signal() {
            // Signal numbers of Linux: SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS.
            Some(signal @ (4 | 5 | 7 | 8 | 11 | 31)) => panic!("signal {signal} from:\n{code}"),
            Some(6) => "aborted: out of memory or of stack",
            Some(_) => "used up its memory",
            None => "panicked",
        }
    }
}

/// Hands every frame on until the pipe closes.
fn read(mut from: impl Read, mut hand: impl FnMut(Value) -> bool) {
    let mut length = [0; 4];
    while from.read_exact(&mut length).is_ok() {
        let mut body = vec![0; u32::from_le_bytes(length) as usize];
        if from.read_exact(&mut body).is_err() || !hand(serde_json::from_slice(&body).unwrap_or(Value::Null))
        {
            return;
        }
    }
}
