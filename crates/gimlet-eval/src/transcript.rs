//! What happened in a try, as far as it is counted and judged: folded from a run's events, or told by another program in
//! the same words, so that both are held to the same measure.

use gimlet::approval::Decision;
use gimlet::effect::Effect;
use gimlet::event::{Event, EventKind, FinishState};
use gimlet::message::Usage;
use serde::{Deserialize, Serialize};

/// What happened.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Transcript {
    /// The answer.
    pub(crate) answer: String,
    /// How it came to an end.
    pub(crate) ended: Ended,
    /// Why it broke, where it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<Broken>,
    /// Steps taken.
    pub(crate) steps: u32,
    /// Replies of the model.
    pub(crate) replies: u32,
    /// Replies nothing of which could be used.
    pub(crate) parse_failures: u32,
    /// Calls that were refused or answered as going round in circles.
    pub(crate) loops: u32,
    /// Approvals that were asked for.
    pub(crate) approvals: u32,
    /// Of these, refused.
    pub(crate) refused: u32,
    /// Tokens spent.
    pub(crate) tokens: Usage,
    /// Seconds of work.
    pub(crate) seconds: f64,
    /// Tools that were asked for, in order.
    pub(crate) calls: Vec<Call>,
}

/// How a try ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ended {
    /// By an answer.
    Answered,
    /// At a limit of steps, time or tokens; the answer is what it could say.
    Limited,
    /// Something broke.
    #[default]
    Broken,
}

/// Why a try broke.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Broken {
    /// A stable word.
    pub(crate) error: String,
    /// What happened.
    pub(crate) message: String,
}

/// A tool that was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Call {
    /// Its name.
    pub(crate) tool: String,
    /// Whether it did what it was asked for.
    pub(crate) ok: bool,
    /// Commands that really ran.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) commands: Vec<String>,
    /// Pairs the parts of a call while a run is read.
    #[serde(skip)]
    id: String,
}

impl Call {
    /// One that went well.
    pub(crate) fn done(tool: &str, commands: Vec<String>) -> Self {
        Call { tool: tool.into(), ok: true, commands, id: String::new() }
    }
}

impl Transcript {
    /// One that broke.
    pub(crate) fn broken(self, error: &str, message: impl Into<String>) -> Self {
        let broken = Broken { error: error.into(), message: message.into() };
        Transcript { ended: Ended::Broken, error: Some(broken), ..self }
    }

    /// Takes in what happens next in a run.
    pub(crate) fn read(&mut self, event: Event) {
        match event.kind {
            EventKind::ModelMessage(message) => {
                self.replies += 1;
                self.parse_failures += u32::from(message.problem.is_some());
                // A run that breaks has no last event to tell what it cost.
                self.tokens.input += message.usage.input;
                self.tokens.output += message.usage.output;
                self.tokens.cached += message.usage.cached;
                self.tokens.reasoning += message.usage.reasoning;
            }
            EventKind::StepStarted { .. } if event.path.is_root() => self.steps += 1,
            EventKind::ToolRequested { call } => {
                self.calls.push(Call { tool: call.tool, id: call.id, ..Call::default() });
            }
            EventKind::ToolStarted { id, effects, .. } => {
                let commands = effects.into_iter().filter_map(|effect| match effect {
                    Effect::Run { command, .. } => Some(command),
                    Effect::Read { .. }
                    | Effect::Write { .. }
                    | Effect::Network { .. }
                    | Effect::Delegate { .. }
                    | Effect::Remember { .. }
                    | Effect::Opaque { .. } => None,
                });
                if let Some(call) = self.call(&id) {
                    call.commands.extend(commands);
                }
            }
            EventKind::ToolFinished(finished) => {
                self.loops += u32::from(finished.result["loop_detected"] == true);
                if let Some(call) = self.call(&finished.id) {
                    call.ok = finished.ok;
                }
            }
            EventKind::ApprovalRequested(_) => self.approvals += 1,
            EventKind::ApprovalDecided { decision, .. } => match decision {
                Decision::Deny { .. } | Decision::Abort => self.refused += 1,
                Decision::Approve { .. } | Decision::Edit { .. } | Decision::Defer => {}
            },
            EventKind::RunFinished(finished) => {
                self.answer = finished.answer;
                self.steps = finished.steps;
                self.tokens = finished.usage;
                self.seconds = finished.seconds;
                self.ended = match finished.state {
                    FinishState::Answered => Ended::Answered,
                    FinishState::MaxSteps
                    | FinishState::Timeout
                    | FinishState::TokenBudget
                    | FinishState::StepBudget
                    | FinishState::Repeating => Ended::Limited,
                    FinishState::Failed => Ended::Broken,
                };
            }
            EventKind::RunFailed { error } => {
                self.error = Some(Broken { error: error.error, message: error.message });
            }
            EventKind::RunStarted(_)
            | EventKind::RunResumed { .. }
            | EventKind::StepStarted { .. }
            | EventKind::ModelDelta { .. }
            | EventKind::Feedback { .. }
            | EventKind::UserMessage { .. }
            | EventKind::CellStarted { .. }
            | EventKind::CellOutput { .. }
            | EventKind::CellFinished { .. }
            | EventKind::AgentStarted(_)
            | EventKind::AgentFinished(_)
            | EventKind::ContextPruned(_)
            | EventKind::ContextCompacted(_)
            | EventKind::ActionChanged(_)
            | EventKind::GuidedAimed(_)
            | EventKind::GuidedFound(_)
            | EventKind::GuidedLocated(_)
            | EventKind::GuidedEdited(_)
            | EventKind::GuidedChecked(_)
            | EventKind::ModelAsked { .. }
            | EventKind::PlanRequested
            | EventKind::Plan(_)
            | EventKind::Warning { .. }
            | EventKind::RunSuspended { .. }
            | EventKind::Unknown => {}
        }
    }

    fn call(&mut self, id: &str) -> Option<&mut Call> {
        self.calls.iter_mut().rev().find(|call| call.id == id)
    }
}
