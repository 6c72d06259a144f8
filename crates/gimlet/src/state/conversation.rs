//! The conversation as the model sees it: what is added to it, and what gives way.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::{CallRecord, CallStatus, Phase, Refused, State};
use crate::action::out_of_steps;
use crate::context::diary::Word;
use crate::context::prune::{own_text, shown};
use crate::context::{self, Compacted, Measured, Observation, variables};
use crate::event::{
    ActionChange, ActionFormat, ChangeCause, FeedbackReason, FinishState, ModelMessage, Pruned,
};
use crate::message::{Finish, Message, ToolCall};
use crate::plan::{GO, Plan};

impl State {
    pub(super) fn hear(&mut self, message: &ModelMessage) {
        self.usage += message.usage;
        self.cut = message.finish == Finish::Length;
        self.cuts = if self.cut { self.cuts + 1 } else { 0 };
        self.misread = if message.misread { self.misread + 1 } else { 0 };
        self.measure(message.usage.input);
        let native = self.is_native() && self.closing.is_none();
        let text = if message.text.trim().is_empty() && message.tool_calls.is_empty() {
            // Several servers refuse an empty turn.
            "(empty reply)".to_owned()
        } else {
            message.text.clone()
        };
        let calls = if native { message.tool_calls.clone() } else { Vec::new() };
        self.diary.say(message.step, &text);
        self.messages.push(Arc::new(Message::Assistant { text, thinking: message.thinking.clone(), calls }));
        self.phase = self.next_phase(message);
        if matches!(self.phase, Phase::Answering { .. }) && !self.queued.is_empty() {
            // The person said something the model has not read: that is not the end.
            self.become_ready();
        }
    }

    /// Takes in what the server counted for the messages it was sent; nothing is a server that does not count.
    pub(super) fn measure(&mut self, tokens: u64) {
        if tokens == 0 {
            return;
        }
        let sent = self.messages.iter().take(self.sent);
        let now = Measured { tokens, bytes: sent.map(|message| context::bytes(message)).sum() };
        self.shortfalls += u32::from(now.lost_some(self.measured));
        self.measured = Some(now);
    }

    pub(super) fn prune(&mut self, pruned: &Pruned) {
        if let Some(place) = self.listing_at.take() {
            // It is made anew at a later place.
            self.rewrite(place, variables::unlisted);
        }
        let last = pruned.elided.iter().rfind(|elided| elided.kept == 0).map(|elided| elided.message);
        for elided in &pruned.elided {
            let Some(observation) = self.observations.remove(&elided.message) else { continue };
            let Some(own) = own_text(self, elided.message, &observation) else { continue };
            let mut text = shown(elided, own);
            // What was shown is gone, but what code kept of it is not.
            if last == Some(elided.message)
                && let Some(listing) = variables::listing(&self.variables)
            {
                text = format!("{text}\n{listing}");
                self.listing_at = last;
            }
            if !observation.tail.is_empty() {
                text = format!("{text}\n\n{}", observation.tail);
            }
            self.rewrite(elided.message, |_| text);
            if elided.kept > 0 {
                self.observations.insert(elided.message, observation);
            }
        }
    }

    pub(super) fn rewrite(&mut self, place: usize, change: impl FnOnce(&str) -> String) {
        let Some(message) = self.messages.get_mut(place) else { return };
        *message = Arc::new(match message.as_ref() {
            Message::Tool { id, name, ok, text } => {
                Message::Tool { id: id.clone(), name: name.clone(), text: change(text), ok: *ok }
            }
            Message::User { text } => Message::user(change(text)),
            Message::Assistant { text, thinking, calls } => {
                Message::Assistant { text: change(text), thinking: thinking.clone(), calls: calls.clone() }
            }
            Message::System { text } => Message::system(change(text)),
        });
    }

