//! Where an agent stands, folded from its events and from nothing else.
//!
//! The conversation is rendered here once, message by message, as events arrive: a step costs what it adds, not what
//! came before, and the messages already sent never change but where `context.pruned`, `context.compacted` or
//! `action.changed` say so.

mod calls;
mod conversation;
mod guided;
mod task;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::approval::Decision;
use crate::context::{Diary, Measured, Observation, Variable};
use crate::effect::Effect;
use crate::event::{
    ActionFormat, AgentPath, Dialect, Event, EventKind, Failure, FeedbackReason, FinishState, Finished,
    Purpose, Started, Suspension,
};
use crate::guided::Guided;
use crate::limits::Limits;
use crate::message::{Message, Usage};
use crate::parse;
use crate::plan::{Plan, Planning};
use crate::work::Work;

pub(crate) use calls::result_text;
pub use calls::{CallRecord, CallStatus, CellRecord};
pub use gimlet_event::work::CallSummary;

/// Where an agent stands.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// How it began; none before its first event.
    pub started: Option<Started>,
    /// What is to be done now: the task it began with, or what the person said after an answer.
    pub task: String,
    /// How many calls of [`history`](State::history) belong to earlier tasks.
    pub before_task: usize,
    /// When it began.
    pub begun: Option<Timestamp>,
    /// The limits in force.
    pub limits: Limits,
    /// When it plans.
    pub planning: Planning,
    /// The plan in force; words without a form are one, too.
    pub plan: Option<Box<Plan>>,
    /// Steps taken when a plan was last asked for in this task.
    pub planned_at: Option<u32>,
    /// Whether the person asked for a plan that was not made yet.
    pub replan: bool,
    /// How it acts.
    pub action: ActionFormat,
    /// How tools and results are written into the conversation.
    pub dialect: Dialect,
    /// The interpreter's variables after the last cell, the latest last.
    pub variables: Vec<Variable>,
    /// What happened, as summaries are made from it.
    pub diary: Diary,
    /// The conversation; append-only between two prunings or summaries.
    pub messages: Vec<Arc<Message>>,
    /// Which messages are observations and nothing else, by their place; elided ones are not among them.
    pub observations: BTreeMap<usize, Observation>,
    /// What the server counted last.
    pub measured: Option<Measured>,
    /// How often the server counted fewer tokens than were sent.
    pub shortfalls: u32,
    /// How many replies in a row could not be read.
    pub unread: u32,
    /// Whether replies are held to a schema, as far as the server can: from the second unreadable one in a row on.
    pub constrained: bool,
    /// Whether the last reply was cut by the token limit.
    pub cut: bool,
    /// How many replies in a row were cut by the token limit.
    pub cuts: u32,
    /// How many replies in a row held a tool call that the model server could not read.
    pub misread: u32,
    /// Bytes of the longest file that was read for the present task, as far as it was shown.
    pub longest_read: usize,
    /// Steps taken so far.
    pub step: u32,
    /// Steps that the agents below it have taken so far.
    pub steps_below: u32,
    /// Tokens spent so far, sub-agents included.
    pub usage: Usage,
    /// What it is in the middle of.
    pub phase: Phase,
    /// Why it is not going on, if it is not.
    pub stop: Option<Stop>,
    /// The calls of the current reply, in the order the model asked for them.
    pub calls: Vec<CallRecord>,
    /// The cells so far, in order.
    pub cells: Vec<CellRecord>,
    /// Every call that came to an end, for checks and summaries.
    pub history: Vec<CallSummary>,
    /// What was done, sub-agents included.
    pub work: Work,
    /// The last refusal of a final answer.
    pub refused: Option<Refused>,
    /// How often the final answer did not have the form that is asked for.
    pub misshapen: u32,
    /// How often a reply held no usable action.
    pub malformed: u32,
    /// What was wrong with the last reply that held no usable action.
    pub problem: Option<String>,
    /// How many replies or calls in a row did nothing but repeat an earlier one.
    pub repeated: u32,
    /// What has come of the reply that is being written.
    pub unfinished: String,
    /// The limit because of which the last answer was asked for, if it was.
    pub closing: Option<FinishState>,
    /// Where guided work on the present task stands.
    pub guided: Guided,
    /// What the model was last asked beside its steps.
    asked: String,
    /// What the person said while the model was not to be interrupted.
    queued: Vec<String>,
    /// Which message lists the variables.
    listing_at: Option<usize>,
    /// Where in the conversation the plan is.
    plan_at: Option<usize>,
    /// Messages already part of a request; later ones may still grow.
    sent: usize,
    /// Call ids in use.
    ids: HashSet<String>,
    /// Effects of calls that have started, until they finish.
    open_effects: Vec<(String, Vec<Effect>)>,
    /// Effects a person was asked about, until the call finishes.
    asked_effects: Vec<(String, Vec<Effect>)>,
    /// Seconds of work before the current stretch.
    worked: f64,
    /// When the current stretch of work began.
    since: Option<Timestamp>,
    /// When the last event happened.
    last: Option<Timestamp>,
}

