//! A whole memory as a file for other machines and for people, and back. What is there already stays as it is, so the same
//! file can be taken in twice.

use std::collections::HashMap;
use std::fmt::Write;

use jiff::Timestamp;
use rusqlite::{Transaction, params};
use serde::{Deserialize, Serialize};

use crate::error::MemoryError;
use crate::id::Id;
use crate::models::Revision;
use crate::notes::{self, Draft, Note};
use crate::predictions::Prediction;
use crate::store::{Memory, Trouble, one, room};
use crate::{limits, text};

/// What this program writes, and reads.
const FORMAT: u32 = 1;

/// A whole memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Archive {
    /// The version of this format.
    pub gimlet_memory: u32,
    /// The project's folder.
    #[serde(default)]
    pub root: String,
    /// Notes, the oldest first.
    #[serde(default)]
    pub notes: Vec<Note>,
    /// Mental models with all their revisions.
    #[serde(default)]
    pub models: Vec<ArchivedModel>,
    /// Predictions, the oldest first.
    #[serde(default)]
    pub predictions: Vec<Prediction>,
}

/// A mental model with its history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArchivedModel {
    /// Its name.
    pub name: String,
    /// Its revisions, the first one first.
    pub revisions: Vec<Revision>,
}

/// What was taken in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// New notes.
    pub notes: usize,
    /// New mental models.
    pub models: usize,
    /// New predictions, which come with their models.
    pub predictions: usize,
    /// What was there already.
    pub known: usize,
}

impl Memory {
    /// Everything. Where nothing was ever kept no file is made.
    pub fn export(&self) -> Result<Archive, MemoryError> {
        if !self.exists() {
            let root = self.root().to_owned();
            return Ok(Archive { gimlet_memory: FORMAT, root, ..Archive::default() });
        }
        let mut notes = self.newest(None, usize::MAX)?;
        notes.reverse();
        let models = self.models()?;
        let models = models
            .into_iter()
            .map(|model| Ok(ArchivedModel { revisions: self.revisions(model.id)?, name: model.name }));
        Ok(Archive {
            gimlet_memory: FORMAT,
            root: self.root().to_owned(),
            notes,
            models: models.collect::<Result<_, MemoryError>>()?,
            predictions: self.predictions()?,
        })
    }

    /// Takes an archive in. `clean` takes secrets out of a text.
    pub fn import(
        &self,
        mut archive: Archive,
        clean: &dyn Fn(&str) -> String,
    ) -> Result<Imported, MemoryError> {
        if archive.gimlet_memory != FORMAT {
            let version = archive.gimlet_memory;
            return Err(MemoryError::Archive(format!("it has version {version}, and {FORMAT} is known")));
        }
        archive.notes.sort_by_key(|note| (note.time, note.id));
        // All of it or nothing.
        self.write(|db| {
            let mut done = Imported::default();
            import_notes(db, &archive.notes, clean, &mut done)?;
            for model in &archive.models {
                let own = archive.predictions.iter();
                let own = own.filter(|prediction| prediction.model.eq_ignore_ascii_case(&model.name));
                import_model(db, model, &own.collect::<Vec<_>>(), clean, &mut done)?;
            }
            Ok(done)
        })
    }
}

/// Notes, with new numbers; what they were made of follows them.
fn import_notes(
    db: &Transaction<'_>,
    notes: &[Note],
    clean: &dyn Fn(&str) -> String,
    done: &mut Imported,
) -> Result<(), Trouble> {
    let mut numbers: HashMap<Id, Id> = HashMap::new();
    for note in notes {
        let tags: Vec<String> = note.tags.iter().map(|tag| clean(tag)).collect();
        // Sources that were forgotten, or are no notes of this file, lead nowhere.
        let sources: Vec<Id> = note.sources.iter().filter_map(|id| numbers.get(id).copied()).collect();
        let draft = Draft {
            kind: note.kind,
            text: &clean(&note.text),
            tags: &tags,
            sources: &sources,
            source: &note.source,
            time: note.time,
        };
        let (id, new) = notes::keep(db, &draft)?.into_parts();
        numbers.insert(note.id, id);
        *(if new { &mut done.notes } else { &mut done.known }) += 1;
    }
    Ok(())
}

