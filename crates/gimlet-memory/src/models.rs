//! Mental models: what an agent believes about the project, how sure it is, and how it does. Revisions are kept; a revised
//! model starts with a clean record.

use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};

use crate::error::MemoryError;
use crate::id::Id;
use crate::notes::{Kept, Source};
use crate::predictions::{Record, record};
use crate::store::{Memory, Trouble, one, room, time};
use crate::{limits, text};

/// So many outcomes make a record that says something.
const TELLING: u32 = 3;
/// A model is too sure of itself by so much.
const MARGIN: f64 = 0.25;
/// A model nobody used for so long may be out of date.
const STALE: SignedDuration = SignedDuration::from_hours(30 * 24);

/// A belief, as it is now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Model {
    /// Its id.
    pub id: Id,
    /// Its name, upper and lower case alike.
    pub name: String,
    /// What it says.
    pub statement: String,
    /// How sure the agent is, from 0 to 1.
    pub confidence: f64,
    /// Number of the revision, from 1.
    pub revision: u32,
    /// When it was last revised.
    pub time: Timestamp,
    /// What came of all its predictions.
    pub record: Record,
    /// What came of the predictions of this revision.
    pub current: Record,
    /// When anything happened to it last.
    pub touched: Timestamp,
}

/// What a model's record says about it. The worst that holds counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Most of at least three outcomes were not as it expected.
    Contradicted,
    /// Its confidence is far above the share of outcomes it expected.
    Overconfident,
    /// Nothing happened to it for thirty days.
    Stale,
    /// No prediction of this revision has come out yet.
    Untested,
    /// Nothing speaks against it.
    Sound,
}

impl Model {
    /// What its record says about it.
    pub fn standing(&self, now: Timestamp) -> Standing {
        match self.current.accuracy {
            Some(accuracy) if self.current.resolved >= TELLING && accuracy < 0.5 => Standing::Contradicted,
            Some(accuracy) if self.current.resolved >= TELLING && self.confidence - accuracy > MARGIN => {
                Standing::Overconfident
            }
            Some(_) | None if now.duration_since(self.touched) > STALE => Standing::Stale,
            None => Standing::Untested,
            Some(_) => Standing::Sound,
        }
    }
}

/// One wording of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Revision {
    /// Counts from 1.
    pub number: u32,
    /// What it said.
    pub statement: String,
    /// How sure the agent was.
    pub confidence: f64,
    /// Why it was revised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// When.
    pub time: Timestamp,
    /// By whom.
    #[serde(flatten)]
    pub source: Source,
}

/// A new wording of a model.
pub(crate) struct Wording<'a> {
    pub(crate) name: &'a str,
    pub(crate) statement: &'a str,
    pub(crate) confidence: f64,
    pub(crate) because: Option<&'a str>,
}

