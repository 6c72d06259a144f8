//! Folds the events of guided work. A call of the program is set up here, so that it is part of the state before it is
//! made, as a model's call is.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{CallRecord, CallStatus, Phase, State};
use crate::event::{Finished, ModelMessage, ToolFinished};
use crate::guided::{
    Aim, Aimed, Attempt, CHECK_TOOL, CheckOutcome, Checked, EditOutcome, Edited, Found, Guided, HeardReply,
    LastReply, Located, Stage, WRITE_TOOL, Way, reply,
};
use crate::message::{Finish, Message, ToolCall};
use crate::tool::code;

/// Seconds until a check is stopped: an endless loop is a usual mistake.
const CHECK_SECONDS: u64 = 180;

impl State {
    /// A reply to one of the questions of guided work; it is no part of the conversation.
    pub(super) fn hear_guided(&mut self, message: &ModelMessage) {
        self.usage += message.usage;
        self.cut = message.finish == Finish::Length;
        self.guided.reply = Some(HeardReply { text: message.text.clone(), finish: message.finish });
        self.phase = Phase::Ready;
    }

    pub(super) fn take_aim(&mut self, aimed: &Aimed) {
        if let Some(asked) = &aimed.asked {
            self.usage += asked.usage;
        }
        self.guided.reply = None;
        self.guided.aim = Some(aimed.aim);
        self.guided.stage = match aimed.aim {
            Aim::Answer => Stage::HandOver,
            Aim::Change | Aim::Run => Stage::Locate,
        };
    }

    pub(super) fn take_found(&mut self, found: &Found) {
        self.guided.found = Some(found.clone());
        self.guided.stage = Stage::Pick;
    }

    pub(super) fn take_located(&mut self, located: &Located) {
        self.guided.reply = None;
        self.guided.located = Some(located.clone());
        match (self.guided.aim, &located.command) {
            (Some(Aim::Run), Some(_)) => self.begin_check(),
            _ => self.guided.stage = Stage::Edit,
        }
    }

    pub(super) fn take_edited(&mut self, edited: &Edited) {
        let heard = self.guided.reply.take().map(|heard| heard.text).unwrap_or_default();
        let guided = &mut self.guided;
        if edited.outcome == EditOutcome::Cut {
            guided.partial = reply::join(&guided.partial, &heard);
            guided.continuations += 1;
            return;
        }
        guided.partial.clear();
        guided.continuations = 0;
        guided.replies = edited.attempt;
        match &edited.outcome {
            EditOutcome::Usable { files } => {
                guided.unusable = 0;
                guided.attempts.push(Attempt { files: files.clone(), checked: None });
                self.begin_write();
            }
            EditOutcome::Repeated => self.take_useless(LastReply::Repeated),
            EditOutcome::Unusable { problem } => {
                self.guided.unusable += 1;
                self.take_useless(LastReply::Unusable(problem.clone()));
            }
            EditOutcome::Cut => {}
        }
    }

    fn take_useless(&mut self, last: LastReply) {
        self.guided.last = last;
        self.ask_again_or_settle();
    }

    /// Asks for another edit, or ends with the best one.
    fn ask_again_or_settle(&mut self) {
        if self.guided.is_out_of_tries() {
            self.settle();
            return;
        }
        self.guided.stage = Stage::Edit;
        if self.guided.way() == Way::Fresh {
            self.guided.fresh += 1;
        }
    }

    /// Ends with the best edit in the files: if another one is there, the best is written back.
    fn settle(&mut self) {
        let best = self.guided.best().filter(|best| self.guided.current.is_some_and(|now| now != *best));
        match best.and_then(|best| self.guided.write_args(best, &self.task)) {
            Some(args) => self.begin_call(Stage::Restore, WRITE_TOOL, args),
            None => self.guided.stage = Stage::Tell,
        }
    }

    fn begin_write(&mut self) {
        let target = self.guided.attempts.len().saturating_sub(1);
        match self.guided.write_args(target, &self.task) {
            Some(args) => self.begin_call(Stage::Write, WRITE_TOOL, args),
            None => self.begin_check(),
        }
    }

