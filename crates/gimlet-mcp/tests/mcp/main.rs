//! MCP against servers that behave and servers that do not, and Gimlet's own server against its own client.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod client;
mod faults;
mod http;
mod real;
mod server;
mod support;
