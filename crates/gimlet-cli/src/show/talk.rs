//! Tells a run on standard error while it happens, a line for each thing worth knowing.

use std::collections::HashMap;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use gimlet::approval::{Decision, Scope};
use gimlet::cell::CellEnd;
use gimlet::context::Compacted;
use gimlet::context::summary::Author;
use gimlet::event::{
    ChangeCause, Event, EventKind, FeedbackReason, Finished, ModelMessage, Pruned, ToolFinished,
};
use gimlet::message::Usage;
use gimlet::text::Printable;
use serde_json::Value;

use super::footer::footer;
use super::stream::beside_calls;
use super::{Show, arguments, clip, guided, plan};
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

/// What is told of the words a model says beside its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prose {
    /// They are quoted, on one line.
    Quoted,
    /// Nothing: they are shown elsewhere.
    Elsewhere,
}

/// How much is told, and of warnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Telling {
    pub(crate) volume: Volume,
    pub(crate) warnings: Warnings,
}

/// What becomes of a run's warnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Warnings {
    /// They are told.
    Shown,
    /// They are counted, unless much is told anyway.
    Counted,
}

/// Whether the first lines of results are told, and how long each took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Results {
    Shown,
    Hidden,
}

/// Tells a run on standard error.
pub(crate) struct Talk {
    volume: Volume,
    /// Columns of the terminal; nothing is broken there by a name or a number.
    columns: usize,
    prose: Prose,
    warnings: Warnings,
    results: Results,
    /// Warnings that were not told.
    hidden: AtomicUsize,
    /// Whether a run is being taken up: what is not as it was then (folder, version, tools) is told to everybody.
    taken_up: AtomicBool,
    /// Whether a refused answer of the present task was told.
    refused: AtomicBool,
    /// Arguments of open calls, until they finish.
    open: Mutex<HashMap<String, Value>>,
}

impl Talk {
    pub(crate) fn new(telling: Telling, columns: usize, prose: Prose) -> Self {
        let Telling { volume, warnings } = telling;
        let (hidden, taken_up, refused) = Default::default();
        let results = if volume >= Volume::Debug { Results::Shown } else { Results::Hidden };
        Talk { volume, columns, prose, warnings, results, hidden, taken_up, refused, open: Mutex::default() }
    }