    fn begin_check(&mut self) {
        let command = self.guided.located.as_ref().and_then(|located| located.command.clone());
        match command {
            Some(command) => self.begin_call(
                Stage::Check,
                CHECK_TOOL,
                json!({"test_cmd": command, "timeout": CHECK_SECONDS}),
            ),
            None => self.guided.stage = Stage::Tell,
        }
    }

    fn begin_call(&mut self, stage: Stage, tool: &str, args: Value) {
        let id = format!("guided_{}", self.history.len() + 1);
        self.ids.insert(id.clone());
        let call = ToolCall { id, name: tool.to_owned(), args };
        self.calls = vec![CallRecord { call, status: CallStatus::New }];
        self.guided.stage = stage;
        self.phase = Phase::Acting;
    }

    /// The call of the present stage came to its end.
    pub(super) fn finish_guided_call(&mut self) {
        let calls = std::mem::take(&mut self.calls);
        self.become_ready();
        let Some(CallRecord { call, status: CallStatus::Finished(finished) }) = calls.into_iter().next()
        else {
            return;
        };
        let error = finished.result["error"].as_str().filter(|_| !finished.ok).map(str::to_owned);
        // Nobody knows whether it was done, and doing it again does no harm: a write that is done already changes
        // nothing, and a check only looks.
        let unknown = [code::OUTCOME_UNKNOWN, code::CANCELLED];
        if error.as_deref().is_some_and(|error| unknown.contains(&error)) {
            self.begin_call(self.guided.stage, &call.name, call.args);
            return;
        }
        match self.guided.stage {
            Stage::Write => self.finish_write(&finished, error.as_deref()),
            Stage::Restore => {
                if error.is_none() {
                    self.guided.current = self.guided.best();
                }
                self.guided.stage = Stage::Tell;
            }
            Stage::Check => {
                self.guided.result = Some(finished);
                self.guided.stage = Stage::Judge;
            }
            Stage::Aim
            | Stage::Locate
            | Stage::Pick
            | Stage::Edit
            | Stage::Judge
            | Stage::Tell
            | Stage::HandOver => {}
        }
    }

    fn finish_write(&mut self, finished: &ToolFinished, error: Option<&str>) {
        let objection = self.guided.objection.take();
        let Some(error) = error else {
            self.guided.current = self.guided.attempts.len().checked_sub(1);
            self.begin_check();
            return;
        };
        self.guided.attempts.pop();
        match (error, objection) {
            (code::APPROVAL_DENIED, Some(words)) => {
                let problem = format!("the person refused the change and said: {words}");
                self.take_useless(LastReply::Unusable(problem));
            }
            (code::APPROVAL_DENIED, None) => {
                self.guided.stopped = Some("the change was not approved".to_owned());
                self.guided.stage = Stage::Tell;
            }
            (_, _) => {
                let message = finished.result["message"].as_str().unwrap_or(error);
                self.guided.stopped = Some(message.trim_end_matches('.').to_owned());
                self.guided.stage = Stage::Tell;
            }
        }
    }

    pub(super) fn take_checked(&mut self, checked: &Checked) {
        self.guided.result = None;
        if self.guided.aim == Some(Aim::Run) {
            self.guided.ran = Some(checked.clone());
            self.guided.stage = Stage::Tell;
            return;
        }
        if let Some(attempt) = self.guided.current.and_then(|at| self.guided.attempts.get_mut(at)) {
            attempt.checked = Some(checked.clone());
        }
        self.guided.last = LastReply::Checked;
        match checked.result {
            CheckOutcome::Passed | CheckOutcome::NotRun => self.guided.stage = Stage::Tell,
            CheckOutcome::Failed => self.ask_again_or_settle(),
        }
    }

    /// What was told becomes part of the conversation, for the tasks that follow.
    pub(super) fn tell_guided(&mut self, finished: &Finished) {
        let text = finished.answer.clone();
        self.messages.push(Arc::new(Message::Assistant { text, thinking: Vec::new(), calls: Vec::new() }));
    }

    /// Forgets what is known of the task before.
    pub(super) fn begin_guided(&mut self) {
        self.guided = Guided::default();
    }

    /// Begins guided work in the middle of a task of which the aim is known: a change.
    pub(super) fn take_over(&mut self) {
        self.guided = Guided { stage: Stage::Locate, aim: Some(Aim::Change), ..Guided::default() };
        self.calls.clear();
    }
}
