//! The store through its front door, on real files and with real processes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking, as tests do")]

mod approvals;
mod blobs;
mod index;
mod kill;
mod log;
mod servers;
mod support;
