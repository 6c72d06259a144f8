//! Durable runs in plain files.
//!
//! A run's truth is its log: one JSON event a line, written by one process at a time. Long texts are blobs named by
//! their content. The index is only a faster way to list what the logs say, and is rebuilt from them at will;
//! approvals given outside a run are the one thing kept nowhere else.
#![forbid(unsafe_code)]

mod approvals;
mod blobs;
mod catalog;
mod files;
mod find;
mod follow;
mod home;
mod inbox;
mod index;
mod json;
mod lists;
mod lock;
mod log;
mod prune;
mod store;
mod summary;
mod writer;

pub use approvals::{Approvals, ApprovalsError};
pub use store::FileStore;
