//! What happens before a request so that it fits the model's window: old observations give way, then old steps, and at
//! last the length of what the last step brought. What cannot be made to fit is not sent.

use super::size::{Measured, bytes, whole};
use super::{Window, prune, summary};
use crate::event::Pruned;
use crate::message::Message;
use crate::state::State;

/// The next thing that makes room.
#[derive(Debug, Clone, PartialEq)]
pub enum Relief {
    /// The request fits.
    Fits,
    /// Observations give way.
    Prune(Pruned),
    /// Old steps give way to a summary.
    Compact(Compaction),
    /// Nothing can give way any more.
    Hopeless {
        /// Tokens of the request.
        tokens: u64,
        /// Tokens there is room for.
        room: u64,
    },
}

/// Which steps a summary takes the place of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compaction {
    /// The messages from the second to before this one give way.
    pub until: usize,
    /// How long what stands for them may be, in bytes.
    pub most: usize,
    /// The conversation before, in tokens.
    pub before: u64,
    /// The window it is made for.
    pub window: Window,
}

impl Compaction {
    /// How much the old steps are once observations gave way, in tokens. A former summary is none of them: another one
    /// would not be shorter.
    fn old(&self, state: &State, pruned: &Pruned) -> u64 {
        let old = state.messages.get(2..self.until).unwrap_or_default();
        Measured::correct(state.measured, whole(old), 0).saturating_sub(pruned.before - pruned.after)
    }

    /// Whether a summary is likely to be shorter than what it stands for.
    pub(crate) fn is_worthwhile(&self, state: &State) -> bool {
        const LEAST: usize = 3000;
        state.messages.get(1..self.until).is_some_and(|old| whole(old) > LEAST)
    }
}

/// What makes room before the next request. `extra` is the size of what goes with the messages, in bytes.
pub fn next_relief(state: &State, window: Window, extra: usize) -> Relief {
    let room = window.room();
    let tokens = Measured::correct(state.measured, whole(&state.messages), extra);
    if tokens <= room {
        return prune::ahead(state, window, extra).map_or(Relief::Fits, Relief::Prune);
    }
    let pruned = prune::plan(state, window, extra);
    match (pruned, compaction(state, window, extra)) {
        // Pruning that leaves little room would have to be done again at once; but if it is not the old steps that take
        // the room, a summary of them would not help.
        (Some(pruned), Some(compaction))
            if pruned.after > room / 10 * 8 && compaction.old(state, &pruned) > room / 4 =>
        {
            Relief::Compact(compaction)
        }
        (Some(pruned), _) => Relief::Prune(pruned),
        (None, Some(compaction)) => Relief::Compact(compaction),
        (None, None) => match prune::cut(state, window, extra) {
            Some(cut) => Relief::Prune(cut),
            None => Relief::Hopeless { tokens, room },
        },
    }
}

/// Old steps that can give way: all but the last three, or fewer where those are large. None when there are none.
pub fn compaction(state: &State, window: Window, extra: usize) -> Option<Compaction> {
    let (first, rest) = state.messages.split_first()?;
    let tokens = |size: usize| Measured::correct(state.measured, size, extra);
    let room = window.room();
    let replies: Vec<usize> = (0..state.messages.len())
        .filter(|at| matches!(state.messages[*at].as_ref(), Message::Assistant { .. }))
        .collect();
    let mut found = None;
    for kept in (1..=prune::KEPT_STEPS as usize).rev() {
        // A reply must give way, else nothing is gained.
        let Some(&until) =
            replies.len().checked_sub(kept).filter(|at| *at > 0).and_then(|at| replies.get(at))
        else {
            continue;
        };
        let stays = bytes(first) + whole(&rest[until - 1..]);
        let comfortable = tokens(stays) <= room / 10 * 8;
        let target = if comfortable { room / 10 * 9 } else { room };
        // The longest text that fits, found by trying: only its tokens are known.
        let mut most = whole(&rest[..until - 1]);
        while most > 400 && tokens(stays + most) > target {
            most = most / 8 * 7;
        }
        found = Some(Compaction { until, most, before: tokens(whole(&state.messages)), window });
        if comfortable {
            break;
        }
    }
    found
}

/// The conversation after a summary of these steps, in tokens.
pub(crate) fn after(state: &State, compaction: &Compaction, text: &str, extra: usize) -> u64 {
    let rest = state.messages.get(compaction.until..).unwrap_or_default();
    let size =
        state.messages.first().map_or(0, |first| bytes(first)) + bytes(&Message::user(text)) + whole(rest);
    Measured::correct(state.measured, size, extra)
}

/// The window of a model that nobody knows the window of, when its server says that it is full: a little less than what
/// was sent.
pub(crate) fn guessed(state: &State) -> Window {
    let tokens = Measured::correct(state.measured, whole(&state.messages), 0) / 10 * 8;
    Window { tokens: u32::try_from(tokens).unwrap_or(u32::MAX), reply: 0, longest_reply: 0 }
}

/// What the model is asked when steps give way.
pub(crate) fn question(state: &State, compaction: &Compaction) -> String {
    summary::question(state, compaction.window)
}
