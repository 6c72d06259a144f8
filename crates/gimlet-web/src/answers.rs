//! What runs answered, for a search. A log is read again only when it has grown.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gimlet::event::{Event, EventKind};
use gimlet::ids::RunId;
use gimlet::store::{RunSummary, Store};

/// Longer logs are not searched.
const MOST_BYTES: u64 = 8 << 20;
/// Most characters of an answer that are kept.
const MOST_CHARS: usize = 4000;
/// Most answers that are kept; then all are forgotten, since they can be read again.
const MOST_ANSWERS: usize = 4000;

/// Answers by run, each with the size its log had.
#[derive(Default)]
pub(crate) struct Answers {
    known: Mutex<HashMap<RunId, (u64, String)>>,
}

impl Answers {
    /// The last answer of a run; empty where there is none.
    pub(crate) async fn of(&self, run: &RunSummary, store: &dyn Store) -> String {
        let known = self.lock().get(&run.id).filter(|(bytes, _)| *bytes == run.log_bytes).cloned();
        if let Some((_, answer)) = known {
            return answer;
        }
        if run.log_bytes > MOST_BYTES {
            return String::new();
        }
        // A log that cannot be read has no answer to search in.
        let events = store.load(&run.id).await.unwrap_or_default();
        let finished = |event: &Event| match &event.kind {
            EventKind::RunFinished(done) => Some(done.answer.chars().take(MOST_CHARS).collect()),
            _ => None,
        };
        let answer: String = events.iter().rev().find_map(finished).unwrap_or_default();
        let mut known = self.lock();
        if known.len() >= MOST_ANSWERS {
            known.clear();
        }
        known.insert(run.id.clone(), (run.log_bytes, answer.clone()));
        answer
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, (u64, String)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
