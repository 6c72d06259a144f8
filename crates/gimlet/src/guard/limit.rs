//! Stops a call that takes too long or is no longer wanted. A person's thinking time is outside of this layer.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::{Layer, Outcome, Pass};
use crate::tool::code;

pub(super) struct Limit {
    pub inner: Box<dyn Layer>,
    pub timeout: Duration,
    /// A call that keeps its own record is left open when it is stopped, to be carried on later.
    pub resumable: bool,
}

impl Layer for Limit {
    fn pass<'a>(&'a self, pass: &'a mut Pass) -> BoxFuture<'a, Outcome> {
        async move {
            let cancel = pass.cancel.clone();
            tokio::select! {
                biased;
                outcome = self.inner.pass(pass) => outcome,
                () = cancel.cancelled(), if !self.resumable => {
                    Outcome::failed(code::CANCELLED, "The call was stopped. It may have taken effect in part.")
                }
                () = tokio::time::sleep(self.timeout) => Outcome::failed(
                    code::TOOL_TIMEOUT,
                    format!("The call was stopped after {} s. Ask for less at a time.", self.timeout.as_secs_f32()),
                ),
            }
        }
        .boxed()
    }
}
