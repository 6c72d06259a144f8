//! The guard: everything that must hold for a tool call, enforced around the tool, in one order.
//!
//! ```text
//! Trace( Record( Repeats( Hooks( Validate( Approve( Start( Limit( Truncate( Redact( tool ))))))))))
//! ```
//!
//! Each layer is one concern in one file and knows only the layer inside it. `assemble` is the only place that
//! knows the order.

mod approve;
mod hints;
mod hooks;
mod limit;
mod record;
mod redact;
mod repeats;
mod start;
mod trace;
mod truncate;
mod validate;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use gimlet_reply::arguments::Arguments;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::effect::{Effect, Verdict};
use crate::event::Suspension;
use crate::message::ToolCall;
use crate::run::Services;
use crate::state::CallStatus;
use crate::store::BlobId;
use crate::tool::{Tool, ToolFailure};

pub use gimlet_reply::arguments::BadSchema;
pub use gimlet_text::redact::{Redactor, names_secret, password_in_url};
pub(crate) use repeats::ANSWER_NOW;
pub use repeats::Repeats;
pub use truncate::{Truncation, truncate};

/// A tool behind its guard.
pub(crate) fn assemble(tool: Arc<dyn Tool>) -> Result<Box<dyn Layer>, BadSchema> {
    let spec = tool.spec();
    let inner = redact::Redact { tool: tool.clone() };
    let inner = truncate::Truncate { inner: Box::new(inner), keep: spec.manner.keep };
    let inner = limit::Limit {
        inner: Box::new(inner),
        timeout: spec.manner.timeout,
        resumable: spec.manner.resumable,
    };
    let inner = start::Start { inner: Box::new(inner) };
    let inner = approve::Approve { inner: Box::new(inner), tool };
    let inner = validate::Validate { inner: Box::new(inner), arguments: Arguments::of(&spec)? };
    let inner = hooks::Hooks { inner: Box::new(inner) };
    let inner = repeats::Watch { inner: Box::new(inner) };
    let inner = record::Record { inner: Box::new(inner), resumable: spec.manner.resumable };
    Ok(Box::new(trace::Trace { inner: Box::new(inner) }))
}

/// One concern around a tool.
pub(crate) trait Layer: Send + Sync {
    /// Passes a call on, or answers it.
    fn pass<'a>(&'a self, pass: &'a mut Pass) -> BoxFuture<'a, Outcome>;
}

/// A call on its way through the guard.
pub(crate) struct Pass {
    /// The call; its arguments are normalised by validation and fixed from there on.
    pub call: ToolCall,
    /// The cell that makes it, in code mode.
    pub cell: Option<u32>,
    /// How far an earlier process brought it.
    pub status: CallStatus,
    /// What it would touch, once known.
    pub effects: Vec<Effect>,
    /// What the policy said, once asked.
    pub verdict: Option<Verdict>,
    /// The run it is part of.
    pub services: Arc<Services>,
    /// Ends when the call is to stop.
    pub cancel: CancellationToken,
    /// Its place among calls that run at the same time.
    pub turn: Turn,
}

/// How a call ends, seen from outside the guard.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The tool did its job.
    Done(Done),
    /// It did not; the model is told.
    Failed(Box<ToolFailure>),
    /// A person must decide, or stopped the run; the call stays open.
    Suspended(Suspension),
    /// The run cannot go on.
    Fatal(String),
}

/// A result, cut to size.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// What the model sees.
    pub value: Value,
    /// Whether something was cut.
    pub truncated: bool,
    /// Where the whole of what was cut is kept.
    pub stored: Vec<BlobId>,
}

impl Outcome {
    /// A failure the model can mend.
    pub(crate) fn failed(error: &str, message: impl Into<String>) -> Self {
        Outcome::Failed(Box::new(ToolFailure::new(error, message)))
    }
}

/// Keeps the results of calls that run side by side in the order they were asked for.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// Resolves when the call before is recorded.
    before: Option<oneshot::Receiver<()>>,
    /// Dropped when this call is recorded.
    _done: Option<oneshot::Sender<()>>,
}

impl Turn {
    /// One turn for each of `count` calls.
    pub(crate) fn queue(count: usize) -> Vec<Turn> {
        let mut before = None;
        (0..count)
            .map(|_| {
                let (done, next) = oneshot::channel();
                Turn { before: before.replace(next), _done: Some(done) }
            })
            .collect()
    }

    /// Waits until the call before is recorded.
    pub(crate) async fn wait(&mut self) {
        if let Some(before) = self.before.take() {
            // An error means the other call is gone, which is as good as recorded.
            let _ = before.await;
        }
    }
}
