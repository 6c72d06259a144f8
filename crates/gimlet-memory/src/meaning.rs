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
/// Most notes in one request.
const BATCH: usize = 16;
/// How many notes a server may refuse before a search asks it for no more.
const REFUSALS: usize = 4;
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
        let asked = vectors(embedder, &[question], Instant::now() + PATIENCE).await;
        let asked = asked.map_err(NoMeaning::Vectors)?;
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

    /// Gives vectors to notes that have none. Says why, if some still have none. It begins with one note and asks for more
    /// at a time while that goes well: what a slow server has done by the deadline is kept, and a note that the server
    /// cannot take holds up nobody else.
    async fn catch_up(&self, embedder: &dyn Embedder) -> Result<Option<String>, ToolError> {
        let deadline = Instant::now() + PATIENCE;
        let mut batch = 1;
        let mut refused: Vec<(i64, String)> = Vec::new();
        loop {
            let (model, most) = (embedder.model().to_owned(), batch + refused.len());
            let mut missing = self.blocking(move |memory| memory.unembedded(&model, most)).await?;
            missing.retain(|(id, _)| refused.iter().all(|(other, _)| other != id));
            missing.truncate(batch);
            let told = |why: &str| Some(format!("some notes have no vector: {why}"));
            let Some((first, _)) = missing.first() else {
                return Ok(refused.last().and_then(|(_, why)| told(why)));
            };
            let made = match beginnings(embedder, &missing, CHARS, deadline).await {
                // Letters of some languages are several tokens each.
                Err(_) if batch == 1 => beginnings(embedder, &missing, CHARS / 4, deadline).await,
                made => made,
            };
            match made {
                Ok(vectors) => {
                    let fresh: Vec<(i64, Vec<f32>)> = missing
                        .iter()
                        .zip(vectors)
                        .filter_map(|((id, _), vector)| Some((*id, vector?)))
                        .collect();
                    let without = missing.iter().filter(|(id, _)| fresh.iter().all(|(other, _)| other != id));
                    refused.extend(without.map(|(id, _)| (*id, "one is without a direction".to_owned())));
                    let model = embedder.model().to_owned();
                    self.blocking(move |memory| memory.embed(&model, &fresh)).await?;
                    batch = (batch * 2).min(BATCH);
                }
                Err(why) if Instant::now() >= deadline => return Ok(told(&why)),
                Err(_) if batch > 1 => batch = 1,
                Err(why) => refused.push((*first, why)),
            }
            if refused.len() >= REFUSALS {
                return Ok(refused.last().and_then(|(_, why)| told(why)));
            }
        }
    }
}

/// Vectors of how notes begin.
async fn beginnings(
    embedder: &dyn Embedder,
    notes: &[(i64, String)],
    chars: usize,
    deadline: Instant,
) -> Result<Vec<Option<Vec<f32>>>, String> {
    let texts: Vec<String> = notes.iter().map(|(_, text)| text.chars().take(chars).collect()).collect();
    vectors(embedder, &texts, deadline).await
}

/// A vector of length one for each text; none for one without a direction.
async fn vectors(
    embedder: &dyn Embedder,
    texts: &[String],
    deadline: Instant,
) -> Result<Vec<Option<Vec<f32>>>, String> {
    let model = embedder.model();
    let vectors = match timeout_at(deadline, embedder.embed(texts)).await {
        Ok(Ok(vectors)) => vectors,
        Ok(Err(error)) => return Err(error.to_string()),
        Err(_) => return Err(format!("{model} took longer than {} s", PATIENCE.as_secs())),
    };
    if vectors.len() != texts.len() {
        let (got, asked) = (vectors.len(), texts.len());
        return Err(format!("{model} gave {got} vectors for {asked} texts"));
    }
    Ok(vectors.iter().map(|vector| unit(vector)).collect())
}
