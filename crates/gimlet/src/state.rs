//! Where an agent stands, folded from its events and from nothing else.
//!
//! The conversation is rendered here once, message by message, as events arrive: a step costs what it adds, not what
//! came before, and the messages already sent never change but where `context.pruned` says so.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::cell::CellEnd;
use crate::context::prune::stub;
use crate::context::{self, Measured, Observation};
use crate::effect::Effect;
use crate::event::{
    ActionFormat, AgentPath, Dialect, Event, EventKind, Failure, FeedbackReason, FinishState, Finished,
    ModelMessage, Pruned, RequestedCall, Started, Suspension, ToolFinished,
};
use crate::limits::Limits;
use crate::message::{Finish, Message, ToolCall, Usage};
use crate::work::Work;

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
    /// The conversation; append-only between two prunings.
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
    /// Steps taken so far.
    pub step: u32,
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
    /// How often a final answer was refused.
    pub refusals: u32,
    /// How often a reply held no usable action.
    pub malformed: u32,
    /// What was wrong with the last reply that held no usable action.
    pub problem: Option<String>,
    /// Whether the last answer was asked for because the steps are used up.
    pub closing: bool,
    /// What the person said while the model was not to be interrupted.
    queued: Vec<String>,
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

/// What an agent is in the middle of.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Phase {
    /// Nothing: it may ask the model.
    #[default]
    Ready,
    /// The model was asked and has not answered.
    Sampling,
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

/// A call and how far it came.
#[derive(Debug, Clone, PartialEq)]
pub struct CallRecord {
    /// The call.
    pub call: ToolCall,
    /// How far it came.
    pub status: CallStatus,
}

/// How far a call came.
#[derive(Debug, Clone, PartialEq)]
pub enum CallStatus {
    /// The model asked; nothing is recorded yet.
    New,
    /// Recorded; nothing has happened.
    Requested,
    /// It may have touched the world.
    Started,
    /// It is over.
    Finished(Box<ToolFinished>),
}

/// A call that came to an end.
#[derive(Debug, Clone, PartialEq)]
pub struct CallSummary {
    /// Name of the tool.
    pub tool: String,
    /// Its arguments.
    pub args: Arc<Value>,
    /// What it touched; empty when it never started.
    pub effects: Vec<Effect>,
    /// What a person was asked about it; empty when nobody was.
    pub asked: Vec<Effect>,
    /// The error, if it failed.
    pub error: Option<String>,
    /// The patch its result or its arguments name.
    pub patch: Option<String>,
    /// The exit code its result tells.
    pub exit: Option<i64>,
}

/// A cell and what is recorded of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CellRecord {
    /// The code.
    pub code: String,
    /// Its host calls, in order.
    pub calls: Vec<CallRecord>,
    /// What it printed.
    pub printed: String,
    /// How it ended, if it did.
    pub end: Option<CellEnd>,
}

