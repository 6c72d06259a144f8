//! A store that keeps long texts and no events, for calls that are nobody's run.

use std::sync::Arc;

use futures_util::future::{BoxFuture, ready};
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};
use gimlet::event::Event;
use gimlet::ids::RunId;
use gimlet::store::{BlobId, Blobs, Lease, Line, OpenedRun, RunLog, Store, StoreError};
use serde_json::Value;

/// Keeps long texts in a store, and no events: to it there are no runs.
pub struct BlobsOnly(pub Arc<dyn Store>);

fn none<T: Send + 'static>(run: &RunId) -> BoxFuture<'static, Result<T, StoreError>> {
    ready(Err(StoreError::NoSuchRun(run.clone()))).boxed()
}

impl RunLog for BlobsOnly {
    fn open<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<OpenedRun, StoreError>> {
        none(run)
    }

    fn close(&self, _run: &RunId) {}

    fn lease<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Lease, StoreError>> {
        none(run)
    }

    fn append(&self, _event: &Event) -> BoxFuture<'_, Result<(), StoreError>> {
        ready(Ok(())).boxed()
    }

    fn load(&self, run: &RunId) -> BoxFuture<'_, Result<Vec<Event>, StoreError>> {
        none(run)
    }

    fn lines<'a>(
        &'a self,
        run: &'a RunId,
        _after: u64,
        _most: usize,
    ) -> BoxFuture<'a, Result<Vec<Line>, StoreError>> {
        none(run)
    }

    fn follow(&self, run: &RunId, _after: u64) -> BoxStream<'static, Result<Vec<Line>, StoreError>> {
        stream::once(none(run)).boxed()
    }

    fn add_entry<'a>(
        &'a self,
        _run: &'a RunId,
        _list: &'a str,
        _entry: Value,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        ready(Ok(())).boxed()
    }

    fn entries<'a>(
        &'a self,
        run: &'a RunId,
        _list: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Value>, StoreError>> {
        none(run)
    }
}

impl Blobs for BlobsOnly {
    fn put<'a>(&'a self, bytes: &'a [u8]) -> BoxFuture<'a, Result<BlobId, StoreError>> {
        self.0.put(bytes)
    }

    fn get<'a>(&'a self, blob: &'a BlobId) -> BoxFuture<'a, Result<Vec<u8>, StoreError>> {
        self.0.get(blob)
    }
}
