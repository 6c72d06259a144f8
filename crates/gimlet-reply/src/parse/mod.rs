//! Finds the action in a model's reply.
//!
//! A ladder of dialects: thinking is taken out first; then, by action format, programs, marked calls and JSON are
//! looked for; what holds no action is the answer. Small models write all of these, whatever they were asked for.

use serde_json::Value;

use gimlet_event::event::ActionFormat;

mod action;
mod block;
mod call;
mod function;
mod json;
mod line;
mod literal;
mod observation;
mod program;
mod thinking;

#[cfg(test)]
mod tests;

pub use line::{begins_action, words_before_action};

/// What a reply comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// Reasoning found in the text (`<think>…</think>`); never executed.
    pub thinking: Option<String>,
    /// The reply without thinking and without what follows a made-up observation.
    pub content: String,
    /// `content` without the action in it: what the model said beside acting.
    pub prose: String,
    /// The action.
    pub intent: Intent,
}

/// The action in a reply.
#[derive(Debug, Clone, PartialEq)]
pub enum Intent {
    /// Tools to call, in order.
    Calls(Vec<ParsedCall>),
    /// Code to run.
    Code(String),
    /// A final answer.
    Answer(String),
    /// Nothing at all.
    Empty,
    /// An action that cannot be understood; the text says what is wrong with it, for the model.
    Malformed(String),
}

/// A call found in text.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedCall {
    /// Name of the tool.
    pub name: String,
    /// Its arguments: an object, or what the model wrote in its place.
    pub args: Value,
}

/// Understands the text of a reply. `known` are the names of the tools.
pub fn parse(text: &str, format: ActionFormat, known: &[&str]) -> Parsed {
    let (thinking, text) = thinking::split(text, format, known);
    let action::Reading { content, prose, intent } = action::read(&text, format, known);
    Parsed { thinking, content, prose, intent }
}

/// The JSON value in a text: the whole of it, or what its first bracket opens.
pub fn value_in(text: &str) -> Option<Value> {
    let text = text.trim();
    if let Ok(value) = serde_json::from_str(text) {
        return Some(value);
    }
    let at = text.find(['{', '['])?;
    let end = json::value_end(text, at).unwrap_or(text.len());
    json::read_one(&text[at..end]).ok()
}

/// A reply that is no action, without its thinking, which comes first.
pub fn without_thinking(text: &str) -> (Option<String>, String) {
    thinking::split(text, ActionFormat::Tools, &[])
}

/// The right shape of an action, to show a model that got it wrong.
pub fn right_shape(format: ActionFormat) -> &'static str {
    match format {
        ActionFormat::Tools | ActionFormat::Guided => {
            r#"{"name": "tool_name", "arguments": {"argument": "value"}}"#
        }
        ActionFormat::Code => "```python\nresult = 6 * 7\nfinal_answer(result)\n```",
    }
}