    /// Leaves out the first lines of results, whatever the volume.
    pub(crate) fn without_results(mut self) -> Self {
        self.results = Results::Hidden;
        self
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
                let line = normal.then(|| call_line(&args, finished, self.columns, self.results));
                line.map(|line| guided::with_diff(line, finished))
            }
            EventKind::StepStarted { step } => {
                self.taken_up.store(false, Ordering::Relaxed);
                debug.then(|| format!("{DIM}step {step}{DIM:#}"))
            }
            EventKind::ModelMessage(message) => self.message(message),
            // Its words are on the screen already, or would be missed by whoever reads along.
            EventKind::Feedback { reason: FeedbackReason::AnswerRefused, text } if !verbose => {
                // A gate's words are for the model; the person reads one line for a task.
                let is_first = !self.refused.swap(true, Ordering::Relaxed);
                (normal && is_first).then(|| format!("{WARNING}not accepted:{WARNING:#} {}", reasons(text)))
            }
            EventKind::Feedback { text, .. } => {
                verbose.then(|| format!("{DIM}told the model: {}{DIM:#}", clip(text, 200)))
            }
            EventKind::UserMessage { text } => {
                self.refused.store(false, Ordering::Relaxed);
                verbose.then(|| format!("you: {}", clip(text, 200)))
            }
            EventKind::CellStarted { code, .. } => normal.then(|| code_lines(code)),
            EventKind::CellOutput { text, .. } => normal.then(|| indent(text)),
            EventKind::CellFinished { end, .. } => normal.then(|| cell_line(end)).flatten(),
            EventKind::ApprovalDecided { decision, .. } => normal.then(|| decision_line(decision)),
            EventKind::AgentStarted(started) => normal.then(|| {
                format!(
                    "{NAME}{}{NAME:#} begins: {}",
                    Printable::line(&started.agent),
                    clip(&started.task, 100)
                )
            }),
            EventKind::AgentFinished(finished) => {
                let name = Printable::line(event.path.agents().last().unwrap_or_default());
                normal.then(|| format!("{DIM}{name} is done: {}{DIM:#}", clip(&finished.answer, 100)))
            }
            EventKind::Plan(made) => normal.then(|| plan(made)).flatten(),
            EventKind::ContextPruned(plan) => normal.then(|| pruned(plan)),
            EventKind::ContextCompacted(made) => normal.then(|| compacted(made)),
            EventKind::ActionChanged(change) if change.cause != ChangeCause::Unreadable => {
                normal.then(|| format!("{DIM}{}{DIM:#}", change.reason))
            }
            EventKind::GuidedAimed(_)
            | EventKind::GuidedFound(_)
            | EventKind::GuidedLocated(_)
            | EventKind::GuidedEdited(_)
            | EventKind::GuidedChecked(_) => normal.then(|| guided::line(&event.kind, verbose)).flatten(),
            EventKind::ActionChanged(change) => {
                Some(format!("{WARNING}warning:{WARNING:#} {}", Printable::line(&change.reason)))
            }
            EventKind::Warning { message } => match self.warnings {
                Warnings::Counted if !verbose && !self.taken_up.load(Ordering::Relaxed) => {
                    self.hidden.fetch_add(1, Ordering::Relaxed);
                    None
                }
                Warnings::Counted | Warnings::Shown => {
                    Some(format!("{WARNING}warning:{WARNING:#} {}", Printable::line(message)))
                }
            },
            EventKind::RunStarted(started) => verbose
                .then(|| [event.run.as_str(), &started.model, &started.root].map(Printable::line))
                .map(|[run, model, root]| format!("{DIM}run {run} · {model} · {root}{DIM:#}")),
            EventKind::RunResumed { root, .. } => {
                self.taken_up.store(true, Ordering::Relaxed);
                normal.then(|| format!("{DIM}resuming {} in {}{DIM:#}", event.run, Printable::line(root)))
            }
            EventKind::ModelDelta { .. }
            | EventKind::ModelAsked { .. }
            | EventKind::PlanRequested
            | EventKind::ToolStarted { .. }
            | EventKind::ApprovalRequested(_)
            | EventKind::Unknown => None,
            EventKind::RunSuspended { .. } | EventKind::RunFinished(_) | EventKind::RunFailed { .. } => {
                normal.then(|| self.hidden_warnings()).flatten()
            }
        }
    }

    /// That warnings were kept back, so that nothing is hidden without a word.
    fn hidden_warnings(&self) -> Option<String> {
        let told = match self.hidden.swap(0, Ordering::Relaxed) {
            0 => return None,
            1 => "1 warning was".to_owned(),
            many => format!("{many} warnings were"),
        };
        Some(format!("{DIM}{told} not shown; -v or SUPPRESS_WARNINGS=false shows them{DIM:#}"))
    }

    fn message(&self, message: &ModelMessage) -> Option<String> {
        let acts = !message.tool_calls.is_empty() || message.code.is_some();
        let mut lines = Vec::new();
        if self.volume >= Volume::Debug {
            lines.push(format!(
                "{DIM}  {:.2} s, {} tokens in{}, {} out{DIM:#}",
                message.seconds,
                message.usage.input,
                cached(&message.usage),
                message.usage.output
            ));
        }
        if self.volume >= Volume::Normal
            && self.prose == Prose::Quoted
            && !message.tool_calls.is_empty()
            && let words = beside_calls(message)
            && !words.trim().is_empty()
        {
            lines.push(format!("{DIM}“{}”{DIM:#}", clip(&words, 300)));
        }
        if self.volume >= Volume::Verbose
            && !acts
            && let Some(problem) = &message.problem
        {
            lines.push(format!(
                "{WARNING}the reply could not be used:{WARNING:#} {}",
                Printable::line(problem)
            ));
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    fn open(&self) -> std::sync::MutexGuard<'_, HashMap<String, Value>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Show for Talk {
    fn show(&self, event: &Event) {
        if let Some(lines) = self.told(event) {
            // Standard error that went away does not stop the run.
            let _ = writeln!(crate::out::stderr(), "{lines}");
        }
    }
}

/// Why an answer was refused: the points of what the model is told, or all of it.
fn reasons(text: &str) -> String {
    let points: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("- ")).map(without_order).collect();
    clip(&if points.is_empty() { text.to_owned() } else { points.join("; ") }, 200)
}

/// What a gate found missing, without what it tells the model to do about it.
pub(crate) fn without_order(reason: &str) -> &str {
    let orders = [": call ", ": read the one "].iter().filter_map(|order| reason.find(order));
    orders.min().map_or(reason, |end| &reason[..end])
}

fn key(event: &Event, id: &str) -> String {
    format!("{} {id}", event.path.as_str())
}

