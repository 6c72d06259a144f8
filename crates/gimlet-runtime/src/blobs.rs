//! A store that keeps long texts and no events, for calls that are nobody's run.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::event::Event;
use gimlet::ids::RunId;
use gimlet::store::{BlobId, Store, StoreError};
use gimlet_store::FileStore;

/// Keeps long texts in a store, and no events.
pub struct BlobsOnly(pub Arc<FileStore>);

impl Store for BlobsOnly {
    fn append(&self, _event: &Event) -> BoxFuture<'_, Result<(), StoreError>> {
        std::future::ready(Ok(())).boxed()
    }

    fn load(&self, run: &RunId) -> BoxFuture<'_, Result<Vec<Event>, StoreError>> {
        self.0.load(run)
    }

    fn put<'a>(&'a self, bytes: &'a [u8]) -> BoxFuture<'a, Result<BlobId, StoreError>> {
        self.0.put(bytes)
    }

    fn get<'a>(&'a self, blob: &'a BlobId) -> BoxFuture<'a, Result<Vec<u8>, StoreError>> {
        self.0.get(blob)
    }
}
