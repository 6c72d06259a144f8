//! Tells a run on standard error while it happens, a line for each thing worth knowing.

use std::collections::HashMap;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use gimlet::approval::{Decision, Scope};
use gimlet::cell::CellEnd;
use gimlet::event::{Event, EventKind, Finished, ModelMessage, ToolFinished};
use gimlet::journal::Observer;
use serde_json::Value;

use super::{arguments, clip};
use crate::style::{DIM, ERROR, GOOD, NAME, WARNING};

/// How much is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Volume {
    /// Warnings only.
    Quiet,
    /// What the agent does.
    Normal,
    /// Also what the runtime tells the model, and what the model says while it works.
    Verbose,
    /// Also every step with its time, results and tokens.
    Debug,
}

/// Tells a run on standard error.
pub(crate) struct Talk {
    volume: Volume,
    /// Arguments of open calls, until they finish.
    open: Mutex<HashMap<String, Value>>,
}

impl Talk {
    pub(crate) fn new(volume: Volume) -> Self {
        Talk { volume, open: Mutex::default() }
    }

    /// What is told about an event; a sub-agent's is indented.
    pub(crate) fn told(&self, event: &Event) -> Option<String> {
        let depth = "  ".repeat(event.path.depth());
        let lines = self.lines(event)?;
        Some(lines.lines().map(|line| format!("{depth}{line}")).collect::<Vec<_>>().join("\n"))
    }

    fn lines(&self, event: &Event) -> Option<String> {
        let normal = self.volume >= Volume::Normal;
        let verbose = self.volume >= Volume::Verbose;
        let debug = self.volume >= Volume::Debug;
        match &event.kind {
            EventKind::ToolRequested { call } => {
                self.open().insert(key(event, &call.id), call.args.clone());
                None
            }
            EventKind::ToolFinished(finished) => {
                let args = self.open().remove(&key(event, &finished.id)).unwrap_or_default();
                normal.then(|| call_line(&args, finished, debug))
            }
            EventKind::StepStarted { step } => debug.then(|| format!("{DIM}step {step}{DIM:#}")),
            EventKind::ModelMessage(message) => self.message(message),
            EventKind::Feedback { text, .. } => {
                verbose.then(|| format!("{DIM}told the model: {}{DIM:#}", clip(text, 200)))
            }
            EventKind::UserMessage { text } => verbose.then(|| format!("you: {}", clip(text, 200))),
            EventKind::CellStarted { code, .. } => normal.then(|| code_lines(code)),
            EventKind::CellOutput { text, .. } => normal.then(|| indent(text)),
            EventKind::CellFinished { end, .. } => normal.then(|| cell_line(end)).flatten(),
            EventKind::ApprovalDecided { decision, .. } => normal.then(|| decision_line(decision)),
            EventKind::AgentStarted(started) => normal
                .then(|| format!("{NAME}{}{NAME:#} begins: {}", started.agent, clip(&started.task, 100))),
            EventKind::AgentFinished(finished) => {
                normal.then(|| format!("{DIM}… done: {}{DIM:#}", clip(&finished.answer, 100)))
            }
            EventKind::Warning { message } => Some(format!("{WARNING}warning:{WARNING:#} {message}")),
            EventKind::RunStarted(started) => verbose
                .then(|| format!("{DIM}run {} · {} · {}{DIM:#}", event.run, started.model, started.root)),
            EventKind::RunResumed { root, .. } => {
                normal.then(|| format!("{DIM}resuming {} in {root}{DIM:#}", event.run))
            }
            EventKind::ModelDelta { .. }
            | EventKind::ToolStarted { .. }
            | EventKind::ApprovalRequested(_)
            | EventKind::RunSuspended { .. }
            | EventKind::RunFinished(_)
            | EventKind::RunFailed { .. }
            | EventKind::Unknown => None,
        }
    }

