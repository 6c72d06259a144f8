//! Asks the model and records its reply.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tracing::Instrument;

use super::room::Gave;
use super::understand::understand;
use super::{Ending, Next, Run, fail};
use crate::constrain;
use crate::context::Window;
use crate::event::{EventKind, ModelMessage, Suspension};
use crate::model::{ModelError, ModelEvent, ModelStream, Reply, ReplyBuilder, Request};
use crate::prompt::stops;
use crate::state::State;
use crate::store::StoreError;
use crate::telemetry;
use crate::tool::ToolSpec;

/// Pieces of a reply are gathered this long before they are shown: smooth to watch, and a token is not an event.
const GATHER: Duration = Duration::from_millis(40);
/// A gathered piece is shown at once when it is this long.
const GATHER_BYTES: usize = 400;

/// How often a step begins again after its reply broke off. A reply that never began is the wrappers' to ask for again.
const MOST_RESTARTS: u32 = 2;

/// Bytes of a file that a token stands for, at the least: quoted in JSON a text takes more tokens than it has words.
const BYTES_A_TOKEN: usize = 3;
/// Tokens of an edit beside the file's text.
const AROUND_EDIT: u32 = 256;

/// What stands in the conversation for a reply that the server could not read.
const MISREAD: &str = "(a tool call that could not be read)";
const MISREAD_HINT: &str = "Your tool call could not be read: its arguments were not valid JSON. Nothing was done. Make \
                            the call again with valid JSON: escape quotes and line breaks in texts, and keep them short.";

/// What asking came to.
enum Asked {
    Done(Next),
    /// The reply broke off in the middle, for a reason that may pass; with what the run ends otherwise.
    BrokeOff(String, Next),
    /// The server says that the conversation does not fit; with what the run ends if nothing can be done.
    TooLong(Next),
    /// The server could not read its model's tool call; with what the run ends where there is no other way to call.
    Misread(Next),
}