/// A model with its predictions. One of the same name stays as it is.
fn import_model(
    db: &Transaction<'_>,
    model: &ArchivedModel,
    predictions: &[&Prediction],
    clean: &dyn Fn(&str) -> String,
    done: &mut Imported,
) -> Result<(), Trouble> {
    let name = text::name("name", &clean(&model.name))?;
    let Some(last) = model.revisions.last() else {
        return Err(MemoryError::Archive(format!("the mental model `{name}` has no revision")).into());
    };
    let known: Option<i64> = one(db, "SELECT id FROM models WHERE name = ?1", [&name], |row| row.get(0))?;
    if known.is_some() {
        done.known += 1 + predictions.len();
        return Ok(());
    }
    room(db, "models", "mental models", limits::MODELS)?;
    let count = u32::try_from(model.revisions.len()).unwrap_or(u32::MAX);
    if count > limits::REVISIONS {
        return Err(MemoryError::Full { what: "revisions of a mental model", count }.into());
    }
    let statement = |text: &str| text::checked("statement", &clean(text), limits::STATEMENT);
    db.execute(
        "INSERT INTO models (name, statement, confidence, revision, time) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![
            name,
            statement(&last.statement)?,
            text::share("confidence", last.confidence)?,
            count,
            last.time.as_microsecond()
        ],
    )?;
    let id = db.last_insert_rowid();
    for (number, revision) in (1..=count).zip(&model.revisions) {
        let because = revision.because.as_deref().map(clean);
        db.execute(
            "INSERT INTO revisions (model, number, statement, confidence, because, time, run, agent)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![
                id,
                number,
                statement(&revision.statement)?,
                text::share("confidence", revision.confidence)?,
                text::optional("reason", because.as_deref(), limits::STATEMENT)?,
                revision.time.as_microsecond(),
                revision.source.run,
                revision.source.agent,
            ],
        )?;
    }
    for prediction in predictions {
        room(db, "predictions", "predictions", limits::PREDICTIONS)?;
        let evidence = prediction.evidence.as_deref().map(clean);
        db.execute(
            "INSERT INTO predictions (model, revision, statement, probability, time, run, agent, outcome, resolved, evidence)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            params![
                id,
                prediction.revision.clamp(1, count),
                statement(&prediction.statement)?,
                text::share("probability", prediction.probability)?,
                prediction.time.as_microsecond(),
                prediction.source.run,
                prediction.source.agent,
                prediction.outcome,
                prediction.resolved.filter(|_| prediction.outcome.is_some()).map(Timestamp::as_microsecond),
                text::optional("evidence", evidence.as_deref(), limits::STATEMENT)?,
            ],
        )?;
    }
    done.models += 1;
    done.predictions += predictions.len();
    Ok(())
}

impl Archive {
    /// As a person reads it.
    pub fn markdown(&self) -> String {
        let mut out = format!("# Memory of {}\n", self.root);
        let day = |time: Timestamp| time.strftime("%Y-%m-%d").to_string();
        let mut line = |text: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{text}");
        };
        if !self.notes.is_empty() {
            line("\n## Notes\n".into());
        }
        for note in &self.notes {
            let tags: String = note.tags.iter().map(|tag| format!(" #{}", tag.replace(' ', "-"))).collect();
            let text = note.text.replace('\n', "\n  ");
            line(format!("- **{}** ({}, {}){tags}: {text}", note.id, note.kind.word(), day(note.time)));
        }
        if !self.models.is_empty() {
            line("\n## Mental models".into());
        }
        for model in &self.models {
            line(format!("\n### {}\n", model.name));
            for revision in &model.revisions {
                let because =
                    revision.because.as_ref().map(|why| format!(" Because: {why}")).unwrap_or_default();
                line(format!(
                    "{}. {} ({:.2}, {}){because}",
                    revision.number,
                    revision.statement,
                    revision.confidence,
                    day(revision.time)
                ));
            }
            let own = self.predictions.iter().filter(|prediction| prediction.model == model.name);
            for (at, prediction) in own.enumerate() {
                if at == 0 {
                    line("\nPredictions:\n".into());
                }
                let outcome = match prediction.outcome {
                    None => "open",
                    Some(true) => "came true",
                    Some(false) => "did not come true",
                };
                line(format!(
                    "- **{}** {} ({:.2}): {outcome}",
                    prediction.id, prediction.statement, prediction.probability
                ));
            }
        }
        out
    }
}