    fn message(&self, message: &ModelMessage) -> Option<String> {
        let acts = !message.tool_calls.is_empty() || message.code.is_some();
        let mut lines = Vec::new();
        if self.volume >= Volume::Debug {
            lines.push(format!(
                "{DIM}  {:.2} s, {} tokens in, {} out{DIM:#}",
                message.seconds, message.usage.input, message.usage.output
            ));
        }
        if self.volume >= Volume::Normal && !message.tool_calls.is_empty() && !message.text.trim().is_empty()
        {
            lines.push(format!("{DIM}“{}”{DIM:#}", clip(&message.text, 300)));
        }
        if self.volume >= Volume::Verbose
            && !acts
            && let Some(problem) = &message.problem
        {
            lines.push(format!("{WARNING}the reply could not be used:{WARNING:#} {problem}"));
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    fn open(&self) -> std::sync::MutexGuard<'_, HashMap<String, Value>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Talk {
    fn observe(&self, event: &Event) {
        if let Some(lines) = self.told(event) {
            // Standard error that went away does not stop the run.
            let _ = writeln!(anstream::stderr().lock(), "{lines}");
        }
    }
}

fn key(event: &Event, id: &str) -> String {
    format!("{} {id}", event.path.as_str())
}

fn call_line(args: &Value, finished: &ToolFinished, debug: bool) -> String {
    let args = arguments(args, 80);
    let ms = finished.seconds * 1000.0;
    let mut line = if finished.ok {
        let what = gist(&finished.result);
        let cut = if finished.truncated { ", cut" } else { "" };
        format!("{GOOD}•{GOOD:#} {NAME}{}{NAME:#} {args} {DIM}→ {what}{cut}{DIM:#}", finished.tool)
    } else {
        let text = |key: &str| finished.result[key].as_str().unwrap_or_default().to_owned();
        let mut line = format!(
            "{ERROR}✗{ERROR:#} {NAME}{}{NAME:#} {args} → {}: {}",
            finished.tool,
            text("error"),
            clip(&text("message"), 160)
        );
        if let Some(name) = finished.result["recovery_suggestion"]["tool_call"]["name"].as_str() {
            line.push_str(&format!(" {DIM}(suggests {name}){DIM:#}"));
        }
        line
    };
    if debug {
        let text = match &finished.result {
            Value::String(text) => text.clone(),
            other => serde_json::to_string_pretty(other).unwrap_or_default(),
        };
        line.push_str(&format!(" {DIM}{ms:.1} ms{DIM:#}"));
        for shown in text.lines().take(3) {
            line.push_str(&format!("\n    {DIM}{}{DIM:#}", clip(shown, 120)));
        }
        let rest = text.lines().count().saturating_sub(3);
        if rest > 0 {
            line.push_str(&format!("\n    {DIM}… {rest} more lines{DIM:#}"));
        }
    }
    line
}

/// What a result comes to, in a few words.
fn gist(result: &Value) -> String {
    match result {
        Value::Object(map) => {
            if let Some(exit) = map.get("exit").and_then(Value::as_i64) {
                return format!("exit {exit}{}", last_line(map));
            }
            let list = map.iter().find_map(|(key, value)| value.as_array().map(|items| (key, items.len())));
            if let Some((key, count)) = list {
                return format!("{count} {}", key.replace('_', " "));
            }
            let text = map.iter().find_map(|(key, value)| {
                value.as_str().filter(|text| text.contains('\n')).map(|text| (key, text.lines().count()))
            });
            match text {
                Some((_, lines)) => format!("{lines} lines"),
                None => clip(&arguments(result, 80), 80),
            }
        }
        Value::Array(items) => format!("{} items", items.len()),
        Value::String(text) if text.lines().count() > 1 => format!("{} lines", text.lines().count()),
        other => clip(&other.to_string(), 80),
    }
}

/// The last thing a command said: usually its verdict.
fn last_line(result: &serde_json::Map<String, Value>) -> String {
    let last = |key: &str| {
        let text = result.get(key).and_then(Value::as_str).unwrap_or_default();
        text.lines().rev().find(|line| !line.trim().is_empty()).map(|line| format!(": {}", clip(line, 100)))
    };
    last("stdout_tail").or_else(|| last("stderr_tail")).unwrap_or_default()
}

fn code_lines(code: &str) -> String {
    code.lines().map(|line| format!("{DIM}│{DIM:#} {line}")).collect::<Vec<_>>().join("\n")
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

fn cell_line(end: &CellEnd) -> Option<String> {
    match end {
        CellEnd::Done { value } => value.as_ref().map(|value| format!("{DIM}= {}{DIM:#}", clip(value, 120))),
        CellEnd::Answer { .. } => None,
        CellEnd::Raised { traceback, .. } => {
            let last = traceback.lines().last().unwrap_or_default();
            Some(format!("{ERROR}✗{ERROR:#} {}", clip(last, 160)))
        }
        CellEnd::Limited { message } | CellEnd::Crashed { message } => {
            Some(format!("{ERROR}✗{ERROR:#} {}", clip(message, 160)))
        }
    }
}

fn decision_line(decision: &Decision) -> String {
    match decision {
        Decision::Approve { scope: Scope::Once } => format!("  {GOOD}approved{GOOD:#}"),
        Decision::Approve { scope: Scope::Session } => format!("  {GOOD}approved for the session{GOOD:#}"),
        Decision::Approve { scope: Scope::Always } => format!("  {GOOD}approved from now on{GOOD:#}"),
        Decision::Deny { feedback: None } => format!("  {ERROR}refused{ERROR:#}"),
        Decision::Deny { feedback: Some(feedback) } => format!("  {ERROR}refused{ERROR:#}: {feedback}"),
        Decision::Defer | Decision::Abort => format!("  {WARNING}not decided{WARNING:#}"),
    }
}

/// The last line of a run: how it went and what it cost.
pub(crate) fn summary(run: &str, finished: &Finished) -> String {
    let plural = |n: u64, what: &str| if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") };
    format!(
        "{DIM}{}, {}, {:.1} s · run {run}{DIM:#}",
        plural(finished.steps.into(), "step"),
        plural(finished.usage.total(), "token"),
        finished.seconds
    )
}
