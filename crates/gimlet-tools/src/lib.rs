//! Gimlet's built-in tools, one file each.
//!
//! Every tool works inside a [`Root`], the folder the caller chose: no path, glob, diff header or git pathspec leads out
//! of it. A tool only does its job; validation, policy, approval, truncation and recording are the guard's business.
#![forbid(unsafe_code)]

pub mod apply_patch;
pub mod code;
pub mod command;
pub mod edit_file;
pub mod file_info;
pub mod gate;
pub mod git;
pub mod git_changed_files;
pub mod git_diff;
pub mod git_log;
pub mod git_status;
pub mod list_definitions;
pub mod list_files;
pub mod patch;
pub mod propose_patch;
pub mod propose_patch_unified;
pub mod read_file;
pub mod read_file_snippet;
pub mod repo_info;
pub mod rg_search;
pub mod root;
pub mod run_cmd;
pub mod run_tests;
pub mod search_code;
pub mod show_patch;
pub mod write_files;

mod blocking;
mod ignored;
mod kit;
mod lines;
mod query;
mod walk;

pub use kit::Kit;
pub use root::{Buffers, Root, Rules};
