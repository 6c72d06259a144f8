//! Takes back what a run's patches did, from the run's own record of them.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use gimlet::event::{Event, EventKind};
use gimlet::ids::RunId;
use gimlet::state::{State, Stop};
use gimlet::store::{Store, StoreError};
use gimlet::tool::ToolError;
use gimlet_config::{Bounds, Process, UsageError};
use gimlet_tools::patch::{self, PatchEntry, Proposal, Stage, Undo};
use serde::Serialize;

use crate::continuing::append;
use crate::isolation::Isolation;
use crate::patches;
use crate::project::Project;
use crate::runtime::Runtime;

/// A patch that was to be taken back.
#[derive(Serialize)]
pub struct Outcome {
    /// The patch.
    pub patch: String,
    /// What it was for.
    pub intent: String,
    /// The files as they were before it.
    pub restored: Vec<String>,
    /// Files that it had created, which are gone again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    /// Why nothing was restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Outcome {
    /// What was done to the files, in words.
    pub fn done(&self) -> String {
        let part = |word: &str, files: &[String]| {
            (!files.is_empty()).then(|| format!("{word} {}", files.join(", ")))
        };
        let kept: Vec<String> =
            self.restored.iter().filter(|file| !self.removed.contains(file)).cloned().collect();
        let parts = [part("restored", &kept), part("removed", &self.removed)];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// What came of taking back.
pub struct Undone {
    /// What became of each patch.
    pub outcomes: Vec<Outcome>,
    /// What the model was not told, because its run is over.
    pub untold: Option<String>,
}

impl Runtime {
    /// Takes patches of a run back that nobody works on: all, or the one that is named.
    pub async fn undo(&self, id: &RunId, patch: Option<&str>) -> anyhow::Result<Vec<Outcome>> {
        let store = self.store();
        // Nobody else may be at work on the run, or on its patches, meanwhile.
        store.open(id).await.map_err(|error| match error {
            StoreError::Locked(_) => anyhow::Error::from(
                UsageError::new(format!("run {id} is at work")).hint("stop it, or wait until it is done"),
            ),
            other => other.into(),
        })?;
        let undone = self.undo_locked(id, patch).await;
        store.close(id);
        undone
    }

    async fn undo_locked(&self, id: &RunId, patch: Option<&str>) -> anyhow::Result<Vec<Outcome>> {
        let store = self.store();
        let project = project(self.process(), &store.load(id).await?)?;
        project.take_up_patches(entries(store.as_ref(), id).await?);
        project.keep_patches_for(store, id);
        let outcomes = take_back(store.as_ref(), id, &project, patch).await?;
        let events = store.load(id).await?;
        append(store.as_ref(), &events, record(&events, &outcomes).0).await?;
        Ok(outcomes)
    }
}

/// Takes patches back, the newest first: all, or the one that is named. It stops at the first that cannot be: older ones
/// lie below it. The store holds the run's lock, and the place knows its patches.
pub(crate) async fn take_back(
    store: &dyn Store,
    id: &RunId,
    project: &Project,
    named: Option<&str>,
) -> anyhow::Result<Vec<Outcome>> {
    let wanted = wanted(project, &entries(store, id).await?, named, id.as_str())?;
    let mut outcomes = Vec::new();
    for (proposal, undo) in wanted {
        let (restored, error) = match restore(project, &undo).await {
            Ok(restored) => (restored, None),
            Err(ToolError::Failed(failure)) => (Vec::new(), Some(failure.message)),
            Err(other) => return Err(other.into()),
        };
        let failed = error.is_some();
        let created =
            |path: &String| undo.changes.iter().any(|change| change.path == *path && change.before.is_none());
        let removed = restored.iter().filter(|path| created(path)).cloned().collect();
        outcomes.push(Outcome { patch: proposal.id, intent: proposal.intent, restored, removed, error });
        if failed {
            break;
        }
    }
    Ok(outcomes)
}

async fn entries(store: &dyn Store, run: &RunId) -> anyhow::Result<Vec<PatchEntry>> {
    patches::entries(store, run).await.with_context(|| format!("cannot read the patches of run {run}"))
}

/// The folder the run worked in last.
fn project(process: &Arc<Process>, events: &[Event]) -> anyhow::Result<Project> {
    let root = events.iter().rev().find_map(|event| match &event.kind {
        EventKind::RunResumed { root, .. } => Some(root.as_str()),
        EventKind::RunStarted(started) => Some(started.root.as_str()),
        _ => None,
    });
    let root = Path::new(root.context("the run has no beginning")?);
    let path = root
        .canonicalize()
        .map_err(|error| UsageError::new(format!("the run worked in {}: {error}", root.display())))?;
    // Settings are not read: a run that broke them must be taken back too. No command runs here.
    Project::at(process, &path, Bounds::default(), Isolation::none(process, &path, "nothing is run"))
}

/// What is to be taken back, newest first.
fn wanted(
    project: &Project,
    entries: &[PatchEntry],
    named: Option<&str>,
    run: &str,
) -> anyhow::Result<Vec<(Proposal, Undo)>> {
    let mut wanted: Vec<(Proposal, Undo)> = Vec::new();
    for entry in entries.iter().rev() {
        let PatchEntry::Applying(undo) = entry else { continue };
        let known = wanted.iter().any(|(proposal, _)| proposal.id == undo.patch_id);
        if known || named.is_some_and(|named| named != undo.patch_id) {
            continue;
        }
        let proposal = project.patches().get(&undo.patch_id)?;
        match proposal.stage {
            Stage::Applied | Stage::Applying => wanted.push((proposal, undo.clone())),
            Stage::Proposed | Stage::Undone => {}
        }
    }
    if wanted.is_empty() {
        return Err(match named {
            Some(named) => UsageError::new(format!("patch `{named}` is not applied in run {run}"))
                .hint(format!("`gimlet runs show {run}` tells what was applied")),
            None => UsageError::new(format!("run {run} has no applied patch")),
        }
        .into());
    }
    Ok(wanted)
}

async fn restore(project: &Project, undo: &Undo) -> Result<Vec<String>, ToolError> {
    let restored = patch::undo(project.root(), undo)?;
    project.patches().step(PatchEntry::Undone { id: undo.patch_id.clone() }).await?;
    Ok(restored)
}

/// What a run's log is to say of what was taken back. A run that can go on tells its model, too: it believes in its patch. For
/// one that is over, what its model would have to know is handed back.
pub(crate) fn record(events: &[Event], outcomes: &[Outcome]) -> (Vec<EventKind>, Option<String>) {
    let undone: Vec<String> = outcomes
        .iter()
        .filter(|outcome| outcome.error.is_none())
        .map(|outcome| format!("{} ({})", outcome.patch, outcome.done()))
        .collect();
    if undone.is_empty() {
        return (Vec::new(), None);
    }
    let message = format!("I took back {}", undone.join(", "));
    let said = EventKind::UserMessage { text: message.clone() };
    // What is said to a run that stopped leaves it stopped, for the same reason.
    match State::fold(events, &Default::default()).stop {
        Some(Stop::Finished(_)) => (vec![EventKind::Warning { message: message.clone() }], Some(message)),
        Some(Stop::Suspended(reason)) => (vec![said, EventKind::RunSuspended { reason }], None),
        Some(Stop::Failed(error)) => (vec![said, EventKind::RunFailed { error }], None),
        None => (vec![said], None),
    }
}
