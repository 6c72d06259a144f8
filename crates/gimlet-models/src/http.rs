//! A model behind HTTP: one wire, one address, and what was learned about the server.
//!
//! | the server | the result |
//! |---|---|
//! | refuses a field a reply can do without | sent again without it; remembered; said once as a notice |
//! | says it is loading the model | waited out, with a notice, up to a limit |
//! | closes before the reply is complete, or sends nothing | `Cut` |
//! | sends something else (page, other JSON, bytes that are no text) | `Protocol`, with its beginning |
//! | is silent, or never ends | `Timeout` |
//! | answers with a status | as the status says |

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream;
use futures_util::{FutureExt, StreamExt};
use gimlet::context::Window;
use gimlet::model::{Model, ModelError, ModelEvent, ModelStream, Request};
use reqwest::{Method, Url};
use tokio::time::Instant;

use crate::status::{self, Failure};
use crate::stop::StopFilter;
use crate::transport::{Answer, Transport};
use crate::wire::{Caching, Decoder, Extra, Extras, Framing, LengthField, Think, Wire, WireOptions};

/// How much of an error's body is read.
const MAX_ERROR_BODY: usize = 64 * 1024;
/// How long the end of a body may take after the end of the reply, so that the connection can be used again.
const DRAIN: Duration = Duration::from_millis(50);

/// A model behind HTTP.
#[derive(Clone)]
pub struct HttpModel {
    inner: Arc<Inner>,
}

struct Inner {
    id: String,
    wire: Wire,
    url: Url,
    transport: Transport,
    options: WireOptions,
    /// Fields this server refused; only ever grows.
    refused: AtomicU16,
    /// This server wants `max_completion_tokens`; learned at most once.
    completion_tokens: AtomicBool,
}

impl HttpModel {
    /// A model called `id`, at the chat endpoint of `base`.
    pub fn new(
        id: impl Into<String>,
        wire: Wire,
        base: &Url,
        transport: Transport,
        options: WireOptions,
    ) -> Self {
        let url = chat_url(wire, base);
        let transport = match wire {
            Wire::Anthropic => transport.with_header("anthropic-version", "2023-06-01"),
            Wire::Ollama | Wire::OpenAi => transport,
        };
        let (refused, completion_tokens) = (AtomicU16::new(0), AtomicBool::new(false));
        HttpModel {
            inner: Arc::new(Inner {
                id: id.into(),
                wire,
                url,
                transport,
                options,
                refused,
                completion_tokens,
            }),
        }
    }

    /// The protocol it speaks.
    pub fn wire(&self) -> Wire {
        self.inner.wire
    }

    /// Where requests go.
    pub fn url(&self) -> &Url {
        &self.inner.url
    }

    /// How requests are written.
    pub fn options(&self) -> &WireOptions {
        &self.inner.options
    }
}

impl Model for HttpModel {
    fn id(&self) -> &str {
        &self.inner.id
    }

    fn window(&self) -> Option<Window> {
        let options = &self.inner.options;
        Some(Window {
            tokens: options.context,
            reply: options.max_tokens,
            longest_reply: options.longest_reply.max(options.max_tokens),
        })
    }

    fn stream(&self, request: Request) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        let mut reply = Reply::new(Arc::clone(&self.inner), request);
        async move {
            reply.open().await?;
            let events = stream::unfold(reply, |mut reply| async move { Some((reply.next().await?, reply)) });
            Ok(events.boxed())
        }
        .boxed()
    }
}

/// One request and its reply.
struct Reply {
    model: Arc<Inner>,
    request: Request,
    phase: Phase,
    /// Decoded, not yet taken.
    ready: VecDeque<Result<ModelEvent, ModelError>>,
    /// When the whole must be over.
    deadline: Instant,
    /// When a model must be loaded.
    loaded_by: Option<Instant>,
}

enum Phase {
    /// The server loads the model: ask again after a pause.
    Loading,
    /// The body comes in.
    Body { answer: Answer, decoder: Decoder, stop: Option<StopFilter> },
    /// The reply is over; only the end of the body is missing.
    Drain { answer: Answer },
    /// Nothing more to say.
    Over,
}

