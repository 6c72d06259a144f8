//! Lists of runs: the same with an index, without one, and with a bad one.

use std::fs::{self, File};
use std::path::Path;

use gimlet::event::{
    ActionFormat, AgentPath, Event, EventKind, Failure, FinishState, ModelMessage, Suspension,
};
use gimlet::limits::Limits;
use gimlet::message::Usage;
use gimlet::store::{Catalog, FindError, RunLog, RunStatus, RunSummary};
use gimlet_store::FileStore;

use crate::support::{at, event, finished, left, run, started, warning};

fn suspended(reason: Suspension) -> EventKind {
    EventKind::RunSuspended { reason }
}

fn resumed(root: &str) -> EventKind {
    EventKind::RunResumed {
        version: "0.1.0".into(),
        root: root.into(),
        limits: Limits::default(),
        plan: Default::default(),
    }
}

fn reply(input: u64, output: u64) -> EventKind {
    let usage = Usage { input, output, ..Usage::default() };
    EventKind::ModelMessage(ModelMessage { usage, ..ModelMessage::default() })
}

fn failed() -> EventKind {
    EventKind::RunFailed { error: Failure { error: "E".into(), message: "m".into(), hint: None } }
}

async fn fill(home: &Path) {
    let approval = || Suspension::Approval { approval: "q1".into() };
    let end = |state| EventKind::RunFinished(finished(state));
    for (name, last) in [
        ("answered", vec![end(FinishState::Answered)]),
        ("steps", vec![end(FinishState::MaxSteps)]),
        ("time", vec![end(FinishState::Timeout)]),
        ("tokens", vec![end(FinishState::TokenBudget)]),
        ("together", vec![end(FinishState::StepBudget)]),
        ("failed", vec![failed()]),
        ("asks", vec![suspended(approval())]),
        ("stopped", vec![suspended(Suspension::Interrupted)]),
        ("diverged", vec![suspended(Suspension::Diverged { message: "x".into() })]),
        ("crashed", vec![]),
        ("resumed", vec![suspended(approval()), resumed("/p")]),
    ] {
        left(home, name, [vec![started("task")], last].concat()).await;
    }
}

fn status(runs: &[RunSummary], name: &str) -> RunStatus {
    runs.iter().find(|found| found.id == run(name)).unwrap().status.clone()
}

#[tokio::test]
async fn a_list_says_where_each_run_stands() {
    let home = tempfile::tempdir().unwrap();
    fill(home.path()).await;
    let store = FileStore::open(home.path()).unwrap();
    let runs = store.list(100).await.unwrap();
    assert_eq!(runs.len(), 11);
    for (name, expected) in [
        ("answered", RunStatus::Answered),
        ("steps", RunStatus::Limited),
        ("time", RunStatus::Limited),
        ("tokens", RunStatus::Limited),
        ("together", RunStatus::Limited),
        ("failed", RunStatus::Failed),
        ("asks", RunStatus::Suspended { approval: "q1".into() }),
        ("stopped", RunStatus::Interrupted),
        ("diverged", RunStatus::Diverged),
        ("crashed", RunStatus::Crashed),
        ("resumed", RunStatus::Crashed),
    ] {
        assert_eq!(status(&runs, name), expected, "{name}");
    }

    store.open(&run("resumed")).await.unwrap();
    let other = FileStore::open(home.path()).unwrap();
    assert_eq!(status(&other.list(100).await.unwrap(), "resumed"), RunStatus::Running);
    other.open(&run("crashed")).await.unwrap();
    assert_eq!(status(&store.list(100).await.unwrap(), "crashed"), RunStatus::Running);
    drop(other);
    assert_eq!(status(&store.list(100).await.unwrap(), "crashed"), RunStatus::Crashed);
}

