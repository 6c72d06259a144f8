//! A list of runs that does not read every log every time.
//!
//! The index remembers what each log said at a certain size and time of change; a log that differs is read again.
//! Nothing in it is worth an error: an index that is missing, damaged, of another version or not writable is replaced,
//! if only in memory, by what the logs say.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::Path;
use std::time::UNIX_EPOCH;

use gimlet::ids::RunId;
use gimlet::store::{RunStatus, RunSummary, StoreError};
use jiff::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Connection, Row, TransactionBehavior, params};
use serde::de::DeserializeOwned;

use crate::files::{io_error, private};
use crate::home::Home;
use crate::lock::Door;
use crate::summary::Told;

/// Grows with every change of the table or of what the fold makes of a log.
const VERSION: i64 = 1;

const TABLE: &str = "
    CREATE TABLE IF NOT EXISTS runs (
        id TEXT PRIMARY KEY, started TEXT, updated TEXT, task TEXT NOT NULL, agent TEXT NOT NULL, model TEXT NOT NULL,
        action TEXT NOT NULL, root TEXT NOT NULL, state TEXT, steps INTEGER NOT NULL, tokens INTEGER NOT NULL,
        seconds REAL NOT NULL, log_bytes INTEGER NOT NULL, log_changed INTEGER NOT NULL, damage TEXT
    ) WITHOUT ROWID";

/// A log as a look at its folder shows it. When it is the same as before, so is what the log says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    bytes: i64,
    /// Nanoseconds since 1970.
    changed: i64,
}

impl Home {
    /// The newest runs, newest first. Blocks on files.
    ///
    /// Looks at every log's size, reads only those that changed since the last list, and locks nobody out.
    pub(crate) fn list(&self, limit: usize) -> Result<Vec<RunSummary>, StoreError> {
        let found = self.scan()?;
        let told = tell(self, &found);
        let mut runs: Vec<_> = found
            .into_iter()
            .zip(told)
            .map(|((id, look), told)| {
                let changed = Timestamp::from_nanosecond(look.changed.into()).unwrap_or_default();
                let started = told.started.unwrap_or(changed);
                (started, id, look, told)
            })
            .collect();
        runs.sort_by(|(started, id, ..), (other, other_id, ..)| {
            Reverse((started, id)).cmp(&Reverse((other, other_id)))
        });
        runs.truncate(limit);
        // Where the door cannot be entered, as on a disk that is only read, nobody writes either.
        let door = Door::enter(self.path()).ok();
        let summaries = runs.into_iter().map(|(started, id, look, told)| {
            let status = told.ended.unwrap_or_else(|| {
                let locked = door.as_ref().is_some_and(|door| door.is_locked(&self.run_dir(&id)));
                if locked { RunStatus::Running } else { RunStatus::Crashed }
            });
            RunSummary {
                started,
                updated: told.updated.unwrap_or(started).max(started),
                task: told.task,
                agent: told.agent,
                model: told.model,
                action: told.action,
                root: told.root,
                status,
                steps: told.steps,
                tokens: told.tokens,
                seconds: told.seconds,
                log_bytes: look.bytes.unsigned_abs(),
                damage: told.damage,
                id,
            }
        });
        Ok(summaries.collect())
    }

    /// Every run there is, in no order. A folder without a log, or with an empty one, is a run that never began.
    pub(crate) fn scan(&self) -> Result<Vec<(RunId, Look)>, StoreError> {
        let runs = self.runs();
        let mut found = Vec::new();
        for entry in fs::read_dir(&runs).map_err(io_error("reading", &runs))? {
            let name = entry.map_err(io_error("reading", &runs))?.file_name();
            let Some(id) = name.to_str().and_then(|name| name.parse::<RunId>().ok()) else { continue };
            let log = self.log_path(&id);
            match fs::metadata(&log) {
                Ok(data) if data.is_file() && data.len() > 0 => found.push((id, look(&data))),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => {}
                Err(error) => return Err(io_error("looking at", &log)(error)),
            }
        }
        Ok(found)
    }
}

fn look(data: &Metadata) -> Look {
    let changed =
        data.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    Look {
        bytes: i64::try_from(data.len()).unwrap_or(i64::MAX),
        changed: i64::try_from(changed.as_nanos()).unwrap_or(i64::MAX),
    }
}

/// What each log says, in the order given; from the index where it is up to date.
fn tell(home: &Home, found: &[(RunId, Look)]) -> Vec<Told> {
    // One process at a time uses the index, so that none replaces it under another's feet.
    if let Ok(_guard) = exclusively(&home.path().join("index.lock")) {
        let path = home.path().join("index.sqlite");
        if let Ok(told) = open(&path).and_then(|mut index| refresh(&mut index, home, found)) {
            return told;
        }
        remove(&path);
        if let Ok(told) = open(&path).and_then(|mut index| refresh(&mut index, home, found)) {
            return told;
        }
    }
    found.iter().map(|(id, _)| Told::read(&home.log_path(id), id)).collect()
}