    /// Puts a summary in the place of old steps.
    pub(super) fn compact(&mut self, compacted: &Compacted) {
        self.usage += compacted.usage;
        let until = compacted.until.clamp(2.min(self.messages.len()), self.messages.len());
        let Some(first) = self.messages.first().cloned() else { return };
        let kept = self.messages.split_off(until);
        self.messages = vec![first, Arc::new(Message::user(&compacted.text))];
        self.messages.extend(kept);
        let moved = |place: usize| place.checked_sub(until).map(|place| place + 2);
        self.observations = std::mem::take(&mut self.observations)
            .into_iter()
            .filter_map(|(place, observation)| Some((moved(place)?, observation)))
            .collect();
        for word in &mut self.diary.words {
            word.message = moved(word.message).unwrap_or(1);
        }
        self.plan_at = self.plan_at.and_then(moved);
        self.listing_at = None;
        self.sent = moved(self.sent).unwrap_or(0);
    }

    /// Goes on in another format; the reason is part of the conversation.
    pub(super) fn change_action(&mut self, change: &ActionChange) {
        let was_native = self.is_native();
        (self.action, self.dialect) = (change.action, change.dialect);
        self.misread = 0;
        if was_native && self.action == ActionFormat::Tools && !self.is_native() {
            self.calls_to_text();
        }
        match change.cause {
            ChangeCause::Unreadable => self.work.fallbacks += 1,
            ChangeCause::Aim | ChangeCause::NoChange => {}
        }
        self.unread = 0;
        self.variables.clear();
        self.rewrite(0, |_| change.system.clone());
        if change.action == ActionFormat::Guided {
            self.take_over();
        }
        if !change.text.is_empty() {
            self.push_user(&change.text);
        }
        self.become_ready();
    }

    /// Writes the native calls and results of the conversation as text. Results of one reply become one message, since
    /// many servers want the roles to alternate.
    fn calls_to_text(&mut self) {
        let old = std::mem::take(&mut self.messages);
        let mut places = Vec::with_capacity(old.len());
        let mut was_result = false;
        for message in old {
            let (text, is_result) = match message.as_ref() {
                Message::Assistant { text, thinking, calls } if !calls.is_empty() => {
                    let calls: Vec<String> = calls.iter().map(call_as_text).collect();
                    let text = [text.trim(), &calls.join("\n")].join("\n").trim().to_owned();
                    let thinking = thinking.clone();
                    self.messages.push(Arc::new(Message::Assistant { text, thinking, calls: Vec::new() }));
                    places.push(self.messages.len() - 1);
                    was_result = false;
                    continue;
                }
                Message::Tool { name, text, .. } => (format!("Result of {name}:\n{text}"), true),
                Message::User { text } => (text.clone(), false),
                Message::System { .. } | Message::Assistant { .. } => {
                    self.messages.push(message.clone());
                    places.push(self.messages.len() - 1);
                    was_result = false;
                    continue;
                }
            };
            match self.messages.last_mut().filter(|_| was_result) {
                Some(last) => {
                    let before = match last.as_ref() {
                        Message::User { text } => text.as_str(),
                        Message::System { .. } | Message::Assistant { .. } | Message::Tool { .. } => "",
                    };
                    *last = Arc::new(Message::user(format!("{before}\n\n{text}")));
                }
                None => self.messages.push(Arc::new(Message::user(text))),
            }
            places.push(self.messages.len() - 1);
            was_result = is_result;
        }
        let moved = |place: usize| places.get(place).copied();
        // Results that became one message give way together, or not at all where a person's words joined them.
        let mut observations = BTreeMap::new();
        for (place, observation) in std::mem::take(&mut self.observations) {
            if let Some(place) = moved(place) {
                observations.entry(place).or_insert(observation);
            }
        }
        let shared = |place: &usize| places.iter().filter(|other| *other == place).count() > 1;
        observations.retain(|place, _| !shared(place));
        self.observations = observations;
        for word in &mut self.diary.words {
            word.message = moved(word.message).unwrap_or(word.message);
        }
        self.plan_at = self.plan_at.and_then(moved);
        self.listing_at = None;
        self.sent = self.messages.len();
    }

    pub(super) fn next_phase(&mut self, message: &ModelMessage) -> Phase {
        let unread = std::mem::take(&mut self.unread);
        if self.closing.is_some() {
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
            // Whether it can be read shows when it runs.
            self.unread = unread;
            return Phase::Executing(code.clone());
        }
        if let Some(answer) = &message.answer {
            return Phase::Answering { answer: answer.clone(), value: message.value.clone() };
        }
        self.malformed += 1;
        self.problem.clone_from(&message.problem);
        let reason = match (message.finish, message.text.trim().is_empty()) {
            (Finish::Length, _) => FeedbackReason::Cut,
            (_, true) => FeedbackReason::Empty,
            (_, false) => FeedbackReason::Malformed,
        };
        if reason != FeedbackReason::Cut {
            self.unread = unread;
            self.count_unread();
        }
        Phase::Stuck(reason)
    }

