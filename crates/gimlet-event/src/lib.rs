//! The vocabulary of a run: every word that stands in its log, and the small traits that speak in these words.
//!
//! Whoever reads a log needs this crate and nothing else of Gimlet's. A log outlives the program that wrote it: a field is
//! never renamed, and a new one has a default.
#![forbid(unsafe_code)]

pub mod approval;
pub mod blob;
pub mod cell;
pub mod context;
pub mod effect;
pub mod event;
pub mod guided;
pub mod ids;
pub mod limits;
pub mod message;
pub mod plan;
pub mod tool;
pub mod work;
