//! The rules every request must keep by itself, whatever its wire. Rules between requests are in `history`.

use std::collections::HashSet;
use std::fmt;

use serde::Serialize;

use crate::wire::{Chat, Said, SaidCall};

/// A rule of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The body is JSON of the wire's shape.
    Shape,
    /// A model is named.
    Model,
    /// The system prompt is first, and there is only one.
    System,
    /// The user begins, user and assistant take turns, the assistant does not have the last word.
    Roles,
    /// Each call is answered once, directly after the message that makes it.
    CallsAnswered,
    /// No result without a call that waits for it.
    ResultsAsked,
    /// Ids of calls are there and differ.
    CallIds,
    /// Thinking comes back as it was given.
    Thinking,
    /// The tools stay the same in a conversation.
    Tools,
    /// Each request of a conversation extends the one before it, unless compaction was announced.
    Extends,
    /// The script has a reply to this request.
    Script,
}

impl Rule {
    /// The word used in answers and logs.
    pub fn word(self) -> &'static str {
        match self {
            Rule::Shape => "shape",
            Rule::Model => "model",
            Rule::System => "system",
            Rule::Roles => "roles",
            Rule::CallsAnswered => "calls_answered",
            Rule::ResultsAsked => "results_asked",
            Rule::CallIds => "call_ids",
            Rule::Thinking => "thinking",
            Rule::Tools => "tools",
            Rule::Extends => "extends",
            Rule::Script => "script",
        }
    }
}

/// A rule that a request broke.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// What broke it.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule `{}` is broken: {}", self.rule.word(), self.detail)
    }
}

/// Everything wrong with a request by itself.
pub(crate) fn check(chat: &Chat) -> Vec<Violation> {
    let mut found = chat.objections.clone();
    let mut broken = |rule, detail: String| found.push(Violation { rule, detail });
    if chat.model.is_empty() {
        broken(Rule::Model, "the request names no model".into());
    }
    check_system(&chat.said, &mut broken);
    check_roles(&chat.said, &mut broken);
    check_calls(&chat.said, &mut broken);
    found
}

fn check_system(said: &[Said], broken: &mut impl FnMut(Rule, String)) {
    for (index, _) in said.iter().enumerate().filter(|(_, said)| matches!(said, Said::System { .. })) {
        if index > 0 {
            broken(Rule::System, format!("message {index} is a system prompt, but not the first message"));
        }
    }
}

fn check_roles(said: &[Said], broken: &mut impl FnMut(Rule, String)) {
    let talk = said.iter().enumerate().filter(|(_, said)| !matches!(said, Said::System { .. }));
    let mut before: Option<&Said> = None;
    for (index, now) in talk {
        let wrong = match (before, now) {
            (None, Said::Assistant { .. } | Said::Result { .. }) => Some("the user must begin"),
            (Some(Said::User { .. }), Said::User { .. }) => Some("two user messages in a row"),
            (Some(Said::Assistant { .. }), Said::Assistant { .. }) => Some("two assistant messages in a row"),
            // Results that nothing asked for have a rule of their own.
            _ => None,
        };
        if let Some(wrong) = wrong {
            broken(Rule::Roles, format!("{wrong} (message {index})"));
        }
        before = Some(now);
    }
    match before {
        None => broken(Rule::Roles, "nobody says anything".into()),
        Some(Said::Assistant { .. }) => broken(Rule::Roles, "the assistant has the last word".into()),
        Some(_) => {}
    }
}

fn check_calls(said: &[Said], broken: &mut impl FnMut(Rule, String)) {
    let mut ids = HashSet::new();
    let mut waiting: Vec<&SaidCall> = Vec::new();
    for (index, now) in said.iter().enumerate() {
        match now {
            Said::Result { id, name, .. } => match answered(&waiting, id.as_deref(), name.as_deref()) {
                Some(at) => drop(waiting.remove(at)),
                None => {
                    let which = id.as_deref().or(name.as_deref()).unwrap_or("without id or name");
                    broken(
                        Rule::ResultsAsked,
                        format!("no call waits for the result `{which}` (message {index})"),
                    );
                }
            },
            Said::System { .. } | Said::User { .. } | Said::Assistant { .. } => {
                unanswered(&mut waiting, index, broken);
            }
        }
        if let Said::Assistant { calls, .. } = now {
            for call in calls {
                match &call.id {
                    Some(id) if id.is_empty() => {
                        broken(
                            Rule::CallIds,
                            format!("a call of `{}` has an empty id (message {index})", call.name),
                        );
                    }
                    Some(id) if !ids.insert(id) => {
                        broken(Rule::CallIds, format!("the id `{id}` is used twice (message {index})"));
                    }
                    Some(_) | None => {}
                }
                waiting.push(call);
            }
        }
    }
    unanswered(&mut waiting, said.len(), broken);
}

/// The waiting call that a result answers: by id where both have one, else by name, else the next in order.
fn answered(waiting: &[&SaidCall], id: Option<&str>, name: Option<&str>) -> Option<usize> {
    waiting.iter().position(|call| match (id, call.id.as_deref(), name) {
        (Some(id), Some(call_id), _) => id == call_id,
        (_, _, Some(name)) => name == call.name,
        (_, _, None) => true,
    })
}

fn unanswered(waiting: &mut Vec<&SaidCall>, index: usize, broken: &mut impl FnMut(Rule, String)) {
    for call in waiting.drain(..) {
        let which = call.id.as_deref().unwrap_or(&call.name);
        broken(Rule::CallsAnswered, format!("the call `{which}` has no result before message {index}"));
    }
}
