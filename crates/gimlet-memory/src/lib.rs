//! What agents remember of a project beyond one run: notes, mental models and predictions, in one embedded database.
//!
//! [`Memory`] is the store, and blocks. [`Kit`] makes it into tools. Every write goes by its content: saying the same again
//! changes nothing, so a call that a crash cut short may be made again. Nothing here asks a language model; an [`Embedder`],
//! where there is one, only helps to find.
#![forbid(unsafe_code)]

mod embed;
mod error;
mod files;
mod id;
mod kit;
mod meaning;
mod models;
mod notes;
mod predictions;
mod schema;
mod search;
mod store;
mod text;
pub mod tools;
mod transfer;

pub use embed::{EmbedError, Embedder};
pub use error::{MemoryError, code};
pub use id::Id;
pub use kit::{Found, Kit, Ranking};
pub use models::{Model, Revision, Standing};
pub use notes::{Note, NoteKind, Source};
pub use predictions::{Prediction, Record};
pub use store::{Memory, Status};
pub use transfer::{Archive, Imported};

/// Most of everything. A memory is for what is worth keeping, and has to fit a small model's window when it comes back.
pub mod limits {
    /// Characters of a note or a synthesis.
    pub const TEXT: usize = 2000;
    /// Characters of a statement, or of a reason.
    pub const STATEMENT: usize = 600;
    /// Characters of a model's name, or of a tag.
    pub const NAME: usize = 60;
    /// Tags of a note.
    pub const TAGS: usize = 8;
    /// Notes a synthesis can name as its sources.
    pub const SOURCES: usize = 50;
    /// Notes of a project.
    pub const NOTES: u32 = 10_000;
    /// Mental models of a project.
    pub const MODELS: u32 = 300;
    /// Revisions of one model.
    pub const REVISIONS: u32 = 100;
    /// Predictions of a project.
    pub const PREDICTIONS: u32 = 10_000;
    /// Notes one search can return.
    pub const FOUND: usize = 20;
}