fn exclusively(path: &Path) -> io::Result<File> {
    let file = private().write(true).create(true).truncate(false).open(path)?;
    file.lock()?;
    Ok(file)
}

fn remove(index: &Path) {
    for suffix in ["", "-journal", "-wal", "-shm"] {
        let mut path = index.as_os_str().to_owned();
        path.push(suffix);
        // What cannot be removed cannot be opened either, and then the logs are read without an index.
        let _ = fs::remove_file(path);
    }
}

fn open(path: &Path) -> Result<Connection, Unusable> {
    // Made here because SQLite would let others read it; its journal takes over the mode.
    private().write(true).create(true).truncate(false).open(path)?;
    let index = Connection::open(path)?;
    match index.pragma_query_value(None, "user_version", |row| row.get(0))? {
        VERSION => Ok(index),
        0i64 => {
            index.execute_batch(&format!("BEGIN; {TABLE}; PRAGMA user_version = {VERSION}; COMMIT"))?;
            Ok(index)
        }
        other => Err(Unusable::Version(other)),
    }
}

/// Why the index must be replaced. Nobody reads it: the list is right without an index.
#[derive(Debug, thiserror::Error)]
enum Unusable {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("version {0}")]
    Version(i64),
}

/// Brings the index up to date with the logs and answers from it.
fn refresh(index: &mut Connection, home: &Home, found: &[(RunId, Look)]) -> Result<Vec<Told>, Unusable> {
    let mut known = read(index)?;
    let mut changed = Vec::new();
    let mut told = Vec::with_capacity(found.len());
    for (id, look) in found {
        match known.remove(id.as_str()) {
            Some((seen, row)) if seen == *look => told.push(row),
            Some(_) | None => {
                // The look came first: should the log grow meanwhile, it differs next time and is read again.
                told.push(Told::read(&home.log_path(id), id));
                changed.push(told.len() - 1);
            }
        }
    }
    if !changed.is_empty() || !known.is_empty() {
        let change = index.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for at in changed {
            write(&change, &found[at], &told[at])?;
        }
        for gone in known.keys() {
            change.execute("DELETE FROM runs WHERE id = ?1", [gone])?;
        }
        change.commit()?;
    }
    Ok(told)
}

fn read(index: &Connection) -> Result<HashMap<String, (Look, Told)>, rusqlite::Error> {
    index
        .prepare(
            "SELECT id, log_bytes, log_changed, started, updated, task, agent, model, action, root, state, steps, tokens,
                    seconds, damage FROM runs",
        )?
        .query_map([], |row| Ok((row.get(0)?, (Look { bytes: row.get(1)?, changed: row.get(2)? }, told(row)?))))?
        .collect()
}

fn told(row: &Row<'_>) -> Result<Told, rusqlite::Error> {
    Ok(Told {
        started: parsed(row, 3)?,
        updated: parsed(row, 4)?,
        task: row.get(5)?,
        agent: row.get(6)?,
        model: row.get(7)?,
        action: json(row, 8)?.unwrap_or_default(),
        root: row.get(9)?,
        ended: json(row, 10)?,
        steps: row.get(11)?,
        tokens: row.get::<_, i64>(12)?.unsigned_abs(),
        seconds: row.get(13)?,
        damage: row.get(14)?,
    })
}

fn parsed(row: &Row<'_>, column: usize) -> Result<Option<Timestamp>, rusqlite::Error> {
    let text: Option<String> = row.get(column)?;
    text.map(|text| text.parse()).transpose().map_err(|error: jiff::Error| unreadable(column, error))
}

fn json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> Result<Option<T>, rusqlite::Error> {
    let text: Option<String> = row.get(column)?;
    text.map(|text| serde_json::from_str(&text)).transpose().map_err(|error| unreadable(column, error))
}

fn unreadable(column: usize, error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
}

fn write(index: &Connection, (id, look): &(RunId, Look), told: &Told) -> Result<(), rusqlite::Error> {
    let text = |value: serde_json::Result<String>| {
        value.map_err(|e| rusqlite::Error::ToSqlConversionFailure(e.into()))
    };
    let state = told.ended.as_ref().map(|state| text(serde_json::to_string(state))).transpose()?;
    index
        .prepare_cached(
            "INSERT OR REPLACE INTO runs (id, log_bytes, log_changed, started, updated, task, agent, model, action, root,
                    state, steps, tokens, seconds, damage)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
        )?
        .execute(params![
            id.as_str(),
            look.bytes,
            look.changed,
            told.started.map(|time| time.to_string()),
            told.updated.map(|time| time.to_string()),
            told.task,
            told.agent,
            told.model,
            text(serde_json::to_string(&told.action))?,
            told.root,
            state,
            told.steps,
            i64::try_from(told.tokens).unwrap_or(i64::MAX),
            told.seconds,
            told.damage,
        ])?;
    Ok(())
}
