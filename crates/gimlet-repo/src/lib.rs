//! What a repository holds, and how it is checked.
//!
//! [`Index`] knows the files that the caller lists: it ranks them for a task, draws a map of their definitions and finds
//! the tests of a file. [`checks`] finds test commands and shortens what test runners print. [`syntax`] finds syntax
//! errors. The crate reads files below a folder and writes its own cache; it runs no commands.
#![forbid(unsafe_code)]

pub mod checks;
pub mod syntax;
pub mod words;

mod cache;
mod files;
mod graph;
mod index;
mod language;
mod map;
mod named;
mod outline;
mod rank;
mod record;
mod scan;
mod tags;
mod tests_of;

pub use index::{Index, RepoError};
pub use language::{EXTENSIONS, Language, MOST_BYTES};
pub use outline::{Definition, Outline, Part};
pub use rank::Candidate;
pub use tests_of::is_test;
