//! MCP for Gimlet: the tools of other people's servers behind the guard, and Gimlet's own tools as a server.
//!
//! [`config`] reads what servers there are; [`Servers`] starts them and is a set of [tools](gimlet::tool::Tool) like
//! any other, so the guard, both action formats and every executor treat them alike. [`server`] is the other
//! direction. The protocol itself is `rmcp`'s business and does not show in this crate's interface.
#![forbid(unsafe_code)]

mod client;
pub mod config;
mod error;
mod process;
pub mod server;

pub use client::{Ground, Health, HealthRow, Servers, Voice, check, prefix};
pub use error::McpError;
pub use process::{NotStarted, Program, Reaper, Starter};
