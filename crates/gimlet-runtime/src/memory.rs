//! The memory of a project, put together from the settings: its file in the data directory, and the model that makes
//! vectors if one is named.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet_memory::{EmbedError, Embedder, Kit, Memory};
use gimlet_models::EmbeddingModel;

use crate::models;
use gimlet_config::Settings;

/// The memory of the project, if agents may use it.
pub fn enabled(settings: &Settings) -> anyhow::Result<Option<Kit>> {
    settings.memory_enabled.value.then(|| kit(settings)).transpose()
}

/// The same for a look at its tools: nobody will be asked for vectors, so it does not matter who would be.
pub fn to_look_at(settings: &Settings) -> anyhow::Result<Option<Kit>> {
    settings.memory_enabled.value.then(|| plain(settings)).transpose()
}

/// The memory of the project. Nothing is opened before its first use.
pub fn kit(settings: &Settings) -> anyhow::Result<Kit> {
    let embedder = models::embeddings(settings)?.map(|model| Arc::new(Vectors(model)) as Arc<dyn Embedder>);
    Ok(Kit { embedder, ..plain(settings)? })
}

fn plain(settings: &Settings) -> anyhow::Result<Kit> {
    Ok(Kit {
        memory: Arc::new(Memory::of_project(settings.process().need_home()?.path(), &settings.root)),
        embedder: None,
    })
}

struct Vectors(EmbeddingModel);

impl Embedder for Vectors {
    fn model(&self) -> &str {
        self.0.id()
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbedError>> {
        async move { self.0.embed(texts).await.map_err(|error| EmbedError(error.to_string())) }.boxed()
    }
}
