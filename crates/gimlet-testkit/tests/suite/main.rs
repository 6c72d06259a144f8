//! The test kit, tested through its own front door with a plain HTTP client.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod anthropic;
mod binary;
mod chunks;
mod client;
mod executor;
mod faults;
mod history;
mod ollama;
mod openai;
mod responses;
mod rules;
mod stand_ins;
