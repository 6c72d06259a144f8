//! Calls and cells: how far each came, and what the conversation shows of it.

use std::sync::Arc;

use serde_json::Value;

use super::{CallSummary, Phase, State};
use crate::cell::CellEnd;
use crate::effect::Effect;
use crate::event::{ActionFormat, RequestedCall, ToolFinished};
use crate::message::{Message, ToolCall};
use crate::tool::code;
use gimlet_text::clip;

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
    pub(super) fn request(&mut self, requested: &RequestedCall) {
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
    pub(super) fn record(&mut self, id: &str) -> Option<&mut CallRecord> {
        let cell = self.cells.last_mut().filter(|cell| cell.end.is_none());
        let in_cell = cell.into_iter().flat_map(|cell| cell.calls.iter_mut().rev());
        in_cell.chain(self.calls.iter_mut()).find(|record| record.call.id == id)
    }

    pub(super) fn finish_call(&mut self, finished: &ToolFinished) {
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
            count: finished.result["count"].as_u64(),
            untested: finished.result["no_test_needed"].as_bool().unwrap_or(false),
            args,
        };
        // A cell may repeat a call on purpose; a reply that does is going round in circles.
        if self.action == ActionFormat::Tools {
            let refused = summary.error.as_deref() == Some(code::LOOP_DETECTED);
            self.repeated = if refused { self.repeated + 1 } else { 0 };
        }
        let reads = |effect: &Effect| matches!(effect, Effect::Read { path } if !path.as_os_str().is_empty());
        if finished.ok && summary.patch.is_none() && summary.effects.iter().any(reads) {
            self.longest_read = self.longest_read.max(result_text(&finished.result).len());
        }
        self.work.add(&summary);
        self.history.push(summary);
        if self.phase == Phase::Acting
            && self.calls.iter().all(|record| matches!(record.status, CallStatus::Finished(_)))
        {
            if self.action == ActionFormat::Guided {
                self.finish_guided_call();
            } else {
                self.push_results();
                self.become_ready();
            }
        }
    }

    pub(super) fn push_results(&mut self) {
        let calls = std::mem::take(&mut self.calls);
        let results = calls.iter().filter_map(|record| match &record.status {
            CallStatus::Finished(finished) => Some((&record.call, finished)),
            CallStatus::New | CallStatus::Requested | CallStatus::Started => None,
        });
        if self.is_native() {
            for (call, finished) in results {
                let text = result_text(&finished.result);
                let what = spelled(call);
                self.diary.did(&what, &text);
                self.messages.push(Arc::new(Message::Tool {
                    id: finished.id.clone(),
                    name: finished.tool.clone(),
                    text,
                    ok: finished.ok,
                }));
                self.note_observation(format!("the result of {what}"));
            }
        } else {
            let (mut texts, mut all) = (Vec::new(), Vec::new());
            for (call, finished) in results {
                let text = result_text(&finished.result);
                self.diary.did(&spelled(call), &text);
                texts.push(format!("Result of {}:\n{text}", finished.tool));
                all.push(spelled(call));
            }
            self.push_user(&texts.join("\n\n"));
            self.note_observation(format!("the result of {}", clip(&all.join(", "), 200)));
        }
    }

    pub(super) fn finish_cell(&mut self, end: &CellEnd, observation: &str) {
        if let Some(cell) = self.cells.last_mut() {
            cell.end = Some(end.clone());
        }
        let same = |pair: &[CellRecord]| {
            pair[0].code == pair[1].code && pair[0].printed == pair[1].printed && pair[0].end == pair[1].end
        };
        let last = &self.cells[self.cells.len().saturating_sub(2)..];
        self.repeated = if last.len() == 2 && same(last) { self.repeated + 1 } else { 0 };
        match end {
            CellEnd::Raised { kind, .. } if is_unreadable(kind) => self.count_unread(),
            CellEnd::Raised { .. }
            | CellEnd::Answer { .. }
            | CellEnd::Done { .. }
            | CellEnd::Limited { .. }
            | CellEnd::Crashed { .. } => self.unread = 0,
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
                self.diary.did("the code", observation);
                self.push_user(observation);
                self.note_observation("what the code printed".to_owned());
                self.become_ready();
            }
        }
    }
}

/// Whether an exception says that the code itself cannot be read.
fn is_unreadable(kind: &str) -> bool {
    ["SyntaxError", "IndentationError", "TabError"].contains(&kind)
}

/// A call in few words, so that it can be made again.
fn spelled(call: &ToolCall) -> String {
    let args = match &call.args {
        Value::Object(map) => {
            map.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    };
    format!("{}({})", call.name, clip(&args, 100))
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
