//! Notes: one fact each, and syntheses made of several.

use gimlet::digest::digest;
use jiff::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Connection, Row, Transaction, params};
use serde::{Deserialize, Serialize};

use crate::error::MemoryError;
use crate::id::Id;
use crate::store::{Memory, Trouble, at_most, one, room, time};
use crate::{limits, text};

/// Who said it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The run.
    pub run: String,
    /// The agent of that run; empty for the main one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub agent: String,
}

/// What kind of note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// A fact.
    Note,
    /// What several notes come to.
    Synthesis,
}

impl NoteKind {
    /// The word it is kept as.
    pub fn word(self) -> &'static str {
        match self {
            NoteKind::Note => "note",
            NoteKind::Synthesis => "synthesis",
        }
    }
}

/// Something that was noted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Its id.
    pub id: Id,
    /// What kind.
    pub kind: NoteKind,
    /// What it says.
    pub text: String,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// When it was noted.
    pub time: Timestamp,
    /// Who noted it.
    #[serde(flatten)]
    pub source: Source,
    /// The notes it was made of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Id>,
}

/// A note to be kept.
#[derive(Debug, Clone)]
pub(crate) struct Draft<'a> {
    pub(crate) kind: NoteKind,
    pub(crate) text: &'a str,
    pub(crate) tags: &'a [String],
    pub(crate) sources: &'a [Id],
    pub(crate) source: &'a Source,
    pub(crate) time: Timestamp,
}

/// What became of something that was to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept<T> {
    /// It is new.
    New(T),
    /// The same was there already.
    Already(T),
}

impl<T> Kept<T> {
    pub(crate) fn into_parts(self) -> (T, bool) {
        match self {
            Kept::New(value) => (value, true),
            Kept::Already(value) => (value, false),
        }
    }
}

pub(crate) const COLUMNS: &str = "id, kind, text, tags, time, run, agent, sources";

impl Memory {
    /// Keeps a note.
    pub(crate) fn note(&self, draft: &Draft<'_>) -> Result<Kept<Id>, MemoryError> {
        self.write(|db| keep(db, draft))
    }

    /// A note.
    pub fn get(&self, id: Id) -> Result<Note, MemoryError> {
        self.read(|db| note(db, id))
    }

    /// The newest notes, newest first; with a tag, only those that have it.
    pub fn newest(&self, tag: Option<&str>, limit: usize) -> Result<Vec<Note>, MemoryError> {
        self.read(|db| Ok(newest(db, tag, limit)?))
    }
}

/// Keeps a note as part of a change. The same text again is the same note.
pub(crate) fn keep(db: &Transaction<'_>, draft: &Draft<'_>) -> Result<Kept<Id>, Trouble> {
    let text = text::checked("text", draft.text, limits::TEXT)?;
    let tags = json(&text::tags(draft.tags)?);
    if draft.sources.len() > limits::SOURCES {
        return Err(MemoryError::Invalid(format!("at most {} sources are kept", limits::SOURCES)).into());
    }
    let digest = digest(format!("{} {text}", draft.kind.word()).as_bytes());
    if let Some(known) = one(db, "SELECT id FROM notes WHERE digest = ?1", [&digest], |row| row.get(0))? {
        return Ok(Kept::Already(Id::Note(known)));
    }
    for source in draft.sources {
        note(db, *source)?;
    }
    room(db, "notes", "notes", limits::NOTES)?;
    db.prepare_cached(
        "INSERT INTO notes (kind, text, tags, time, run, agent, sources, digest)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute(params![
        draft.kind.word(),
        text,
        tags,
        draft.time.as_microsecond(),
        draft.source.run,
        draft.source.agent,
        json(draft.sources),
        digest,
    ])?;
    Ok(Kept::New(Id::Note(db.last_insert_rowid())))
}

/// A note, or the error that there is none.
fn note(db: &Connection, id: Id) -> Result<Note, Trouble> {
    let Id::Note(number) = id else { return Err(MemoryError::Unknown(id).into()) };
    by_number(db, number)?.ok_or_else(|| MemoryError::Unknown(id).into())
}

pub(crate) fn by_number(db: &Connection, number: i64) -> Result<Option<Note>, rusqlite::Error> {
    one(db, &format!("SELECT {COLUMNS} FROM notes WHERE id = ?1"), [number], read)
}

pub(crate) fn newest(db: &Connection, tag: Option<&str>, limit: usize) -> Result<Vec<Note>, rusqlite::Error> {
    let sql = format!("SELECT {COLUMNS} FROM notes WHERE {HAS_TAG} ORDER BY time DESC, id DESC LIMIT ?2");
    db.prepare_cached(&sql)?.query_map(params![tag.map(str::to_lowercase), at_most(limit)], read)?.collect()
}

/// True for rows of `notes` with the tag of the first parameter, or for all when there is none.
pub(crate) const HAS_TAG: &str =
    "(?1 IS NULL OR EXISTS (SELECT 1 FROM json_each(notes.tags) WHERE json_each.value = ?1))";

/// A row with [`COLUMNS`].
pub(crate) fn read(row: &Row<'_>) -> Result<Note, rusqlite::Error> {
    let kind: String = row.get(1)?;
    Ok(Note {
        id: Id::Note(row.get(0)?),
        kind: if kind == NoteKind::Synthesis.word() { NoteKind::Synthesis } else { NoteKind::Note },
        text: row.get(2)?,
        tags: list(row, 3)?,
        time: time(row, 4)?,
        source: Source { run: row.get(5)?, agent: row.get(6)? },
        sources: list(row, 7)?,
    })
}

fn list<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: usize) -> Result<Vec<T>, rusqlite::Error> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into()))
}

/// A list as it is kept. Lists of texts and ids can always be written.
fn json<T: Serialize>(list: &[T]) -> String {
    serde_json::to_string(list).unwrap_or_else(|_| "[]".into())
}
