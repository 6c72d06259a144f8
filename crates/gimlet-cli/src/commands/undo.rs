//! `gimlet runs undo`: takes back what a run's patches did, from the run's own record of them.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use gimlet::event::{Event, EventKind};
use gimlet::ids::RunId;
use gimlet::state::{State, Stop};
use gimlet::store::{Store, StoreError};
use gimlet::text::Printable;
use gimlet::tool::ToolError;
use gimlet_store::FileStore;
use gimlet_tools::patch::{self, PatchEntry, Proposal, Stage, Undo};
use serde::Serialize;

use crate::args::UndoArgs;
use crate::config::Bounds;
use crate::conversation::{append, run_folder};
use crate::exit::{ExitStatus, UsageError};
use crate::home;
use crate::isolation::Isolation;
use crate::patches::PatchFile;
use crate::style::{DIM, ERROR, GOOD};
use crate::world::Place;

/// A patch that was to be taken back.
#[derive(Serialize)]
pub(crate) struct Outcome {
    patch: String,
    intent: String,
    /// Files that are as they were before it, those that are gone again included.
    restored: Vec<String>,
    /// Files that it had created, which are gone again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    removed: Vec<String>,
    /// Why nothing was restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Outcome {
    /// For people.
    pub(crate) fn line(&self) -> String {
        match &self.error {
            None => format!(
                "{GOOD}undone{GOOD:#} {} {DIM}({}){DIM:#}: {}",
                self.patch,
                Printable::line(&self.intent),
                self.done()
            ),
            Some(error) => format!("{ERROR}not undone{ERROR:#} {}: {}", self.patch, Printable::line(error)),
        }
    }

    /// What was done to the files.
    fn done(&self) -> String {
        let part = |word: &str, files: &[String]| {
            (!files.is_empty()).then(|| format!("{word} {}", Printable::line(&files.join(", "))))
        };
        let kept: Vec<String> =
            self.restored.iter().filter(|file| !self.removed.contains(file)).cloned().collect();
        let parts = [part("restored", &kept), part("removed", &self.removed)];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// What came of taking back.
pub(crate) struct Undone {
    pub(crate) outcomes: Vec<Outcome>,
    /// What the model was not told, because its run is over.
    pub(crate) untold: Option<String>,
}

/// Takes patches of a run back.
pub(crate) async fn undo(args: UndoArgs) -> anyhow::Result<ExitStatus> {
    let store = home::store()?;
    let id = super::runs::find(&store, &args.run)?;
    // Nobody else may be at work on the run, or on its patches, meanwhile.
    store.open_run(&id).await.map_err(|error| match error {
        StoreError::Locked(_) => anyhow::Error::from(
            UsageError::new(format!("run {id} is at work")).hint("stop it, or wait until it is done"),
        ),
        other => other.into(),
    })?;
    let folder = run_folder(&store, &id);
    let place = place(&store.load(&id).await?)?;
    place.take_up_patches(entries(&folder)?);
    place.keep_patches_in(&folder);
    let outcomes = take_back(&store, &id, &place, args.patch.as_deref()).await?.outcomes;
    tell(&outcomes, id.as_str(), args.json.json)?;
    let failed = outcomes.iter().any(|outcome| outcome.error.is_some());
    Ok(if failed { ExitStatus::Failure } else { ExitStatus::Success })
}

/// Takes patches back, the newest first: all, or the one that is named. It stops at the first that cannot be: older ones
/// lie below it. The store holds the run's lock, and the place knows its patches.
pub(crate) async fn take_back(
    store: &FileStore,
    id: &RunId,
    place: &Place,
    named: Option<&str>,
) -> anyhow::Result<Undone> {
    let wanted = wanted(place, &entries(&run_folder(store, id))?, named, id.as_str())?;
    let mut outcomes = Vec::new();
    for (proposal, undo) in wanted {
        let (restored, error) = match restore(place, &undo).await {
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
    let untold = record(store, &store.load(id).await?, &outcomes).await?;
    Ok(Undone { outcomes, untold })
}

fn entries(folder: &Path) -> anyhow::Result<Vec<PatchEntry>> {
    PatchFile::entries(folder).with_context(|| format!("cannot read the patches in {}", folder.display()))
}

/// The folder the run worked in last.
fn place(events: &[Event]) -> anyhow::Result<Place> {
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
    Place::at(&path, Bounds::default(), Isolation::none(&path, "nothing is run"))
}

/// What is to be taken back, newest first.
fn wanted(
    place: &Place,
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
        let proposal = place.patches().get(&undo.patch_id)?;
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

async fn restore(place: &Place, undo: &Undo) -> Result<Vec<String>, ToolError> {
    let restored = patch::undo(place.root(), undo)?;
    place.patches().step(PatchEntry::Undone { id: undo.patch_id.clone() }).await?;
    Ok(restored)
}

/// Notes in the run's log what was taken back. A run that can go on tells its model, too: it believes in its patch. For
/// one that is over, what its model would have to know is handed back.
async fn record(store: &FileStore, events: &[Event], outcomes: &[Outcome]) -> anyhow::Result<Option<String>> {
    let undone: Vec<String> = outcomes
        .iter()
        .filter(|outcome| outcome.error.is_none())
        .map(|outcome| format!("{} ({})", outcome.patch, outcome.done()))
        .collect();
    if undone.is_empty() {
        return Ok(None);
    }
    let message = format!("I took back {}", undone.join(", "));
    let said = EventKind::UserMessage { text: message.clone() };
    // What is said to a run that stopped leaves it stopped, for the same reason.
    let (kinds, untold) = match State::fold(events, &Default::default()).stop {
        Some(Stop::Finished(_)) => (vec![EventKind::Warning { message: message.clone() }], Some(message)),
        Some(Stop::Suspended(reason)) => (vec![said, EventKind::RunSuspended { reason }], None),
        Some(Stop::Failed(error)) => (vec![said, EventKind::RunFailed { error }], None),
        None => (vec![said], None),
    };
    append(store, events, kinds).await?;
    Ok(untold)
}

fn tell(outcomes: &[Outcome], run: &str, json: bool) -> anyhow::Result<()> {
    let mut stdout = crate::out::stdout();
    if json {
        crate::out::json(&serde_json::json!({ "run": run, "patches": outcomes }))?;
        return Ok(());
    }
    for outcome in outcomes {
        writeln!(stdout, "{}", outcome.line())?;
    }
    Ok(())
}
