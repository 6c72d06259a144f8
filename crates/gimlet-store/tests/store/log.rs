//! The log: what is written comes back, in order; what is torn is mended; what is damaged is named.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use gimlet::approval::{ApprovalRequest, Decision, Scope};
use gimlet::cell::{CellEnd, Stream};
use gimlet::effect::Effect;
use gimlet::event::{
    EventKind, Failure, FeedbackReason, FinishState, ModelMessage, RequestedCall, Suspension, ToolFinished,
};
use gimlet::limits::Limits;
use gimlet::message::{Finish, Thinking, ToolCall, Usage};
use gimlet::store::{BlobId, Blobs, Catalog, OpenedRun, Repair, RunLog, StoreError};
use gimlet_store::FileStore;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{event, finished, left, run, started, warning, write};

fn every_kind() -> Vec<EventKind> {
    let EventKind::RunStarted(sub_agent) = started("a part of it") else { unreachable!() };
    vec![
        started("line one\nline two \u{1F980}"),
        EventKind::RunResumed {
            version: "0.2.0".into(),
            root: "/p".into(),
            limits: Limits::default(),
            plan: Default::default(),
        },
        EventKind::StepStarted { step: 1 },
        EventKind::ModelDelta { step: 1, text: "Hm".into(), thinking: String::new() },
        EventKind::ModelMessage(ModelMessage {
            step: 1,
            text: "I look.".into(),
            thinking: vec![Thinking { text: "so".into(), signature: Some("sig".into()) }],
            tool_calls: vec![ToolCall {
                id: "c1".into(),
                name: "read_file".into(),
                args: json!({"path": "a"}),
            }],
            usage: Usage { input: 7, output: 3, cached: 2, reasoning: 1 },
            finish: Finish::ToolCalls,
            model: "m".into(),
            seconds: 0.25,
            ..ModelMessage::default()
        }),
        EventKind::Feedback { reason: FeedbackReason::Malformed, text: "so:".into() },
        EventKind::UserMessage { text: "also this".into() },
        EventKind::ToolRequested {
            call: RequestedCall {
                id: "c1".into(),
                tool: "t".into(),
                args: json!({"id": 5, "n": -1.5}),
                cell: Some(0),
            },
        },
        EventKind::ToolStarted {
            id: "c1".into(),
            tool: "t".into(),
            effects: vec![Effect::Run { command: "ls".into(), cwd: "sub".into() }],
        },
        EventKind::ToolFinished(ToolFinished {
            id: "c1".into(),
            tool: "t".into(),
            ok: false,
            result: json!({"error": "E", "context": {}}),
            truncated: true,
            stored: vec![BlobId::of(b"x")],
            seconds: 0.5,
        }),
        EventKind::CellStarted { cell: 0, code: "print(1)".into() },
        EventKind::CellOutput { cell: 0, text: "1\n".into(), stream: Stream::Stderr },
        EventKind::CellFinished {
            cell: 0,
            end: CellEnd::Answer { value: json!([1, null]) },
            observation: "1".into(),
            truncated: false,
            variables: Vec::new(),
            seconds: 0.125,
        },
        EventKind::ApprovalRequested(ApprovalRequest {
            id: "q1".into(),
            run: "r".parse().unwrap(),
            binding: "b".into(),
            call: "c1".into(),
            asker: String::new(),
            tool: "t".into(),
            args: json!({}),
            effects: vec![Effect::Network { host: "example.org".into() }],
            reason: "it leaves the machine".into(),
            asking: Default::default(),
            preview: Some("-a\n+b".into()),
            editable: false,
        }),
        EventKind::ApprovalDecided { id: "q1".into(), decision: Decision::Approve { scope: Scope::Session } },
        EventKind::AgentStarted(sub_agent),
        EventKind::AgentFinished(finished(FinishState::Failed)),
        warning("careful"),
        EventKind::RunSuspended { reason: Suspension::Approval { approval: "q1".into() } },
        EventKind::RunFinished(finished(FinishState::MaxSteps)),
        EventKind::RunFailed { error: Failure { error: "E".into(), message: "m".into(), hint: None } },
    ]
}

#[tokio::test]
async fn every_kind_of_event_comes_back() {
    let home = tempfile::tempdir().unwrap();
    let written = left(home.path(), "all-kinds", every_kind()).await;
    let store = FileStore::open(home.path()).unwrap();
    assert_eq!(store.load(&run("all-kinds")).await.unwrap(), written);
    let opened = store.open(&run("all-kinds")).await.unwrap();
    assert_eq!(opened, OpenedRun { events: written.len() as u64, repair: Repair::Clean });
}

#[tokio::test]
async fn an_event_of_a_later_version_is_kept() {
    let home = tempfile::tempdir().unwrap();
    left(home.path(), "later", vec![started("t")]).await;
    let store = FileStore::open(home.path()).unwrap();
    let path = store.log_path(&run("later"));
    let line =
        r#"{"run":"later","seq":2,"time":"2026-01-01T00:00:00Z","type":"of.another.day","steps":[{"a":1}]}"#;
    fs::write(&path, fs::read_to_string(&path).unwrap() + line + "\n").unwrap();
    let events = store.load(&run("later")).await.unwrap();
    assert_eq!(events[1].kind, EventKind::Unknown);
    store.append(&event(&run("later"), 3, warning("and on"))).await.unwrap();
    assert!(fs::read_to_string(&path).unwrap().contains(line), "the line is left as it was");
}