impl Memory {
    /// Makes a model, or gives it a new revision. What it says already is no revision.
    pub(crate) fn revise(
        &self,
        wording: &Wording<'_>,
        source: &Source,
        now: Timestamp,
    ) -> Result<Kept<Model>, MemoryError> {
        let name = text::name("name", wording.name)?;
        let statement = text::checked("statement", wording.statement, limits::STATEMENT)?;
        let because = text::optional("reason", wording.because, limits::STATEMENT)?;
        let confidence = text::share("confidence", wording.confidence)?;
        self.write(|db| {
            let before = by_name(db, &name)?;
            let (id, number) = match before {
                Some((_, model)) if model.statement == statement && model.confidence == confidence => {
                    return Ok(Kept::Already(model));
                }
                None => {
                    room(db, "models", "mental models", limits::MODELS)?;
                    db.execute(
                        "INSERT INTO models (name, statement, confidence, revision, time) VALUES (?1, ?2, ?3, 1, ?4)",
                        params![name, statement, confidence, now.as_microsecond()],
                    )?;
                    (db.last_insert_rowid(), 1)
                }
                Some((id, Model { revision, .. })) => {
                    if revision >= limits::REVISIONS {
                        let what = "revisions of this mental model";
                        return Err(MemoryError::Full { what, count: revision }.into());
                    }
                    db.execute(
                        "UPDATE models SET statement = ?2, confidence = ?3, revision = ?4, time = ?5 WHERE id = ?1",
                        params![id, statement, confidence, revision + 1, now.as_microsecond()],
                    )?;
                    (id, revision + 1)
                }
            };
            db.execute(
                "INSERT INTO revisions (model, number, statement, confidence, because, time, run, agent)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                params![
                    id,
                    number,
                    statement,
                    confidence,
                    because,
                    now.as_microsecond(),
                    source.run,
                    source.agent
                ],
            )?;
            let model = by_number(db, id)?.ok_or(MemoryError::Unknown(Id::Model(id)))?;
            Ok(Kept::New(model))
        })
    }

    /// A mental model by its name.
    pub fn model(&self, name: &str) -> Result<Model, MemoryError> {
        self.read(|db| Ok(named(db, name)?.1))
    }

    /// A mental model by its id.
    pub fn model_by_id(&self, id: Id) -> Result<Model, MemoryError> {
        let Id::Model(number) = id else { return Err(MemoryError::Unknown(id)) };
        self.read(|db| by_number(db, number)?.ok_or_else(|| MemoryError::Unknown(id).into()))
    }

    /// All mental models, by name.
    pub fn models(&self) -> Result<Vec<Model>, MemoryError> {
        self.read(|db| {
            let ids: Vec<i64> = db
                .prepare_cached("SELECT id FROM models ORDER BY name, id")?
                .query_map([], |row| row.get(0))?
                .collect::<Result<_, _>>()?;
            Ok(ids.into_iter().filter_map(|id| by_number(db, id).transpose()).collect::<Result<_, _>>()?)
        })
    }

    /// The revisions of a model, the first one first.
    pub fn revisions(&self, id: Id) -> Result<Vec<Revision>, MemoryError> {
        let Id::Model(number) = id else { return Err(MemoryError::Unknown(id)) };
        self.read(|db| {
            Ok(db
                .prepare_cached(
                    "SELECT number, statement, confidence, because, time, run, agent FROM revisions WHERE model = ?1
                     ORDER BY number",
                )?
                .query_map([number], |row| {
                    Ok(Revision {
                        number: row.get(0)?,
                        statement: row.get(1)?,
                        confidence: row.get(2)?,
                        because: row.get(3)?,
                        time: time(row, 4)?,
                        source: Source { run: row.get(5)?, agent: row.get(6)? },
                    })
                })?
                .collect::<Result<_, _>>()?)
        })
    }
}

/// A model with its number.
fn by_name(db: &Connection, name: &str) -> Result<Option<(i64, Model)>, rusqlite::Error> {
    match one(db, "SELECT id FROM models WHERE name = ?1", [name], |row| row.get(0))? {
        Some(id) => Ok(by_number(db, id)?.map(|model| (id, model))),
        None => Ok(None),
    }
}

pub(crate) fn by_number(db: &Connection, id: i64) -> Result<Option<Model>, rusqlite::Error> {
    let model = one(
        db,
        "SELECT name, statement, confidence, revision, time,
                max(time, coalesce((SELECT max(max(time, coalesce(resolved, 0))) FROM predictions WHERE model = ?1), 0))
         FROM models WHERE id = ?1",
        [id],
        |row| {
            Ok(Model {
                id: Id::Model(id),
                name: row.get(0)?,
                statement: row.get(1)?,
                confidence: row.get(2)?,
                revision: row.get(3)?,
                time: time(row, 4)?,
                record: Record::default(),
                current: Record::default(),
                touched: time(row, 5)?,
            })
        },
    )?;
    let Some(mut model) = model else { return Ok(None) };
    model.record = record(db, id, None)?;
    model.current = record(db, id, Some(model.revision))?;
    Ok(Some(model))
}

/// A model with its number, or the error that there is none.
pub(crate) fn named(db: &Connection, name: &str) -> Result<(i64, Model), Trouble> {
    let name = text::name("name", name)?;
    if let Some(model) = by_name(db, &name)? {
        return Ok(model);
    }
    let known = db
        .prepare_cached("SELECT name FROM models ORDER BY time DESC, id DESC LIMIT 20")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    Err(MemoryError::UnknownModel { name, known }.into())
}
