//! Predictions: what a mental model expects, written down before it is known. Each belongs to the revision that made it.

use jiff::Timestamp;
use rusqlite::{Connection, Row, params};
use serde::{Deserialize, Serialize};

use crate::error::MemoryError;
use crate::id::Id;
use crate::models::{Model, named};
use crate::notes::{Kept, Source};
use crate::store::{Memory, Trouble, one, room, time, time_or_none};
use crate::{limits, text};

/// What came of predictions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Record {
    /// Predictions without an outcome.
    pub open: u32,
    /// Predictions with one.
    pub resolved: u32,
    /// Share of the resolved ones that came out as expected (a probability of 0.5 and above expects a yes).
    pub accuracy: Option<f64>,
    /// Mean squared distance of probability and outcome: 0 is perfect, 0.25 is a coin.
    pub brier: Option<f64>,
}

/// What a model expects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Its id.
    pub id: Id,
    /// Name of the model.
    pub model: String,
    /// The revision that made it.
    pub revision: u32,
    /// What is expected.
    pub statement: String,
    /// How likely it is, from 0 to 1.
    pub probability: f64,
    /// When it was made.
    pub time: Timestamp,
    /// By whom.
    #[serde(flatten)]
    pub source: Source,
    /// How it came out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<bool>,
    /// When that was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<Timestamp>,
    /// What it was known by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
}

impl Memory {
    /// Makes a prediction. One that is open already stands as it was made: nobody corrects a guess in hindsight.
    pub(crate) fn predict(
        &self,
        model: &str,
        statement: &str,
        probability: f64,
        source: &Source,
        now: Timestamp,
    ) -> Result<Kept<Prediction>, MemoryError> {
        let statement = text::checked("statement", statement, limits::STATEMENT)?;
        let probability = text::share("probability", probability)?;
        self.write(|db| {
            let (number, model) = named(db, model)?;
            let open = one(
                db,
                "SELECT id FROM predictions WHERE model = ?1 AND outcome IS NULL AND lower(statement) = lower(?2)",
                params![number, statement],
                |row| row.get(0),
            )?;
            if let Some(open) = open {
                return Ok(Kept::Already(prediction(db, Id::Prediction(open))?));
            }
            room(db, "predictions", "predictions", limits::PREDICTIONS)?;
            db.execute(
                "INSERT INTO predictions (model, revision, statement, probability, time, run, agent)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                params![
                    number,
                    model.revision,
                    statement,
                    probability,
                    now.as_microsecond(),
                    source.run,
                    source.agent
                ],
            )?;
            Ok(Kept::New(prediction(db, Id::Prediction(db.last_insert_rowid()))?))
        })
    }

    /// Says how a prediction came out. Once said, it stands.
    pub(crate) fn resolve(
        &self,
        id: Id,
        outcome: bool,
        evidence: Option<&str>,
        now: Timestamp,
    ) -> Result<(Prediction, Model), MemoryError> {
        let evidence = text::optional("evidence", evidence, limits::STATEMENT)?;
        self.write(|db| {
            let before = prediction(db, id)?;
            match before.outcome {
                Some(known) if known != outcome => {
                    return Err(MemoryError::Resolved { id, outcome: known }.into());
                }
                Some(_) => {}
                None => {
                    let Id::Prediction(number) = id else { return Err(MemoryError::Unknown(id).into()) };
                    db.execute(
                        "UPDATE predictions SET outcome = ?2, resolved = ?3, evidence = ?4 WHERE id = ?1",
                        params![number, outcome, now.as_microsecond(), evidence],
                    )?;
                }
            }
            Ok((prediction(db, id)?, named(db, &before.model)?.1))
        })
    }

    /// A prediction.
    pub fn prediction(&self, id: Id) -> Result<Prediction, MemoryError> {
        self.read(|db| prediction(db, id))
    }

    /// All predictions, the oldest first.
    pub fn predictions(&self) -> Result<Vec<Prediction>, MemoryError> {
        self.read(|db| {
            let sql = format!("{PREDICTIONS} ORDER BY predictions.id");
            Ok(db.prepare_cached(&sql)?.query_map([], read_prediction)?.collect::<Result<_, _>>()?)
        })
    }
}

const PREDICTIONS: &str =
    "SELECT predictions.id, models.name, predictions.revision, predictions.statement, probability,
    predictions.time, run, agent, outcome, resolved, evidence
    FROM predictions JOIN models ON models.id = predictions.model";

fn prediction(db: &Connection, id: Id) -> Result<Prediction, Trouble> {
    let unknown = || Trouble::from(MemoryError::Unknown(id));
    let Id::Prediction(number) = id else { return Err(unknown()) };
    one(db, &format!("{PREDICTIONS} WHERE predictions.id = ?1"), [number], read_prediction)?
        .ok_or_else(unknown)
}

fn read_prediction(row: &Row<'_>) -> Result<Prediction, rusqlite::Error> {
    Ok(Prediction {
        id: Id::Prediction(row.get(0)?),
        model: row.get(1)?,
        revision: row.get(2)?,
        statement: row.get(3)?,
        probability: row.get(4)?,
        time: time(row, 5)?,
        source: Source { run: row.get(6)?, agent: row.get(7)? },
        outcome: row.get(8)?,
        resolved: time_or_none(row, 9)?,
        evidence: row.get(10)?,
    })
}

/// What came of a model's predictions: of all, or of those that one revision made.
pub(crate) fn record(db: &Connection, model: i64, revision: Option<u32>) -> Result<Record, rusqlite::Error> {
    let row = "SELECT count(*) FILTER (WHERE outcome IS NULL), count(outcome),
                      avg((probability >= 0.5) = outcome) FILTER (WHERE outcome IS NOT NULL),
                      avg((probability - outcome) * (probability - outcome)) FILTER (WHERE outcome IS NOT NULL)
               FROM predictions WHERE model = ?1 AND (?2 IS NULL OR revision = ?2)";
    db.prepare_cached(row)?.query_row(params![model, revision], |row| {
        Ok(Record { open: row.get(0)?, resolved: row.get(1)?, accuracy: row.get(2)?, brier: row.get(3)? })
    })
}
