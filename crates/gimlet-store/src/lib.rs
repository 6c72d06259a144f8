//! Durable runs in plain files.
//!
//! A run's truth is its log: one JSON event a line, written by one process at a time. Long texts are blobs named by
//! their content. The index is only a faster way to list what the logs say, and is rebuilt from them at will;
//! approvals given outside a run are the one thing kept nowhere else.
#![forbid(unsafe_code)]

mod approvals;
mod blobs;
mod files;
mod find;
mod index;
mod json;
mod lock;
mod log;
mod prune;
mod store;
mod summary;
mod writer;

pub use approvals::{Approvals, ApprovalsError, Grant, Question, Reach};
pub use find::FindError;
pub use prune::Swept;
pub use store::FileStore;
pub use summary::{RunStatus, RunSummary};
pub use writer::{OpenedRun, Repair};
