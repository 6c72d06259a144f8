//! `gimlet runs`: what was done, from the logs.

use std::io::Write;
use std::path::Path;

use gimlet::event::{Event, EventKind, FinishState, Suspension};
use gimlet::ids::RunId;
use gimlet::store::RunStatus;
use gimlet::text::Printable;
use gimlet_runtime::Runtime;

use super::{export, fork, replay};
use crate::app;
use crate::args::{RootArgs, RunsCommand, RunsListArgs};
use crate::exit::ExitStatus;
use crate::show::{Prose, Talk, Telling, Volume, Warnings, clip, minute, summary};
use crate::style::{BOLD, DIM, ERROR, GOOD, NAME, WARNING};
use gimlet_runtime::config::DEFAULT_AGENT;

/// Looks at runs, or makes a new one of an old one.
pub(crate) async fn runs(command: Option<RunsCommand>, listed: RunsListArgs) -> anyhow::Result<ExitStatus> {
    match command.unwrap_or(RunsCommand::List(listed)) {
        RunsCommand::List(args) => list(&args).await,
        RunsCommand::Show { run, timeline: true, .. } => super::trace::timeline(&run).await,
        RunsCommand::Show { run, json, timeline: false } => show(&run, json.json).await,
        RunsCommand::Trace { run, trace_content } => super::trace::resend(&run, trace_content).await,
        RunsCommand::Replay { run, speed, max_pause } => replay::replay(&run, speed, max_pause).await,
        RunsCommand::Export { run, format, output } => export::export(&run, format, output.as_deref()).await,
        RunsCommand::Fork { run, at, message } => fork::fork(&run, at, message).await,
        RunsCommand::Undo(args) => super::undo::undo(args).await,
        RunsCommand::Delete { runs } => super::prune::delete(&runs).await,
        RunsCommand::Prune { older_than, dry_run } => super::prune::prune(older_than, dry_run).await,
    }
}

async fn list(args: &RunsListArgs) -> anyhow::Result<ExitStatus> {
    let runtime = app::plain()?;
    let catalog = runtime.catalog();
    let folder = RootArgs { root: args.root.clone() }.canonical();
    let runs: Vec<_> = match args.all {
        true => catalog.list(args.limit).await?,
        false => {
            let all = catalog.list(usize::MAX).await?;
            all.into_iter().filter(|run| Path::new(&run.root) == folder).take(args.limit).collect()
        }
    };
    let mut stdout = crate::out::stdout();
    if args.json.json {
        crate::out::json(&runs)?;
        return Ok(ExitStatus::Success);
    }
    if runs.is_empty() {
        match catalog.list(1).await?.is_empty() {
            true => writeln!(crate::out::stderr(), "no runs yet")?,
            false => {
                writeln!(crate::out::stderr(), "no runs in this folder")?;
                writeln!(crate::out::stderr(), "hint: gimlet runs --all lists those of every folder")?;
            }
        }
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
        if args.all {
            writeln!(stdout, "{:<22}  {DIM}{}{DIM:#}", "", Printable::line(&run.root))?;
        }
        if let Some(damage) = &run.damage {
            writeln!(stdout, "  {ERROR}damaged:{ERROR:#} {damage}")?;
        }
    }
    Ok(ExitStatus::Success)
}

/// The run that a person means; `last` is the last one of this folder.
pub(super) async fn find(runtime: &Runtime, run: &str) -> anyhow::Result<RunId> {
    let here = std::env::current_dir().and_then(|here| here.canonicalize())?;
    runtime.find_in(&here, run).await
}

/// A run by what a person calls it, and its events.
pub(super) async fn load(run: &str) -> anyhow::Result<(RunId, Vec<Event>)> {
    let runtime = app::plain()?;
    let id = find(&runtime, run).await?;
    let events = runtime.store().load(&id).await?;
    Ok((id, events))
}

async fn show(run: &str, json: bool) -> anyhow::Result<ExitStatus> {
    let (_, events) = load(run).await?;
    let mut stdout = crate::out::stdout();
    if json {
        for event in &events {
            crate::out::json(event)?;
        }
        return Ok(ExitStatus::Success);
    }
    let telling = Telling { volume: Volume::Debug, warnings: Warnings::Shown };
    let talk = Talk::new(telling, 120, Prose::Quoted).without_results();
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
                Printable::block(&started.task),
                event.run,
                minute(event.time),
                Printable::line(&started.model),
                Printable::line(&started.root)
            ))
        }
        EventKind::RunFinished(finished) => {
            let limit = match finished.state {
                FinishState::Answered => "",
                FinishState::MaxSteps => " (out of steps)",
                FinishState::Timeout => " (out of time)",
                FinishState::TokenBudget => " (out of tokens)",
                FinishState::StepBudget => " (out of shared steps)",
                FinishState::Repeating => " (only repeated itself)",
                FinishState::Failed => " (failed)",
            };
            Some(format!(
                "\n{}{limit}\n{}",
                Printable::prose(finished.answer.trim_end()),
                summary(event.run.as_str(), finished)
            ))
        }
        EventKind::RunFailed { error } => {
            Some(format!("{ERROR}failed:{ERROR:#} {} ({})", Printable::line(&error.message), error.error))
        }
        EventKind::RunSuspended { reason } => Some(match reason {
            Suspension::Approval { approval } => {
                format!("{WARNING}suspended:{WARNING:#} waits for {approval}")
            }
            Suspension::Interrupted => format!("{WARNING}interrupted{WARNING:#}"),
            Suspension::Diverged { message } => {
                format!("{ERROR}stopped:{ERROR:#} {}", Printable::line(message))
            }
        }),
        _ => None,
    }
}
