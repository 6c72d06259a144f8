//! `gimlet runs fork`: a new run that shares the steps of another before one of them.

use std::io::Write;
use std::sync::Arc;

use gimlet::event::{Event, EventKind};
use gimlet::ids::{Ids, RandomIds, RunId};
use gimlet::store::Store;
use gimlet_tools::patch::PatchEntry;
use jiff::Timestamp;

use super::runs::load;
use crate::conversation::run_folder;
use crate::exit::{ExitStatus, UsageError};
use crate::patches::PatchFile;

/// Forks a run and prints the new one's id.
pub(crate) async fn fork(run: &str, at: u32, message: Option<String>) -> anyhow::Result<ExitStatus> {
    let (store, from, events) = load(run).await?;
    let now = Timestamp::now();
    let id = RandomIds.run(now);
    let mut shared =
        gimlet::fork::fork(&events, at, &id, now).map_err(|error| UsageError::new(error.to_string()))?;
    if let Some(text) = message {
        let seq = shared.last().map_or(0, |event| event.seq) + 1;
        let kind = EventKind::UserMessage { text };
        shared.push(Event { run: id.clone(), seq, time: now, path: Default::default(), kind });
    }
    let store = Arc::new(store);
    for event in &shared {
        store.append(event).await?;
    }
    keep_patches(&run_folder(&store, &from), &run_folder(&store, &id), &shared)?;
    writeln!(crate::out::stdout(), "{id}")?;
    tell(&from, &id, at, &shared)?;
    Ok(ExitStatus::Success)
}

/// The new run knows the patches that its steps proposed, and no others.
fn keep_patches(from: &std::path::Path, to: &std::path::Path, shared: &[Event]) -> anyhow::Result<()> {
    let results: Vec<String> = shared
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolFinished(finished) if finished.ok => Some(finished.result.to_string()),
            _ => None,
        })
        .collect();
    let file = PatchFile::default();
    file.keep_in(to);
    for entry in PatchFile::entries(from)? {
        if results.iter().any(|result| result.contains(patch_id(&entry))) {
            file.write(&entry)?;
        }
    }
    Ok(())
}

fn patch_id(entry: &PatchEntry) -> &str {
    match entry {
        PatchEntry::Proposed(proposal) => &proposal.id,
        PatchEntry::Applying(undo) => &undo.patch_id,
        PatchEntry::Applied { id } | PatchEntry::Failed { id } | PatchEntry::Undone { id } => id,
    }
}

fn tell(from: &RunId, id: &RunId, at: u32, shared: &[Event]) -> anyhow::Result<()> {
    let mut stderr = crate::out::stderr();
    let steps = match at - 1 {
        1 => "1 step is".to_owned(),
        many => format!("{many} steps are"),
    };
    writeln!(stderr, "forked from {from}: {steps} shared, step {at} is new")?;
    let changed = shared.iter().any(|event| match &event.kind {
        EventKind::ToolStarted { effects, .. } => effects.iter().any(|effect| effect.changes_world()),
        _ => false,
    });
    if changed {
        writeln!(stderr, "note: what those steps changed stays changed; the files are as they are now")?;
    }
    writeln!(stderr, "hint: gimlet resume {id} goes on from there")?;
    Ok(())
}
