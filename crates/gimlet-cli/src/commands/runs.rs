//! `gimlet runs`: what was done, from the logs.

use std::io::Write;
use std::sync::Arc;

use gimlet::event::{Event, EventKind, FinishState, Suspension};
use gimlet::ids::RunId;
use gimlet::store::Store;
use gimlet_runtime::parts::store::{FileStore, RunStatus};

use super::{export, fork, replay};
use crate::app;
use crate::args::{JsonArgs, RunsCommand};
use crate::exit::{ExitStatus, UsageError};
use crate::show::{Prose, Talk, Telling, Volume, Warnings, clip, summary};
use crate::style::{BOLD, DIM, ERROR, GOOD, NAME, WARNING};
use gimlet_runtime::config::DEFAULT_AGENT;

/// Looks at runs, or makes a new one of an old one.
pub(crate) async fn runs(command: Option<RunsCommand>) -> anyhow::Result<ExitStatus> {
    match command.unwrap_or(RunsCommand::List { limit: 20, json: JsonArgs { json: false } }) {
        RunsCommand::List { limit, json } => list(limit, json.json),
        RunsCommand::Show { run, timeline: true, .. } => super::trace::timeline(&run).await,
        RunsCommand::Show { run, json, timeline: false } => show(&run, json.json).await,
        RunsCommand::Trace { run, trace_content } => super::trace::resend(&run, trace_content).await,
        RunsCommand::Replay { run, speed, max_pause } => replay::replay(&run, speed, max_pause).await,
        RunsCommand::Export { run, format, output } => export::export(&run, format, output.as_deref()).await,
        RunsCommand::Fork { run, at, message } => fork::fork(&run, at, message).await,
        RunsCommand::Undo(args) => super::undo::undo(args).await,
    }
}

fn list(limit: usize, json: bool) -> anyhow::Result<ExitStatus> {
    let runs = app::store()?.list(limit)?;
    let mut stdout = anstream::stdout().lock();
    if json {
        writeln!(stdout, "{}", serde_json::to_string(&runs)?)?;
        return Ok(ExitStatus::Success);
    }
    if runs.is_empty() {
        writeln!(anstream::stderr(), "no runs yet")?;
        return Ok(ExitStatus::Success);
    }
    writeln!(stdout, "{BOLD}{:<22}  {:<11}  {:>5}  {:>8}  TASK{BOLD:#}", "RUN", "STATE", "STEPS", "SECONDS")?;
    for run in runs {
        let (style, word) = match &run.status {
            RunStatus::Running => (NAME, "running"),
            RunStatus::Suspended { .. } => (WARNING, "suspended"),
            RunStatus::Interrupted => (WARNING, "interrupted"),
            RunStatus::Diverged => (ERROR, "diverged"),
            RunStatus::Answered => (GOOD, "answered"),
            RunStatus::Limited => (WARNING, "limited"),
            RunStatus::Failed => (ERROR, "failed"),
            RunStatus::Crashed => (ERROR, "crashed"),
        };
        let task = clip(&run.task, 60);
        writeln!(
            stdout,
            "{:<22}  {style}{word:<11}{style:#}  {:>5}  {:>8.1}  {task}",
            run.id, run.steps, run.seconds
        )?;
        if let Some(damage) = &run.damage {
            writeln!(stdout, "  {ERROR}damaged:{ERROR:#} {damage}")?;
        }
    }
    Ok(ExitStatus::Success)
}

/// A run by what a person calls it, and its events.
pub(super) async fn load(run: &str) -> anyhow::Result<(Arc<FileStore>, RunId, Vec<Event>)> {
    let store = app::store()?;
    let id =
        store.resolve(run).map_err(|error| UsageError::new(error.to_string()).hint("see `gimlet runs`"))?;
    let events = store.load(&id).await?;
    Ok((store, id, events))
}

async fn show(run: &str, json: bool) -> anyhow::Result<ExitStatus> {
    let (_, _, events) = load(run).await?;
    let mut stdout = anstream::stdout().lock();
    if json {
        for event in &events {
            writeln!(stdout, "{}", serde_json::to_string(event)?)?;
        }
        return Ok(ExitStatus::Success);
    }
    let telling = Telling { volume: Volume::Debug, warnings: Warnings::Shown };
    let talk = Talk::new(telling, 120, Prose::Quoted);
    for event in &events {
        if let Some(lines) = story(event).or_else(|| talk.told(event)) {
            writeln!(stdout, "{lines}")?;
        }
    }
    Ok(ExitStatus::Success)
}

/// The lines that only matter when a run is told afterwards: how it began and where it stopped.
fn story(event: &Event) -> Option<String> {
    match &event.kind {
        EventKind::RunStarted(started) => {
            let agent = Some(&started.agent).filter(|name| *name != DEFAULT_AGENT);
            let agent = agent.map(|name| format!(" · agent {name}")).unwrap_or_default();
            Some(format!(
                "{BOLD}{}{BOLD:#}\n{DIM}{} · {} · {}{agent} · {}{DIM:#}",
                started.task, event.run, event.time, started.model, started.root
            ))
        }
        EventKind::RunFinished(finished) => {
            let limit = match finished.state {
                FinishState::Answered => "",
                FinishState::MaxSteps => " (out of steps)",
                FinishState::Timeout => " (out of time)",
                FinishState::TokenBudget => " (out of tokens)",
                FinishState::StepBudget => " (out of shared steps)",
                FinishState::Failed => " (failed)",
            };
            Some(format!(
                "\n{}{limit}\n{}",
                finished.answer.trim_end(),
                summary(event.run.as_str(), finished)
            ))
        }
        EventKind::RunFailed { error } => {
            Some(format!("{ERROR}failed:{ERROR:#} {} ({})", error.message, error.error))
        }
        EventKind::RunSuspended { reason } => Some(match reason {
            Suspension::Approval { approval } => {
                format!("{WARNING}suspended:{WARNING:#} waits for {approval}")
            }
            Suspension::Interrupted => format!("{WARNING}interrupted{WARNING:#}"),
            Suspension::Diverged { message } => format!("{ERROR}stopped:{ERROR:#} {message}"),
        }),
        _ => None,
    }
}
