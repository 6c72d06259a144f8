//! Lets hooks look at a call before anything is decided about it, and refuse it.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::{Layer, Outcome, Pass};
use crate::hook::Flow;
use crate::tool::code;

pub(super) struct Hooks {
    pub inner: Box<dyn Layer>,
}

impl Layer for Hooks {
    fn pass<'a>(&'a self, pass: &'a mut Pass) -> BoxFuture<'a, Outcome> {
        async move {
            match pass.services.before_tool(&pass.call).await {
                Flow::Continue => self.inner.pass(pass).await,
                Flow::Refuse(reason) => Outcome::failed(code::HOOK_REFUSED, reason),
            }
        }
        .boxed()
    }
}