#[tokio::test]
async fn a_summary_is_what_the_log_says() {
    let home = tempfile::tempdir().unwrap();
    let store = FileStore::open(home.path()).unwrap();
    let id = run("20260101-000000-abcdef");
    let step = |step| EventKind::StepStarted { step };
    let main = AgentPath::default();
    let sub = main.child("helper", "c1");
    let task = "ü".repeat(300);
    // Two seconds of work, a pause of a thousand, three more.
    let told = [
        (0, &main, started(&task)),
        (1, &main, step(1)),
        (1, &sub, step(7)),
        (1, &sub, reply(100, 1)),
        (2, &main, reply(10, 2)),
        (2, &main, suspended(Suspension::Interrupted)),
        (1002, &main, resumed("/elsewhere")),
        (1003, &main, step(2)),
        (1005, &main, reply(1000, u64::MAX)),
    ];
    for (seq, (seconds, path, kind)) in (1..).zip(told) {
        let event = Event { time: at(seconds), path: path.clone(), ..event(&id, seq, kind) };
        store.append(&event).await.unwrap();
    }
    let expected = RunSummary {
        id: id.clone(),
        started: at(0),
        updated: at(1005),
        task: "ü".repeat(200),
        agent: "main".into(),
        model: "scripted/demo".into(),
        action: ActionFormat::Code,
        root: "/elsewhere".into(),
        status: RunStatus::Running,
        steps: 2,
        tokens: i64::MAX.unsigned_abs(),
        seconds: 5.0,
        log_bytes: fs::metadata(store.log_path(&id)).unwrap().len(),
        damage: None,
    };
    assert_eq!(store.list(1).await.unwrap(), std::slice::from_ref(&expected), "from the log");
    assert_eq!(store.list(1).await.unwrap(), [expected], "from the index");

    store.append(&event(&id, 10, EventKind::RunFinished(finished(FinishState::Answered)))).await.unwrap();
    let done = store.list(1).await.unwrap().remove(0);
    assert_eq!((done.status, done.steps, done.seconds), (RunStatus::Answered, 3, 1.5));
}

#[tokio::test]
async fn an_index_kept_up_to_date_equals_one_built_anew() {
    let home = tempfile::tempdir().unwrap();
    let store = FileStore::open(home.path()).unwrap();
    fill(home.path()).await;
    store.list(1).await.unwrap();
    left(home.path(), "later", vec![started("t"), reply(5, 5), warning("w")]).await;
    store.list(1).await.unwrap();
    store.append(&event(&run("asks"), 3, resumed("/q"))).await.unwrap();
    fs::remove_dir_all(home.path().join("runs/failed")).unwrap();
    let kept = store.list(100).await.unwrap();
    assert_eq!(kept.len(), 11);
    assert_eq!(status(&kept, "asks"), RunStatus::Running);

    let index = home.path().join("index.sqlite");
    fs::remove_file(&index).unwrap();
    assert_eq!(store.list(100).await.unwrap(), kept);
    assert!(index.exists());
}

#[tokio::test]
async fn a_bad_index_is_replaced_without_a_word() {
    let home = tempfile::tempdir().unwrap();
    fill(home.path()).await;
    let store = FileStore::open(home.path()).unwrap();
    let right = store.list(100).await.unwrap();
    let index = home.path().join("index.sqlite");
    let good = fs::read(&index).unwrap();

    let mut holes = good.clone();
    holes[200..].fill(0x55);
    let mut later = good.clone();
    later[60..64].copy_from_slice(&99u32.to_be_bytes());
    for bad in [b"not a database at all".to_vec(), good[..good.len() / 2].to_vec(), holes, later] {
        fs::write(&index, bad).unwrap();
        assert_eq!(store.list(100).await.unwrap(), right);
        let version = fs::read(&index).unwrap()[60..64].to_vec();
        assert_eq!(version, 1u32.to_be_bytes(), "a good index is there again");
        assert_eq!(store.list(100).await.unwrap(), right);
    }
    // Not even a folder in its place is an error.
    fs::remove_file(&index).unwrap();
    fs::create_dir(&index).unwrap();
    assert_eq!(store.list(100).await.unwrap(), right);
}