#[tokio::test]
async fn long_and_deep_events_come_back() {
    let home = tempfile::tempdir().unwrap();
    // As deep as the parser lets a model's arguments be, and then the event around them.
    let deep: Value = serde_json::from_str(&("[".repeat(127) + &"]".repeat(127))).unwrap();
    let call = RequestedCall { id: "c".into(), tool: "t".into(), args: deep, cell: None };
    let kinds =
        vec![started("t"), warning(&"x".repeat(1 << 20)), EventKind::ToolRequested { call }, warning("end")];
    let written = left(home.path(), "long", kinds).await;
    let store = FileStore::open(home.path()).unwrap();
    assert!(store.load(&run("long")).await.unwrap() == written);

    let too_deep = (0..400).fold(Value::Null, |inner, _| Value::from(vec![inner]));
    let call = RequestedCall { id: "c".into(), tool: "t".into(), args: too_deep, cell: None };
    let refused = store.append(&event(&run("long"), 5, EventKind::ToolRequested { call })).await;
    assert!(refused.unwrap_err().to_string().contains("nests deeper"));
    store.append(&event(&run("long"), 5, warning("nothing was written"))).await.unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    #[test]
    fn a_last_line_torn_anywhere_is_mended(first in ".{0,30}", last in ".{0,30}") {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let home = tempfile::tempdir().unwrap();
            let id = run("torn");
            let written = left(home.path(), "torn", vec![started(&first), warning(&first), warning(&last)]).await;
            let store = FileStore::open(home.path()).unwrap();
            let path = store.log_path(&id);
            let whole = fs::read(&path).unwrap();
            let kept = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
            for end in kept..whole.len() {
                fs::write(&path, &whole[..end]).unwrap();
                assert_eq!(store.load(&id).await.unwrap(), written[..2]);
                let bytes = (end - kept) as u64;
                let repair = if bytes == 0 { Repair::Clean } else { Repair::TornLine { bytes } };
                assert_eq!(store.open(&id).await.unwrap(), OpenedRun { events: 2, repair });
                store.append(&written[2]).await.unwrap();
                store.close(&id);
                assert_eq!(fs::read(&path).unwrap(), whole);
            }
        });
    }
}

/// What a file system may leave after a power cut: the new length, and nothing written.
#[tokio::test]
async fn a_tail_of_zeros_is_a_torn_line() {
    let home = tempfile::tempdir().unwrap();
    let written = left(home.path(), "zeros", vec![started("t"), warning("w")]).await;
    let store = FileStore::open(home.path()).unwrap();
    let path = store.log_path(&run("zeros"));
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend([0; 4096]);
    fs::write(&path, bytes).unwrap();
    assert_eq!(store.load(&run("zeros")).await.unwrap(), written);
    let opened = store.open(&run("zeros")).await.unwrap();
    assert_eq!(opened.repair, Repair::TornLine { bytes: 4096 });
}

async fn damage_of(home: &Path, change: impl Fn(&mut Vec<String>)) -> [StoreError; 2] {
    let id = run("damaged");
    let _ = fs::remove_dir_all(home.join("runs/damaged"));
    left(home, "damaged", vec![started("t"), warning("two"), warning("three"), warning("four")]).await;
    let store = FileStore::open(home).unwrap();
    let path = store.log_path(&id);
    let mut lines: Vec<String> = fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
    change(&mut lines);
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let before = fs::read(&path).unwrap();
    let errors = [store.load(&id).await.unwrap_err(), store.open(&id).await.unwrap_err()];
    assert_eq!(fs::read(&path).unwrap(), before, "a damaged log is left alone");
    errors
}

fn is_damage(error: &StoreError, expected: usize, part: &str) -> bool {
    matches!(error, StoreError::Corrupt { path, line, reason }
        if path.ends_with("damaged/log.jsonl") && *line == expected && reason.contains(part))
}

#[tokio::test]
async fn damage_elsewhere_is_named_with_its_line() {
    let home = tempfile::tempdir().unwrap();
    type Change = fn(&mut Vec<String>);
    let cases: [(Change, usize, &str); 7] = [
        (|lines| lines[1].truncate(20), 2, "EOF"),
        (|lines| lines[1].clear(), 2, "EOF"),
        (|lines| lines[2].push('}'), 3, "trailing"),
        (|lines| drop(lines.remove(1)), 2, "event 2 is expected and 3 is there"),
        (|lines| lines.insert(2, lines[1].clone()), 3, "event 3 is expected and 2 is there"),
        (|lines| lines[2] = lines[2].replace("damaged", "another"), 3, "it belongs to run `another`"),
        // The last line is whole, so it was acknowledged: it is not thrown away.
        (|lines| lines[3].truncate(9), 4, "EOF"),
    ];
    for (change, line, part) in cases {
        for error in damage_of(home.path(), change).await {
            assert!(is_damage(&error, line, part), "expected line {line} and {part:?}: {error}");
        }
    }
}

