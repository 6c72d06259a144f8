//! The tables, and how a file comes to have them. Words are indexed beside the rows by triggers, so that no writer can
//! forget one; forgotten text is overwritten, in the index too.

use rusqlite::{Connection, TransactionBehavior};

/// Grows with every change of the tables; older files are brought up, newer ones refused.
pub(crate) const VERSION: i64 = 1;

const TABLES: &str = "
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE notes (
    id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, text TEXT NOT NULL, tags TEXT NOT NULL,
    time INTEGER NOT NULL, run TEXT NOT NULL, agent TEXT NOT NULL, sources TEXT NOT NULL, digest TEXT NOT NULL UNIQUE
);
CREATE INDEX notes_time ON notes (time, id);
CREATE TABLE vectors (
    note INTEGER NOT NULL REFERENCES notes (id) ON DELETE CASCADE, model TEXT NOT NULL, vector BLOB NOT NULL,
    PRIMARY KEY (note, model)
) WITHOUT ROWID;

CREATE TABLE models (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE COLLATE NOCASE, statement TEXT NOT NULL,
    confidence REAL NOT NULL, revision INTEGER NOT NULL, time INTEGER NOT NULL
);
CREATE TABLE revisions (
    model INTEGER NOT NULL REFERENCES models (id) ON DELETE CASCADE, number INTEGER NOT NULL, statement TEXT NOT NULL,
    confidence REAL NOT NULL, because TEXT, time INTEGER NOT NULL, run TEXT NOT NULL, agent TEXT NOT NULL,
    PRIMARY KEY (model, number)
) WITHOUT ROWID;
CREATE TABLE predictions (
    id INTEGER PRIMARY KEY AUTOINCREMENT, model INTEGER NOT NULL REFERENCES models (id) ON DELETE CASCADE,
    revision INTEGER NOT NULL, statement TEXT NOT NULL, probability REAL NOT NULL, time INTEGER NOT NULL,
    run TEXT NOT NULL, agent TEXT NOT NULL, outcome INTEGER, resolved INTEGER, evidence TEXT
);
CREATE INDEX predictions_model ON predictions (model);

CREATE VIRTUAL TABLE note_words USING fts5 (
    text, tags, content = 'notes', content_rowid = 'id', tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE model_words USING fts5 (
    name, statement, content = 'models', content_rowid = 'id', tokenize = 'porter unicode61 remove_diacritics 2'
);
INSERT INTO note_words (note_words, rank) VALUES ('secure-delete', 1);
INSERT INTO model_words (model_words, rank) VALUES ('secure-delete', 1);

CREATE TRIGGER note_added AFTER INSERT ON notes BEGIN
    INSERT INTO note_words (rowid, text, tags) VALUES (new.id, new.text, new.tags);
END;
CREATE TRIGGER note_gone AFTER DELETE ON notes BEGIN
    INSERT INTO note_words (note_words, rowid, text, tags) VALUES ('delete', old.id, old.text, old.tags);
END;
CREATE TRIGGER model_added AFTER INSERT ON models BEGIN
    INSERT INTO model_words (rowid, name, statement) VALUES (new.id, new.name, new.statement);
END;
CREATE TRIGGER model_gone AFTER DELETE ON models BEGIN
    INSERT INTO model_words (model_words, rowid, name, statement) VALUES ('delete', old.id, old.name, old.statement);
END;
CREATE TRIGGER model_revised AFTER UPDATE ON models BEGIN
    INSERT INTO model_words (model_words, rowid, name, statement) VALUES ('delete', old.id, old.name, old.statement);
    INSERT INTO model_words (rowid, name, statement) VALUES (new.id, new.name, new.statement);
END;
";

/// What a look at a file's version tells.
pub(crate) enum Ready {
    /// It has the tables.
    Yes,
    /// It was written by a later version.
    Newer(i64),
}

/// Sets a connection up, and makes the tables where there are none.
pub(crate) fn prepare(connection: &mut Connection) -> Result<Ready, rusqlite::Error> {
    connection.pragma_update(None, "secure_delete", "ON")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version > VERSION {
        return Ok(Ready::Newer(version));
    }
    // Readers and one writer at the same time; what was said to be kept survives a power cut.
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    if version == 0 {
        let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        change.execute_batch(TABLES)?;
        change.pragma_update(None, "user_version", VERSION)?;
        change.commit()?;
    }
    Ok(Ready::Yes)
}
