//! `gimlet eval SUITE --check`: a suite is worth something only if its tasks can be failed and can be solved. Every task
//! is judged with nothing done, which must fail, and with its reference solution, which must pass.

use std::io::Write;
use std::path::Path;

use gimlet::tool::Tool;
use tokio_util::sync::CancellationToken;

use super::check::{Check, Grounds, Verdict, judge};
use super::fixture::Snapshot;
use super::suite::{Reference, Task};
use super::transcript::{Call, Ended, Transcript};
use crate::options::Conclusion;
use crate::repository;
use crate::style::{DIM, ERROR, GOOD, WARNING};
use gimlet_runtime::Project;
use gimlet_runtime::config::Settings;
use gimlet_runtime::isolation::{Containers, Isolation, end_containers};

/// What was found about a task.
enum Finding {
    /// It can be failed and solved.
    Sound,
    /// It can be failed; nothing shows that it can be solved.
    NoReference,
    /// It cannot be tried here.
    Skipped(String),
    /// What is wrong.
    Wrong(Vec<String>),
}

/// Checks tasks, and tells about each.
pub(crate) async fn prove(
    tasks: &[&Task],
    settings: &Settings,
    cancel: &CancellationToken,
) -> anyhow::Result<Conclusion> {
    let tools: Vec<String> = Project::to_look_at(settings)?
        .tools()
        .iter()
        .map(|tool| Tool::spec(tool.as_ref()).name.clone())
        .collect();
    let mut stdout = crate::out::stdout();
    let (mut wrong, mut unproven) = (0, 0);
    for task in tasks {
        let (style, mark, told) = match examine(task, settings, &tools, cancel).await? {
            Finding::Sound => (GOOD, "✓", Vec::new()),
            Finding::NoReference => {
                unproven += 1;
                (WARNING, "–", vec!["no reference solution shows that it can be solved".into()])
            }
            Finding::Skipped(why) => {
                unproven += 1;
                (WARNING, "–", vec![why])
            }
            Finding::Wrong(told) => {
                wrong += 1;
                (ERROR, "✗", told)
            }
        };
        writeln!(stdout, "{style}{mark}{style:#} {}", task.id)?;
        for line in told {
            writeln!(stdout, "  {line}")?;
        }
    }
    let sound = tasks.len() - wrong - unproven;
    writeln!(stdout, "{DIM}{sound} sound, {unproven} not shown to be, {wrong} wrong{DIM:#}")?;
    Ok(if wrong == 0 { Conclusion::Done } else { Conclusion::Faulty })
}

async fn examine(
    task: &Task,
    settings: &Settings,
    tools: &[String],
    cancel: &CancellationToken,
) -> anyhow::Result<Finding> {
    let lacks = task.lacks();
    if !lacks.is_empty() {
        return Ok(Finding::Skipped(format!("it needs {}, which this machine has not", lacks.join(", "))));
    }
    let before = task.fixture.untouched()?;
    let mut wrong = hollow(task, tools, &before);
    let idle = Transcript { ended: Ended::Answered, ..Transcript::default() };
    let verdicts = in_copy(task, &before, &idle, "", settings, cancel).await?;
    if verdicts.iter().all(|verdict| verdict.failed.is_none()) {
        wrong.push(format!("{}: it passes with nothing done and no answer", task.spot));
    }
    if let Some(reference) = &task.reference {
        let verdicts = in_copy(task, &before, &acted(reference), &reference.patch, settings, cancel).await?;
        let failed = verdicts.iter().filter_map(|verdict| Some((&verdict.check, verdict.failed.as_ref()?)));
        wrong.extend(failed.map(|(check, why)| {
            format!("{}: the reference solution does not pass: {check} – {why}", task.spot)
        }));
    }
    Ok(match (wrong.is_empty(), &task.reference) {
        (false, _) => Finding::Wrong(wrong),
        (true, Some(_)) => Finding::Sound,
        (true, None) => Finding::NoReference,
    })
}

/// Checks that could not fail in this fixture, or with these tools.
fn hollow(task: &Task, tools: &[String], before: &Snapshot) -> Vec<String> {
    let mut wrong = Vec::new();
    for placed in &task.checks {
        if let Check::ToolNotCalled(names) | Check::ToolCalled(names) = &placed.check {
            for name in names.iter().filter(|name| !tools.iter().any(|tool| tool == name)) {
                wrong.push(format!("{}: there is no tool `{name}`", placed.spot));
            }
        }
        if let Check::Unchanged(_) = &placed.check {
            for path in placed.check.paths().into_iter().filter(|path| before.file(path).is_none()) {
                wrong.push(format!("{}: the fixture has no file {}", placed.spot, path.display()));
            }
        }
    }
    wrong
}

fn acted(reference: &Reference) -> Transcript {
    let call = |tool: &str, commands: Vec<String>| Call::done(tool, commands);
    let calls = reference.calls.iter().map(|tool| call(tool, Vec::new()));
    let commands = reference.commands.iter().map(|command| call("run_cmd", vec![command.clone()]));
    let calls: Vec<Call> = calls.chain(commands).collect();
    Transcript {
        answer: reference.answer.clone(),
        ended: Ended::Answered,
        steps: u32::try_from(calls.len()).unwrap_or(u32::MAX).saturating_add(1),
        calls,
        ..Transcript::default()
    }
}

async fn in_copy(
    task: &Task,
    before: &Snapshot,
    transcript: &Transcript,
    patch: &str,
    settings: &Settings,
    cancel: &CancellationToken,
) -> anyhow::Result<Vec<Verdict>> {
    let folder = tempfile::Builder::new().prefix("gimlet-eval-").tempdir()?;
    let repo: &Path = folder.path();
    task.fixture.make(repo)?;
    if !patch.is_empty() {
        repository::apply(repo, patch)
            .map_err(|error| error.context(format!("{}: the reference patch does not apply", task.spot)))?;
    }
    let containers = Containers::default();
    let isolation = Isolation::new(repo, settings, &containers)?;
    let verdicts = judge(task, &Grounds { transcript, repo, before, isolation: &isolation, cancel }).await;
    end_containers(&containers).await;
    verdicts
}
