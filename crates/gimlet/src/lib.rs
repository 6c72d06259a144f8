//! The Gimlet agent runtime: everything that must hold is enforced by code, never by a prompt.
//!
//! An [`Agent`] is a model, tools and how it works. A [`Run`] is an agent at work on a task in an [`Env`], which brings
//! the store, the policies, the approver and the clock. The loop asks the pure function
//! [`next_action`](action::next_action) what to do, performs it, and records what happened as an
//! [`Event`](event::Event); the [`State`](state::State) is a fold over those events and nothing else, so a run can stop
//! after any of them and go on in another process.
//!
//! A tool author implements [`TypedTool`](tool::TypedTool); the [`guard`] puts validation, policy, approval, limits,
//! truncation, redaction, recording and tracing around it. A model is anything that can [stream](model::Model::stream) a
//! reply. Start with `examples/custom_tool.rs`, then read `guard/mod.rs` and `run/mod.rs`.
#![forbid(unsafe_code)]

pub mod action;
pub mod agent;
pub mod approval;
pub mod cell;
pub mod command;
pub mod constrain;
pub mod context;
mod delegate;
pub mod digest;
pub mod effect;
pub mod event;
pub mod fork;
pub mod guard;
pub mod hook;
pub mod ids;
pub mod journal;
pub mod limits;
pub mod message;
pub mod model;
mod output;
pub mod parse;
pub mod patch;
pub mod plan;
pub mod prompt;
pub mod run;
mod sections;
pub mod signature;
pub mod state;
pub mod store;
pub mod telemetry;
pub mod tool;
pub mod toolbox;
pub mod work;
pub mod worker;

pub use agent::Agent;
pub use run::{Ending, Env, Run};
