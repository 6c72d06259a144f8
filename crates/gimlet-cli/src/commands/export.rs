//! `gimlet runs export`: a run as a document, Markdown for people and JSON for programs.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context;
use gimlet::approval::{ApprovalRequest, Decision};
use gimlet::event::{
    ChangeCause, Event, EventKind, FinishState, Finished, Started, Suspension, ToolFinished,
};
use gimlet::guided::EditOutcome;
use gimlet::plan::Plan;
use gimlet::text::Printable;
use serde_json::{Value, json};

use super::runs::load;
use crate::args::ExportFormat;
use crate::exit::ExitStatus;
use crate::show::{clip, counted, effect_line, fence, minute};

/// Most characters of a call's arguments that a document shows.
const MOST_ARGUMENT_CHARS: usize = 400;
/// Most lines of one result that a document shows.
const RESULT_LINES: usize = 60;

/// Writes a run.
pub(crate) async fn export(
    run: &str,
    format: ExportFormat,
    output: Option<&Path>,
) -> anyhow::Result<ExitStatus> {
    let (id, events) = load(run).await?;
    let text = match format {
        ExportFormat::Markdown => document(&events),
        ExportFormat::Json => {
            let version = env!("CARGO_PKG_VERSION");
            format!("{}\n", json!({ "run": id, "exported_by": version, "events": events }))
        }
    };
    match output {
        Some(path) => {
            std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?
        }
        None => crate::out::data(text.as_bytes())?,
    }
    Ok(ExitStatus::Success)
}

/// A run as Markdown.
pub(crate) fn document(events: &[Event]) -> String {
    let mut text = String::new();
    for event in events {
        write_event(&mut text, event);
    }
    // What a run has collected is not obeyed by the terminal that the document is read on.
    Printable::block(text.trim_end()).into_string() + "\n"
}

fn write_event(to: &mut String, event: &Event) {
    // Writing to a string cannot fail.
    let _ = match &event.kind {
        EventKind::RunStarted(started) => beginning(to, event, started),
        EventKind::RunResumed { root, version, .. } => {
            writeln!(to, "*Resumed {} in `{root}` with version {version}.*\n", minute(event.time))
        }
        EventKind::StepStarted { step } => match event.path.is_root() {
            true => writeln!(to, "## Step {step}\n"),
            false => writeln!(to, "### Step {step} of {}\n", event.path.as_str()),
        },
        EventKind::ModelMessage(message) => match message.text.trim() {
            // An answer follows as one, and code as a cell.
            "" => Ok(()),
            _ if message.answer.is_some() || message.code.is_some() => Ok(()),
            words => writeln!(to, "{words}\n"),
        },
        EventKind::Feedback { text, .. } => writeln!(to, "> The runtime: {}\n", clip(text, 400)),
        EventKind::UserMessage { text } => writeln!(to, "**You:** {}\n", text.trim()),
        EventKind::ToolRequested { call } => writeln!(to, "`{}` `{}`\n", call.tool, inline(&call.args)),
        EventKind::ToolFinished(finished) => result(to, finished),
        EventKind::CellStarted { code, .. } => fenced(to, "python", code),
        EventKind::CellOutput { text, .. } => fenced(to, "", text),
        EventKind::CellFinished { end, .. } => match end {
            gimlet::cell::CellEnd::Raised { traceback, .. } => fenced(to, "", traceback),
            gimlet::cell::CellEnd::Limited { message } | gimlet::cell::CellEnd::Crashed { message } => {
                writeln!(to, "*The code was stopped: {message}*\n")
            }
            gimlet::cell::CellEnd::Done { .. } | gimlet::cell::CellEnd::Answer { .. } => Ok(()),
        },
        EventKind::ApprovalRequested(request) => asked(to, request),
        EventKind::ApprovalDecided { decision, .. } => writeln!(to, "*{}*\n", decided(decision)),
        EventKind::AgentStarted(started) => {
            writeln!(to, "**{}** is asked: {}\n", started.agent, started.task.trim())
        }
        EventKind::AgentFinished(finished) => writeln!(to, "It answers: {}\n", finished.answer.trim()),
        EventKind::PlanRequested => writeln!(to, "*You asked for a plan.*\n"),
        EventKind::Plan(plan) => planned(to, plan),
        EventKind::ContextPruned(pruned) => {
            writeln!(to, "*{} old results gave way to make room.*\n", pruned.elided.len())
        }
        EventKind::ContextCompacted(made) => {
            writeln!(
                to,
                "*Old steps were summed up to make room:*\n\n> {}\n",
                made.text.replace('\n', "\n> ")
            )
        }
        EventKind::ActionChanged(change) => match change.cause {
            ChangeCause::Unreadable => writeln!(to, "> Warning: {}\n", change.reason),
            ChangeCause::Aim | ChangeCause::NoChange => writeln!(to, "*{}*\n", change.reason),
        },
        EventKind::GuidedLocated(located) => writeln!(to, "*Works on {}.*\n", located.files.join(", ")),
        EventKind::GuidedEdited(edited) => match &edited.outcome {
            EditOutcome::Unusable { problem } => writeln!(to, "*The reply could not be used: {problem}.*\n"),
            EditOutcome::Repeated => writeln!(to, "*The model repeated an earlier edit.*\n"),
            EditOutcome::Usable { .. } | EditOutcome::Cut => Ok(()),
        },
        EventKind::Warning { message } => writeln!(to, "> Warning: {message}\n"),
        EventKind::RunSuspended { reason } => writeln!(to, "*{}*\n", stopped(reason)),
        EventKind::RunFinished(finished) => answer(to, finished),
        EventKind::RunFailed { error } => writeln!(to, "*Failed: {} ({})*\n", error.message, error.error),
        EventKind::GuidedAimed(_)
        | EventKind::GuidedFound(_)
        | EventKind::GuidedChecked(_)
        | EventKind::ModelDelta { .. }
        | EventKind::ModelAsked { .. }
        | EventKind::ToolStarted { .. }
        | EventKind::Unknown => Ok(()),
    };
}

