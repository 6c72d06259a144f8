//! The outermost layer: a span around every call, so that a refusal is as visible as a success.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tracing::Instrument;

use super::{Layer, Outcome, Pass};
use crate::telemetry;

pub(super) struct Trace {
    pub inner: Box<dyn Layer>,
}

impl Layer for Trace {
    fn pass<'a>(&'a self, pass: &'a mut Pass) -> BoxFuture<'a, Outcome> {
        async move {
            let clock = pass.services.clock.clone();
            let begun = clock.elapsed();
            let span = telemetry::tool_span(&pass.call);
            let outcome = self.inner.pass(pass).instrument(span.clone()).await;
            telemetry::record_outcome(
                &span,
                &outcome,
                pass.verdict.as_ref(),
                clock.elapsed().saturating_sub(begun),
            );
            outcome
        }
        .boxed()
    }
}
