//! Old observations give way: each becomes one line that says what it was and where it is kept. The instructions, the
//! task, everything people said and what the model said stay; so do the last steps, as many of three as fit.

use super::Window;
use super::size::{Measured, whole};
use crate::event::{Elided, Pruned};
use crate::message::Message;
use crate::state::{Phase, State};
use gimlet_text::clip;

/// How many of the last steps stay word for word, where they fit.
pub(super) const KEPT_STEPS: u32 = 3;
/// An observation shorter than this is not worth a line that replaces it.
const WORTHWHILE: usize = 300;
/// Least bytes that stay of an observation that is cut to fit.
const LEAST: usize = 400;

/// What an observation's place in the conversation is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The step that brought it.
    pub step: u32,
    /// What it is the result of.
    pub of: String,
    /// What was said behind it in the same message; that stays.
    pub tail: String,
}

/// What must give way before the next request, if old observations are enough for it; none when it fits or cannot be
/// made to fit. `tools` is the size of the tools sent with it.
///
/// More gives way than must, so that it happens seldom: every time costs the server its prefix cache.
pub fn plan(state: &State, window: Window, tools: usize) -> Option<Pruned> {
    let size = whole(&state.messages);
    let now = Measured::correct(state.measured, size, tools);
    let room = window.room();
    if now <= room {
        return None;
    }
    let target = room / 10 * 6;
    let pruned = (1..=KEPT_STEPS).rev().find_map(|kept| {
        let plan = elide(state, window, kept, |freed| {
            let after = Measured::correct(state.measured, size.saturating_sub(freed), tools);
            (after, after <= target)
        });
        plan.filter(|plan| plan.after <= room)
    });
    pruned.map(|plan| Pruned { before: now, ..plan })
}

/// What gives way while the request still fits: everything before the last three steps, once the conversation takes half
/// of its room and a quarter of it would go. A window that is filled to the brim step by step costs more than it brings;
/// but every time costs the server its prefix cache, so it waits for enough to go at once.
pub(super) fn ahead(state: &State, window: Window, tools: usize) -> Option<Pruned> {
    let size = whole(&state.messages);
    let tokens = |bytes: usize| Measured::correct(state.measured, bytes, tools);
    let before = tokens(size);
    if before <= window.room() / 2 {
        return None;
    }
    let plan = elide(state, window, KEPT_STEPS, |freed| (tokens(size.saturating_sub(freed)), false))?;
    (plan.after <= before / 4 * 3).then_some(Pruned { before, ..plan })
}

/// Every old observation, for when the server itself said that the conversation does not fit, or a person wants room.
pub fn everything(state: &State, window: Option<Window>) -> Option<Pruned> {
    let size = whole(&state.messages);
    let window = window.unwrap_or(Window { tokens: 0, reply: 0, longest_reply: 0 });
    let plan = |kept| {
        elide(state, window, kept, |freed| {
            (Measured::correct(state.measured, size.saturating_sub(freed), 0), false)
        })
    };
    let found = (1..=KEPT_STEPS).rev().find_map(plan)?;
    Some(Pruned { before: Measured::correct(state.measured, size, 0), ..found })
}

/// The last resort: what the last steps brought is cut, the longest first, as far as needed.
pub(super) fn cut(state: &State, window: Window, tools: usize) -> Option<Pruned> {
    let size = whole(&state.messages);
    let tokens = |bytes: usize| Measured::correct(state.measured, bytes, tools);
    let mut longest: Vec<(usize, &Observation, &str)> = state
        .observations
        .iter()
        .filter_map(|(&place, observation)| Some((place, observation, own_text(state, place, observation)?)))
        .filter(|(_, _, text)| text.len() > LEAST * 2)
        .collect();
    longest.sort_by_key(|(place, _, text)| (std::cmp::Reverse(text.len()), *place));
    let mut plan =
        Pruned { before: tokens(size), after: 0, window: window.tokens, kept_steps: 0, elided: Vec::new() };
    let mut freed = 0;
    for (message, observation, text) in longest {
        // How much of this one can stay: bytes are searched for, since only their tokens are known.
        let stays = |kept: usize| {
            let elided = elided(message, observation, text, kept);
            (freed + text.len().saturating_sub(shown(&elided, text).len()), elided)
        };
        let fits = |freed: usize| tokens(size.saturating_sub(freed)) <= window.room();
        let mut kept = text.len() / 2;
        while kept > LEAST && !fits(stays(kept).0) {
            kept /= 2;
        }
        let (now, elided) = stays(kept.max(LEAST));
        freed = now;
        plan.elided.push(elided);
        if fits(freed) {
            break;
        }
    }
    plan.after = tokens(size.saturating_sub(freed));
    (freed > 0).then_some(plan)
}

/// Elides from the oldest on until `enough` says so; none when nothing can be elided.
fn elide(state: &State, window: Window, kept: u32, enough: impl Fn(usize) -> (u64, bool)) -> Option<Pruned> {
    let mut plan =
        Pruned { before: 0, after: 0, window: window.tokens, kept_steps: kept, elided: Vec::new() };
    // Between two steps the last one is over; after an answer, that was the last.
    let coming = if state.phase == Phase::Ready { state.step + 1 } else { state.step };
    let mut freed = 0;
    for (&message, observation) in &state.observations {
        if observation.step + kept >= coming {
            continue;
        }
        let Some(text) = own_text(state, message, observation) else { continue };
        if text.len() < WORTHWHILE {
            continue;
        }
        let elided = elided(message, observation, text, 0);
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

/// The text of an observation without what was said behind it.
pub(crate) fn own_text<'a>(state: &'a State, message: usize, observation: &Observation) -> Option<&'a str> {
    match state.messages.get(message)?.as_ref() {
        Message::User { text } | Message::Tool { text, .. } | Message::Assistant { text, .. } => {
            Some(text.strip_suffix(observation.tail.as_str()).unwrap_or(text).trim_end())
        }
        Message::System { .. } => None,
    }
}

fn elided(message: usize, observation: &Observation, text: &str, kept: usize) -> Elided {
    let begins = text.split_whitespace().collect::<Vec<_>>().join(" ");
    Elided {
        message,
        step: observation.step,
        of: observation.of.clone(),
        chars: text.chars().count(),
        begins: clip(&begins, 40),
        kept,
    }
}

/// What stands for an observation that gave way: one line, or its beginning.
pub(crate) fn shown(elided: &Elided, text: &str) -> String {
    match elided.kept {
        0 => stub(elided),
        kept => {
            let end = text.floor_char_boundary(kept);
            format!(
                "[elided to save room: all but the beginning of {}, {} characters; ask for less at a time]\n{}",
                elided.of,
                elided.chars,
                &text[..end]
            )
        }
    }
}

/// The line that stands for an elided observation.
fn stub(elided: &Elided) -> String {
    let Elided { of, step, chars, begins, .. } = elided;
    format!(
        "[elided to save room: {of} in step {step}, {chars} characters, “{begins}”; the run's log has it, look again if \
         you need it]"
    )
}
