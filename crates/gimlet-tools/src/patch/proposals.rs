//! The patches of a run: what was proposed, what was applied.
//!
//! Every step is told to a [`PatchLog`] before it counts, so that a resumed run can rebuild them and whatever was
//! applied can be undone from the log alone.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use gimlet::effect::Effect;
use gimlet::patch::{FileChange, FileState};
use gimlet::tool::ToolError;
use serde::{Deserialize, Serialize};

use super::write::Undo;
use crate::code;

/// A patch that can be applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// `patch_` and ten hex digits, made of its contents.
    pub id: String,
    /// What it is for.
    pub intent: String,
    /// The files before and after.
    pub changes: Vec<FileChange>,
    /// The same as a git diff.
    pub diff: String,
    /// What had to be overlooked to understand it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// How far it got.
    pub stage: Stage,
}

/// How far a patch got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Nothing was touched.
    Proposed,
    /// It was about to be applied when the program stopped: it may have been, or not.
    Applying,
    /// The files are written.
    Applied,
    /// It was applied and taken back.
    Undone,
}

impl Proposal {
    /// Every path it touches, in order.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        for change in &self.changes {
            paths.extend(change.renamed_from.clone());
            paths.push(change.path.clone());
        }
        paths
    }

    /// What applying it would do.
    pub fn effects(&self) -> Vec<Effect> {
        let mut effects = Vec::new();
        for change in &self.changes {
            if let Some(from) = &change.renamed_from {
                effects.push(Effect::Write { path: from.into(), digest: None });
            }
            let digest = change.after.as_ref().map(FileState::digest);
            effects.push(Effect::Write { path: change.path.clone().into(), digest });
        }
        effects
    }

    /// The paths as one text, for a result.
    pub fn file_path(&self) -> String {
        self.changes.iter().map(|change| change.path.as_str()).collect::<Vec<_>>().join(", ")
    }
}

/// A step in the life of a patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "patch", rename_all = "snake_case")]
pub enum PatchEntry {
    /// It was proposed.
    Proposed(Proposal),
    /// It is about to be applied; all that is needed to undo it.
    Applying(Undo),
    /// It was applied.
    Applied {
        /// The patch.
        id: String,
    },
    /// Applying it failed, and nothing was changed.
    Failed {
        /// The patch.
        id: String,
    },
    /// It was taken back.
    Undone {
        /// The patch.
        id: String,
    },
}

/// Where the steps are kept.
pub trait PatchLog: Send + Sync {
    /// Keeps an entry; returns when it is safe.
    fn record<'a>(&'a self, entry: &'a PatchEntry) -> BoxFuture<'a, io::Result<()>>;
}

/// The patches of a run, shared by the tools that deal with them. Cheap to clone.
#[derive(Clone, Default)]
pub struct Patches {
    /// By id; owned by all clones together.
    proposals: Arc<Mutex<BTreeMap<String, Proposal>>>,
    /// Told before anything counts; owned by the caller.
    log: Option<Arc<dyn PatchLog>>,
}

impl Patches {
    /// None yet, and every step goes to `log`.
    pub fn with_log(log: Arc<dyn PatchLog>) -> Self {
        Patches { proposals: Arc::default(), log: Some(log) }
    }

    /// Takes up the steps of an earlier process, oldest first.
    pub fn rebuild(&self, entries: impl IntoIterator<Item = PatchEntry>) {
        let mut proposals = self.lock();
        for entry in entries {
            fold(&mut proposals, entry);
        }
    }

    /// All patches.
    pub fn all(&self) -> Vec<Proposal> {
        self.lock().values().cloned().collect()
    }

    /// A patch.
    pub fn get(&self, id: &str) -> Result<Proposal, ToolError> {
        let proposals = self.lock();
        proposals.get(id.trim()).cloned().ok_or_else(|| {
            let known: Vec<_> = proposals.keys().cloned().collect();
            ToolError::failed(code::PATCH_NOT_FOUND, format!("there is no patch {id:?}"))
                .with("patch_id", id)
                .with("known", known)
        })
    }

    /// Records a step and lets it count. A log that cannot be written ends the run.
    pub async fn step(&self, entry: PatchEntry) -> Result<(), ToolError> {
        if let Some(log) = &self.log {
            let kept = log.record(&entry).await;
            kept.map_err(|error| ToolError::Fatal(format!("the patch log cannot be written: {error}")))?;
        }
        fold(&mut self.lock(), entry);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Proposal>> {
        self.proposals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn fold(proposals: &mut BTreeMap<String, Proposal>, entry: PatchEntry) {
    let (id, stage) = match entry {
        PatchEntry::Proposed(proposal) => {
            proposals.insert(proposal.id.clone(), proposal);
            return;
        }
        PatchEntry::Applying(undo) => (undo.patch_id, Stage::Applying),
        PatchEntry::Applied { id } => (id, Stage::Applied),
        PatchEntry::Failed { id } => (id, Stage::Proposed),
        PatchEntry::Undone { id } => (id, Stage::Undone),
    };
    if let Some(proposal) = proposals.get_mut(&id) {
        proposal.stage = stage;
    }
}
