//! What Gimlet's tests stand on: a scripted model server that speaks every wire and checks every request, and
//! stand-ins for the person who approves, the repository, the interpreter and the trace backend.
//!
//! Fixtures panic when they cannot be made: a test without its ground must fail at once, with the reason.
//!
//! ```no_run
//! # async fn test(script: gimlet_models::Script) {
//! let server = gimlet_testkit::ModelServer::start(script).await;
//! // … point a model at `server.url()` and run …
//! server.assert_no_violations();
//! assert_eq!(server.conversation("fix the bug").len(), 5);
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod approver;
pub mod executor;
pub mod git;
pub mod otlp;
pub mod server;
pub mod spans;
pub mod tape;
pub mod wire;

pub use approver::ScriptedApprover;
pub use executor::ScriptedExecutor;
pub use git::GitRepo;
pub use otlp::{Collecting, ExportedSpan, ExportedStatus, OtlpCollector};
pub use server::record::Recorded;
pub use server::rules::{Rule, Violation};
pub use server::{ModelServer, ModelServerBuilder, Windows};
pub use spans::SpanCollector;
pub use tape::TapeServer;
pub use wire::Wire;

/// Ends the test: its ground could not be laid.
#[track_caller]
#[expect(clippy::panic, reason = "a fixture that cannot be made must fail its test at once")]
pub(crate) fn fixture_failed(what: &str, error: &dyn std::fmt::Display) -> ! {
    panic!("cannot {what}: {error}")
}