    /// One more reply in a row that could not be read.
    pub(super) fn count_unread(&mut self) {
        self.unread += 1;
        self.constrained |= self.unread >= 2;
    }

    pub(super) fn feed_back(&mut self, reason: FeedbackReason, text: &str) {
        match reason {
            FeedbackReason::AnswerRefused => {
                let before = self.refused.take().filter(|refused| refused.text == text);
                let times = before.map_or(1, |refused| refused.times + 1);
                self.refused = Some(Refused { text: text.to_owned(), times, after: self.history.len() });
            }
            FeedbackReason::AnswerMisshapen => self.misshapen += 1,
            FeedbackReason::LastAnswer => {
                self.closing = Some(out_of_steps(self).unwrap_or(FinishState::Repeating));
            }
            FeedbackReason::Malformed | FeedbackReason::Empty | FeedbackReason::Cut => {}
        }
        self.push_user(text);
        self.become_ready();
    }

    /// Adds what a person says.
    pub(super) fn push_words(&mut self, text: &str) {
        self.push_user(text);
        self.diary.words.push(Word { message: self.messages.len() - 1, text: text.to_owned() });
    }

    /// Adds what the user side says. Two such messages before the next request become one, since many servers want
    /// the roles to alternate.
    pub(super) fn push_user(&mut self, text: &str) {
        if self.messages.len() > self.sent {
            self.join_user(text);
        } else {
            self.messages.push(Arc::new(Message::user(text)));
        }
    }

    /// Adds what the user side says to what it said last, if it spoke last.
    fn join_user(&mut self, text: &str) {
        let place = self.messages.len().saturating_sub(1);
        match self.messages.last().map(AsRef::as_ref) {
            Some(Message::User { text: before }) => {
                self.messages[place] = Arc::new(Message::user(format!("{before}\n\n{text}")));
                // What is said behind an observation does not give way with it.
                if let Some(observation) = self.observations.get_mut(&place) {
                    let gap = if observation.tail.is_empty() { "" } else { "\n\n" };
                    observation.tail = format!("{}{gap}{text}", observation.tail);
                }
            }
            Some(Message::System { .. } | Message::Assistant { .. } | Message::Tool { .. }) | None => {
                self.messages.push(Arc::new(Message::user(text)));
            }
        }
    }

    /// Takes in a plan: the question, the model's words, and that it is to go on. A former plan has had its time and
    /// may give way.
    pub(super) fn take_plan(&mut self, plan: &Plan) {
        let asked = std::mem::take(&mut self.asked);
        (self.planned_at, self.replan) = (Some(plan.step), false);
        self.usage += plan.usage;
        if !plan.text.trim().is_empty() {
            if let Some(place) = self.plan_at.take() {
                let old =
                    Observation { step: plan.step, of: "an earlier plan".to_owned(), tail: String::new() };
                self.observations.insert(place, old);
            }
            self.join_user(&asked);
            self.sent = self.messages.len();
            self.measure(plan.usage.input);
            self.plan_at = Some(self.messages.len());
            let (text, thinking) = (plan.text.clone(), plan.thinking.clone());
            self.messages.push(Arc::new(Message::Assistant { text, thinking, calls: Vec::new() }));
            self.messages.push(Arc::new(Message::user(GO)));
            self.plan = Some(Box::new(plan.clone()));
        }
        if self.phase == Phase::Planning {
            self.become_ready();
        }
    }

    /// The last message is an observation of the current step.
    pub(super) fn note_observation(&mut self, of: String) {
        self.observations
            .insert(self.messages.len() - 1, Observation { step: self.step, of, tail: String::new() });
    }
}

/// A call as a model writes it in its text.
fn call_as_text(call: &ToolCall) -> String {
    json!({ "name": call.name, "arguments": call.args }).to_string()
}
