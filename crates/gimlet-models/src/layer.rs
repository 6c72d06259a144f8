//! Wrappers around a model, one concern each; a model in a wrapper is a model again.
//!
//! The usual order is `Budget(Router(Concurrency(RateLimit(Retry(wire)))))`: a retry waits for its server without
//! leaving it, a router leaves a server that stays bad, and a budget counts what was really asked.

mod attempts;
pub mod budget;
pub mod cassette;
pub mod concurrency;
pub mod rate;
pub mod retry;
pub mod router;

pub use budget::{Budget, Ledger, Limits};
pub use cassette::{Recorder, Replayer};
pub use concurrency::Concurrency;
pub use rate::{RateLimit, Rates};
pub use retry::{Retry, RetryPolicy};
pub use router::{Router, Strategy};
