//! The machine that a run works on: rules for paths, commands and their environments, and what a patch does to files.
//! Everything that reads, writes or starts something speaks in these words.
#![forbid(unsafe_code)]

pub mod command;
pub mod patch;
pub mod paths;
