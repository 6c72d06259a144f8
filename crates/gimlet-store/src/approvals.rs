//! Questions to a person and the answers given outside the run, such as by `gimlet approve` in another process.
//!
//! This is the one thing that cannot be rebuilt, so it has a file of its own, every change is a transaction, and a
//! damaged file is an error: what cannot be read grants nothing.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use gimlet::approval::{ApprovalRequest, Decision, Scope};
use gimlet::ids::RunId;
use gimlet::store::{Grant, InboxError, Question, Reach};
use jiff::Timestamp;
use rusqlite::types::{Type, ValueRef};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::files::{create_dir, private};
use crate::json;

const VERSION: i64 = 1;

/// `used` is set when the answer has been handed out. A grant remembers the question it came from, so that
/// taking the answer back takes the grant back.
const TABLES: &str = "
    CREATE TABLE questions (
        id TEXT PRIMARY KEY, run TEXT NOT NULL, session TEXT NOT NULL, binding TEXT NOT NULL, request TEXT NOT NULL,
        asked TEXT NOT NULL, decision TEXT, decided TEXT, used INTEGER NOT NULL DEFAULT 0
    );
    CREATE TABLE grants (
        binding TEXT NOT NULL, session TEXT, request TEXT NOT NULL, granted TEXT NOT NULL,
        question TEXT
    );
    CREATE UNIQUE INDEX grant_of ON grants (binding, COALESCE(session, ''), session IS NULL);";

/// How long to wait for another process that is writing.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why an approval could not be asked for, given or found.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalsError {
    /// It cannot be done to this question.
    #[error(transparent)]
    Inbox(#[from] InboxError),
    /// A later version of the program wrote the file.
    #[error("{path} is of version {found}, later than this program knows")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
    },
    /// The folder cannot be made or the file not be opened.
    #[error("opening {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The database said no.
    #[error("{path}: {source}")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: rusqlite::Error,
    },
}

impl From<ApprovalsError> for InboxError {
    fn from(error: ApprovalsError) -> Self {
        match error {
            ApprovalsError::Inbox(error) => error,
            other @ (ApprovalsError::Newer { .. }
            | ApprovalsError::Io { .. }
            | ApprovalsError::Sqlite { .. }) => InboxError::Backend(other.into()),
        }
    }
}

/// Approvals in `home/approvals.sqlite`. Every call opens the file anew and blocks on it, so any number of processes can
/// share it and a value of this type can be used from any thread.
#[derive(Debug, Clone)]
pub struct Approvals {
    path: PathBuf,
}

