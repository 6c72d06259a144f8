//! A new run that shares the steps of another before one of them.

use std::sync::Arc;

use gimlet::event::{Event, EventKind};
use gimlet::ids::{Ids, RandomIds, RunId};
use gimlet::store::Store;
use gimlet_config::UsageError;
use gimlet_tools::patch::PatchEntry;
use jiff::Timestamp;

use crate::patches;
use crate::runtime::Runtime;

/// A run that was made from another.
#[derive(Debug, Clone)]
pub struct Forked {
    /// The new run.
    pub id: RunId,
    /// Whether the steps they share changed anything, which stays changed.
    pub has_changes: bool,
}

impl Runtime {
    /// Makes a new run that shares the steps of another before step `at`, and says something in it.
    pub async fn fork(&self, from: &RunId, at: u32, message: Option<String>) -> anyhow::Result<Forked> {
        fork(self.store(), from, at, message).await
    }
}

pub(crate) async fn fork(
    store: &Arc<dyn Store>,
    from: &RunId,
    at: u32,
    message: Option<String>,
) -> anyhow::Result<Forked> {
    let events = store.load(from).await?;
    let now = Timestamp::now();
    let id = RandomIds.run(now);
    let mut shared =
        gimlet::fork::fork(&events, at, &id, now).map_err(|error| UsageError::new(error.to_string()))?;
    if let Some(text) = message {
        let seq = shared.last().map_or(0, |event| event.seq) + 1;
        let kind = EventKind::UserMessage { text };
        shared.push(Event { run: id.clone(), seq, time: now, path: Default::default(), kind });
    }
    for event in &shared {
        store.append(event).await?;
    }
    keep_patches(store.as_ref(), from, &id, &shared).await?;
    store.close(&id);
    let has_changes = shared.iter().any(|event| match &event.kind {
        EventKind::ToolStarted { effects, .. } => effects.iter().any(|effect| effect.changes_world()),
        _ => false,
    });
    Ok(Forked { id, has_changes })
}

/// The new run knows the patches that its steps proposed, and no others.
async fn keep_patches(store: &dyn Store, from: &RunId, to: &RunId, shared: &[Event]) -> anyhow::Result<()> {
    let results: Vec<String> = shared
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolFinished(finished) if finished.ok => Some(finished.result.to_string()),
            _ => None,
        })
        .collect();
    for entry in patches::entries(store, from).await? {
        if results.iter().any(|result| result.contains(patch_id(&entry))) {
            patches::add(store, to, &entry).await?;
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
