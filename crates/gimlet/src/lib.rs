//! The Gimlet agent runtime.
#![forbid(unsafe_code)]

pub mod action;
pub mod agent;
pub mod approval;
pub mod cell;
mod delegate;
pub mod digest;
pub mod effect;
pub mod event;
pub mod guard;
pub mod hook;
pub mod ids;
pub mod journal;
pub mod limits;
pub mod message;
pub mod model;
pub mod parse;
pub mod prompt;
pub mod run;
pub mod signature;
pub mod state;
pub mod store;
pub mod telemetry;
pub mod tool;
pub mod toolbox;

pub use agent::Agent;
pub use run::{Ending, Env, Run};
