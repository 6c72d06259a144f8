//! Old observations give way: each becomes one line that says what it was and where it is kept. The instructions, the
//! task, everything people said and what the model said stay; so do the last steps, as many of three as fit.

use super::Window;
use super::size::{Measured, bytes};
use crate::event::{Elided, Pruned};
use crate::message::Message;
use crate::state::State;

/// How many of the last steps stay word for word, where they fit.
const KEPT_STEPS: u32 = 3;
/// An observation shorter than this is not worth a line that replaces it.
const WORTHWHILE: usize = 200;

/// What an observation's place in the conversation is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The step that brought it.
    pub step: u32,
    /// What it is the result of.
    pub of: String,
}

/// What is to give way.
pub type Plan = Pruned;

/// What must give way before the next request; none when it fits. `tools` is the size of the tools sent with it.
///
/// More gives way than must, so that it happens seldom: every time costs the server its prefix cache.
pub fn plan(state: &State, window: Window, tools: usize) -> Option<Plan> {
    let size: usize = state.messages.iter().map(|message| bytes(message)).sum();
    let now = Measured::correct(state.measured, size, tools);
    let room = window.room();
    if now <= room {
        return None;
    }
    let target = room / 10 * 6;
    let mut best = None;
    for kept in (1..=KEPT_STEPS).rev() {
        let plan = elide(state, window, kept, |freed| {
            let after = Measured::correct(state.measured, size.saturating_sub(freed), tools);
            (after, after <= target)
        });
        let fits = plan.as_ref().is_some_and(|plan| plan.after <= room);
        best = plan.or(best);
        if fits {
            break;
        }
    }
    best.map(|plan| Plan { before: now, ..plan })
}

/// Everything that can give way, for when the server itself said that the conversation does not fit.
pub fn relief(state: &State, window: Option<Window>) -> Option<Plan> {
    let size: usize = state.messages.iter().map(|message| bytes(message)).sum();
    let window = window.unwrap_or(Window { tokens: 0, reply: 0 });
    let plan = |kept| {
        elide(state, window, kept, |freed| {
            (Measured::correct(state.measured, size.saturating_sub(freed), 0), false)
        })
    };
    let found = (1..=KEPT_STEPS).rev().find_map(plan)?;
    Some(Plan { before: Measured::correct(state.measured, size, 0), ..found })
}

/// Elides from the oldest on until `enough` says so; none when nothing can be elided.
fn elide(state: &State, window: Window, kept: u32, enough: impl Fn(usize) -> (u64, bool)) -> Option<Plan> {
    let mut plan = Plan { before: 0, after: 0, window: window.tokens, kept_steps: kept, elided: Vec::new() };
    let mut freed = 0;
    for (&message, observation) in &state.observations {
        if observation.step + kept >= state.step {
            break;
        }
        let Some(Message::User { text } | Message::Tool { text, .. }) =
            state.messages.get(message).map(AsRef::as_ref)
        else {
            continue;
        };
        if text.len() < WORTHWHILE {
            continue;
        }
        let elided = Elided {
            message,
            step: observation.step,
            of: observation.of.clone(),
            chars: text.chars().count(),
        };
        freed += text.len().saturating_sub(stub(&elided).len());
        plan.elided.push(elided);
        let (after, done) = enough(freed);
        plan.after = after;
        if done {
            break;
        }
    }
    (!plan.elided.is_empty()).then_some(plan)
}

/// The line that stands for an elided observation.
pub fn stub(elided: &Elided) -> String {
    format!(
        "[elided to save room: {} in step {}, {} characters; kept in the run's log, look again if you need it]",
        elided.of, elided.step, elided.chars
    )
}
