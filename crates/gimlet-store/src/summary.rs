//! What a list of runs says about each: a fold over its log.

use std::path::Path;

use gimlet::event::{ActionFormat, Event, EventKind, FinishState, Finished, Started, Suspension};
use gimlet::ids::RunId;
use gimlet::message::Usage;
use gimlet::store::RunStatus;
use jiff::Timestamp;

use crate::log::Lines;

/// How much of a task a list keeps, in characters.
const TASK_CHARS: usize = 200;

/// A run as its log alone tells it, without knowing whether somebody is still writing.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Told {
    pub(crate) started: Option<Timestamp>,
    pub(crate) updated: Option<Timestamp>,
    pub(crate) task: String,
    pub(crate) agent: String,
    pub(crate) model: String,
    pub(crate) action: ActionFormat,
    pub(crate) root: String,
    /// None while the log does not say how it ended.
    pub(crate) ended: Option<RunStatus>,
    pub(crate) steps: u32,
    pub(crate) tokens: u64,
    pub(crate) seconds: f64,
    pub(crate) damage: Option<String>,
}

impl Told {
    /// Folds a log as far as it can be read.
    pub(crate) fn read(log: &Path, run: &RunId) -> Self {
        let mut told = Told::default();
        match Lines::<Event>::open(log, run) {
            Ok(lines) => lines.for_each(|line| match line {
                Ok(event) => told.take(&event),
                Err(error) => told.damage = Some(error.to_string()),
            }),
            Err(error) => told.damage = Some(error.to_string()),
        }
        told
    }

    fn take(&mut self, event: &Event) {
        if !matches!(event.kind, EventKind::RunResumed { .. }) {
            let passed = self.updated.map_or(0.0, |before| event.time.duration_since(before).as_secs_f64());
            self.seconds += passed.max(0.0);
        }
        self.started.get_or_insert(event.time);
        self.updated = Some(event.time);
        match &event.kind {
            EventKind::RunStarted(started) => self.start(started),
            EventKind::RunResumed { root, .. } => {
                self.root.clone_from(root);
                self.ended = None;
            }
            EventKind::StepStarted { step } if event.path.is_root() => self.steps = self.steps.max(*step),
            EventKind::ModelMessage(message) => self.spend(message.usage),
            EventKind::Plan(plan) => self.spend(plan.usage),
            EventKind::ContextCompacted(compacted) => self.spend(compacted.usage),
            EventKind::ActionChanged(change) => self.action = change.action,
            EventKind::RunSuspended { reason } => self.ended = Some(suspended(reason)),
            EventKind::RunFinished(finished) => self.finish(finished),
            EventKind::RunFailed { .. } => self.ended = Some(RunStatus::Failed),
            // A run that is spoken to after it ended is working again.
            EventKind::UserMessage { .. } => self.ended = None,
            EventKind::StepStarted { .. }
            | EventKind::ModelDelta { .. }
            | EventKind::Feedback { .. }
            | EventKind::ToolRequested { .. }
            | EventKind::ToolStarted { .. }
            | EventKind::ToolFinished(_)
            | EventKind::CellStarted { .. }
            | EventKind::CellOutput { .. }
            | EventKind::CellFinished { .. }
            | EventKind::ApprovalRequested(_)
            | EventKind::ApprovalDecided { .. }
            | EventKind::AgentStarted(_)
            | EventKind::AgentFinished(_)
            | EventKind::ModelAsked { .. }
            | EventKind::PlanRequested
            | EventKind::ContextPruned(_)
            | EventKind::GuidedAimed(_)
            | EventKind::GuidedFound(_)
            | EventKind::GuidedLocated(_)
            | EventKind::GuidedEdited(_)
            | EventKind::GuidedChecked(_)
            | EventKind::Warning { .. }
            | EventKind::Unknown => {}
        }
    }

    fn spend(&mut self, usage: Usage) {
        // As far as the index can count, so that a server's nonsense is the same nonsense in every list.
        self.tokens = self.tokens.saturating_add(usage.total()).min(i64::MAX.unsigned_abs());
    }

    fn start(&mut self, started: &Started) {
        self.started = started.forked.or(self.started);
        self.task = started.task.chars().take(TASK_CHARS).collect();
        self.agent.clone_from(&started.agent);
        self.model.clone_from(&started.model);
        self.action = started.action;
        self.root.clone_from(&started.root);
    }

    fn finish(&mut self, finished: &Finished) {
        self.steps = finished.steps;
        self.seconds = finished.seconds;
        self.ended = Some(match finished.state {
            FinishState::Answered => RunStatus::Answered,
            FinishState::MaxSteps
            | FinishState::Timeout
            | FinishState::TokenBudget
            | FinishState::StepBudget
            | FinishState::Repeating => RunStatus::Limited,
            FinishState::Failed => RunStatus::Failed,
        });
    }
}

fn suspended(reason: &Suspension) -> RunStatus {
    match reason {
        Suspension::Approval { approval } => RunStatus::Suspended { approval: approval.clone() },
        Suspension::Interrupted => RunStatus::Interrupted,
        Suspension::Diverged { .. } => RunStatus::Diverged,
    }
}
