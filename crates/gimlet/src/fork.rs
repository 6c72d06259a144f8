//! A fork: a new run that shares another's beginning up to a step, and goes its own way from there.
//!
//! It is a copy of events, so it needs nothing that the log does not hold, and the run it came from never notices.
//! What the shared steps did to the world stays done: a fork goes back in the conversation, not in the files.

use jiff::Timestamp;

use crate::event::{Event, EventKind};
use crate::ids::RunId;

/// Why a run cannot be forked there.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ForkError {
    /// Steps count from 1.
    #[error("steps count from 1")]
    Zero,
    /// The run never came that far.
    #[error("the run has {steps} steps; a fork can begin at most at step {}", steps + 1)]
    TooFar {
        /// How many steps it has.
        steps: u32,
    },
}

/// The events of a run before a step, as the beginning of another run.
pub fn fork(events: &[Event], at: u32, id: &RunId, now: Timestamp) -> Result<Vec<Event>, ForkError> {
    if at == 0 {
        return Err(ForkError::Zero);
    }
    let steps = events.iter().filter_map(main_step).max().unwrap_or(0);
    let end = match events.iter().position(|event| main_step(event) == Some(at)) {
        Some(position) => position,
        // One past the last step: everything that led to it, without how the run ended.
        None if at == steps + 1 => {
            events.iter().rposition(|event| !ends(event)).map_or(0, |position| position + 1)
        }
        None => return Err(ForkError::TooFar { steps }),
    };
    Ok(events[..end].iter().map(|event| moved(event, id, now)).collect())
}

fn main_step(event: &Event) -> Option<u32> {
    match event.kind {
        EventKind::StepStarted { step } if event.path.is_root() => Some(step),
        _ => None,
    }
}

fn ends(event: &Event) -> bool {
    matches!(
        event.kind,
        EventKind::RunFinished(_) | EventKind::RunSuspended { .. } | EventKind::RunFailed { .. }
    )
}

/// The same event as one of another run.
fn moved(event: &Event, id: &RunId, now: Timestamp) -> Event {
    let mut event = event.clone();
    match &mut event.kind {
        EventKind::RunStarted(started) | EventKind::AgentStarted(started) => {
            started.origin.get_or_insert_with(|| event.run.clone());
            started.forked = Some(now);
            started.session = None;
        }
        EventKind::ApprovalRequested(request) => request.run = id.clone(),
        _ => {}
    }
    event.run = id.clone();
    event
}
