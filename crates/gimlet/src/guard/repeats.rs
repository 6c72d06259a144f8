//! Notices when a model goes round in circles, and hands out recovery hints when it does not.
//!
//! The same call for the third time with nothing changed in between is refused. The same error from the same tool for
//! the second time keeps its hint to itself: the model has had it and is not helped by it.

use std::collections::HashMap;
use std::sync::PoisonError;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::{Layer, Outcome, Pass, hints};
use crate::digest::digest_json;
use crate::effect::Effect;
use crate::message::ToolCall;
use crate::state::CallSummary;
use crate::tool::{ToolFailure, code};

/// The same call may be made this often before it is refused.
const MOST_IDENTICAL: u32 = 2;

/// What a refused call is told first.
const USE_IT: &str = "Use the result you already have, change the arguments, or give your final answer.";
/// And from then on: what a small model understands when it has understood nothing else.
pub(crate) const ANSWER_NOW: &str =
    "Do not call tools any more. Give your best final answer now, in plain words, from what you know.";

pub(super) struct Watch {
    pub inner: Box<dyn Layer>,
}

impl Layer for Watch {
    fn pass<'a>(&'a self, pass: &'a mut Pass) -> BoxFuture<'a, Outcome> {
        async move {
            let key = key(&pass.call.name, &pass.call.args);
            let asked = repeats(pass, |repeats| repeats.asked(&key));
            if asked > MOST_IDENTICAL {
                return Outcome::Failed(Box::new(refusal(&pass.call, asked)));
            }
            let outcome = self.inner.pass(pass).await;
            match outcome {
                Outcome::Failed(mut failure) => {
                    let times = repeats(pass, |repeats| repeats.failed(&pass.call.name, &failure.error));
                    advise(pass, &mut failure, times);
                    Outcome::Failed(failure)
                }
                Outcome::Done(done) => {
                    repeats(pass, |repeats| repeats.done(&pass.call.name, &key, &pass.effects));
                    Outcome::Done(done)
                }
                open @ (Outcome::Suspended(_) | Outcome::Fatal(_)) => open,
            }
        }
        .boxed()
    }
}

fn repeats<T>(pass: &Pass, with: impl FnOnce(&mut Repeats) -> T) -> T {
    with(&mut pass.services.repeats.lock().unwrap_or_else(PoisonError::into_inner))
}

fn advise(pass: &Pass, failure: &mut ToolFailure, times: u32) {
    if times >= 2 {
        failure.loop_detected = true;
        failure.recovery_suggestion = None;
        failure.advice.get_or_insert_with(|| {
            format!("{} failed with {} {times} times. Try something else.", pass.call.name, failure.error)
        });
    } else if failure.recovery_suggestion.is_none() {
        failure.recovery_suggestion =
            hints::suggest(failure, &pass.call).filter(|hint| pass.services.has_tool(&hint.tool_call.name));
    }
}

fn refusal(call: &ToolCall, asked: u32) -> ToolFailure {
    ToolFailure {
        loop_detected: true,
        advice: Some(if asked > MOST_IDENTICAL + 1 { ANSWER_NOW.into() } else { USE_IT.into() }),
        ..ToolFailure::new(
            code::LOOP_DETECTED,
            format!(
                "This is the same call of {} for the {} time, and nothing has changed since.",
                call.name,
                nth(asked)
            ),
        )
    }
}

fn nth(n: u32) -> String {
    const WORDS: [&str; 8] = ["third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];
    let word = n.checked_sub(3).and_then(|at| WORDS.get(usize::try_from(at).ok()?));
    word.map_or_else(|| format!("{n}th"), |word| (*word).to_owned())
}

fn key(tool: &str, args: &serde_json::Value) -> String {
    format!("{tool} {}", digest_json(args))
}

/// Counts of calls and errors of one agent.
#[derive(Debug, Default)]
pub struct Repeats {
    calls: HashMap<String, u32>,
    errors: HashMap<(String, String), u32>,
}

impl Repeats {
    /// The counts after calls that an earlier process made.
    pub fn after(history: &[CallSummary]) -> Self {
        let mut repeats = Repeats::default();
        for call in history {
            let key = key(&call.tool, &call.args);
            repeats.asked(&key);
            match &call.error {
                Some(error) => {
                    repeats.failed(&call.tool, error);
                }
                None => repeats.done(&call.tool, &key, &call.effects),
            }
        }
        repeats
    }

    /// The person said something new: what was circular may be right now.
    pub fn forget(&mut self) {
        *self = Repeats::default();
    }

    fn asked(&mut self, key: &str) -> u32 {
        let count = self.calls.entry(key.to_owned()).or_default();
        *count += 1;
        *count
    }

    fn failed(&mut self, tool: &str, error: &str) -> u32 {
        let count = self.errors.entry((tool.to_owned(), error.to_owned())).or_default();
        *count += 1;
        *count
    }

    /// A success ends the tool's run of errors; one that changed the world makes every *other* call worth repeating.
    fn done(&mut self, tool: &str, key: &str, effects: &[Effect]) {
        self.errors.retain(|(failed, _), _| failed != tool);
        if effects.iter().any(Effect::changes_world) {
            self.calls.retain(|other, _| other == key);
        }
    }
}
