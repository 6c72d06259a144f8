//! The same tasks for other programs: laid out in a folder each, worked on by whoever wants to, and graded by the same
//! checks as our own tries.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::check::{Grounds, judge};
use super::ledger::{Ledger, Record, Try};
use super::progress::Progress;
use super::suite::{Approve, Suite, Task};
use super::transcript::Transcript;
use gimlet_runtime::UsageError;
use gimlet_runtime::config::{Settings, read_small, shown};
use gimlet_runtime::isolation::{Containers, Isolation, end_containers};

/// What another program is told about a task.
#[derive(Serialize)]
struct Order<'a> {
    id: &'a str,
    task: &'a str,
    max_steps: u32,
    timeout: f64,
    approve: Approve,
}

/// What it leaves behind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Left {
    agent: String,
    model: String,
    action: String,
    repetition: u32,
    transcript: Transcript,
}

/// Lays tasks out: a folder each, with `task.json` and the repository in `repo`.
pub(crate) fn prepare(tasks: &[&Task], folder: &Path) -> anyhow::Result<usize> {
    let mut laid = 0;
    for task in tasks.iter().filter(|task| task.lacks().is_empty()) {
        let place = folder.join(&task.id);
        if place.exists() {
            return Err(UsageError::new(format!("{} is there already", shown(&place)))
                .hint("name another folder, or remove that one")
                .into());
        }
        task.fixture.make(&place.join("repo"))?;
        let order = Order {
            id: &task.id,
            task: &task.words,
            max_steps: task.max_steps,
            timeout: task.timeout,
            approve: task.approve,
        };
        std::fs::write(place.join("task.json"), serde_json::to_vec_pretty(&order)?)?;
        laid += 1;
    }
    Ok(laid)
}

/// Grades every task of a folder that has a `run.json`.
pub(crate) async fn grade(
    folder: &Path,
    suite: &Suite,
    chosen: &[&Task],
    ledger: &mut Ledger,
    settings: &Settings,
    cancel: &CancellationToken,
) -> anyhow::Result<usize> {
    let mut places: Vec<PathBuf> = std::fs::read_dir(folder)
        .with_context(|| format!("cannot look into {}", shown(folder)))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join("run.json").is_file())
        .collect();
    places.sort();
    let progress = Progress::new(places.len());
    let mut graded = 0;
    for place in places {
        let id = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(task) = suite.task(&id) else {
            return Err(UsageError::new(format!("the suite has no task `{id}`")).into());
        };
        if !chosen.iter().any(|chosen| chosen.id == id) {
            continue;
        }
        let file = place.join("run.json");
        let bytes = read_small(&file)?.unwrap_or_default();
        let left: Left = serde_json::from_slice(&bytes)
            .map_err(|error| UsageError::new(format!("{}: {error}", shown(&file))))?;
        let contender =
            super::ledger::Contender { agent: left.agent, model: left.model, action: left.action };
        let attempt = Try { contender, task: id, repetition: left.repetition };
        if ledger.has(&attempt) {
            continue;
        }
        let repo = place.join("repo");
        let before = task.fixture.untouched()?;
        let containers = Containers::default();
        let isolation = Isolation::new(&repo.canonicalize()?, settings, &containers)?;
        let grounds = Grounds {
            transcript: &left.transcript,
            repo: &repo,
            before: &before,
            isolation: &isolation,
            cancel,
        };
        let verdicts = judge(task, &grounds).await;
        end_containers(&containers).await;
        let verdicts = verdicts?;
        let record = Record::new(attempt, task, verdicts, left.transcript);
        progress.end(&record);
        ledger.add(record)?;
        graded += 1;
    }
    Ok(graded)
}
