//! Finding by meaning: vectors from an embedding model, kept beside the notes and compared here. They are made when
//! something is looked for, so that keeping a note never waits for a server; a server that fails costs the ranking only.

use futures_util::future::BoxFuture;
use rusqlite::{Connection, params};

use crate::error::MemoryError;
use crate::notes::{self, HAS_TAG, Note};
use crate::store::{Memory, at_most};

/// Makes vectors of texts.
pub trait Embedder: Send + Sync {
    /// Names the model; vectors of different models are never compared.
    fn model(&self) -> &str;

    /// A vector for each text, in order.
    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbedError>>;
}

/// Why there are no vectors.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct EmbedError(pub String);

/// A vector of length one; none for what has no direction.
pub(crate) fn unit(vector: &[f32]) -> Option<Vec<f32>> {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    (length.is_finite() && length > 0.0).then(|| vector.iter().map(|x| x / length).collect())
}

impl Memory {
    /// The newest notes that have no vector of this model.
    pub(crate) fn unembedded(&self, model: &str, limit: usize) -> Result<Vec<(i64, String)>, MemoryError> {
        self.read(|db| {
            Ok(db
                .prepare_cached(
                    "SELECT id, text FROM notes
                     WHERE NOT EXISTS (SELECT 1 FROM vectors WHERE note = notes.id AND model = ?1)
                     ORDER BY time DESC, id DESC LIMIT ?2",
                )?
                .query_map(params![model, at_most(limit)], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<Result<_, _>>()?)
        })
    }

    /// Keeps vectors of notes. A note that was forgotten meanwhile needs none.
    pub(crate) fn embed(&self, model: &str, vectors: &[(i64, Vec<f32>)]) -> Result<(), MemoryError> {
        self.write(|db| {
            for (note, vector) in vectors {
                let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
                db.execute(
                    "INSERT OR REPLACE INTO vectors (note, model, vector) SELECT id, ?2, ?3 FROM notes WHERE id = ?1",
                    params![note, model, bytes],
                )?;
            }
            Ok(())
        })
    }

    /// The notes nearest to a vector, the nearest first; the newer of two equals first. Vectors of another length are of
    /// another model under the same name: they are dropped, to be made anew.
    pub(crate) fn nearest(
        &self,
        model: &str,
        vector: &[f32],
        tag: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Note>, MemoryError> {
        let bytes = vector.len() * 4;
        self.write(|db| {
            db.execute(
                "DELETE FROM vectors WHERE model = ?1 AND length(vector) <> ?2",
                params![model, at_most(bytes)],
            )?;
            Ok(nearest(db, model, vector, tag, limit)?)
        })
    }
}

fn nearest(
    db: &Connection,
    model: &str,
    vector: &[f32],
    tag: Option<&str>,
    limit: usize,
) -> Result<Vec<Note>, rusqlite::Error> {
    let sql = format!(
        "SELECT notes.id, vector FROM vectors JOIN notes ON notes.id = note WHERE {HAS_TAG} AND model = ?2
         ORDER BY time DESC, id DESC"
    );
    let mut likeness: Vec<(f32, i64)> = db
        .prepare_cached(&sql)?
        .query_map(params![tag.map(str::to_lowercase), model], |row| {
            let bytes = row.get_ref(1)?.as_blob()?;
            let dot =
                bytes.as_chunks::<4>().0.iter().zip(vector).map(|(b, x)| f32::from_le_bytes(*b) * x).sum();
            Ok((dot, row.get(0)?))
        })?
        .collect::<Result<_, _>>()?;
    // Stable, so that equals keep the order of the query.
    likeness.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    likeness.truncate(limit);
    likeness.into_iter().filter_map(|(_, id)| notes::by_number(db, id).transpose()).collect()
}
