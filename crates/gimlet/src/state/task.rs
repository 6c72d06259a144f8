//! A run's tasks: how it begins, stops, goes on, and what the person says on the way.

use std::sync::Arc;

use jiff::Timestamp;

use super::{Phase, State, Stop};
use crate::event::{ActionFormat, FinishState, Started};
use crate::limits::Limits;
use crate::message::Message;
use crate::work::Work;

impl State {
    pub(super) fn start(&mut self, started: &Started, now: Timestamp) {
        self.limits = started.limits.clone();
        self.planning = started.plan;
        (self.action, self.dialect) = (started.action, started.dialect);
        self.messages.push(Arc::new(Message::system(&started.system)));
        if !started.context.is_empty() {
            self.push_user(&started.context);
        }
        self.push_words(&started.task);
        self.since = Some(now);
        self.begun = Some(now);
        self.task.clone_from(&started.task);
        self.started = Some(started.clone());
    }

    pub(super) fn resume(&mut self, limits: &Limits, now: Timestamp) {
        if self.stop.is_none() {
            // The program died: it worked at least until its last event.
            self.pause();
        }
        self.limits = limits.clone();
        self.since = Some(now);
        self.repeated = 0;
        self.unfinished.clear();
        match self.phase {
            // No reply is on its way any more: the step begins anew, and what it asked with may still grow.
            Phase::Sampling => {
                self.step = self.step.saturating_sub(1);
                self.sent = 0;
                self.become_ready();
            }
            Phase::Planning => self.become_ready(),
            Phase::Ready
            | Phase::Stuck(_)
            | Phase::Acting
            | Phase::Executing(_)
            | Phase::Answering { .. } => {}
        }
        if let Some(Stop::Finished(finished)) = self.stop.take() {
            match finished.state {
                FinishState::MaxSteps
                | FinishState::Timeout
                | FinishState::TokenBudget
                | FinishState::StepBudget
                | FinishState::Repeating => {
                    if matches!(self.phase, Phase::Answering { .. }) {
                        self.phase = Phase::Ready;
                    }
                    if self.closing.take().is_some() {
                        self.push_user("You may go on: the limit was raised. Continue the task.");
                    }
                }
                FinishState::Answered | FinishState::Failed => self.stop = Some(Stop::Finished(finished)),
            }
        }
    }

    /// Whether the agent has as much behind it as `limits` allow, of what would end it in such a way.
    pub(crate) fn has_reached(&self, end: FinishState, limits: &Limits) -> bool {
        match end {
            FinishState::MaxSteps => self.step >= limits.max_steps,
            FinishState::StepBudget => self.steps_together() >= limits.steps_together(),
            FinishState::TokenBudget => limits.max_tokens.is_some_and(|most| self.usage.total() >= most),
            FinishState::Timeout => {
                let worked = self.last.map_or(self.worked, |last| self.seconds(last));
                limits.max_seconds.is_some_and(|most| worked >= most)
            }
            FinishState::Answered | FinishState::Failed | FinishState::Repeating => false,
        }
    }

    pub(super) fn halt(&mut self, stop: Stop) {
        self.pause();
        self.stop = Some(stop);
    }

    pub(super) fn pause(&mut self) {
        if let Some(last) = self.last {
            self.worked = self.seconds(last);
        }
        self.since = None;
    }

    pub(super) fn say(&mut self, text: &str, now: Timestamp) {
        self.queued.push(text.to_owned());
        self.repeated = 0;
        if let Some(Stop::Finished(_)) = &self.stop {
            // Something said after the answer is the next task of the same conversation.
            self.stop = None;
            self.since.get_or_insert(now);
            text.clone_into(&mut self.task);
            self.before_task = self.history.len();
            self.work = Work::default();
            self.longest_read = 0;
            self.refused = None;
            self.misshapen = 0;
            self.malformed = 0;
            self.closing = None;
            self.planned_at = None;
            self.begin_guided();
            // Guided work is for one task: what began in it, or did not, is asked as it began.
            if let Some(started) = &self.started
                && (started.action == ActionFormat::Guided) != (self.action == ActionFormat::Guided)
            {
                (self.action, self.dialect) = (started.action, started.dialect);
                let system = started.system.clone();
                self.rewrite(0, |_| system);
            }
            self.become_ready();
        } else if self.action == ActionFormat::Guided {
            // Every question of guided work quotes the task: what is added to it is read with the next one.
            self.task = format!("{}\n\n{text}", self.task);
            if self.phase == Phase::Ready {
                self.become_ready();
            }
        } else if matches!(self.phase, Phase::Ready | Phase::Answering { .. }) {
            self.become_ready();
        }
    }

    /// The model's turn is complete: what waited for it can be said.
    pub(super) fn become_ready(&mut self) {
        self.phase = Phase::Ready;
        for text in std::mem::take(&mut self.queued) {
            self.push_words(&text);
        }
    }
}
