//! Asks for a plan. Nothing about a plan ends a run: words that keep no form are a plan in words, and without a reply
//! the run goes on unplanned.

use std::sync::Arc;

use tracing::Span;

use super::aside::Aside;
use super::{Ending, Next, Run};
use crate::event::{EventKind, Purpose, Suspension};
use crate::model::{Reply, Request};
use crate::plan::{self, Plan};
use crate::store::StoreError;
use crate::telemetry;

/// Bytes that the question for a plan takes, generously.
pub(super) const QUESTION: usize = 400;

impl Run {
    pub(super) async fn plan(&self, step: u32, span: &Span) -> Result<Next, StoreError> {
        let (question, request) = self.plan_request();
        let plan = match self.ask_aside(Purpose::Plan, question, request).await? {
            Aside::Interrupted => return Ok(Next::End(Ending::Suspended(Suspension::Interrupted))),
            Aside::Replied(reply, seconds) => {
                let Reply { text, thinking, usage, finish, .. } = reply;
                Plan { thinking, usage, finish, seconds, ..plan::read(text) }
            }
            Aside::Failed(failure, seconds) => {
                self.services.warn(format!("no plan could be made: {}", failure.message)).await;
                Plan { failure: Some(failure), seconds, ..Plan::default() }
            }
        };
        let plan = Plan { step, model: self.agent.model.id().to_owned(), ..plan };
        telemetry::record_plan(span, &plan, &self.services.payload());
        self.services.journal.append(EventKind::Plan(Box::new(plan))).await?;
        Ok(Next::Go)
    }

    fn plan_request(&self) -> (String, Request) {
        let request = self.request();
        self.services.journal.with_state(|state| {
            let question = plan::question(state);
            let messages = plan::conversation(state, &question);
            let mut sampling = request.sampling.clone();
            // The form of an action is not the form of a plan.
            sampling.schema = sampling.schema.take().map(|_| Arc::new(plan::schema()));
            (question, Request { messages, sampling, ..request })
        })
    }
}