#[tokio::test]
async fn a_run_has_one_writer() {
    let home = tempfile::tempdir().unwrap();
    let (first, second) = (FileStore::open(home.path()).unwrap(), FileStore::open(home.path()).unwrap());
    let id = run("mine");
    let locked =
        |result: Result<OpenedRun, StoreError>| matches!(result, Err(StoreError::Locked(run)) if run == id);
    write(&first, &id, vec![started("t")]).await.unwrap();
    assert!(locked(second.open(&id).await));
    assert!(locked(first.open(&id).await), "the same store does not open a run twice either");
    let appended = second.append(&event(&id, 2, warning("w"))).await;
    assert!(matches!(appended, Err(StoreError::Locked(_))));
    assert_eq!(second.load(&id).await.unwrap().len(), 1, "reading needs no lock");

    first.close(&id);
    second.open(&id).await.unwrap();
    assert!(locked(first.open(&id).await));
    drop(second);
    first.append(&event(&id, 2, warning("w"))).await.unwrap();
}

#[tokio::test]
async fn a_gap_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let store = FileStore::open(home.path()).unwrap();
    let id = run("gap");
    let refused = store.append(&event(&id, 5, warning("w"))).await;
    assert!(matches!(refused, Err(StoreError::NoSuchRun(_))));
    assert!(!home.path().join("runs/gap").exists());
    write(&store, &id, vec![started("t"), warning("w")]).await.unwrap();
    for seq in [0, 1, 2, 4, 99] {
        let error = store.append(&event(&id, seq, warning("w"))).await.unwrap_err();
        assert_eq!(error.to_string(), format!("run `gap`: event {seq} cannot follow event 2"));
    }
    store.append(&event(&id, 3, warning("w"))).await.unwrap();
    assert_eq!(store.load(&id).await.unwrap().len(), 3);

    // An id that was given twice does not add to the other run, nor hold its lock.
    let other = FileStore::open(home.path()).unwrap();
    store.close(&id);
    other.append(&event(&id, 1, started("another task"))).await.unwrap_err();
    store.open(&id).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_order_of_calls_is_the_order_of_the_log() {
    let home = tempfile::tempdir().unwrap();
    let store = Arc::new(FileStore::open(home.path()).unwrap());
    let id = run("crowd");
    let calls = Arc::new(Mutex::new(Vec::new()));
    let tasks: Vec<_> = (0..16)
        .map(|task| {
            let (store, calls, id) = (store.clone(), calls.clone(), id.clone());
            tokio::spawn(async move {
                for nr in 0..25 {
                    let appended = {
                        let mut calls = calls.lock().unwrap();
                        let seq = calls.len() as u64 + 1;
                        let kind = match (seq, nr % 12) {
                            (1, _) => started("t"),
                            (_, 11) => EventKind::RunSuspended { reason: Suspension::Interrupted },
                            (_, _) => warning(&format!("{task}.{nr}")),
                        };
                        calls.push(event(&id, seq, kind));
                        store.append(&calls[calls.len() - 1])
                    };
                    appended.await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let calls = calls.lock().unwrap().clone();
    assert_eq!(calls.len(), 400);
    assert_eq!(store.load(&id).await.unwrap(), calls);
}

#[tokio::test]
async fn a_run_that_never_began_is_no_run() {
    let home = tempfile::tempdir().unwrap();
    let store = FileStore::open(home.path()).unwrap();
    for (name, log) in [("empty", ""), ("torn-first", "{\"run\":")] {
        fs::create_dir(home.path().join("runs").join(name)).unwrap();
        fs::write(store.log_path(&run(name)), log).unwrap();
        assert!(matches!(store.load(&run(name)).await, Err(StoreError::NoSuchRun(_))));
        assert!(matches!(store.open(&run(name)).await, Err(StoreError::NoSuchRun(_))));
        write(&store, &run(name), vec![started("t")]).await.unwrap();
        assert_eq!(store.load(&run(name)).await.unwrap().len(), 1);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read() {
    use std::os::unix::fs::PermissionsExt;
    let outer = tempfile::tempdir().unwrap();
    let home = outer.path().join("state/gimlet");
    left(&home, "private", vec![started("t")]).await;
    let store = FileStore::open(&home).unwrap();
    store.put(b"secret").await.unwrap();
    store.list(1).await.unwrap();
    gimlet_store::Approvals::open(&home).unwrap();
    let mut folders = vec![home];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        assert_eq!(
            fs::metadata(&folder).unwrap().permissions().mode() & 0o777,
            0o700,
            "{}",
            folder.display()
        );
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                assert_eq!(
                    fs::metadata(&path).unwrap().permissions().mode() & 0o777,
                    0o600,
                    "{}",
                    path.display()
                );
                files += 1;
            }
        }
    }
    assert_eq!(files, 7, "log, lock, blob, index and its lock, door, approvals");
}
