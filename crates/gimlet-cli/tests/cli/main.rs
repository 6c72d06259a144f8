//! The real binary, from outside.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "a random test tells its seed")]

mod agents;
mod approvals;
mod config;
mod context;
mod demo;
mod docs;
mod doctor;
mod durable;
mod engines;
mod eval;
mod executor;
mod faults;
mod gates;
mod guide;
mod guided;
mod help;
mod instructions;
mod jail;
mod jail_kernel;
mod kill;
mod layers;
mod mcp;
mod memory;
mod paths;
mod plan;
mod policy;
mod prune;
mod pty;
mod python;
mod python_kill;
mod qwen;
mod redact;
mod repo;
mod run;
mod screen;
mod session;
mod small;
mod support;
mod trace;
mod trust;
mod undo;
mod wires;
