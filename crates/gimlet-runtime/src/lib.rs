//! Gimlet as a library: everything that turns settings into a working agent, below every front end.
//!
//! A [`Runtime`] is one project opened for work. It owns what agents need there: the store of runs, MCP servers, containers
//! and Python workers. A [`Session`] is one conversation in it, which lives across turns.
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! use gimlet_runtime::{Config, Input, Options, Runtime};
//!
//! let runtime = Runtime::open(Config::load(".")?)?;
//! let session = runtime.begin(Options::default()).await?;
//! let turn = session.submit(Input::Task("why does the login test fail?".into())).await?;
//! println!("{:?}", turn.ended().await?);
//! runtime.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! Front ends know this crate and the core, and no other part.
#![forbid(unsafe_code)]

mod approver;
mod blobs;
pub mod context;
mod continuing;
mod extras;
mod fork;
mod helper;
pub mod instructions;
mod interpreter;
pub mod isolation;
pub mod knowledge;
mod lookup;
pub mod mcp;
pub mod memory;
mod mode;
pub mod models;
mod notice;
mod overview;
pub mod parts;
mod patches;
mod project;
mod project_guide;
mod repo_map;
pub mod rules;
mod runtime;
mod script_tools;
pub mod served;
mod server_code;
mod server_start;
mod session;
pub mod team;
mod text;
pub mod trace;
pub mod undo;

pub use approver::{Attendance, SessionApprover};
pub use blobs::BlobsOnly;
pub use continuing::{is_answered, open_question};
pub use extras::Extras;
pub use fork::Forked;
pub use gimlet_config as config;
pub use gimlet_config::options::{self, Options};
pub use gimlet_config::{Failure, Home, Process, Settings, UsageError, hint_of};
pub use gimlet_tools::Buffers;
pub use helper::{python, run_as_helper};
pub use mcp::ServerSpeech;
pub use mode::{Bounded, PlanPolicy, decided_by};
pub use notice::{Notice, Notify, silent};
pub use project::{Project, redactor, root};
pub use runtime::{Config, OnSettings, Runtime};
pub use session::{Input, Session, Turn};
pub use text::clip;
