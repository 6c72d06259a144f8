//! At most so many replies at once: a local server answers one at a time, and asking for more only makes all slower.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use gimlet::context::Window;
use gimlet::model::{Model, ModelError, ModelStream, Request};
use tokio::sync::Semaphore;

/// Limits how many replies are under way.
pub struct Concurrency {
    inner: Arc<dyn Model>,
    /// Shared by all who hold a reply; a place is free again when its stream is dropped.
    places: Arc<Semaphore>,
}

impl Concurrency {
    /// At most `places` replies of a model at once, at least one.
    pub fn new(inner: Arc<dyn Model>, places: usize) -> Self {
        Concurrency { inner, places: Arc::new(Semaphore::new(places.max(1))) }
    }
}

impl Model for Concurrency {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn window(&self) -> Option<Window> {
        self.inner.window()
    }

    fn stream(&self, request: Request) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        async move {
            let Ok(place) = Arc::clone(&self.places).acquire_owned().await else {
                return Err(ModelError::Cut);
            };
            let reply = self.inner.stream(request).await?;
            Ok(reply
                .map(move |event| {
                    let _held = &place;
                    event
                })
                .boxed())
        }
        .boxed()
    }
}
