//! A project's memory as a file. It is opened at its first use, so that looking at tools makes no file; several processes
//! may use it at once.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior};
use serde::Serialize;

use crate::error::MemoryError;
use crate::files;
use crate::id::Id;
use crate::schema::{self, Ready};

/// How long one process waits for another's write.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is remembered of one project. All of its methods block.
pub struct Memory {
    path: PathBuf,
    /// The project's folder, for people who look at the file.
    root: String,
    /// None until the first use; closed with this.
    connection: Mutex<Option<Connection>>,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").field("path", &self.path).finish_non_exhaustive()
    }
}

/// How much is remembered.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Status {
    /// Notes, syntheses included.
    pub notes: u32,
    /// Syntheses among them.
    pub syntheses: u32,
    /// Mental models.
    pub models: u32,
    /// Predictions nobody has resolved.
    pub open_predictions: u32,
    /// Predictions that came out one way or the other.
    pub resolved_predictions: u32,
    /// When something was last noted.
    pub newest: Option<Timestamp>,
}

impl Memory {
    /// The memory of the project in `root` (links resolved) below a data directory.
    pub fn of_project(home: &Path, root: &Path) -> Memory {
        Memory {
            path: files::of_project(home, root),
            root: root.display().to_string(),
            connection: Mutex::new(None),
        }
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The project's folder.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// Whether anything was ever kept here.
    pub fn exists(&self) -> bool {
        self.path.exists()
    }

    /// How much is remembered.
    pub fn status(&self) -> Result<Status, MemoryError> {
        self.read(|db| {
            let count =
                |sql: &str| -> Result<u32, rusqlite::Error> { db.query_row(sql, [], |row| row.get(0)) };
            Ok(Status {
                notes: count("SELECT count(*) FROM notes")?,
                syntheses: count("SELECT count(*) FROM notes WHERE kind = 'synthesis'")?,
                models: count("SELECT count(*) FROM models")?,
                open_predictions: count("SELECT count(*) FROM predictions WHERE outcome IS NULL")?,
                resolved_predictions: count("SELECT count(*) FROM predictions WHERE outcome IS NOT NULL")?,
                newest: db.query_row("SELECT max(time) FROM notes", [], |row| time_or_none(row, 0))?,
            })
        })
    }

    /// Forgets one thing; with a mental model its revisions and predictions. Says whether there was any.
    pub fn forget(&self, id: Id) -> Result<bool, MemoryError> {
        let (table, number) = match id {
            Id::Note(number) => ("notes", number),
            Id::Model(number) => ("models", number),
            Id::Prediction(number) => ("predictions", number),
        };
        let gone =
            self.write(|db| Ok(db.execute(&format!("DELETE FROM {table} WHERE id = ?1"), [number])? > 0))?;
        self.settle("PRAGMA wal_checkpoint(TRUNCATE)")?;
        Ok(gone)
    }

    /// Forgets everything.
    pub fn forget_all(&self) -> Result<(), MemoryError> {
        self.write(|db| {
            Ok(db.execute_batch("DELETE FROM predictions; DELETE FROM models; DELETE FROM notes;")?)
        })?;
        self.settle("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")
    }

    /// Takes what was forgotten out of the file and its journal.
    fn settle(&self, sql: &str) -> Result<(), MemoryError> {
        self.with(|db| {
            // A reader in another process may hold the journal; then it goes with that process.
            match db.execute_batch(sql) {
                Err(error) if is_busy(&error) => Ok(()),
                settled => Ok(settled?),
            }
        })
    }

    /// Looks.
    pub(crate) fn read<T>(
        &self,
        look: impl FnOnce(&Connection) -> Result<T, Trouble>,
    ) -> Result<T, MemoryError> {
        self.with(|db| look(db))
    }

    /// Changes something, wholly or not at all. One writer at a time, in whichever process.
    pub(crate) fn write<T>(
        &self,
        change: impl FnOnce(&Transaction<'_>) -> Result<T, Trouble>,
    ) -> Result<T, MemoryError> {
        self.with(|db| {
            let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = change(&transaction)?;
            transaction.commit()?;
            Ok(done)
        })
    }

    fn with<T>(&self, work: impl FnOnce(&mut Connection) -> Result<T, Trouble>) -> Result<T, MemoryError> {
        let mut slot = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let connection = match slot.as_mut() {
            Some(connection) => connection,
            None => slot.insert(self.open()?),
        };
        work(connection).map_err(|trouble| match trouble {
            Trouble::Database(source) => self.database(source),
            Trouble::Memory(error) => error,
        })
    }

    fn open(&self) -> Result<Connection, MemoryError> {
        let io = |source| MemoryError::Io { path: self.path.clone(), source };
        files::prepare(&self.path).map_err(io)?;
        let _door = files::door(&self.path).map_err(io)?;
        let database = |source| self.database(source);
        let mut connection = Connection::open(&self.path).map_err(database)?;
        connection.busy_timeout(PATIENCE).map_err(database)?;
        match schema::prepare(&mut connection).map_err(database)? {
            Ready::Yes => {}
            Ready::Newer(found) => {
                return Err(MemoryError::Newer { path: self.path.clone(), found, known: schema::VERSION });
            }
        }
        let root = "INSERT INTO about (key, value) VALUES ('root', ?1) ON CONFLICT DO NOTHING";
        connection.execute(root, [&self.root]).map_err(database)?;
        Ok(connection)
    }

    fn database(&self, source: rusqlite::Error) -> MemoryError {
        MemoryError::Database { path: self.path.clone(), source }
    }
}

/// What can go wrong inside of a look or a change.
pub(crate) enum Trouble {
    Database(rusqlite::Error),
    Memory(MemoryError),
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        Trouble::Database(error)
    }
}

impl From<MemoryError> for Trouble {
    fn from(error: MemoryError) -> Self {
        Trouble::Memory(error)
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked};
    matches!(error.sqlite_error_code(), Some(DatabaseBusy | DatabaseLocked))
}

/// Refuses one more of what there is enough of.
pub(crate) fn room(
    db: &Connection,
    table: &'static str,
    what: &'static str,
    most: u32,
) -> Result<(), Trouble> {
    let count: u32 = db.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))?;
    if count >= most { Err(MemoryError::Full { what, count }.into()) } else { Ok(()) }
}

/// A limit as the database takes it.
pub(crate) fn at_most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// The one row, if there is one.
pub(crate) fn one<T>(
    db: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
    read: impl FnOnce(&Row<'_>) -> Result<T, rusqlite::Error>,
) -> Result<Option<T>, rusqlite::Error> {
    db.query_row(sql, params, read).optional()
}

/// A time as it is kept: microseconds since 1970.
pub(crate) fn time(row: &Row<'_>, column: usize) -> Result<Timestamp, rusqlite::Error> {
    Ok(Timestamp::from_microsecond(row.get(column)?).unwrap_or_default())
}

pub(crate) fn time_or_none(row: &Row<'_>, column: usize) -> Result<Option<Timestamp>, rusqlite::Error> {
    let kept: Option<i64> = row.get(column)?;
    Ok(kept.and_then(|kept| Timestamp::from_microsecond(kept).ok()))
}