#[tokio::test]
async fn an_unchanged_log_is_not_read_again() {
    let home = tempfile::tempdir().unwrap();
    left(home.path(), "same", vec![started("the old task")]).await;
    let store = FileStore::open(home.path()).unwrap();
    assert_eq!(store.list(1).await.unwrap()[0].task, "the old task");

    let log = store.log_path(&run("same"));
    let changed = fs::metadata(&log).unwrap().modified().unwrap();
    fs::write(&log, fs::read_to_string(&log).unwrap().replace("the old task", "the new task")).unwrap();
    let set_time = |time| File::options().write(true).open(&log).unwrap().set_modified(time).unwrap();
    set_time(changed);
    assert_eq!(store.list(1).await.unwrap()[0].task, "the old task", "same size, same time: not looked into");
    set_time(changed + std::time::Duration::from_secs(1));
    assert_eq!(store.list(1).await.unwrap()[0].task, "the new task");
}

#[tokio::test]
async fn a_damaged_run_is_listed_with_its_damage() {
    let home = tempfile::tempdir().unwrap();
    left(home.path(), "good", vec![started("good")]).await;
    left(home.path(), "bad", vec![started("bad"), warning("w"), warning("w")]).await;
    left(home.path(), "worse", vec![started("worse")]).await;
    let store = FileStore::open(home.path()).unwrap();
    let log = store.log_path(&run("bad"));
    fs::write(&log, fs::read_to_string(&log).unwrap().replace("\"seq\":2", "\"seq\":9")).unwrap();
    fs::write(store.log_path(&run("worse")), "nonsense\n").unwrap();
    for _ in 0..2 {
        let runs = store.list(100).await.unwrap();
        assert_eq!(runs.len(), 3);
        let damage = |name: &str| runs.iter().find(|found| found.id == run(name)).unwrap().damage.clone();
        assert_eq!(damage("good"), None);
        assert!(
            damage("bad")
                .unwrap()
                .contains("log.jsonl:2: the log is damaged: event 2 is expected and 9 is there")
        );
        assert!(damage("worse").unwrap().contains("log.jsonl:1: the log is damaged"));
        assert_eq!(runs.iter().find(|found| found.id == run("bad")).unwrap().task, "bad");
    }
}

#[tokio::test]
async fn a_run_is_found_by_what_a_person_types() {
    let home = tempfile::tempdir().unwrap();
    let store = FileStore::open(home.path()).unwrap();
    assert!(matches!(store.find("last", Path::new("/project")).await, Err(FindError::NoRuns)));
    let ids = ["20260101-000000-aaaaaa", "20260101-000000-bbbbbb", "20260202-000000-cccccc", "20260202"];
    for (nr, id) in (0..).zip(ids) {
        // Started in the order of their ids, but for the first, which comes last.
        let time = at(if nr == 0 { 99 } else { nr });
        store.append(&Event { time, ..event(&run(id), 1, started("t")) }).await.unwrap();
    }
    fs::create_dir(home.path().join("runs/20260303-never-began")).unwrap();
    fs::write(home.path().join("runs/README"), "not a run").unwrap();
    let found = async |text: &str| match store.find(text, Path::new("/project")).await {
        Ok(run) => Ok(run.to_string()),
        Err(error) => Err(error.to_string()),
    };
    assert!(matches!(store.find("last", Path::new("/elsewhere")).await, Err(FindError::NoneHere)));
    assert_eq!(found("last").await.unwrap(), ids[0]);
    assert_eq!(found(ids[1]).await.unwrap(), ids[1]);
    assert_eq!(found("bbbbbb").await.unwrap(), ids[1]);
    assert_eq!(found("20260202-").await.unwrap(), ids[2]);
    assert_eq!(found("20260202").await.unwrap(), ids[3], "a whole id is that run, whatever else it begins");
    assert_eq!(found("zzz").await.unwrap_err(), "no run begins or ends with `zzz`");
    assert_eq!(found("").await.unwrap_err(), "no run begins or ends with ``");
    assert_eq!(found("20260303").await.unwrap_err(), "no run begins or ends with `20260303`");
    assert_eq!(
        found("20260101").await.unwrap_err(),
        "`20260101` could be any of 20260101-000000-bbbbbb, 20260101-000000-aaaaaa"
    );
    let newest: Vec<_> = store.list(2).await.unwrap().into_iter().map(|run| run.id.to_string()).collect();
    assert_eq!(newest, [ids[0], ids[3]]);
}
