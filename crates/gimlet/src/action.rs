//! What to do next: a pure function of the state. Everything the loop decides is decided here.

use serde_json::Value;

use crate::event::{ActionFormat, FeedbackReason, FinishState};
use crate::guided;
use crate::parse;
use crate::plan;
use crate::state::{CallRecord, CallStatus, Phase, State, Stop};

/// The next thing a driver performs.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Ask the model.
    Sample {
        /// The step this is.
        step: u32,
        /// Whether the step is still to be recorded as begun.
        begin: bool,
    },
    /// Ask the model for a plan.
    Plan,
    /// A step of guided work.
    Guided(guided::Step),
    /// Go on in the format of tool calls: the model's code cannot be read.
    FallBack,
    /// Go on with tool calls as text: the model server cannot read the native ones of its model.
    CallsAsText,
    /// Tell the model something.
    Tell {
        /// Why.
        reason: FeedbackReason,
        /// What.
        text: String,
    },
    /// Make these calls; the finished ones are not among them.
    Act(Vec<CallRecord>),
    /// Run code, or carry on with it.
    Execute {
        /// Which cell.
        cell: u32,
        /// The code.
        code: String,
        /// Whether the cell is still to be recorded as begun.
        begin: bool,
    },
    /// Check the answer and end.
    Conclude {
        /// As text.
        answer: String,
        /// As a value, when it is no text.
        value: Option<Value>,
    },
    /// End because a limit is reached, with what there is.
    GiveUp(FinishState),
    /// Nothing: the agent has stopped.
    Rest(Stop),
}

/// What to do next.
pub fn next_action(state: &State) -> Action {
    if let Some(stop) = &state.stop {
        return Action::Rest(stop.clone());
    }
    if state.action == ActionFormat::Guided {
        return guided::next(state);
    }
    match &state.phase {
        Phase::Ready | Phase::Stuck(_) if falls_back(state) => Action::FallBack,
        Phase::Stuck(_) if state.misread > 1 && state.is_native() => Action::CallsAsText,
        Phase::Ready if over_budget(state) => Action::GiveUp(FinishState::TokenBudget),
        Phase::Ready if out_of_steps(state).is_some() && state.closing.is_none() => {
            Action::Tell { reason: FeedbackReason::LastAnswer, text: LAST_ANSWER.into() }
        }
        Phase::Ready if state.repeated >= MOST_REPEATED && state.closing.is_none() => {
            Action::Tell { reason: FeedbackReason::LastAnswer, text: NOTHING_NEW.into() }
        }
        Phase::Ready if plan::is_due(state) => Action::Plan,
        Phase::Planning => Action::Plan,
        Phase::Ready => Action::Sample { step: state.step + 1, begin: true },
        Phase::Sampling => Action::Sample { step: state.step, begin: false },
        Phase::Stuck(reason) => Action::Tell { reason: *reason, text: correction(state, *reason) },
        Phase::Acting => Action::Act(open_calls(&state.calls)),
        Phase::Executing(code) => {
            let running = state.cells.last().filter(|cell| cell.end.is_none());
            let cell = state.cells.len() - usize::from(running.is_some());
            Action::Execute { cell: to_u32(cell), code: code.clone(), begin: running.is_none() }
        }
        Phase::Answering { answer, value } => {
            Action::Conclude { answer: answer.clone(), value: value.clone() }
        }
    }
}

const LAST_ANSWER: &str = "You have used all your steps. Do not call tools any more. Give your best final answer now, from what you know.";

/// What a run is told that only repeats itself.
const NOTHING_NEW: &str = "You only repeat yourself, and nothing new comes of it. Do not call tools any more. Give your best final answer now, from what you know.";

/// So many refused repetitions in a row end a run: what it was told meanwhile has not helped.
const MOST_REPEATED: u32 = 3;

/// Code that could not be read once, after a correction, and after another one under a schema.
fn falls_back(state: &State) -> bool {
    state.action == ActionFormat::Code && state.unread > 2 && state.closing.is_none()
}

/// Whether an agent has spent all tokens it may, those of its sub-agents included.
fn over_budget(state: &State) -> bool {
    state.has_reached(FinishState::TokenBudget, &state.limits)
}

/// The budget that leaves nothing to the agents below one, if one does.
pub(crate) fn spent(state: &State) -> Option<FinishState> {
    first_reached(state, [FinishState::TokenBudget, FinishState::StepBudget])
}

/// The limit that leaves an agent no step of its own but its last answer, if one does.
pub(crate) fn out_of_steps(state: &State) -> Option<FinishState> {
    first_reached(state, [FinishState::MaxSteps, FinishState::StepBudget])
}

fn first_reached(state: &State, limits: [FinishState; 2]) -> Option<FinishState> {
    limits.into_iter().find(|limit| state.has_reached(*limit, &state.limits))
}

pub(crate) fn open_calls(calls: &[CallRecord]) -> Vec<CallRecord> {
    calls.iter().filter(|record| !matches!(record.status, CallStatus::Finished(_))).cloned().collect()
}

/// What the model is told about a reply that cannot be used. The right shape is shown the first time only: a small
/// model's window is too precious to repeat it.
fn correction(state: &State, reason: FeedbackReason) -> String {
    let what = match reason {
        FeedbackReason::Malformed | FeedbackReason::Cut => {
            state.problem.as_deref().unwrap_or("Your reply could not be understood.")
        }
        FeedbackReason::Empty => "Your reply was empty. Act, or give your final answer.",
        FeedbackReason::AnswerRefused | FeedbackReason::AnswerMisshapen | FeedbackReason::LastAnswer => "",
    };
    if state.malformed > 1 || reason == FeedbackReason::Cut {
        return what.to_owned();
    }
    format!("{what}\n{}", parse::right_shape(state.action))
}

fn to_u32(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