/// A final answer that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// What the model was told.
    pub text: String,
    /// How often in a row it was told the same.
    pub times: u32,
    /// How many calls had come to an end by then.
    pub after: usize,
}

/// What an agent is in the middle of.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Phase {
    /// Nothing: it may ask the model.
    #[default]
    Ready,
    /// The model was asked and has not answered.
    Sampling,
    /// The model was asked for a plan and has not given one.
    Planning,
    /// The reply was useless and the model must be told why.
    Stuck(FeedbackReason),
    /// Tool calls are open.
    Acting,
    /// Code is to run, or runs.
    Executing(String),
    /// A final answer is on the table.
    Answering {
        /// As text.
        answer: String,
        /// As a value, when it is no text.
        value: Option<Value>,
    },
}

/// Why an agent is not going on.
#[derive(Debug, Clone, PartialEq)]
pub enum Stop {
    /// It can go on later.
    Suspended(Suspension),
    /// It is over.
    Finished(Box<Finished>),
    /// It broke.
    Failed(Failure),
}

impl State {
    /// The state after all events of one agent.
    pub fn fold<'a>(events: impl IntoIterator<Item = &'a Event>, path: &AgentPath) -> Self {
        let mut state = State::default();
        for event in events {
            if event.path == *path {
                state.apply(event);
            } else if event.path.is_below(path) {
                state.hear_of(&event.kind);
                if let EventKind::AgentFinished(finished) = &event.kind
                    && event.path.parent().as_ref() == Some(path)
                {
                    state.work.absorb(&finished.work);
                }
            } else if event.path.is_root() && matches!(event.kind, EventKind::RunResumed { .. }) {
                state.take_up(event.time);
            }
        }
        state
    }

    /// Takes in what an agent below spent: it counts for everyone above.
    pub(crate) fn hear_of(&mut self, kind: &EventKind) {
        if let EventKind::StepStarted { .. } = kind {
            self.steps_below += 1;
        } else if let Some(usage) = kind.usage() {
            self.usage += usage;
        }
    }

    /// Steps taken so far, those of agents below included.
    pub fn steps_together(&self) -> u32 {
        self.step.saturating_add(self.steps_below)
    }

    /// Goes on with an agent that an earlier process was at work on: the time between does not count.
    pub(crate) fn take_up(&mut self, now: Timestamp) {
        if self.since.is_some() {
            self.pause();
            self.since = Some(now);
        }
    }

    /// Takes in the next event of this agent.
    pub fn apply(&mut self, event: &Event) {
        self.last = Some(event.time);
        match &event.kind {
            EventKind::RunStarted(started) | EventKind::AgentStarted(started) => {
                self.start(started, event.time)
            }
            EventKind::RunResumed { limits, plan, .. } => {
                self.planning = *plan;
                self.resume(limits, event.time);
            }
            EventKind::StepStarted { step } => {
                self.step = *step;
                self.unfinished.clear();
                if self.action != ActionFormat::Guided {
                    self.sent = self.messages.len();
                }
                self.phase = Phase::Sampling;
            }
            EventKind::ModelMessage(message) => {
                self.unfinished.clear();
                match self.action {
                    ActionFormat::Guided => self.hear_guided(message),
                    ActionFormat::Tools | ActionFormat::Code => self.hear(message),
                }
            }
            EventKind::Feedback { reason, text } => self.feed_back(*reason, text),
            EventKind::UserMessage { text } => self.say(text, event.time),
            EventKind::ToolRequested { call } => self.request(call),
            EventKind::ToolStarted { id, effects, .. } => {
                self.open_effects.push((id.clone(), effects.clone()));
                if let Some(record) = self.record(id) {
                    record.status = CallStatus::Started;
                }
            }
            EventKind::ToolFinished(finished) => self.finish_call(finished),
            EventKind::CellStarted { code, .. } => {
                self.cells.push(CellRecord { code: code.clone(), ..CellRecord::default() });
            }
            EventKind::CellOutput { text, .. } => {
                if let Some(cell) = self.cells.last_mut() {
                    cell.printed.push_str(text);
                }
            }
            EventKind::CellFinished { end, observation, variables, .. } => {
                self.variables.clone_from(variables);
                self.finish_cell(end, observation);
            }
            EventKind::ModelAsked { purpose, text } => {
                self.asked.clone_from(text);
                match purpose {
                    Purpose::Plan => self.phase = Phase::Planning,
                    Purpose::Summary | Purpose::Aim | Purpose::Pick | Purpose::Edit => {}
                }
            }
            EventKind::PlanRequested => self.replan = true,
            EventKind::Plan(plan) => self.take_plan(plan),
            EventKind::ContextPruned(pruned) => self.prune(pruned),
            EventKind::ContextCompacted(compacted) => self.compact(compacted),
            EventKind::ActionChanged(change) => self.change_action(change),
            EventKind::RunSuspended { reason } => self.halt(Stop::Suspended(reason.clone())),
            EventKind::GuidedAimed(aimed) => self.take_aim(aimed),
            EventKind::GuidedFound(found) => self.take_found(found),
            EventKind::GuidedLocated(located) => self.take_located(located),
            EventKind::GuidedEdited(edited) => self.take_edited(edited),
            EventKind::GuidedChecked(checked) => self.take_checked(checked),
            EventKind::RunFinished(finished) | EventKind::AgentFinished(finished) => {
                if self.action == ActionFormat::Guided {
                    self.tell_guided(finished);
                }
                self.halt(Stop::Finished(Box::new(finished.clone())));
            }
            EventKind::RunFailed { error } => self.halt(Stop::Failed(error.clone())),
            EventKind::ApprovalRequested(request) => {
                self.asked_effects.push((request.call.clone(), request.effects.clone()));
            }
            EventKind::ApprovalDecided { decision: Decision::Deny { feedback }, .. } => {
                self.guided.objection.clone_from(feedback);
            }
            EventKind::ModelDelta { text, .. } => self.unfinished.push_str(text),
            EventKind::ApprovalDecided { .. } | EventKind::Warning { .. } | EventKind::Unknown => {}
        }
    }

    /// Whether tools and their results are written in the provider's own structures.
    pub fn is_native(&self) -> bool {
        match (self.action, self.dialect) {
            (ActionFormat::Tools, Dialect::Native) => true,
            (ActionFormat::Tools, Dialect::Text) | (ActionFormat::Code | ActionFormat::Guided, _) => false,
        }
    }

    /// Seconds of work up to a moment; pauses between processes do not count.
    pub fn seconds(&self, now: Timestamp) -> f64 {
        self.worked
            + self.since.map_or(0.0, |since| (now - since).total(jiff::Unit::Second).unwrap_or(0.0).max(0.0))
    }

    /// Whether a call id is in use already.
    pub fn knows_call(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// The last thing the model said in words, finished or not: what is left to show when a limit ends a run.
    pub fn last_words(&self) -> &str {
        let unfinished = parse::words_before_action(&self.unfinished, self.action).trim();
        if !unfinished.is_empty() {
            return unfinished;
        }
        self.messages
            .iter()
            .rev()
            .find_map(|message| match message.as_ref() {
                Message::Assistant { text, .. } if !text.trim().is_empty() => Some(text.as_str()),
                _ => None,
            })
            .unwrap_or("")
    }
}
