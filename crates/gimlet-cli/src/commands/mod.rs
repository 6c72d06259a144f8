//! One module per command; each command is a function from its arguments to an exit status.

pub(crate) mod acp;
pub(crate) mod agents;
pub(crate) mod approvals;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod eval;
pub(crate) mod export;
mod fork;
pub(crate) mod knowledge;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod memory;
pub(crate) mod models;
pub(crate) mod policy;
pub(crate) mod prune;
pub(crate) mod python;
mod replay;
pub(crate) mod repo;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod sandbox;
pub(crate) mod serve;
pub(crate) mod tools;
pub(crate) mod trace;
pub(crate) mod trust;
pub(crate) mod undo;
