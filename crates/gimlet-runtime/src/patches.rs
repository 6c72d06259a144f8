//! Keeps a run's patches in the store, so that a resumed run still knows what was proposed and what was applied, wherever
//! it is resumed.

use std::io;
use std::sync::{Arc, OnceLock};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::ids::RunId;
use gimlet::store::{Store, StoreError};
use gimlet_tools::patch::{PatchEntry, PatchLog};

/// The list of a run that holds its patches.
const LIST: &str = "patches";

/// The patches of a run as they are stored.
#[derive(Default)]
pub(crate) struct StoredPatches {
    /// Where; known once the run has begun.
    run: OnceLock<(Arc<dyn Store>, RunId)>,
}

impl StoredPatches {
    /// Says whose patches these are.
    pub(crate) fn keep_for(&self, store: &Arc<dyn Store>, run: &RunId) {
        // A run begins once: a second word changes nothing.
        let _ = self.run.set((store.clone(), run.clone()));
    }
}

/// The entries of an earlier process, oldest first.
pub(crate) async fn entries(store: &dyn Store, run: &RunId) -> Result<Vec<PatchEntry>, StoreError> {
    let stored = store.entries(run, LIST).await?;
    Ok(stored.into_iter().map_while(|entry| serde_json::from_value(entry).ok()).collect())
}

/// Adds an entry; resolves when it is durable.
pub(crate) async fn add(store: &dyn Store, run: &RunId, entry: &PatchEntry) -> anyhow::Result<()> {
    Ok(store.add_entry(run, LIST, serde_json::to_value(entry)?).await?)
}

impl PatchLog for StoredPatches {
    fn record<'a>(&'a self, entry: &'a PatchEntry) -> BoxFuture<'a, io::Result<()>> {
        async move {
            let Some((store, run)) = self.run.get() else { return Ok(()) };
            add(store.as_ref(), run, entry).await.map_err(io::Error::other)
        }
        .boxed()
    }
}
