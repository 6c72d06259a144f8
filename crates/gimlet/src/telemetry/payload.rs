//! What was said, as far as a span may carry it: only when asked for, cut to size, and without secrets.

use std::sync::Arc;

use serde_json::{Value, json};
use tracing::Span;

use crate::event::ModelMessage;
use crate::guard::Redactor;
use crate::message::{Message, ToolCall};

/// Whether spans carry what was said: tasks, messages, code, arguments and results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Payloads {
    /// Sizes and hashes only.
    #[default]
    Hidden,
    /// Everything, cut and redacted.
    Shown,
}

/// Most characters of one text.
const MOST_TEXT: usize = 4_000;
/// Most characters of a whole conversation.
const MOST_CONVERSATION: usize = 32_000;

/// Puts payloads into spans.
#[derive(Clone, Copy)]
pub(crate) struct Payload<'a> {
    pub payloads: Payloads,
    pub redactor: &'a Redactor,
}

impl Payload<'_> {
    /// Records a text; it is made only when it is wanted.
    pub(crate) fn record(&self, span: &Span, field: &str, text: impl FnOnce() -> String) {
        match self.payloads {
            Payloads::Shown if !span.is_disabled() => {
                span.record(field, self.fit(&text()));
            }
            Payloads::Shown | Payloads::Hidden => {}
        }
    }

    /// Records messages, as a list in JSON. The newest count most: the first is the standing instructions and stays,
    /// then as many of the latest as fit.
    pub(crate) fn record_messages(&self, span: &Span, field: &str, messages: impl FnOnce() -> Vec<Value>) {
        if self.payloads == Payloads::Hidden || span.is_disabled() {
            return;
        }
        let mut fitted: Vec<Value> = messages();
        fitted.iter_mut().for_each(|message| self.fit_value(message));
        let size = |message: &Value| message.to_string().chars().count();
        let mut left = MOST_CONVERSATION.saturating_sub(fitted.first().map_or(0, size));
        let kept = fitted
            .iter()
            .skip(1)
            .rev()
            .take_while(|message| {
                let room = left.checked_sub(size(message));
                left = room.unwrap_or(0);
                room.is_some()
            })
            .count();
        let cut = fitted.len().saturating_sub(kept);
        if cut > 1 {
            fitted.drain(1..cut);
        }
        span.record(field, Value::Array(fitted).to_string());
    }

    fn fit_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.fit(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.fit_value(item)),
            Value::Object(map) => map.values_mut().for_each(|item| self.fit_value(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Redacts before it cuts, so that no half of a secret is left.
    fn fit(&self, text: &str) -> String {
        let clean = self.redactor.clean_text(text);
        match clean.char_indices().nth(MOST_TEXT) {
            None => clean.into_owned(),
            Some((end, _)) => {
                let left = clean[end..].chars().count();
                format!("{}… [{left} characters cut]", &clean[..end])
            }
        }
    }
}

pub(super) fn last_words(messages: &[Arc<Message>]) -> String {
    match messages.last().map(Arc::as_ref) {
        Some(
            Message::System { text }
            | Message::User { text }
            | Message::Assistant { text, .. }
            | Message::Tool { text, .. },
        ) => text.clone(),
        None => String::new(),
    }
}

/// A conversation as OpenInference has it, before its keys are made flat.
pub(super) fn conversation(messages: &[Arc<Message>]) -> Vec<Value> {
    messages
        .iter()
        .map(|message| match message.as_ref() {
            Message::System { text } => json!({ "role": "system", "content": text }),
            Message::User { text } => json!({ "role": "user", "content": text }),
            Message::Assistant { text, calls, .. } => assistant(text, calls),
            Message::Tool { id, name, text, .. } => {
                json!({ "role": "tool", "content": text, "name": name, "tool_call_id": id })
            }
        })
        .collect()
}

pub(super) fn reply(message: &ModelMessage) -> Vec<Value> {
    vec![assistant(&reply_text(message), &message.tool_calls)]
}

/// The text of a reply; code is part of it where the text does not hold it already.
pub(super) fn reply_text(message: &ModelMessage) -> String {
    match &message.code {
        Some(code) if !message.text.contains(code.as_str()) => {
            format!("{}\n{code}", message.text).trim_start().to_owned()
        }
        Some(_) | None => message.text.clone(),
    }
}

fn assistant(text: &str, calls: &[ToolCall]) -> Value {
    let calls: Vec<Value> = calls
        .iter()
        .map(|call| {
            json!({ "tool_call": { "id": call.id, "function": {
                "name": call.name, "arguments": call.args.to_string() } } })
        })
        .collect();
    json!({ "role": "assistant", "content": text, "tool_calls": calls })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_gone_before_the_text_is_cut() {
        let redactor = Redactor::new(["correct-horse-battery".to_owned()]);
        let payload = Payload { payloads: Payloads::Shown, redactor: &redactor };
        let text = format!("{}correct-horse-battery{}", "x".repeat(MOST_TEXT - 5), "y".repeat(100));
        let fitted = payload.fit(&text);
        assert!(!fitted.contains("corre"), "{fitted}");
        assert!(fitted.ends_with("characters cut]"), "{fitted}");
        assert!(fitted.chars().count() < MOST_TEXT + 40);
    }
}
