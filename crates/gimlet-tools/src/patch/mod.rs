//! Patches: read as models write them, matched against the files, written so that git agrees, applied all or none.
//!
//! Everything up to a [`Plan`] is pure; [`Patches`] keeps what was proposed; [`write`](write_changes) alone touches files.

mod apply;
mod files;
mod plan;
mod proposals;
mod quote;
mod read;
mod render;
mod scratch;
mod seek;
mod tested;
mod text;
mod validate;
mod write;

pub use apply::{Applied, HunkError, apply};
pub(crate) use files::named_files;
pub use files::{propose_diff, propose_files, propose_texts, text_of};
pub use plan::{Files, Plan, PlanError, plan};
pub use proposals::{PatchEntry, PatchLog, Patches, Proposal, Stage};
pub use quote::{quote, unquote};
pub use read::{FileDiff, Hunk, HunkLine, LineKind, ReadError, read};
pub use render::render;
pub use seek::Strictness;
pub(crate) use tested::TESTS_TIMEOUT;
pub use tested::TestedValidator;
pub use validate::ScratchValidator;
pub(crate) use write::is_written;
pub use write::{Undo, undo, write_changes};
