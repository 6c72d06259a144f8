//! What servers need of a store: following a log that somebody else writes, lists, names, and answers that are waited for
//! without blocking a thread. The store in memory keeps the same promises.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use gimlet::approval::{ApprovalRequest, Decision, Scope};
use gimlet::store::{Catalog, Inbox, Lease, Line, MemoryStore, RunLog, StoreError};
use gimlet_store::FileStore;
use serde_json::json;

use crate::support::{at, event, run, started, warning};

/// Far longer than anything takes that does not hang.
const PATIENCE: Duration = Duration::from_secs(30);

async fn next(stream: &mut BoxStream<'static, Result<Vec<Line>, StoreError>>) -> Vec<Line> {
    tokio::time::timeout(PATIENCE, stream.next()).await.unwrap().unwrap().unwrap()
}

/// The next lines until there are so many.
async fn gather(stream: &mut BoxStream<'static, Result<Vec<Line>, StoreError>>, count: usize) -> Vec<u64> {
    let mut seen = Vec::new();
    while seen.len() < count {
        seen.extend(next(stream).await.into_iter().map(|line| line.seq));
    }
    seen
}

/// One that writes and one that watches; they share nothing but the home, or the memory.
async fn a_log_is_followed(writes: &dyn RunLog, watches: &dyn RunLog) {
    let id = run("r");
    assert!(matches!(watches.lease(&id).await, Err(StoreError::NoSuchRun(_))));
    writes.append(&event(&id, 1, started("t"))).await.unwrap();
    for seq in 2..=600 {
        writes.append(&event(&id, seq, warning("before"))).await.unwrap();
    }
    let mut all = watches.follow(&id, 0);
    let mut late = watches.follow(&id, 598);
    assert_eq!(gather(&mut all, 600).await, (1..=600).collect::<Vec<u64>>());
    assert_eq!(gather(&mut late, 2).await, [599, 600]);
    writes.append(&event(&id, 601, warning("after"))).await.unwrap();
    for stream in [&mut all, &mut late] {
        let lines = next(stream).await;
        assert_eq!(lines.len(), 1);
        let read: serde_json::Value = serde_json::from_str(&lines[0].json).unwrap();
        assert_eq!((lines[0].seq, &read["message"]), (601, &json!("after")));
    }
    let page = watches.lines(&id, 598, 2).await.unwrap();
    assert_eq!(page.iter().map(|line| line.seq).collect::<Vec<_>>(), [599, 600]);
    assert!(watches.lines(&id, 601, 10).await.unwrap().is_empty());
    assert_eq!(watches.lease(&id).await.unwrap(), Lease::Held);
    writes.close(&id);
    assert_eq!(watches.lease(&id).await.unwrap(), Lease::Free);
    assert_eq!(watches.open(&id).await.unwrap().events, 601);
    assert!(matches!(writes.open(&id).await, Err(StoreError::Locked(_))));
}

async fn lists_are_kept(writes: &dyn RunLog, reads: &dyn RunLog) {
    let id = run("listed");
    writes.append(&event(&id, 1, started("t"))).await.unwrap();
    assert!(reads.entries(&id, "patches").await.unwrap().is_empty());
    writes.add_entry(&id, "patches", json!({ "n": 1 })).await.unwrap();
    writes.add_entry(&id, "patches", json!({ "n": 2 })).await.unwrap();
    writes.add_entry(&id, "notes", json!("other")).await.unwrap();
    assert_eq!(reads.entries(&id, "patches").await.unwrap(), [json!({ "n": 1 }), json!({ "n": 2 })]);
}

#[tokio::test]
async fn a_log_in_files_is_followed_by_whoever_wants() {
    let home = tempfile::tempdir().unwrap();
    let store = || FileStore::open(home.path()).unwrap();
    a_log_is_followed(&store(), &store()).await;
    lists_are_kept(&store(), &store()).await;
}

#[tokio::test]
async fn a_log_in_memory_is_followed_by_whoever_wants() {
    let store = MemoryStore::default();
    a_log_is_followed(&store, &store.clone()).await;
    lists_are_kept(&store, &store.clone()).await;
}

#[tokio::test]
async fn a_list_never_leaves_its_run() {
    let home = tempfile::tempdir().unwrap();
    let store = FileStore::open(home.path()).unwrap();
    let id = run("r");
    store.append(&event(&id, 1, started("t"))).await.unwrap();
    for name in ["log", "", "../r/log", "a/b", "A", "."] {
        assert!(store.add_entry(&id, name, json!(1)).await.is_err(), "{name}");
    }
    assert_eq!(store.load(&id).await.unwrap().len(), 1);
    // The torn end of a list was never acknowledged.
    store.add_entry(&id, "patches", json!(1)).await.unwrap();
    let path = home.path().join("runs/r/patches.jsonl");
    let whole = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{whole}{{\"half")).unwrap();
    assert_eq!(store.entries(&id, "patches").await.unwrap(), [json!(1)]);
}

#[tokio::test]
async fn a_name_stands_for_the_run_it_was_last_given() {
    let home = tempfile::tempdir().unwrap();
    let store = FileStore::open(home.path()).unwrap();
    assert_eq!(store.named("work").await.unwrap(), None);
    store.name("work", &run("one")).await.unwrap();
    store.name("work", &run("two")).await.unwrap();
    assert_eq!(FileStore::open(home.path()).unwrap().named("work").await.unwrap(), Some(run("two")));
    for name in ["../runs", "/etc/passwd", "", ".", ".."] {
        assert!(store.name(name, &run("one")).await.is_err(), "{name}");
    }
}

#[tokio::test]
async fn a_removed_run_takes_its_lists_along() {
    let home = tempfile::tempdir().unwrap();
    let store = FileStore::open(home.path()).unwrap();
    lists_are_kept(&store, &store).await;
    assert!(matches!(store.delete(&run("listed")).await, Err(StoreError::Locked(_))));
    store.close(&run("listed"));
    store.delete(&run("listed")).await.unwrap();
    assert!(!home.path().join("runs/listed").exists());
    assert!(store.find("last", Path::new("/project")).await.is_err());
}

/// On one thread: a wait that blocked it would never see the answer.
#[tokio::test]
async fn an_answer_is_waited_for_without_blocking() {
    let home = tempfile::tempdir().unwrap();
    let asks = Arc::new(FileStore::open(home.path()).unwrap());
    let answers = FileStore::open(home.path()).unwrap();
    let request: ApprovalRequest = serde_json::from_value(json!({
        "id": "q", "of_run": "r", "binding": "b", "call": "c", "tool": "t", "args": {}, "effects": [], "reason": "r"
    }))
    .unwrap();
    asks.ask(&request, "s", at(1)).await.unwrap();
    let waiting = tokio::spawn({
        let asks = asks.clone();
        async move { asks.answered("q", "b").await }
    });
    // One that gives up waiting uses nothing up.
    let gave_up = tokio::time::timeout(Duration::from_millis(1), asks.answered("q", "b")).await;
    assert!(gave_up.is_err());
    assert_eq!(asks.take("q", "b").await.unwrap(), None);
    let yes = Decision::Approve { scope: Scope::Once };
    answers.answer("q", "b", &yes, at(2)).await.unwrap();
    tokio::time::timeout(PATIENCE, waiting).await.unwrap().unwrap().unwrap();
    assert_eq!(asks.take("q", "b").await.unwrap(), Some(yes));
    assert_eq!(asks.take("q", "b").await.unwrap(), None, "an answer is handed out once");
}
