//! One reply through several attempts: what retry and router have in common.
//!
//! As long as nothing of a reply was shown, an attempt that fails can be followed by another. After that a failure is
//! passed on, and the step starts again from the log.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use gimlet::model::{Model, ModelError, ModelEvent, ModelStream, Request};

/// Who is asked, and what to do when that fails.
pub(super) trait Plan: Send + 'static {
    /// Whom to ask now.
    fn model(&self) -> Arc<dyn Model>;

    /// An attempt failed.
    fn failed(&mut self, error: &ModelError, shown: Shown) -> Next;

    /// An attempt came to its end.
    fn succeeded(&mut self);
}

/// Whether something of the reply was passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    Nothing,
    Something,
}

/// What follows a failure.
pub(super) enum Next {
    /// The failure is the result.
    Stop,
    /// Another attempt.
    Again { wait: Duration, notice: String },
}

/// Asks as the plan says. Waiting happens inside the stream, so that its notice is seen while it lasts.
pub(super) async fn run(plan: impl Plan, request: Request) -> Result<ModelStream, ModelError> {
    let mut run = Run { plan, request, phase: Phase::Over, shown: Shown::Nothing, ready: VecDeque::new() };
    run.open().await?;
    Ok(stream::unfold(run, |mut run| async move { Some((run.next().await?, run)) }).boxed())
}

struct Run<P> {
    plan: P,
    request: Request,
    phase: Phase,
    shown: Shown,
    ready: VecDeque<ModelEvent>,
}

enum Phase {
    Waiting(Duration),
    Reply(ModelStream),
    /// The reply is over; its stream may still have a connection to give back.
    End(ModelStream),
    Over,
}

impl<P: Plan> Run<P> {
    async fn open(&mut self) -> Result<(), ModelError> {
        match self.plan.model().stream(self.request.clone()).await {
            Ok(reply) => {
                self.phase = Phase::Reply(reply);
                Ok(())
            }
            Err(error) => self.failed(error),
        }
    }

    fn failed(&mut self, error: ModelError) -> Result<(), ModelError> {
        self.phase = Phase::Over;
        match (self.plan.failed(&error, self.shown), self.shown) {
            (Next::Again { wait, notice }, Shown::Nothing) => {
                self.ready.push_back(ModelEvent::Notice(notice));
                self.phase = Phase::Waiting(wait);
                Ok(())
            }
            (Next::Again { .. } | Next::Stop, _) => Err(error),
        }
    }

    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            let moved = match &mut self.phase {
                Phase::Over => return None,
                Phase::Waiting(wait) => {
                    tokio::time::sleep(*wait).await;
                    self.open().await
                }
                Phase::End(reply) => {
                    let _end = reply.next().await;
                    self.phase = Phase::Over;
                    return None;
                }
                Phase::Reply(reply) => match reply.next().await {
                    Some(Ok(event)) => {
                        match &event {
                            ModelEvent::Text(_)
                            | ModelEvent::Thinking(_)
                            | ModelEvent::Signature(_)
                            | ModelEvent::Call(_) => self.shown = Shown::Something,
                            ModelEvent::Usage(_) | ModelEvent::Notice(_) => {}
                            ModelEvent::Done(_) => {
                                self.plan.succeeded();
                                if let Phase::Reply(reply) = std::mem::replace(&mut self.phase, Phase::Over) {
                                    self.phase = Phase::End(reply);
                                }
                            }
                        }
                        return Some(Ok(event));
                    }
                    Some(Err(error)) => self.failed(error),
                    None => self.failed(ModelError::Cut),
                },
            };
            if let Err(error) = moved {
                return Some(Err(error));
            }
        }
    }
}