/// Whether a reply had begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heard {
    Nothing,
    Something,
}

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
        let mut restarts = 0;
        loop {
            match self.ask(step, self.request()).await? {
                Asked::Done(next) => return Ok(next),
                // What was shown of the reply counts for nothing; the step begins again from the log.
                Asked::BrokeOff(error, _) if restarts < MOST_RESTARTS => {
                    restarts += 1;
                    self.services.warn(format!("{error}; the step begins again")).await;
                }
                Asked::BrokeOff(_, failure) => return Ok(failure),
                Asked::Misread(failure) => return self.misread(step, failure).await,
                // The server knows its window best: give it less, as long as there is something to leave out.
                Asked::TooLong(failure) => match self.give_way().await? {
                    Gave::Way => {}
                    Gave::Nothing => return Ok(failure),
                    Gave::Up(ending) => return Ok(Next::End(ending)),
                },
            }
        }
    }

    /// Asks a question that is no part of the conversation, and records the reply.
    pub(super) async fn sample_with(&self, step: u32, request: Request) -> Result<Next, StoreError> {
        let mut restarts = 0;
        loop {
            match self.ask(step, request.clone()).await? {
                Asked::Done(next) | Asked::TooLong(next) | Asked::Misread(next) => return Ok(next),
                Asked::BrokeOff(error, _) if restarts < MOST_RESTARTS => {
                    restarts += 1;
                    self.services.warn(format!("{error}; the step begins again")).await;
                }
                Asked::BrokeOff(_, failure) => return Ok(failure),
            }
        }
    }

    /// Records a reply that nobody has seen: the server could not read the call in it. The model is told, and calls are
    /// asked for as text when it happens again. A server that reads calls which nobody asked it to is not to be helped.
    async fn misread(&self, step: u32, failure: Next) -> Result<Next, StoreError> {
        let (native, times) = self.services.journal.with_state(|state| (state.is_native(), state.misread));
        if !native && times > 0 {
            return Ok(failure);
        }
        let message = ModelMessage {
            step,
            text: MISREAD.to_owned(),
            problem: Some(MISREAD_HINT.to_owned()),
            misread: true,
            model: self.agent.model.id().to_owned(),
            ..ModelMessage::default()
        };
        self.take(message).await?;
        Ok(Next::Go)
    }

    async fn ask(&self, step: u32, request: Request) -> Result<Asked, StoreError> {
        let constrained = request.sampling.schema.is_some();
        let span = telemetry::llm_span(self.agent.model.id(), &request.messages, &self.services.payload());
        let begun = self.services.clock.elapsed();
        let mut heard = Heard::Nothing;
        let reply = tokio::select! {
            biased;
            () = self.services.cancel.cancelled() => {
                return Ok(Asked::Done(Next::End(Ending::Suspended(Suspension::Interrupted))));
            }
            reply = self.receive(step, request, &mut heard).instrument(span.clone()) => reply,
        };
        match reply {
            Ok(reply) => {
                let message = ModelMessage { constrained, ..self.read(step, reply, begun) };
                telemetry::record_reply(&span, &message, &self.services.payload());
                self.take(message).await?;
                Ok(Asked::Done(Next::Go))
            }
            Err(Missed::Model(error)) => {
                telemetry::record_model_error(&span, error.code());
                let message = self.services.redactor.clean_text(&error.to_string()).into_owned();
                let failure = fail(error.code(), message.clone(), error.hint());
                Ok(match (error, heard) {
                    (ModelError::ContextLength { .. }, _) => Asked::TooLong(failure),
                    (ModelError::UnreadableCall { .. }, _) => Asked::Misread(failure),
                    (error, Heard::Something) if error.is_retryable() => Asked::BrokeOff(message, failure),
                    (_, Heard::Something | Heard::Nothing) => Asked::Done(failure),
                })
            }
            Err(Missed::Store(error)) => Err(error),
        }
    }

    /// The tools that go with a request, where they are not part of the prompt.
    pub(super) fn native_tools(&self) -> &[Arc<ToolSpec>] {
        let native = self.services.journal.with_state(State::is_native);
        if native { &self.agent.offered } else { &[] }
    }

    /// The model's window, with a reply in it that is long enough for an edit of what was read: whoever rewrites a file
    /// writes at least as much. A reply that was cut is given twice as much the next time.
    pub(super) fn window(&self) -> Option<Window> {
        let usual = self.agent.model.window()?;
        let (bytes, cuts) = self.services.journal.with_state(|state| (state.longest_read, state.cuts));
        let edit = u32::try_from(bytes / BYTES_A_TOKEN).unwrap_or(u32::MAX).saturating_add(AROUND_EDIT);
        let edit = if bytes == 0 { 0 } else { edit };
        let again = usual.reply.saturating_mul(1 << cuts.min(8));
        let reply = edit.max(again).min(usual.longest_reply).max(usual.reply);
        Some(Window { reply, ..usual })
    }

    pub(super) fn request(&self) -> Request {
        let agent = &self.agent;
        let (messages, (action, dialect), constrain) = self.services.journal.with_state(|state| {
            let held = agent.constrain.applies(state, agent.toolbox.specs());
            (state.messages.clone(), (state.action, state.dialect), held)
        });
        let mut sampling = agent.sampling.clone();
        if let Some(window) = self.window()
            && sampling.max_tokens.is_none()
            && agent.model.window().is_some_and(|usual| window.reply > usual.reply)
        {
            sampling.max_tokens = Some(window.reply);
        }
        if sampling.stop.is_empty() {
            sampling.stop = stops(action, dialect);
        }
        if constrain && sampling.schema.is_none() {
            sampling.schema = Some(if action == agent.action {
                agent.schema.clone()
            } else {
                Arc::new(constrain::schema(action, agent.toolbox.specs()))
            });
        }
        let tools = if self.native_tools().is_empty() { Default::default() } else { agent.offered.clone() };
        Request { messages, tools, sampling }
    }

    fn read(&self, step: u32, reply: Reply, begun: Duration) -> ModelMessage {
        let agent = &self.agent;
        let mut message = self.services.journal.with_state(|state| understand(reply, step, agent, state));
        message.model = agent.model.id().to_owned();
        message.seconds = self.services.clock.elapsed().saturating_sub(begun).as_secs_f64();
        message
    }

    async fn take(&self, message: ModelMessage) -> Result<(), StoreError> {
        let journal = &self.services.journal;
        let (known, counted) = (journal.with_state(|state| state.shortfalls), message.usage.input);
        journal.append(EventKind::ModelMessage(message)).await?;
        if known == 0 && journal.with_state(|state| state.shortfalls) > 0 {
            self.services.warn(shortfall(counted)).await;
        }
        Ok(())
    }

    async fn receive(&self, step: u32, request: Request, heard: &mut Heard) -> Result<Reply, Missed> {
        let mut stream = self.agent.model.stream(request).await?;
        let mut reply = ReplyBuilder::default();
        let mut shown = Gathered::new(step);
        while let Some(event) = self.next_event(&mut stream, &mut shown).await? {
            match &event {
                ModelEvent::Text(text) => shown.text.push_str(text),
                ModelEvent::Thinking(text) => shown.thinking.push_str(text),
                ModelEvent::Notice(message) => {
                    self.services.warn(message.clone()).await;
                    continue;
                }
                ModelEvent::Signature(_)
                | ModelEvent::Call(_)
                | ModelEvent::Usage(_)
                | ModelEvent::Done(_) => {}
            }
            *heard = Heard::Something;
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

fn shortfall(counted: u64) -> String {
    format!(
        "the model server counted {counted} tokens, fewer than it was sent: it may have dropped the beginning of the \
         conversation without saying so; give it a larger window"
    )
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
