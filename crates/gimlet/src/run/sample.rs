//! Asks the model and records its reply.

use std::time::Duration;

use futures_util::StreamExt;
use tracing::Instrument;

use super::understand::understand;
use super::{Ending, Next, Run, fail};
use crate::event::{ActionFormat, Dialect, EventKind, Suspension};
use crate::model::{ModelError, ModelEvent, ModelStream, Reply, ReplyBuilder, Request};
use crate::store::StoreError;
use crate::telemetry;

/// Pieces of a reply are gathered this long before they are shown: smooth to watch, and a token is not an event.
const GATHER: Duration = Duration::from_millis(40);
/// A gathered piece is shown at once when it is this long.
const GATHER_BYTES: usize = 400;

/// Why a reply was not received.
enum Missed {
    Model(ModelError),
    Store(StoreError),
}

impl From<StoreError> for Missed {
    fn from(error: StoreError) -> Self {
        Missed::Store(error)
    }
}

impl From<ModelError> for Missed {
    fn from(error: ModelError) -> Self {
        Missed::Model(error)
    }
}

impl Run {
    pub(super) async fn sample(&self, step: u32) -> Result<Next, StoreError> {
        let request = self.request();
        let span = telemetry::llm_span(self.agent.model.id(), request.messages.len());
        let begun = self.services.clock.elapsed();
        let reply = tokio::select! {
            biased;
            () = self.services.cancel.cancelled() => return Ok(Next::End(Ending::Suspended(Suspension::Interrupted))),
            reply = self.receive(step, request).instrument(span.clone()) => reply,
        };
        match reply {
            Ok(reply) => {
                telemetry::record_reply(&span, &reply.usage);
                self.take(step, reply, begun).await
            }
            Err(Missed::Model(error)) => {
                telemetry::record_model_error(&span, error.code());
                let message = self.services.redactor.clean_text(&error.to_string()).into_owned();
                Ok(fail(error.code(), message, error.hint()))
            }
            Err(Missed::Store(error)) => Err(error),
        }
    }

    fn request(&self) -> Request {
        let native = self.agent.action == ActionFormat::Tools && self.agent.dialect == Dialect::Native;
        Request {
            messages: self.services.journal.with_state(|state| state.messages.clone()),
            tools: if native { self.agent.toolbox.specs().clone() } else { Default::default() },
            sampling: self.agent.sampling.clone(),
        }
    }

    async fn take(&self, step: u32, reply: Reply, begun: Duration) -> Result<Next, StoreError> {
        let agent = &self.agent;
        let mut message = self.services.journal.with_state(|state| understand(reply, step, agent, state));
        message.model = agent.model.id().to_owned();
        message.seconds = self.services.clock.elapsed().saturating_sub(begun).as_secs_f64();
        self.services.journal.append(EventKind::ModelMessage(message)).await?;
        Ok(Next::Go)
    }

    async fn receive(&self, step: u32, request: Request) -> Result<Reply, Missed> {
        let mut stream = self.agent.model.stream(request).await?;
        let mut reply = ReplyBuilder::default();
        let mut shown = Gathered::new(step);
        while let Some(event) = self.next_event(&mut stream, &mut shown).await? {
            match &event {
                ModelEvent::Text(text) => shown.text.push_str(text),
                ModelEvent::Thinking(text) => shown.thinking.push_str(text),
                ModelEvent::Notice(message) => self.services.warn(message.clone()).await,
                ModelEvent::Signature(_)
                | ModelEvent::Call(_)
                | ModelEvent::Usage(_)
                | ModelEvent::Done(_) => {}
            }
            reply.push(event);
            if shown.len() >= GATHER_BYTES {
                self.show(&mut shown).await?;
            }
        }
        self.show(&mut shown).await?;
        Ok(reply.finish()?)
    }

    /// The next piece; what was gathered is shown while the model thinks.
    async fn next_event(
        &self,
        stream: &mut ModelStream,
        shown: &mut Gathered,
    ) -> Result<Option<ModelEvent>, Missed> {
        let mut next = stream.next();
        if shown.len() > 0 {
            tokio::select! {
                biased;
                event = &mut next => return Ok(event.transpose()?),
                () = tokio::time::sleep(GATHER) => self.show(shown).await?,
            }
        }
        Ok(next.await.transpose()?)
    }

    async fn show(&self, shown: &mut Gathered) -> Result<(), StoreError> {
        if shown.len() == 0 {
            return Ok(());
        }
        let text = std::mem::take(&mut shown.text);
        let thinking = std::mem::take(&mut shown.thinking);
        self.services.journal.append(EventKind::ModelDelta { step: shown.step, text, thinking }).await
    }
}

/// Pieces of a reply that are not shown yet.
struct Gathered {
    step: u32,
    text: String,
    thinking: String,
}

impl Gathered {
    fn new(step: u32) -> Self {
        Gathered { step, text: String::new(), thinking: String::new() }
    }

    fn len(&self) -> usize {
        self.text.len() + self.thinking.len()
    }
}
