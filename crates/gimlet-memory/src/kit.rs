//! The memory as tools, and the search that all of them share.

use std::sync::Arc;

use gimlet::tool::{Tool, ToolCx, ToolError, code, tool};
use serde::Serialize;

use crate::embed::Embedder;
use crate::error::MemoryError;
use crate::limits;
use crate::meaning::NoMeaning;
use crate::notes::{Note, Source};
use crate::search::{DEPTH, any_word, fuse};
use crate::store::Memory;
use crate::tools::{
    GeneratePrediction, Recall, Reflect, Remember, Renamed, ResolvePrediction, ReviseModel, Synthesize,
};

/// A memory, and what helps to find things in it.
#[derive(Clone)]
pub struct Kit {
    /// The memory.
    pub memory: Arc<Memory>,
    /// Makes vectors, if the user named a model for it.
    pub embedder: Option<Arc<dyn Embedder>>,
}

/// How notes were ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ranking {
    /// Nothing was asked for: the newest come first.
    Newest,
    /// By words.
    Words,
    /// By words and by meaning.
    WordsAndMeaning,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The notes, the best first.
    pub notes: Vec<Note>,
    /// How they were ranked.
    pub ranking: Ranking,
    /// Why the ranking is not what it could be.
    pub warning: Option<String>,
}

impl Kit {
    /// The tools that only look, in a stable order.
    pub fn reading(&self) -> Vec<Arc<dyn Tool>> {
        vec![tool(Recall { kit: self.clone() }), tool(Reflect { kit: self.clone() })]
    }

    /// The tools that keep something, in a stable order.
    pub fn writing(&self) -> Vec<Arc<dyn Tool>> {
        let kit = || self.clone();
        vec![
            tool(Remember { kit: kit() }),
            tool(Synthesize { kit: kit() }),
            tool(ReviseModel { kit: kit() }),
            tool(GeneratePrediction { kit: kit() }),
            tool(ResolvePrediction { kit: kit() }),
        ]
    }

    /// All seven tools.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.reading().into_iter().chain(self.writing()).collect()
    }

    /// What other programs know `recall` and `reflect` as.
    pub fn reading_for_clients(&self) -> Vec<Arc<dyn Tool>> {
        vec![
            Renamed::new("semantic_recall", tool(Recall { kit: self.clone() })),
            Renamed::new("get_consciousness_state", tool(Reflect { kit: self.clone() })),
        ]
    }

    /// What other programs know `remember` as.
    pub fn writing_for_clients(&self) -> Vec<Arc<dyn Tool>> {
        vec![Renamed::new("create_memory", tool(Remember { kit: self.clone() }))]
    }

    /// Finds notes: by words, and by meaning where that can be had.
    pub async fn find(&self, question: &str, tag: Option<&str>, limit: usize) -> Result<Found, ToolError> {
        let (question, tag) = (question.to_owned(), tag.map(str::to_owned));
        let limit = limit.clamp(1, limits::FOUND);
        let asks = any_word(&question).is_some();
        let depth = if self.embedder.is_some() && asks { DEPTH } else { limit };
        let by_words = {
            let (question, tag) = (question.clone(), tag.clone());
            self.blocking(move |memory| memory.search(&question, tag.as_deref(), depth)).await?
        };
        let (ranking, warning) = match (&self.embedder, asks) {
            (_, false) => (Ranking::Newest, None),
            (None, true) => (Ranking::Words, None),
            (Some(embedder), true) => match self.by_meaning(embedder.as_ref(), question, tag).await {
                Ok((by_meaning, warning)) => {
                    let notes = fuse([by_words, by_meaning], limit);
                    return Ok(Found { notes, ranking: Ranking::WordsAndMeaning, warning });
                }
                Err(NoMeaning::Vectors(why)) => {
                    (Ranking::Words, Some(format!("ranked by words only: {why}")))
                }
                Err(NoMeaning::Memory(error)) => return Err(error),
            },
        };
        let mut notes = by_words;
        notes.truncate(limit);
        Ok(Found { notes, ranking, warning })
    }

    /// Work with the file, off the async threads. It is short, and goes on when nobody waits for it any more.
    pub(crate) async fn blocking<T, F>(&self, work: F) -> Result<T, ToolError>
    where
        T: Send + 'static,
        F: FnOnce(&Memory) -> Result<T, MemoryError> + Send + 'static,
    {
        let memory = self.memory.clone();
        match tokio::task::spawn_blocking(move || work(&memory)).await {
            Ok(result) => result.map_err(ToolError::from),
            Err(error) => Err(ToolError::failed(code::TOOL_EXCEPTION, format!("the tool broke: {error}"))),
        }
    }
}

/// Who makes a call.
pub(crate) fn source(cx: &ToolCx) -> Source {
    Source { run: cx.run().to_string(), agent: cx.path().as_str().to_owned() }
}
