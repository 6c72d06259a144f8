//! Asks the model for something beside its steps: the reply is no action and is not shown as it comes.

use tracing::Instrument;

use super::Run;
use crate::event::{EventKind, Failure, ModelMessage, Purpose};
use crate::message::Thinking;
use crate::model::{Reply, Request};
use crate::parse;
use crate::store::StoreError;
use crate::telemetry;

/// What came of it.
pub(super) enum Aside {
    /// A reply, and the seconds it took.
    Replied(Reply, f64),
    /// None, for a reason that does not end the run.
    Failed(Failure, f64),
    /// The run was stopped meanwhile.
    Interrupted,
}

impl Run {
    /// Asks; `question` is the part of the request that the log does not hold yet.
    pub(super) async fn ask_aside(
        &self,
        purpose: Purpose,
        question: String,
        request: Request,
    ) -> Result<Aside, StoreError> {
        self.services.journal.append(EventKind::ModelAsked { purpose, text: question }).await?;
        let model = &self.agent.model;
        let span = telemetry::llm_span(model.id(), &request.messages, &self.services.payload());
        let begun = self.services.clock.elapsed();
        let reply = tokio::select! {
            biased;
            () = self.services.cancel.cancelled() => return Ok(Aside::Interrupted),
            reply = model.complete(request).instrument(span.clone()) => reply,
        };
        let seconds = self.services.clock.elapsed().saturating_sub(begun).as_secs_f64();
        Ok(match reply {
            Ok(mut reply) => {
                let (thought, text) = parse::without_thinking(&reply.text);
                reply.thinking.extend(thought.map(|text| Thinking { text, signature: None }));
                reply.text = text;
                let message = ModelMessage {
                    text: reply.text.clone(),
                    usage: reply.usage,
                    finish: reply.finish,
                    ..ModelMessage::default()
                };
                telemetry::record_reply(&span, &message, &self.services.payload());
                Aside::Replied(reply, seconds)
            }
            Err(error) => {
                telemetry::record_model_error(&span, error.code());
                let message = self.services.redactor.clean_text(&error.to_string()).into_owned();
                Aside::Failed(Failure { error: error.code().to_owned(), message, hint: None }, seconds)
            }
        })
    }
}