fn call_line(args: &Value, finished: &ToolFinished, columns: usize, results: Results) -> String {
    // What is left beside the name is shared by what was asked and what came of it.
    let tool = Printable::line(&finished.tool);
    let room = columns.saturating_sub(tool.as_str().chars().count() + 8);
    let args = match arguments(args, (room / 2).clamp(16, 80)) {
        none if none.is_empty() => none,
        some => format!(" {some}"),
    };
    let ms = finished.seconds * 1000.0;
    let mut line = if finished.ok {
        let what = clip(&gist(&finished.result), room.saturating_sub(args.chars().count()).clamp(16, 110));
        let cut = if finished.truncated { ", cut" } else { "" };
        format!("{GOOD}•{GOOD:#} {NAME}{tool}{NAME:#}{args} {DIM}→ {what}{cut}{DIM:#}")
    } else {
        let text = |key: &str| finished.result[key].as_str().unwrap_or_default().to_owned();
        let mut line = format!(
            "{ERROR}✗{ERROR:#} {NAME}{tool}{NAME:#}{args} → {}: {}",
            Printable::line(&text("error")),
            clip(&text("message"), columns.clamp(40, 160))
        );
        if let Some(name) = finished.result["recovery_suggestion"]["tool_call"]["name"].as_str() {
            line.push_str(&format!(" {DIM}(suggests {}){DIM:#}", Printable::line(name)));
        }
        line
    };
    if results == Results::Shown {
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
                return counted(count, &key.replace('_', " "));
            }
            let text = map.iter().find_map(|(key, value)| {
                value.as_str().filter(|text| text.contains('\n')).map(|text| (key, text.lines().count()))
            });
            match text {
                Some((_, lines)) => counted(lines, "lines"),
                None => clip(&arguments(result, 80), 80),
            }
        }
        Value::Array(items) => counted(items.len(), "items"),
        Value::String(text) if text.lines().count() > 1 => format!("{} lines", text.lines().count()),
        other => clip(&other.to_string(), 80),
    }
}

/// A number of things, by the word for several of them.
fn counted(count: usize, several: &str) -> String {
    let (noun, rest) =
        several.split_once(' ').map_or((several, String::new()), |(noun, rest)| (noun, format!(" {rest}")));
    let one = match noun.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => noun
            .strip_suffix("ches")
            .map_or_else(|| noun.strip_suffix('s').unwrap_or(noun).to_owned(), |stem| format!("{stem}ch")),
    };
    if count == 1 { format!("1 {one}{rest}") } else { format!("{count} {noun}{rest}") }
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
    let code = Printable::block(code);
    code.as_str().lines().map(|line| format!("{DIM}│{DIM:#} {line}")).collect::<Vec<_>>().join("\n")
}

fn indent(text: &str) -> String {
    let text = Printable::block(text);
    text.as_str().lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
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
        Decision::Edit { .. } => format!("  {GOOD}approved with an edited patch{GOOD:#}"),
        Decision::Deny { feedback: None } => format!("  {ERROR}refused{ERROR:#}"),
        Decision::Deny { feedback: Some(feedback) } => {
            format!("  {ERROR}refused{ERROR:#}: {}", Printable::line(feedback))
        }
        Decision::Defer | Decision::Abort => format!("  {WARNING}not decided{WARNING:#}"),
    }
}

/// How much of what was read came from the server's cache.
fn cached(usage: &Usage) -> String {
    if usage.cached == 0 { String::new() } else { format!(" ({} cached)", usage.cached) }
}

/// What gave way, and what that saves.
fn pruned(plan: &Pruned) -> String {
    let results = match plan.elided.len() {
        1 => "1 old result gives".to_owned(),
        count => format!("{count} old results give"),
    };
    let window = match plan.window {
        0 => String::new(),
        window => format!(" of {window}"),
    };
    format!(
        "{DIM}{results} way: the conversation shrinks from about {} to {}{window} tokens{DIM:#}",
        plan.before, plan.after
    )
}

/// What a summary takes the project of, and what that saves.
fn compacted(made: &Compacted) -> String {
    let by = match made.by {
        Author::Model => "the model",
        Author::Code => "code, since the model wrote none,",
    };
    format!(
        "{DIM}old steps were summed up by {by}: the conversation shrinks from about {} to {} tokens{DIM:#}",
        made.before, made.after
    )
}

/// The last lines of a run: what it did, how it went and what it cost.
pub(crate) fn summary(run: &str, finished: &Finished) -> String {
    let plural = |n: u64, what: &str| if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") };
    let mut lines = footer(&finished.work);
    let below = match finished.steps_below {
        0 => String::new(),
        steps => format!(" and {steps} of agents below"),
    };
    lines.push(format!(
        "{DIM}{}{below}, {}{}, {:.1} s · run {run}{DIM:#}",
        plural(finished.steps.into(), "step"),
        plural(finished.usage.total(), "token"),
        cached(&finished.usage),
        finished.seconds
    ));
    lines.join("\n")
}