fn beginning(to: &mut String, event: &Event, started: &Started) -> std::fmt::Result {
    let title = started.task.trim().lines().next().unwrap_or_default();
    writeln!(to, "# {}\n", clip(title, 100))?;
    writeln!(
        to,
        "Run `{}`, {}, `{}` in `{}`.\n",
        event.run,
        minute(event.time),
        started.model,
        started.root
    )?;
    if started.task.trim() != title {
        writeln!(to, "{}\n", started.task.trim())?;
    }
    Ok(())
}

fn planned(to: &mut String, plan: &Plan) -> std::fmt::Result {
    if plan.steps.is_empty() {
        return match plan.text.trim() {
            "" => Ok(()),
            words => writeln!(to, "### Plan\n\n{words}\n"),
        };
    }
    writeln!(to, "### Plan\n")?;
    for (what, facts) in [("Known", &plan.known), ("To find", &plan.to_find)] {
        for fact in facts {
            writeln!(to, "- {what}: {fact}")?;
        }
    }
    writeln!(to)?;
    for (at, step) in plan.steps.iter().enumerate() {
        writeln!(to, "{}. {step}", at + 1)?;
    }
    writeln!(to)
}

fn result(to: &mut String, finished: &ToolFinished) -> std::fmt::Result {
    let text = match &finished.result {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    };
    let count = text.lines().count();
    let mut shown = text.lines().take(RESULT_LINES).collect::<Vec<_>>().join("\n");
    if count > RESULT_LINES {
        let _ = write!(shown, "\n… {} more lines", count - RESULT_LINES);
    }
    let language = if finished.result.is_string() { "" } else { "json" };
    fenced(to, language, &shown)
}

fn asked(to: &mut String, request: &ApprovalRequest) -> std::fmt::Result {
    writeln!(to, "**Approval needed** for `{}`, because {}:\n", request.tool, request.reason)?;
    for effect in &request.effects {
        writeln!(to, "- {}", effect_line(effect))?;
    }
    writeln!(to)?;
    match &request.preview {
        Some(diff) => fenced(to, "diff", diff),
        None => Ok(()),
    }
}

fn decided(decision: &Decision) -> String {
    match decision {
        Decision::Approve { .. } => "Approved.".into(),
        Decision::Edit { .. } => "Approved with an edited patch.".into(),
        Decision::Deny { feedback: None } => "Refused.".into(),
        Decision::Deny { feedback: Some(feedback) } => format!("Refused: {feedback}"),
        Decision::Defer | Decision::Abort => "Not decided.".into(),
    }
}

fn stopped(reason: &Suspension) -> String {
    match reason {
        Suspension::Approval { approval } => format!("Suspended: waits for {approval}."),
        Suspension::Interrupted => "Interrupted.".into(),
        Suspension::Diverged { message } => format!("Stopped: {message}"),
    }
}

fn answer(to: &mut String, finished: &Finished) -> std::fmt::Result {
    let how = match finished.state {
        FinishState::Answered => "",
        FinishState::MaxSteps => " (out of steps)",
        FinishState::Timeout => " (out of time)",
        FinishState::TokenBudget => " (out of tokens)",
        FinishState::StepBudget => " (out of shared steps)",
        FinishState::Repeating => " (only repeated itself)",
        FinishState::Failed => " (failed)",
    };
    writeln!(to, "## Answer{how}\n\n{}\n", finished.answer.trim())?;
    for note in &finished.notes {
        writeln!(to, "> Note: {note}\n")?;
    }
    let steps = counted(finished.steps, "step");
    let tokens = counted(finished.usage.total(), "token");
    writeln!(to, "*{steps}, {tokens}, {:.1} s*\n", finished.seconds)
}

/// Arguments on one line that no backtick ends.
fn inline(args: &Value) -> String {
    let text = args.to_string();
    let cut: String = text.chars().take(MOST_ARGUMENT_CHARS).collect();
    let rest = if cut.len() < text.len() { "…" } else { "" };
    format!("{cut}{rest}").replace('`', "'")
}

fn fenced(to: &mut String, language: &str, text: &str) -> std::fmt::Result {
    let fence = fence(text);
    writeln!(to, "{fence}{language}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}
