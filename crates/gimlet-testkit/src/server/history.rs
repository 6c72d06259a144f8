//! The rules between requests: a conversation only grows, and keeps its tools. The one thing that may change in it is
//! an old observation that gives way to a line saying so.
//!
//! A conversation is named by its first user message. Several runs may have the same task, so a name may stand for
//! several threads; a request must extend one of them, or begin a new one with nothing but the task.

use std::collections::HashMap;

use serde_json::Value;

use super::rules::{Rule, Violation};
use crate::wire::{Chat, Said};

/// What each conversation has said so far. Grows with the conversations of one server.
#[derive(Debug, Default)]
pub(crate) struct History {
    threads: HashMap<String, Vec<Thread>>,
}

#[derive(Debug)]
struct Thread {
    messages: Vec<Value>,
    tools: Value,
}

/// Whether a request may begin anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compaction {
    Announced,
    NotAnnounced,
}

/// Where a request belongs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    /// It goes on with a thread.
    Thread(usize),
    /// It begins one.
    New,
}

impl History {
    /// Finds the place of a request, and what is wrong with it there.
    pub(crate) fn check(&self, chat: &Chat, compaction: Compaction) -> (Place, Vec<Violation>) {
        let threads = self.threads.get(chat.task()).map(Vec::as_slice).unwrap_or_default();
        // Of two runs with the same task, the one that goes on is meant before the one that repeats itself.
        let extended = threads
            .iter()
            .enumerate()
            .filter(|(_, thread)| extends(&thread.messages, &chat.raw))
            .max_by_key(|(_, thread)| (thread.messages.len() < chat.raw.len(), thread.messages.len()))
            .map(|(index, _)| index);
        let place = match (extended, threads.len(), compaction) {
            (_, 0, _) => return (Place::New, Vec::new()),
            (Some(index), _, _) => index,
            (None, count, Compaction::Announced) => count - 1,
            (None, _, Compaction::NotAnnounced) if only_the_task(chat) => return (Place::New, Vec::new()),
            (None, count, Compaction::NotAnnounced) => {
                let detail = difference(&threads[count - 1].messages, &chat.raw);
                return (Place::Thread(count - 1), vec![Violation { rule: Rule::Extends, detail }]);
            }
        };
        let mut found = Vec::new();
        if threads[place].tools != chat.tools {
            let detail =
                format!("the tools were {} and now are {}", names(&threads[place].tools), names(&chat.tools));
            found.push(Violation { rule: Rule::Tools, detail });
        }
        (Place::Thread(place), found)
    }

    /// Remembers a request.
    pub(crate) fn keep(&mut self, chat: &Chat, place: Place) {
        let thread = Thread { messages: chat.raw.clone(), tools: chat.tools.clone() };
        let threads = self.threads.entry(chat.task().to_owned()).or_default();
        match place {
            Place::Thread(index) if index < threads.len() => threads[index] = thread,
            Place::Thread(_) | Place::New => threads.push(thread),
        }
    }
}

fn only_the_task(chat: &Chat) -> bool {
    matches!(chat.said.as_slice(), [Said::User { .. }] | [Said::System { .. }, Said::User { .. }])
}

/// Whether `now` is `before` with more at its end.
fn extends(before: &[Value], now: &[Value]) -> bool {
    let Some((last, head)) = before.split_last() else { return true };
    if now.len() < before.len() || !head.iter().zip(now).all(|(before, now)| same_or_elided(before, now)) {
        return false;
    }
    // A user who adds something before any reply came may do so in the same message, since roles must alternate.
    same_or_elided(last, &now[head.len()]) || (now.len() == before.len() && grew(last, &now[head.len()]))
}

/// Whether a message is the same, or an observation in it is now the line that stands for one.
fn same_or_elided(before: &Value, now: &Value) -> bool {
    match (before, now) {
        (Value::String(before), Value::String(now)) => {
            before == now || now.starts_with("[elided to save room: ")
        }
        (Value::Array(before), Value::Array(now)) => {
            before.len() == now.len()
                && before.iter().zip(now).all(|(before, now)| same_or_elided(before, now))
        }
        (Value::Object(before), Value::Object(now)) => {
            before.len() == now.len()
                && before
                    .iter()
                    .all(|(key, before)| now.get(key).is_some_and(|now| same_or_elided(before, now)))
        }
        _ => before == now,
    }
}

fn grew(before: &Value, now: &Value) -> bool {
    let user = |message: &Value| message["role"] == "user";
    user(before)
        && user(now)
        && match (&before["content"], &now["content"]) {
            (Value::String(before), Value::String(now)) => now.starts_with(before.as_str()),
            (Value::Array(before), Value::Array(now)) => now.starts_with(before),
            _ => false,
        }
}

/// The first place where two requests differ.
fn difference(before: &[Value], now: &[Value]) -> String {
    let short = |value: &Value| value.to_string().chars().take(200).collect::<String>();
    match before.iter().zip(now).position(|(before, now)| before != now) {
        Some(at) => format!("message {at} was {} and now is {}", short(&before[at]), short(&now[at])),
        None => format!("the request before had {} messages, this one has {}", before.len(), now.len()),
    }
}

fn names(tools: &Value) -> String {
    let name = |tool: &Value| {
        let name = tool.pointer("/function/name").or_else(|| tool.get("name"));
        name.and_then(Value::as_str).unwrap_or("?").to_owned()
    };
    let names: Vec<String> = tools.as_array().into_iter().flatten().map(name).collect();
    format!("[{}]", names.join(", "))
}
