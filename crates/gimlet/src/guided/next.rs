//! The next step of guided work: a pure function of the state.

use super::Stage;
use crate::action::{Action, open_calls, out_of_steps};
use crate::event::{FinishState, Purpose};
use crate::state::{Phase, State};

/// A step that a driver performs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Ask the model.
    Ask(Purpose),
    /// Read the reply that was received.
    Read(Purpose),
    /// Look for the files.
    Locate,
    /// Read the result of the check.
    Judge,
    /// Go on in the format of tool calls.
    HandOver,
    /// Tell the result and end; with the limit that was reached, if one was.
    Tell(Option<FinishState>),
}

/// The next action of an agent in the guided format that has not stopped.
pub(crate) fn next(state: &State) -> Action {
    if state.phase == Phase::Acting {
        return Action::Act(open_calls(&state.calls));
    }
    let step = match state.guided.stage {
        Stage::Aim => ask(state, Purpose::Aim),
        Stage::Pick => ask(state, Purpose::Pick),
        Stage::Edit => ask(state, Purpose::Edit),
        Stage::Locate => Step::Locate,
        Stage::Judge => Step::Judge,
        Stage::HandOver => Step::HandOver,
        // Calls of these stages are open, or there is nothing to call.
        Stage::Write | Stage::Check | Stage::Restore | Stage::Tell => Step::Tell(None),
    };
    Action::Guided(step)
}

fn ask(state: &State, purpose: Purpose) -> Step {
    if state.guided.reply.is_some() {
        return Step::Read(purpose);
    }
    if state.phase == Phase::Sampling {
        return Step::Ask(purpose);
    }
    let spent =
        state.has_reached(FinishState::TokenBudget, &state.limits).then_some(FinishState::TokenBudget);
    match spent.or_else(|| out_of_steps(state)) {
        Some(limit) => Step::Tell(Some(limit)),
        None => Step::Ask(purpose),
    }
}
