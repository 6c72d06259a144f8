//! The real binary, from outside.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod approvals;
mod demo;
mod policy;
mod python;
mod run;
mod support;
mod wires;
