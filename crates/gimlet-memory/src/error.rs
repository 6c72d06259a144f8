//! What can go wrong with a memory, in words for a person and for a model.

use std::path::PathBuf;

use gimlet::tool::ToolError;

use crate::id::Id;

/// Why something could not be remembered, found or forgotten.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// The file's folder or its mode.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The database says no.
    #[error("cannot use {}: {source}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// What it says.
        source: rusqlite::Error,
    },
    /// A later version of this program has written it.
    #[error("{} has version {found}, and this program knows versions up to {known}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest this program reads.
        known: i64,
    },
    /// No id.
    #[error("`{0}` is no id: n12 is a note, m3 a mental model, p7 a prediction")]
    BadId(String),
    /// Nothing of that id.
    #[error("nothing is remembered as {0}")]
    Unknown(Id),
    /// No mental model of that name.
    #[error("there is no mental model `{name}`")]
    UnknownModel {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// It came out the other way already.
    #[error("{id} was resolved as {outcome} already")]
    Resolved {
        /// The prediction.
        id: Id,
        /// How it came out.
        outcome: bool,
    },
    /// Something is empty, too long, or no number it could be.
    #[error("{0}")]
    Invalid(String),
    /// No room.
    #[error("there is no room: {count} {what} are remembered, which is the most")]
    Full {
        /// Of what.
        what: &'static str,
        /// How many.
        count: u32,
    },
    /// An archive that is none.
    #[error("this is no memory that was exported: {0}")]
    Archive(String),
}

impl MemoryError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            MemoryError::Newer { .. } => Some("use the newer gimlet, which can also export it"),
            MemoryError::Database { .. } => Some("if the file is damaged, move it away: a new one is begun"),
            MemoryError::Io { .. } => Some("set GIMLET_HOME to a folder you can write to"),
            MemoryError::BadId(_) | MemoryError::Unknown(_) => Some("see `gimlet memory list`"),
            MemoryError::Full { .. } => Some("`gimlet memory forget ID` makes room"),
            MemoryError::Archive(_) => Some("`gimlet memory export` writes one"),
            MemoryError::UnknownModel { .. } | MemoryError::Resolved { .. } | MemoryError::Invalid(_) => None,
        }
    }
}

/// Error words of the memory's tools.
pub mod code {
    /// The memory cannot be used.
    pub const UNAVAILABLE: &str = "MEMORY_UNAVAILABLE";
    /// It has no more room.
    pub const FULL: &str = "MEMORY_FULL";
    /// No such thing.
    pub const NOT_FOUND: &str = "NOT_REMEMBERED";
    /// No such mental model.
    pub const UNKNOWN_MODEL: &str = "UNKNOWN_MODEL";
    /// It came out the other way already.
    pub const RESOLVED: &str = "ALREADY_RESOLVED";
}

impl From<MemoryError> for ToolError {
    fn from(error: MemoryError) -> ToolError {
        let message = error.to_string();
        match error {
            MemoryError::Io { .. }
            | MemoryError::Database { .. }
            | MemoryError::Newer { .. }
            | MemoryError::Archive(_) => ToolError::failed(code::UNAVAILABLE, message),
            MemoryError::BadId(_) | MemoryError::Invalid(_) => {
                ToolError::failed(gimlet::tool::code::VALIDATION_FAILED, message)
            }
            MemoryError::Unknown(_) => ToolError::failed(code::NOT_FOUND, message),
            MemoryError::UnknownModel { known, .. } => {
                ToolError::failed(code::UNKNOWN_MODEL, format!("{message}; revise_model makes one"))
                    .with("known", known)
            }
            MemoryError::Resolved { .. } => ToolError::failed(code::RESOLVED, message),
            MemoryError::Full { .. } => {
                ToolError::failed(code::FULL, format!("{message}. Only the user can make room."))
            }
        }
    }
}