impl Reply {
    fn new(model: Arc<Inner>, request: Request) -> Self {
        let deadline = Instant::now() + model.transport.timeouts().overall;
        Reply { model, request, phase: Phase::Over, ready: VecDeque::new(), deadline, loaded_by: None }
    }

    /// Asks until the body begins or the server says it is loading.
    async fn open(&mut self) -> Result<(), ModelError> {
        loop {
            let body = self.model.wire.encode(&self.request, &self.model.learned())?;
            let mut answer = self.model.transport.send(Method::POST, &self.model.url, Some(body)).await?;
            if (200..300).contains(&answer.status()) {
                return self.begin(answer).await;
            }
            let body = answer.read(&self.model.transport, MAX_ERROR_BODY).await;
            let failure = Failure {
                status: answer.status(),
                content_type: answer.header("content-type").unwrap_or_default(),
                retry_after: answer.header("retry-after"),
                date: answer.header("date"),
                location: answer.header("location"),
                body: &body,
                model: &self.model.options.model,
            };
            let message = failure.message();
            if status::is_loading(failure.status, &message) {
                let timeouts = self.model.transport.timeouts();
                if self.loaded_by.is_none() {
                    self.loaded_by = Some(Instant::now() + timeouts.loading);
                    self.ready.push_back(Ok(ModelEvent::Notice(format!(
                        "the server at {} is loading {}; waiting",
                        self.model.transport.host(),
                        self.model.options.model
                    ))));
                }
                if self.loaded_by.is_some_and(|by| Instant::now() + timeouts.poll <= by) {
                    self.phase = Phase::Loading;
                    return Ok(());
                }
            }
            match self.model.learn(failure.status, &message, &self.request) {
                Some(notice) => self.ready.push_back(Ok(ModelEvent::Notice(notice))),
                None => return Err(self.model.hide_key(failure.error())),
            }
        }
    }

    /// Decides by the content type how the body is read.
    async fn begin(&mut self, mut answer: Answer) -> Result<(), ModelError> {
        let content_type = answer.header("content-type").unwrap_or_default().to_ascii_lowercase();
        let kind = content_type.split(';').next().unwrap_or_default().trim();
        let framing = match (self.model.wire.framing(), kind) {
            (_, "text/html" | "application/xhtml+xml") => {
                let body = answer.read(&self.model.transport, MAX_ERROR_BODY).await;
                return Err(ModelError::Protocol(status::message(&content_type, &body)));
            }
            (Framing::Events, "application/json") => Framing::Whole,
            (framing, _) => framing,
        };
        let decoder = self.model.wire.decoder(framing, &self.model.options);
        let decoder = decoder.allowing(self.request.sampling.max_tokens);
        let stop = match self.model.learned().quirks.without.contains(Extra::Stop) {
            true => StopFilter::new(&self.request.sampling.stop),
            false => None,
        };
        self.phase = Phase::Body { answer, decoder, stop };
        Ok(())
    }

    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if let Err(error) = self.advance().await {
                // What was decoded before the failure was really said, and stands before it.
                self.ready.push_back(Err(self.model.hide_key(error)));
                self.phase = Phase::Over;
            } else if matches!(self.phase, Phase::Over) && self.ready.is_empty() {
                return None;
            }
        }
    }

    /// Does the next thing that has to be waited for.
    async fn advance(&mut self) -> Result<(), ModelError> {
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Over => Ok(()),
            Phase::Loading => {
                tokio::time::sleep(self.model.transport.timeouts().poll).await;
                self.open().await
            }
            Phase::Body { mut answer, mut decoder, mut stop } => {
                let mut events = Vec::new();
                let read = self.read(&mut answer).await;
                let decoded = match &read {
                    Ok(Some(bytes)) => decoder.push(bytes.as_ref(), &mut events),
                    Ok(None) => decoder.end(&mut events),
                    Err(error) => Err(error.clone()),
                };
                if let Some(stop) = &mut stop {
                    events = stop.pass(events);
                }
                let over = matches!(events.last(), Some(ModelEvent::Done(_)));
                self.ready.extend(events.into_iter().map(Ok));
                if over {
                    // Stopped here and not there, the server would go on: then the connection is given up instead.
                    if decoded.is_ok() && decoder.is_over() && matches!(read, Ok(Some(_))) {
                        self.phase = Phase::Drain { answer };
                    }
                    return Ok(());
                }
                decoded?;
                self.phase = Phase::Body { answer, decoder, stop };
                Ok(())
            }
            Phase::Drain { mut answer } => {
                let end = async { while let Ok(Some(_)) = answer.chunk(&self.model.transport).await {} };
                let _late = tokio::time::timeout(DRAIN, end).await;
                Ok(())
            }
        }
    }

    async fn read(&mut self, answer: &mut Answer) -> Result<Option<impl AsRef<[u8]> + use<>>, ModelError> {
        match tokio::time::timeout_at(self.deadline, answer.chunk(&self.model.transport)).await {
            Ok(chunk) => chunk,
            Err(_elapsed) => Err(ModelError::Timeout {
                host: self.model.transport.host().to_owned(),
                after: self.model.transport.timeouts().overall,
            }),
        }
    }
}

