//! The way to a terminal, for front ends that have one: a few styles, and streams that make everything visible that a
//! terminal would obey.
#![forbid(unsafe_code)]

pub mod out;
pub mod style;
