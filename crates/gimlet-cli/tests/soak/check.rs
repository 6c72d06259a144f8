//! What must be true of a run, whatever happened to it.

use std::path::Path;

use gimlet::cell::CellEnd;
use gimlet::event::{Event, EventKind};
use gimlet::ids::RunId;
use gimlet::store::{RunLog, StoreError};
use gimlet::tool::code;
use gimlet_store::FileStore;

use crate::story::{ANSWER, MARKS, word};

/// What became of a run's marks, beside being made.
#[derive(Default)]
pub(crate) struct Marks {
    /// Calls of which the model was told that nobody knows what came of them.
    pub(crate) unknown: u64,
    /// Those that are not there.
    pub(crate) unmade: u64,
}

/// Every event that was called safe is in the log, in its place.
pub(crate) async fn assert_nothing_lost(home: &Path, run: &RunId, safe: u64) {
    match load(home, run).await {
        Ok(events) => {
            let left = events.len() as u64;
            assert!(left >= safe, "{run}: {safe} events were safe, {left} are left");
        }
        Err(StoreError::NoSuchRun(_)) if safe == 0 => {}
        Err(error) => panic!("{run}: {error}"),
    }
}

/// The run has answered, and every mark is there once; one of which the model was told that nobody knows, or that its
/// interpreter died before, once or not at all.
pub(crate) async fn assert_effects_once(home: &Path, run: &RunId) -> Marks {
    let events = load(home, run).await.unwrap();
    let answered = events.iter().any(|event| match &event.kind {
        EventKind::RunFinished(finished) => finished.answer == ANSWER,
        _ => false,
    });
    assert!(answered, "{run}: no answer\n{}", outline(&events));
    let made = std::fs::read_to_string(home.join("marks")).unwrap_or_default();
    let mut marks = Marks::default();
    for mark in 0..MARKS {
        let word = word(mark);
        let times = made.lines().filter(|line| *line == word).count();
        let unknown = events.iter().filter(|event| is_unknown(event, &events, &word)).count();
        assert!(unknown <= 1, "{run}: {word} is told as unknown {unknown} times");
        let excused = unknown == 1 || events.iter().any(|event| is_crash(event, &events, &word));
        assert!(
            times == 1 || (times == 0 && excused),
            "{run}: {word} made {times} times\n{}",
            outline(&events)
        );
        marks.unknown += unknown as u64;
        marks.unmade += u64::from(times == 0);
    }
    marks
}

/// Whether the event tells that nobody knows what came of the call that makes this mark, which had begun.
fn is_unknown(event: &Event, events: &[Event], word: &str) -> bool {
    let EventKind::ToolFinished(finished) = &event.kind else { return false };
    finished.result["error"] == code::OUTCOME_UNKNOWN
        && events.iter().any(|other| match &other.kind {
            EventKind::ToolStarted { id, .. } => *id == finished.id,
            _ => false,
        })
        && events.iter().any(|other| match &other.kind {
            EventKind::ToolRequested { call } => call.id == finished.id && call.args["word"] == word,
            _ => false,
        })
}

/// Whether the event tells that the interpreter died in the cell that makes this mark.
fn is_crash(event: &Event, events: &[Event], word: &str) -> bool {
    let EventKind::CellFinished { cell, end: CellEnd::Crashed { .. }, .. } = &event.kind else {
        return false;
    };
    events.iter().any(|other| match &other.kind {
        EventKind::CellStarted { cell: started, code } => started == cell && code.contains(word),
        _ => false,
    })
}

/// The log for someone who looks for what went wrong.
fn outline(events: &[Event]) -> String {
    let lines =
        events.iter().filter(|event| !matches!(event.kind, EventKind::ModelDelta { .. })).map(|event| {
            let line = serde_json::to_string(event).unwrap();
            line.chars().take(300).collect::<String>()
        });
    lines.collect::<Vec<_>>().join("\n")
}

async fn load(home: &Path, run: &RunId) -> Result<Vec<Event>, StoreError> {
    FileStore::open(home).unwrap().load(run).await
}
