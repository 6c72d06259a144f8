//! The outermost layer: a span around every call, so that a refusal is as visible as a success.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tracing::Instrument;

use super::{Layer, Outcome, Pass};
use crate::effect::Verdict;
use crate::telemetry::{self, CallEnd};

pub(super) struct Trace {
    pub inner: Box<dyn Layer>,
}

impl Layer for Trace {
    fn pass<'a>(&'a self, pass: &'a mut Pass) -> BoxFuture<'a, Outcome> {
        async move {
            let clock = pass.services.clock.clone();
            let begun = clock.elapsed();
            let span = telemetry::tool_span(&pass.call, &pass.services.payload());
            let outcome = self.inner.pass(pass).instrument(span.clone()).await;
            let end = match &outcome {
                Outcome::Done(done) => CallEnd::Done { value: &done.value, truncated: done.truncated },
                Outcome::Failed(failure) => CallEnd::Failed(failure),
                Outcome::Suspended(_) => CallEnd::Suspended,
                Outcome::Fatal(_) => CallEnd::Fatal,
            };
            telemetry::record_call(
                &span,
                &end,
                pass.verdict.as_ref().map(Verdict::word),
                clock.elapsed().saturating_sub(begun),
                &pass.services.payload(),
            );
            outcome
        }
        .boxed()
    }
}