impl Inner {
    /// The options, with what this server taught us.
    fn learned(&self) -> WireOptions {
        let mut options = self.options.clone();
        let refused = Extras::from_bits(self.refused.load(Ordering::Relaxed));
        options.quirks.without = options.quirks.without.union(refused);
        if self.completion_tokens.load(Ordering::Relaxed) {
            options.quirks.length = LengthField::MaxCompletionTokens;
        }
        options
    }

    /// Learns from a refusal which field to leave out, and says so; `None` when it teaches nothing.
    fn learn(&self, status: u16, message: &str, request: &Request) -> Option<String> {
        if !matches!(status, 400 | 422) {
            return None;
        }
        let host = self.transport.host();
        let options = self.learned();
        if self.wire == Wire::OpenAi
            && options.quirks.length == LengthField::MaxTokens
            && message.contains("max_completion_tokens")
        {
            self.completion_tokens.store(true, Ordering::Relaxed);
            return Some(format!(
                "{host} wants max_completion_tokens instead of max_tokens; sending that from now on"
            ));
        }
        let extra = Extra::ALL.into_iter().find(|extra| {
            !options.quirks.without.contains(*extra)
                && is_sent(*extra, self.wire, request, &options)
                && extra.fields().iter().any(|field| speaks_of(message, field))
        })?;
        self.refused.fetch_or(Extras::default().with(extra).bits(), Ordering::Relaxed);
        let field =
            extra.fields().iter().find(|field| speaks_of(message, field)).unwrap_or(&extra.fields()[0]);
        Some(format!("{host} refuses `{field}`, which is left out from now on: {}", extra.loss()))
    }

    fn hide_key(&self, mut error: ModelError) -> ModelError {
        match &mut error {
            ModelError::Auth { message }
            | ModelError::RateLimited { message, .. }
            | ModelError::Server { message, .. }
            | ModelError::NoSuchModel { message, .. }
            | ModelError::ContextLength { message }
            | ModelError::UnreadableCall { message }
            | ModelError::Refused { message, .. }
            | ModelError::Protocol(message) => *message = self.transport.redact(std::mem::take(message)),
            ModelError::Connect { .. }
            | ModelError::Timeout { .. }
            | ModelError::Cut
            | ModelError::Budget(_)
            | ModelError::Script(_) => {}
        }
        error
    }
}

/// Whether a request really carries the field, so that leaving it out can change anything.
fn is_sent(extra: Extra, wire: Wire, request: &Request, options: &WireOptions) -> bool {
    let sampling = &request.sampling;
    match extra {
        Extra::ToolChoice => wire == Wire::OpenAi && !request.tools.is_empty(),
        Extra::Stop => !sampling.stop.is_empty(),
        Extra::StreamOptions => wire == Wire::OpenAi,
        Extra::Temperature => sampling.temperature.or(options.temperature).is_some(),
        Extra::Seed => sampling.seed.is_some() && wire != Wire::Anthropic,
        Extra::Schema => sampling.schema.is_some() || (wire == Wire::OpenAi && options.grammar.is_some()),
        Extra::Think => options.think != Think::Default,
        Extra::Cache => wire == Wire::Anthropic && options.caching == Caching::Marked,
    }
}

