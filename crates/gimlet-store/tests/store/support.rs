//! Homes, runs and events for the tests, and child processes that are this very program.

use std::path::Path;
use std::process::{Command, Stdio};

use gimlet::event::{ActionFormat, AgentPath, Dialect, Event, EventKind, FinishState, Finished, Started};
use gimlet::ids::RunId;
use gimlet::limits::Limits;
use gimlet::message::Usage;
use gimlet::store::{RunLog, StoreError};
use gimlet_store::FileStore;
use jiff::Timestamp;

pub(crate) fn run(name: &str) -> RunId {
    name.parse().unwrap()
}

/// A fixed moment, some seconds on.
pub(crate) fn at(seconds: u64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + i64::try_from(seconds).unwrap()).unwrap()
}

pub(crate) fn event(run: &RunId, seq: u64, kind: EventKind) -> Event {
    Event { run: run.clone(), seq, time: at(seq), path: AgentPath::default(), kind }
}

pub(crate) fn started(task: &str) -> EventKind {
    EventKind::RunStarted(Started {
        session: Default::default(),
        api_base: None,
        task: task.into(),
        agent: "main".into(),
        model: "scripted/demo".into(),
        model_name: Default::default(),
        action: ActionFormat::Code,
        dialect: Dialect::Native,
        root: "/project".into(),
        limits: Limits::default(),
        plan: Default::default(),
        system: "You solve tasks.".into(),
        tools: vec!["read_file".into()],
        context: String::new(),
        tools_digest: "0123".into(),
        executor: Default::default(),
        version: "0.1.0".into(),
        origin: None,
        forked: None,
    })
}

pub(crate) fn warning(message: &str) -> EventKind {
    EventKind::Warning { message: message.into() }
}

pub(crate) fn finished(state: FinishState) -> Finished {
    Finished {
        answer: "42".into(),
        value: None,
        state,
        steps: 3,
        steps_below: 0,
        usage: Usage { input: 10, output: 5, ..Usage::default() },
        seconds: 1.5,
        work: Default::default(),
        notes: vec![],
    }
}

/// Writes a run from its first event on.
pub(crate) async fn write(
    store: &FileStore,
    run: &RunId,
    kinds: Vec<EventKind>,
) -> Result<Vec<Event>, StoreError> {
    let events: Vec<_> = (1..).zip(kinds).map(|(seq, kind)| event(run, seq, kind)).collect();
    for event in &events {
        store.append(event).await?;
    }
    Ok(events)
}

/// A run that was started by a process that is gone.
pub(crate) async fn left(home: &Path, name: &str, kinds: Vec<EventKind>) -> Vec<Event> {
    let store = FileStore::open(home).unwrap();
    write(&store, &run(name), kinds).await.unwrap()
}

/// This program as another process that runs one of its ignored tests on a home.
pub(crate) fn child(test: &str, home: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(HOME, home).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    command
}

/// The variable that tells a child where to work.
pub(crate) const HOME: &str = "STORE_TEST_HOME";