impl State {
    /// The state after all events of one agent.
    pub fn fold<'a>(events: impl IntoIterator<Item = &'a Event>, path: &AgentPath) -> Self {
        let mut state = State::default();
        for event in events {
            if event.path == *path {
                state.apply(event);
            } else if let EventKind::AgentFinished(finished) = &event.kind
                && event.path.parent().as_ref() == Some(path)
            {
                state.absorb(finished);
            }
        }
        state
    }

    /// Takes in the next event of this agent.
    pub fn apply(&mut self, event: &Event) {
        self.last = Some(event.time);
        match &event.kind {
            EventKind::RunStarted(started) | EventKind::AgentStarted(started) => {
                self.start(started, event.time)
            }
            EventKind::RunResumed { limits, .. } => self.resume(limits, event.time),
            EventKind::StepStarted { step } => {
                self.step = *step;
                self.sent = self.messages.len();
                self.phase = Phase::Sampling;
            }
            EventKind::ModelMessage(message) => self.hear(message),
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
            EventKind::CellFinished { end, observation, .. } => self.finish_cell(end, observation),
            EventKind::ContextPruned(pruned) => self.prune(pruned),
            EventKind::RunSuspended { reason } => self.halt(Stop::Suspended(reason.clone())),
            EventKind::RunFinished(finished) | EventKind::AgentFinished(finished) => {
                self.halt(Stop::Finished(Box::new(finished.clone())));
            }
            EventKind::RunFailed { error } => self.halt(Stop::Failed(error.clone())),
            EventKind::ApprovalRequested(request) => {
                self.asked_effects.push((request.call.clone(), request.effects.clone()));
            }
            EventKind::ModelDelta { .. }
            | EventKind::ApprovalDecided { .. }
            | EventKind::Warning { .. }
            | EventKind::Unknown => {}
        }
    }

    /// Takes in what a sub-agent spent and did.
    pub fn absorb(&mut self, finished: &Finished) {
        self.usage += finished.usage;
        self.work.absorb(&finished.work);
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

    /// The last thing the model said in words: what is left to show when a limit ends a run.
    pub fn last_words(&self) -> &str {
        self.messages
            .iter()
            .rev()
            .find_map(|message| match message.as_ref() {
                Message::Assistant { text, .. } if !text.trim().is_empty() => Some(text.as_str()),
                _ => None,
            })
            .unwrap_or("")
    }

    fn start(&mut self, started: &Started, now: Timestamp) {
        self.limits = started.limits.clone();
        self.messages.push(Arc::new(Message::system(&started.system)));
        if !started.context.is_empty() {
            self.push_user(&started.context);
        }
        self.push_user(&started.task);
        self.since = Some(now);
        self.begun = Some(now);
        self.task.clone_from(&started.task);
        self.started = Some(started.clone());
    }

    fn resume(&mut self, limits: &Limits, now: Timestamp) {
        if self.stop.is_none() {
            // The program died: it worked at least until its last event.
            self.pause();
        }
        self.limits = limits.clone();
        self.since = Some(now);
        if self.phase == Phase::Sampling {
            // No reply is on its way any more: the step begins anew, and what it asked with may still grow.
            self.step = self.step.saturating_sub(1);
            self.sent = 0;
            self.become_ready();
        }
        if let Some(Stop::Finished(finished)) = self.stop.take() {
            match finished.state {
                FinishState::MaxSteps | FinishState::Timeout | FinishState::TokenBudget => {
                    if matches!(self.phase, Phase::Answering { .. }) {
                        self.phase = Phase::Ready;
                    }
                    if self.closing {
                        self.closing = false;
                        self.push_user("You may go on: the limit was raised. Continue the task.");
                    }
                }
                FinishState::Answered | FinishState::Failed => self.stop = Some(Stop::Finished(finished)),
            }
        }
    }

    fn halt(&mut self, stop: Stop) {
        self.pause();
        self.stop = Some(stop);
    }

    fn pause(&mut self) {
        if let Some(last) = self.last {
            self.worked = self.seconds(last);
        }
        self.since = None;
    }

    fn hear(&mut self, message: &ModelMessage) {
        self.usage += message.usage;
        self.cut = message.finish == Finish::Length;
        self.measure(message.usage.input);
        let native = self.dialect() == Dialect::Native && !self.closing;
        let text = if message.text.trim().is_empty() && message.tool_calls.is_empty() {
            // Several servers refuse an empty turn.
            "(empty reply)".to_owned()
        } else {
            message.text.clone()
        };
        let calls = if native { message.tool_calls.clone() } else { Vec::new() };
        self.messages.push(Arc::new(Message::Assistant { text, thinking: message.thinking.clone(), calls }));
        self.phase = self.next_phase(message);
        if matches!(self.phase, Phase::Answering { .. }) && !self.queued.is_empty() {
            // The person said something the model has not read: that is not the end.
            self.become_ready();
        }
    }

    /// Takes in what the server counted for the messages it was sent; nothing is a server that does not count.
    fn measure(&mut self, tokens: u64) {
        if tokens == 0 {
            return;
        }
        let sent = self.messages.iter().take(self.sent);
        let now = Measured { tokens, bytes: sent.map(|message| context::bytes(message)).sum() };
        self.shortfalls += u32::from(now.lost_some(self.measured));
        self.measured = Some(now);
    }

    fn prune(&mut self, pruned: &Pruned) {
        for elided in &pruned.elided {
            self.observations.remove(&elided.message);
            let Some(message) = self.messages.get_mut(elided.message) else { continue };
            *message = Arc::new(match message.as_ref() {
                Message::Tool { id, name, ok, .. } => {
                    Message::Tool { id: id.clone(), name: name.clone(), text: stub(elided), ok: *ok }
                }
                Message::User { .. } => Message::user(stub(elided)),
                other @ (Message::System { .. } | Message::Assistant { .. }) => other.clone(),
            });
        }
    }

    fn next_phase(&mut self, message: &ModelMessage) -> Phase {
        let unread = std::mem::take(&mut self.unread);
        if self.closing {
            let answer = message.answer.clone().unwrap_or_else(|| message.text.clone());
            return Phase::Answering { answer, value: None };
        }
        if !message.tool_calls.is_empty() {
            self.ids.extend(message.tool_calls.iter().map(|call| call.id.clone()));
            self.calls = message
                .tool_calls
                .iter()
                .map(|call| CallRecord { call: call.clone(), status: CallStatus::New })
                .collect();
            return Phase::Acting;
        }
        if let Some(code) = &message.code {
            return Phase::Executing(code.clone());
        }
        if let Some(answer) = &message.answer {
            return Phase::Answering { answer: answer.clone(), value: None };
        }
        self.malformed += 1;
        self.problem.clone_from(&message.problem);
        let reason = match (message.finish, message.text.trim().is_empty()) {
            (Finish::Length, _) => FeedbackReason::Cut,
            (_, true) => FeedbackReason::Empty,
            (_, false) => FeedbackReason::Malformed,
        };
        if reason != FeedbackReason::Cut {
            self.unread = unread + 1;
            self.constrained |= self.unread >= 2;
        }
        Phase::Stuck(reason)
    }

    fn feed_back(&mut self, reason: FeedbackReason, text: &str) {
        match reason {
            FeedbackReason::AnswerRefused => self.refusals += 1,
            FeedbackReason::LastAnswer => self.closing = true,
            FeedbackReason::Malformed | FeedbackReason::Empty | FeedbackReason::Cut => {}
        }
        self.push_user(text);
        self.become_ready();
    }

    fn say(&mut self, text: &str, now: Timestamp) {
        self.queued.push(text.to_owned());
        if let Some(Stop::Finished(_)) = &self.stop {
            // Something said after the answer is the next task of the same conversation.
            self.stop = None;
            self.since.get_or_insert(now);
            text.clone_into(&mut self.task);
            self.before_task = self.history.len();
            self.work = Work::default();
            self.refusals = 0;
            self.malformed = 0;
            self.closing = false;
            self.become_ready();
        } else if matches!(self.phase, Phase::Ready | Phase::Answering { .. }) {
            self.become_ready();
        }
    }

    /// The model's turn is complete: what waited for it can be said.
    fn become_ready(&mut self) {
        self.phase = Phase::Ready;
        for text in std::mem::take(&mut self.queued) {
            self.push_user(&text);
        }
    }

    /// Adds what the user side says. Two such messages before the next request become one, since many servers want
    /// the roles to alternate.
    fn push_user(&mut self, text: &str) {
        let unsent = self.messages.len() > self.sent;
        if unsent
            && let Some(last) = self.messages.last_mut()
            && let Message::User { text: before } = last.as_ref()
        {
            *last = Arc::new(Message::user(format!("{before}\n\n{text}")));
            // What a person said must not give way with it.
            self.observations.remove(&(self.messages.len() - 1));
        } else {
            self.messages.push(Arc::new(Message::user(text)));
        }
    }

    fn request(&mut self, requested: &RequestedCall) {
        self.ids.insert(requested.id.clone());
        match requested.cell {
            None => {
                if let Some(record) = self.calls.iter_mut().find(|record| record.call.id == requested.id) {
                    record.status = CallStatus::Requested;
                }
            }
            Some(_) => {
                let call = ToolCall {
                    id: requested.id.clone(),
                    name: requested.tool.clone(),
                    args: requested.args.clone(),
                };
                if let Some(cell) = self.cells.last_mut() {
                    cell.calls.push(CallRecord { call, status: CallStatus::Requested });
                }
            }
        }
    }

    /// The open call with this id: of the running cell, or of the current reply.
    fn record(&mut self, id: &str) -> Option<&mut CallRecord> {
        let cell = self.cells.last_mut().filter(|cell| cell.end.is_none());
        let in_cell = cell.into_iter().flat_map(|cell| cell.calls.iter_mut().rev());
        in_cell.chain(self.calls.iter_mut()).find(|record| record.call.id == id)
    }

    fn finish_call(&mut self, finished: &ToolFinished) {
        let effects = take(&mut self.open_effects, &finished.id);
        let asked = take(&mut self.asked_effects, &finished.id);
        let Some(record) = self.record(&finished.id) else { return };
        record.status = CallStatus::Finished(Box::new(finished.clone()));
        let args = Arc::new(record.call.args.clone());
        let error = (!finished.ok).then(|| finished.result["error"].as_str().unwrap_or_default().to_owned());
        let named = |value: &Value| value["patch_id"].as_str().map(str::to_owned);
        let summary = CallSummary {
            tool: finished.tool.clone(),
            effects,
            asked,
            error,
            patch: named(&finished.result).or_else(|| named(&args)),
            exit: finished.result["exit"].as_i64(),
            args,
        };
        self.work.add(&summary);
        self.history.push(summary);
        if self.phase == Phase::Acting
            && self.calls.iter().all(|record| matches!(record.status, CallStatus::Finished(_)))
        {
            self.push_results();
            self.become_ready();
        }
    }

    fn push_results(&mut self) {
        let calls = std::mem::take(&mut self.calls);
        let results = calls.iter().filter_map(|record| match &record.status {
            CallStatus::Finished(finished) => Some(finished),
            CallStatus::New | CallStatus::Requested | CallStatus::Started => None,
        });
        match self.dialect() {
            Dialect::Native => {
                for finished in results {
                    self.messages.push(Arc::new(Message::Tool {
                        id: finished.id.clone(),
                        name: finished.tool.clone(),
                        text: result_text(&finished.result),
                        ok: finished.ok,
                    }));
                    self.note_observation(format!("the result of {}", finished.tool));
                }
            }
            Dialect::Text => {
                let (mut texts, mut tools) = (Vec::new(), Vec::new());
                for finished in results {
                    texts.push(format!("Result of {}:\n{}", finished.tool, result_text(&finished.result)));
                    tools.push(finished.tool.as_str());
                }
                self.push_user(&texts.join("\n\n"));
                self.note_observation(format!("the result of {}", tools.join(", ")));
            }
        }
    }

    fn finish_cell(&mut self, end: &CellEnd, observation: &str) {
        if let Some(cell) = self.cells.last_mut() {
            cell.end = Some(end.clone());
        }
        match end {
            CellEnd::Answer { value } => {
                self.phase = Phase::Answering {
                    answer: result_text(value),
                    value: (!value.is_string()).then(|| value.clone()),
                };
            }
            CellEnd::Done { .. }
            | CellEnd::Raised { .. }
            | CellEnd::Limited { .. }
            | CellEnd::Crashed { .. } => {
                self.push_user(observation);
                self.note_observation("what the code printed".to_owned());
                self.become_ready();
            }
        }
    }

    /// The last message is an observation of the current step.
    fn note_observation(&mut self, of: String) {
        self.observations.insert(self.messages.len() - 1, Observation { step: self.step, of });
    }

    fn dialect(&self) -> Dialect {
        match &self.started {
            Some(Started { action: ActionFormat::Code, .. }) => Dialect::Text,
            Some(started) => started.dialect,
            None => Dialect::default(),
        }
    }
}

/// Takes the effects kept for a call; a call that was asked about twice has them twice.
fn take(kept: &mut Vec<(String, Vec<Effect>)>, call: &str) -> Vec<Effect> {
    let mut taken = Vec::new();
    kept.retain_mut(|(id, effects)| {
        let others = id != call;
        if !others {
            taken = std::mem::take(effects);
        }
        others
    });
    taken
}

/// A result as the model reads it: text as it is, anything else as JSON.
pub(crate) fn result_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
