//! Marks the moment after which a call may have touched the world. The mark is durable before the tool runs.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::{Layer, Outcome, Pass};
use crate::event::EventKind;
use crate::state::CallStatus;

pub(super) struct Start {
    pub inner: Box<dyn Layer>,
}

impl Layer for Start {
    fn pass<'a>(&'a self, pass: &'a mut Pass) -> BoxFuture<'a, Outcome> {
        async move {
            if pass.status == CallStatus::Started {
                // A resumable call that an earlier process started: the mark is there.
                return self.inner.pass(pass).await;
            }
            let started = EventKind::ToolStarted {
                id: pass.call.id.clone(),
                tool: pass.call.name.clone(),
                effects: pass.effects.clone(),
            };
            match pass.services.journal.append(started).await {
                Ok(()) => self.inner.pass(pass).await,
                Err(error) => Outcome::Fatal(error.to_string()),
            }
        }
        .boxed()
    }
}
