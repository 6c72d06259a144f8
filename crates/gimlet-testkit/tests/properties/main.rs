//! Properties of the core. They live here because the core stays small, tests included.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod guided;
mod parser;
mod truncation;
