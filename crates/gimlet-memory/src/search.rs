//! Finding by words: BM25 over a stemmed index, the newer of two equals first. Whatever is asked for is words, never a
//! query language. Several rankings are fused by their ranks alone, which needs no common scale.

use std::cmp::Reverse;
use std::collections::HashMap;

use jiff::Timestamp;
use rusqlite::{Connection, params};

use crate::error::MemoryError;
use crate::models::{self, Model};
use crate::notes::{self, HAS_TAG, Note};
use crate::store::{Memory, at_most};

/// So many words of a question count.
const WORDS: usize = 32;
/// So many of each ranking are fused.
pub(crate) const DEPTH: usize = 50;
/// Evens out the first ranks; the value everyone uses.
const FUSION: f64 = 60.0;

/// A question's words as a query that finds any of them; none if it has no words.
pub(crate) fn any_word(question: &str) -> Option<String> {
    let mut words: Vec<String> = question
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(|word| format!("\"{word}\""))
        .collect();
    words.truncate(WORDS);
    (!words.is_empty()).then(|| words.join(" OR "))
}

impl Memory {
    /// Notes that have words of the question, the best first. A question without words finds the newest.
    pub fn search(&self, question: &str, tag: Option<&str>, limit: usize) -> Result<Vec<Note>, MemoryError> {
        self.read(|db| {
            let Some(query) = any_word(question) else { return Ok(notes::newest(db, tag, limit)?) };
            Ok(by_words(db, &query, tag, limit)?)
        })
    }

    /// Mental models that have words of the question, the best first.
    pub(crate) fn search_models(&self, question: &str, limit: usize) -> Result<Vec<Model>, MemoryError> {
        self.read(|db| {
            let Some(query) = any_word(question) else { return Ok(Vec::new()) };
            let found: Vec<i64> = db
                .prepare_cached(
                    "SELECT models.id FROM model_words JOIN models ON models.id = model_words.rowid
                     WHERE model_words MATCH ?1
                     ORDER BY round(bm25(model_words, 2.0, 1.0), 6), models.time DESC, models.id DESC LIMIT ?2",
                )?
                .query_map(params![query, at_most(limit)], |row| row.get(0))?
                .collect::<Result<_, _>>()?;
            Ok(found
                .into_iter()
                .map(|id| models::by_number(db, id))
                .filter_map(Result::transpose)
                .collect::<Result<_, _>>()?)
        })
    }
}

fn by_words(
    db: &Connection,
    query: &str,
    tag: Option<&str>,
    limit: usize,
) -> Result<Vec<Note>, rusqlite::Error> {
    let columns = notes::COLUMNS.replace("text, tags", "notes.text, notes.tags");
    let sql = format!(
        "SELECT {columns} FROM note_words JOIN notes ON notes.id = note_words.rowid
         WHERE {HAS_TAG} AND note_words MATCH ?2
         ORDER BY round(bm25(note_words, 1.0, 2.0), 6), notes.time DESC, notes.id DESC LIMIT ?3"
    );
    db.prepare_cached(&sql)?
        .query_map(params![tag.map(str::to_lowercase), query, at_most(limit)], notes::read)?
        .collect()
}

/// The best of several rankings; the newer of two equals first.
pub(crate) fn fuse(rankings: [Vec<Note>; 2], limit: usize) -> Vec<Note> {
    let mut notes: HashMap<crate::Id, (f64, Note)> = HashMap::new();
    for ranking in rankings {
        for (rank, note) in ranking.into_iter().enumerate() {
            let score = 1.0 / (FUSION + 1.0 + rank as f64);
            notes.entry(note.id).or_insert((0.0, note)).0 += score;
        }
    }
    let mut fused: Vec<(f64, Note)> = notes.into_values().collect();
    let key = |note: &Note| -> Reverse<(Timestamp, crate::Id)> { Reverse((note.time, note.id)) };
    fused.sort_by(|(a, one), (b, other)| b.total_cmp(a).then_with(|| key(one).cmp(&key(other))));
    fused.truncate(limit);
    fused.into_iter().map(|(_, note)| note).collect()
}