/// Whether a refusal is about a field: its name stands alone, beside the words of a refusal. A name that is also an
/// everyday word must look like a name.
fn speaks_of(message: &str, field: &str) -> bool {
    const REFUSALS: [&str; 10] = [
        "support",
        "unknown",
        "unrecognized",
        "unexpected",
        "not permitted",
        "extra",
        "invalid",
        "not allowed",
        "deprecated",
        "cannot use",
    ];
    let lower = message.to_ascii_lowercase();
    let everyday = matches!(field, "stop" | "format" | "seed");
    REFUSALS.iter().any(|word| lower.contains(word))
        && lower.match_indices(field).any(|(at, _)| {
            let (before, after) = (&lower[..at], &lower[at + field.len()..]);
            let in_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
            let marked = before.ends_with(['\'', '"', '`', '.']) || before.ends_with(": ");
            !in_word(before.chars().next_back()) && !in_word(after.chars().next()) && (marked || !everyday)
        })
}

/// The chat endpoint below a base address, which people write with or without its version.
fn chat_url(wire: Wire, base: &Url) -> Url {
    let mut url = base.clone();
    let path = base.path().trim_end_matches('/');
    let path = match wire {
        Wire::Ollama => {
            let root =
                ["/api/chat", "/api", "/v1"].iter().find_map(|end| path.strip_suffix(end)).unwrap_or(path);
            format!("{root}/api/chat")
        }
        Wire::OpenAi => match path {
            "" => "/v1/chat/completions".to_owned(),
            whole if whole.ends_with("/chat/completions") => whole.to_owned(),
            version => format!("{version}/chat/completions"),
        },
        Wire::Anthropic => {
            let root = ["/v1/messages", "/v1"].iter().find_map(|end| path.strip_suffix(end)).unwrap_or(path);
            format!("{root}/v1/messages")
        }
    };
    url.set_path(&path);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bases_are_taken_as_people_write_them() {
        for (wire, base, url) in [
            (Wire::Ollama, "http://localhost:11434", "http://localhost:11434/api/chat"),
            (Wire::Ollama, "http://localhost:11434/v1/", "http://localhost:11434/api/chat"),
            (Wire::Ollama, "https://proxy/ollama/api", "https://proxy/ollama/api/chat"),
            (Wire::OpenAi, "http://localhost:8080", "http://localhost:8080/v1/chat/completions"),
            (Wire::OpenAi, "http://localhost:8080/v1/", "http://localhost:8080/v1/chat/completions"),
            (
                Wire::OpenAi,
                "https://g.example/v1beta/openai",
                "https://g.example/v1beta/openai/chat/completions",
            ),
            (Wire::OpenAi, "https://x.example/a/chat/completions", "https://x.example/a/chat/completions"),
            (Wire::Anthropic, "https://api.anthropic.com", "https://api.anthropic.com/v1/messages"),
            (Wire::Anthropic, "http://localhost:8080/v1", "http://localhost:8080/v1/messages"),
        ] {
            assert_eq!(chat_url(wire, &base.parse().unwrap()).as_str(), url);
        }
    }

    #[test]
    fn a_refusal_names_its_field() {
        for (message, field, yes) in [
            ("Unrecognized request argument supplied: stream_options", "stream_options", true),
            ("Unsupported parameter: 'stop' is not supported with this model.", "stop", true),
            ("extra fields not permitted [loc: body.tool_choice]", "tool_choice", true),
            ("Unsupported value: 'temperature' does not support 0.1 with this model", "temperature", true),
            ("\"gemma3\" does not support thinking", "thinking", true),
            ("nonstop flights are not supported", "stop", false),
            ("stop_token_ids is not supported", "stop", false),
            ("the server has to stop now", "stop", false),
            ("Unrecognized request argument supplied: stop", "stop", true),
            ("invalid request format", "format", false),
            ("Cannot use custom grammar constraints with tools.", "grammar", true),
        ] {
            assert_eq!(speaks_of(message, field), yes, "{message}");
        }
    }
}
