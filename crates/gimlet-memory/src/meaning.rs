//! The part of a search that goes by meaning. The question's vector comes first; then notes that have none get theirs, a few
//! at a time and as long as there is time, so that a slow server gets on with every search and a full memory catches up.

use std::time::Duration;

use gimlet::tool::ToolError;
use tokio::time::{Instant, timeout_at};

use crate::embed::{Embedder, unit};
use crate::kit::Kit;
use crate::notes::Note;
use crate::search::DEPTH;

/// How long a search waits for the vector of its question, and then for those of notes.
const PATIENCE: Duration = Duration::from_secs(10);
/// Notes in one request.
const BATCH: usize = 16;
/// Characters of a note that go into its vector: what the usual embedding model takes at once.
const CHARS: usize = 1000;

/// Why there is no ranking by meaning.
pub(crate) enum NoMeaning {
    /// The server gave no vectors.
    Vectors(String),
    /// The memory itself failed.
    Memory(ToolError),
}

impl From<ToolError> for NoMeaning {
    fn from(error: ToolError) -> Self {
        NoMeaning::Memory(error)
    }
}

impl Kit {
    /// The notes nearest in meaning, and what is not yet among them.
    pub(crate) async fn by_meaning(
        &self,
        embedder: &dyn Embedder,
        question: String,
        tag: Option<String>,
    ) -> Result<(Vec<Note>, Option<String>), NoMeaning> {
        let asked = vectors(embedder, &[question], Instant::now() + PATIENCE).await?;
        let Some(asked) = asked.into_iter().next().flatten() else {
            return Err(NoMeaning::Vectors(format!(
                "{} gave a vector without a direction",
                embedder.model()
            )));
        };
        let warning = self.catch_up(embedder).await?;
        let model = embedder.model().to_owned();
        let nearest = self.blocking(move |memory| memory.nearest(&model, &asked, tag.as_deref(), DEPTH));
        Ok((nearest.await?, warning))
    }

    /// Gives vectors to notes that have none. Says why, if some still have none.
    async fn catch_up(&self, embedder: &dyn Embedder) -> Result<Option<String>, ToolError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let model = embedder.model().to_owned();
            let missing = self.blocking(move |memory| memory.unembedded(&model, BATCH)).await?;
            if missing.is_empty() {
                return Ok(None);
            }
            let texts: Vec<String> =
                missing.iter().map(|(_, text)| text.chars().take(CHARS).collect()).collect();
            let vectors = match vectors(embedder, &texts, deadline).await {
                Ok(vectors) => vectors,
                Err(NoMeaning::Vectors(why)) => return Ok(Some(format!("some notes have no vector: {why}"))),
                Err(NoMeaning::Memory(error)) => return Err(error),
            };
            let fresh: Vec<(i64, Vec<f32>)> = missing
                .into_iter()
                .zip(vectors)
                .filter_map(|((id, _), vector)| Some((id, vector?)))
                .collect();
            if fresh.is_empty() {
                return Ok(Some("some notes have a vector without a direction".into()));
            }
            let model = embedder.model().to_owned();
            self.blocking(move |memory| memory.embed(&model, &fresh)).await?;
        }
    }
}

/// A vector of length one for each text; none for one without a direction.
async fn vectors(
    embedder: &dyn Embedder,
    texts: &[String],
    deadline: Instant,
) -> Result<Vec<Option<Vec<f32>>>, NoMeaning> {
    let model = embedder.model();
    let vectors = match timeout_at(deadline, embedder.embed(texts)).await {
        Ok(Ok(vectors)) => vectors,
        Ok(Err(error)) => return Err(NoMeaning::Vectors(error.to_string())),
        Err(_) => {
            return Err(NoMeaning::Vectors(format!("{model} took longer than {} s", PATIENCE.as_secs())));
        }
    };
    if vectors.len() != texts.len() {
        let (got, asked) = (vectors.len(), texts.len());
        return Err(NoMeaning::Vectors(format!("{model} gave {got} vectors for {asked} texts")));
    }
    Ok(vectors.iter().map(|vector| unit(vector)).collect())
}
