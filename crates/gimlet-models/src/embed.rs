//! Vectors of texts: Ollama's `/api/embed` and the `/v1/embeddings` of OpenAI and everyone compatible with it.

use gimlet::model::ModelError;
use serde::Deserialize;
use serde_json::json;

use crate::catalog::Server;
use crate::wire::Wire;

/// A model that makes vectors.
#[derive(Debug, Clone)]
pub struct EmbeddingModel {
    id: String,
    name: String,
    server: Server,
}

#[derive(Deserialize)]
struct OllamaVectors {
    embeddings: Vec<Vec<f32>>,
}

#[derive(Deserialize)]
struct OpenAiVectors {
    data: Vec<OpenAiVector>,
}

#[derive(Deserialize)]
struct OpenAiVector {
    index: usize,
    embedding: Vec<f32>,
}

impl EmbeddingModel {
    /// The model of this name on a server; `id` is how people call it.
    pub fn new(id: &str, name: &str, server: Server) -> Self {
        EmbeddingModel { id: id.to_owned(), name: name.to_owned(), server }
    }

    /// How people call it.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// A vector for each text, in order.
    pub async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
        let body = json!({ "model": self.name, "input": texts });
        match self.server.wire() {
            Wire::Ollama => Ok(self.server.post::<OllamaVectors>("/api/embed", body).await?.embeddings),
            Wire::OpenAi | Wire::Anthropic => {
                let mut data = self.server.post::<OpenAiVectors>("/v1/embeddings", body).await?.data;
                // The order is the server's own choice.
                data.sort_by_key(|vector| vector.index);
                Ok(data.into_iter().map(|vector| vector.embedding).collect())
            }
        }
    }
}