impl Approvals {
    /// Opens the approvals of a home, making them if need be.
    pub fn open(home: &Path) -> Result<Self, ApprovalsError> {
        let path = home.join("approvals.sqlite");
        // Made here because SQLite would let others read it; its journal takes over the mode.
        create_dir(home)
            .and_then(|()| private().write(true).create(true).truncate(false).open(&path))
            .map_err(|source| ApprovalsError::Io { path: path.clone(), source })?;
        let approvals = Approvals { path };
        approvals.change(|change| {
            match change.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))? {
                VERSION => Ok(()),
                0 => {
                    change.execute_batch(TABLES)?;
                    change.pragma_update(None, "user_version", VERSION)?;
                    Ok(())
                }
                found => Err(ApprovalsError::Newer { path: approvals.path.clone(), found }.into()),
            }
        })?;
        Ok(approvals)
    }

    /// Records a question for somebody to find. `session` is what a yes for the session will be good for; a run that
    /// belongs to none passes its own id.
    ///
    /// Asked again by its run, a question keeps an answer that was not used yet, unless what it asks for has changed.
    pub fn ask(
        &self,
        request: &ApprovalRequest,
        session: &str,
        now: Timestamp,
    ) -> Result<(), ApprovalsError> {
        let run = &request.run;
        self.change(|change| {
            if let Some(row) = stored(change, &request.id)? {
                if row.run != *run {
                    return Err(InboxError::OtherRun { id: request.id.clone(), run: row.run }.into());
                }
                if row.binding == request.binding && !row.used {
                    return Ok(());
                }
                // A grant given with the old answer stands by itself from here on.
                change.execute("UPDATE grants SET question = NULL WHERE question = ?1", [&request.id])?;
                change.execute("DELETE FROM questions WHERE id = ?1", [&request.id])?;
            }
            change.execute(
                "INSERT INTO questions (id, run, session, binding, request, asked) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![request.id, run.as_str(), session, request.binding, to_json(request)?, now.to_string()],
            )?;
            Ok(())
        })
    }

    /// Answers a question. Until the run has acted on it the answer can be changed, and `Defer` takes it back.
    pub fn decide(&self, id: &str, decision: &Decision, now: Timestamp) -> Result<(), ApprovalsError> {
        self.change(|change| {
            let row = stored(change, id)?.ok_or_else(|| InboxError::NoSuchQuestion(id.into()))?;
            if row.used {
                return Err(InboxError::Used(id.into()).into());
            }
            change.execute("DELETE FROM grants WHERE question = ?1", [id])?;
            write_answer(change, id, decision, 0, now)?;
            keep_wider(change, &row, id, decision, now)
        })
    }

    /// Answers a question that nobody has answered, provided it asks for exactly what was shown.
    pub fn answer(
        &self,
        id: &str,
        binding: &str,
        decision: &Decision,
        now: Timestamp,
    ) -> Result<(), ApprovalsError> {
        self.change(|change| {
            let row = stored(change, id)?.ok_or_else(|| InboxError::NoSuchQuestion(id.into()))?;
            if row.used || row.decision.is_some() {
                return Err(InboxError::Answered(id.into()).into());
            }
            if row.binding != binding {
                return Err(InboxError::OtherBinding(id.into()).into());
            }
            write_answer(change, id, decision, 0, now)?;
            keep_wider(change, &row, id, decision, now)
        })
    }

    /// Records the answer that the asking process was given itself, and returns the answer that counts: this one, or
    /// one that was given elsewhere before. Either is used up.
    pub fn settle(
        &self,
        request: &ApprovalRequest,
        decision: Decision,
        now: Timestamp,
    ) -> Result<Decision, ApprovalsError> {
        let id = &request.id;
        self.change(|change| {
            let Some(row) = stored(change, id)?.filter(|row| row.binding == request.binding && !row.used)
            else {
                return Ok(decision);
            };
            if let Some(earlier) = row.decision {
                change.execute("UPDATE questions SET used = 1 WHERE id = ?1", [id])?;
                return Ok(earlier);
            }
            write_answer(change, id, &decision, 1, now)?;
            keep_wider(change, &row, id, &decision, now)?;
            Ok(decision)
        })
    }

    /// Changes with every change of the file; cheap to look at.
    pub(crate) fn stamp(&self) -> Option<(std::time::SystemTime, u64)> {
        let data = std::fs::metadata(&self.path).ok()?;
        Some((data.modified().ok()?, data.len()))
    }

    /// The answer to a question, provided it was given for exactly this binding. It is handed out once: should the run
    /// die before it acts on it, it has to ask again. A wider yes goes on as a grant.
    pub fn decision(&self, id: &str, binding: &str) -> Result<Option<Decision>, ApprovalsError> {
        self.change(|change| {
            let Some(row) = stored(change, id)? else { return Ok(None) };
            let Some(decision) = row.decision.filter(|_| row.binding == binding && !row.used) else {
                return Ok(None);
            };
            change.execute("UPDATE questions SET used = 1 WHERE id = ?1", [id])?;
            Ok(Some(decision))
        })
    }

    /// Whether there is an answer to hand out.
    pub(crate) fn has_decision(&self, id: &str, binding: &str) -> Result<bool, ApprovalsError> {
        self.change(|change| {
            let row = stored(change, id)?;
            Ok(row.is_some_and(|row| row.decision.is_some() && row.binding == binding && !row.used))
        })
    }

    /// Questions nobody has answered, oldest first.
    pub fn pending(&self) -> Result<Vec<Question>, ApprovalsError> {
        self.change(|change| {
            let mut select = change.prepare(
                "SELECT run, session, asked, request FROM questions WHERE decision IS NULL ORDER BY asked, id",
            )?;
            let rows = select.query_map([], |row| {
                Ok(Question {
                    run: parsed(row, 0)?,
                    session: row.get(1)?,
                    asked: parsed(row, 2)?,
                    request: from_json(row, 3)?,
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// Gives a standing yes to what a request is bound to.
    pub fn grant(
        &self,
        request: &ApprovalRequest,
        reach: &Reach,
        now: Timestamp,
    ) -> Result<(), ApprovalsError> {
        self.change(|change| add_grant(change, request, reach, None, now))
    }

    /// How far a standing yes for this binding reaches, seen from a session; none when there is none.
    pub fn granted(&self, binding: &str, session: &str) -> Result<Option<Reach>, ApprovalsError> {
        self.change(|change| {
            let found: Option<Option<String>> = change
                .query_row(
                    "SELECT session FROM grants WHERE binding = ?1 AND (session IS NULL OR session = ?2)
                     ORDER BY session IS NULL DESC LIMIT 1",
                    [binding, session],
                    |row| row.get(0),
                )
                .optional()?;
            Ok(found.map(reach))
        })
    }

    /// Every standing yes, oldest first.
    pub fn grants(&self) -> Result<Vec<Grant>, ApprovalsError> {
        self.change(|change| {
            let mut select = change
                .prepare("SELECT request, session, granted FROM grants ORDER BY granted, binding, session")?;
            let rows = select.query_map([], |row| {
                Ok(Grant { request: from_json(row, 0)?, reach: reach(row.get(1)?), granted: parsed(row, 2)? })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// Takes back every standing yes for a binding, with the answers it came from that were not used yet, and says how
    /// many there were.
    pub fn revoke(&self, binding: &str) -> Result<usize, ApprovalsError> {
        self.change(|change| {
            change.execute(
                "UPDATE questions SET decision = NULL, decided = NULL
                 WHERE used = 0 AND id IN (SELECT question FROM grants WHERE binding = ?1)",
                [binding],
            )?;
            Ok(change.execute("DELETE FROM grants WHERE binding = ?1", [binding])?)
        })
    }

    /// Forgets the questions of a run that is removed. Lasting approvals that came from it stay.
    pub fn forget_run(&self, run: &RunId) -> Result<usize, ApprovalsError> {
        self.change(|change| Ok(change.execute("DELETE FROM questions WHERE run = ?1", [run.as_str()])?))
    }

    /// Runs a transaction that no other process comes between.
    fn change<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Refusal>,
    ) -> Result<T, ApprovalsError> {
        self.attempt(work).map_err(|refusal| match refusal {
            Refusal::Known(error) => error,
            Refusal::Sqlite(source) => ApprovalsError::Sqlite { path: self.path.clone(), source },
        })
    }

    fn attempt<T>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T, Refusal>) -> Result<T, Refusal> {
        let mut file = Connection::open_with_flags(&self.path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        file.busy_timeout(PATIENCE)?;
        // A decision that was confirmed to a person is not lost by a power cut.
        file.pragma_update(None, "synchronous", "FULL")?;
        let change = file.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let value = work(&change)?;
        change.commit()?;
        Ok(value)
    }
}

/// Why a transaction was given up, before the file is named.
enum Refusal {
    Known(ApprovalsError),
    Sqlite(rusqlite::Error),
}

impl From<ApprovalsError> for Refusal {
    fn from(error: ApprovalsError) -> Self {
        Refusal::Known(error)
    }
}

impl From<InboxError> for Refusal {
    fn from(error: InboxError) -> Self {
        Refusal::Known(error.into())
    }
}

impl From<rusqlite::Error> for Refusal {
    fn from(error: rusqlite::Error) -> Self {
        Refusal::Sqlite(error)
    }
}

/// A question as it is kept.
struct Stored {
    run: RunId,
    session: String,
    binding: String,
    request: ApprovalRequest,
    decision: Option<Decision>,
    used: bool,
}

fn stored(file: &Connection, id: &str) -> Result<Option<Stored>, rusqlite::Error> {
    file.query_row(
        "SELECT run, session, binding, request, decision, used FROM questions WHERE id = ?1",
        [id],
        |row| {
            let decided = row.get_ref(4)? != ValueRef::Null;
            Ok(Stored {
                run: parsed(row, 0)?,
                session: row.get(1)?,
                binding: row.get(2)?,
                request: from_json(row, 3)?,
                decision: if decided { Some(from_json(row, 4)?) } else { None },
                used: row.get(5)?,
            })
        },
    )
    .optional()
}

/// Writes the answer to a question; `Defer` takes it back.
fn write_answer(
    file: &Connection,
    id: &str,
    decision: &Decision,
    used: u8,
    now: Timestamp,
) -> Result<(), Refusal> {
    let answer = match decision {
        Decision::Defer => None,
        Decision::Approve { .. } | Decision::Edit { .. } | Decision::Deny { .. } | Decision::Abort => {
            Some(to_json(decision)?)
        }
    };
    let decided = answer.is_some().then(|| now.to_string());
    file.execute(
        "UPDATE questions SET decision = ?2, decided = ?3, used = ?4 WHERE id = ?1",
        params![id, answer, decided, used],
    )?;
    Ok(())
}

/// Keeps a yes that reaches further than its question.
fn keep_wider(
    file: &Connection,
    row: &Stored,
    id: &str,
    decision: &Decision,
    now: Timestamp,
) -> Result<(), Refusal> {
    let reach = match decision {
        Decision::Approve { scope: Scope::Session } => Reach::Session(row.session.clone()),
        Decision::Approve { scope: Scope::Always } => Reach::Always,
        Decision::Approve { scope: Scope::Once }
        | Decision::Edit { .. }
        | Decision::Deny { .. }
        | Decision::Defer
        | Decision::Abort => return Ok(()),
    };
    add_grant(file, &row.request, &reach, Some(id), now)
}

/// Keeps a grant that is already there, with the question it came from.
fn add_grant(
    file: &Connection,
    request: &ApprovalRequest,
    reach: &Reach,
    question: Option<&str>,
    now: Timestamp,
) -> Result<(), Refusal> {
    let session = match reach {
        Reach::Session(name) => Some(name),
        Reach::Always => None,
    };
    file.execute(
        "INSERT OR IGNORE INTO grants (binding, session, request, granted, question) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![request.binding, session, to_json(request)?, now.to_string(), question],
    )?;
    Ok(())
}

fn reach(session: Option<String>) -> Reach {
    session.map_or(Reach::Always, Reach::Session)
}

fn to_json(value: &impl Serialize) -> Result<String, rusqlite::Error> {
    let text = json::encode(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    String::from_utf8(text).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

fn from_json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> Result<T, rusqlite::Error> {
    json::decode(row.get::<_, String>(column)?.as_bytes()).map_err(|error| unreadable(column, error))
}

fn parsed<T>(row: &Row<'_>, column: usize) -> Result<T, rusqlite::Error>
where
    T: FromStr<Err: std::error::Error + Send + Sync + 'static>,
{
    row.get::<_, String>(column)?.parse().map_err(|error| unreadable(column, error))
}

fn unreadable(column: usize, error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
}
