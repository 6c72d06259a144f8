//! The one thing the loop asks of a language model: stream a reply to a conversation.
//!
//! Retry, rate limits, routing and budgets are wrappers around `Arc<dyn Model>`, not options in here.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::context::Window;
use crate::message::{Finish, Message, Thinking, ToolCall, Usage};
use crate::tool::ToolSpec;

/// A reply as it arrives.
pub type ModelStream = BoxStream<'static, Result<ModelEvent, ModelError>>;

/// A language model.
pub trait Model: Send + Sync {
    /// The name people gave it, such as `ollama_chat/qwen2.5-coder:14b`.
    fn id(&self) -> &str;

    /// How much it can take at once; none when nobody knows. A wrapper passes on what it wraps.
    fn window(&self) -> Option<Window> {
        None
    }

    /// Starts a reply. The stream ends after [`ModelEvent::Done`]; a stream that ends without it was cut.
    fn stream(&self, request: Request) -> BoxFuture<'_, Result<ModelStream, ModelError>>;
}

impl dyn Model {
    /// The whole reply at once.
    pub async fn complete(&self, request: Request) -> Result<Reply, ModelError> {
        let mut stream = self.stream(request).await?;
        let mut reply = ReplyBuilder::default();
        while let Some(event) = stream.next().await {
            reply.push(event?);
        }
        reply.finish()
    }
}

/// What is asked of a model. Cheap to clone: messages and tools are shared.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The conversation; append-only from one request of a run to the next.
    pub messages: Vec<Arc<Message>>,
    /// Tools offered natively, in stable order; empty when the prompt describes them instead.
    pub tools: Arc<[Arc<ToolSpec>]>,
    /// How to write.
    pub sampling: Sampling,
}

/// How a model is to write. `None` leaves the choice to the model's own profile.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sampling {
    /// Randomness.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    /// Longest reply, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Seed, where the server takes one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Texts that end the reply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// JSON schema the reply must match, where the server can enforce one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Arc<Value>>,
}

/// A piece of a reply.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// Visible text.
    Text(String),
    /// Reasoning.
    Thinking(String),
    /// Signature of the reasoning so far.
    Signature(String),
    /// A whole tool call.
    Call(ToolCall),
    /// What it cost; the last one counts.
    Usage(Usage),
    /// Something the person should know, such as a model being loaded.
    Notice(String),
    /// The end.
    Done(Finish),
}

/// A whole reply.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    /// Visible text.
    pub text: String,
    /// Reasoning.
    pub thinking: Vec<Thinking>,
    /// Native tool calls.
    pub calls: Vec<ToolCall>,
    /// What it cost.
    pub usage: Usage,
    /// Why it ended.
    pub finish: Finish,
}

/// Puts a reply together from its pieces.
#[derive(Debug, Default)]
pub struct ReplyBuilder {
    reply: Reply,
    done: bool,
    thought_open: bool,
}

impl ReplyBuilder {
    /// Adds the next piece.
    pub fn push(&mut self, event: ModelEvent) {
        match event {
            ModelEvent::Text(text) => self.reply.text.push_str(&text),
            ModelEvent::Thinking(text) => self.open_thought().text.push_str(&text),
            ModelEvent::Signature(signature) => {
                self.open_thought().signature.get_or_insert_default().push_str(&signature);
                self.thought_open = false;
            }
            ModelEvent::Call(call) => self.reply.calls.push(call),
            ModelEvent::Usage(usage) => self.reply.usage = usage,
            ModelEvent::Notice(_) => {}
            ModelEvent::Done(finish) => {
                self.reply.finish = finish;
                self.done = true;
            }
        }
    }

    /// The reply, if it came to its end.
    pub fn finish(self) -> Result<Reply, ModelError> {
        if self.done { Ok(self.reply) } else { Err(ModelError::Cut) }
    }

    fn open_thought(&mut self) -> &mut Thinking {
        if !self.thought_open || self.reply.thinking.is_empty() {
            self.reply.thinking.push(Thinking::default());
            self.thought_open = true;
        }
        let last = self.reply.thinking.len() - 1;
        &mut self.reply.thinking[last]
    }
}

/// Why a model gave no reply.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ModelError {
    /// Nobody answers at the address.
    #[error("cannot reach the model server at {host}: {reason}")]
    Connect {
        /// Address without credentials.
        host: String,
        /// What the system said.
        reason: String,
    },
    /// No answer in time.
    #[error("the model server at {host} did not answer within {} s", after.as_secs_f32())]
    Timeout {
        /// Address without credentials.
        host: String,
        /// How long was waited.
        after: Duration,
    },
    /// The stream ended in the middle of the reply.
    #[error("the reply ended before it was complete")]
    Cut,
    /// The key is missing or refused.
    #[error("the model server refused the credentials: {message}")]
    Auth {
        /// What the server said.
        message: String,
    },
    /// Too many requests or tokens.
    #[error("the model server asks to slow down: {message}")]
    RateLimited {
        /// What the server said.
        message: String,
        /// How long it wants us to wait.
        retry_after: Option<Duration>,
    },
    /// The server is there but cannot serve now.
    #[error("the model server failed with status {status}: {message}")]
    Server {
        /// HTTP status.
        status: u16,
        /// What the server said.
        message: String,
        /// How long it wants us to wait.
        retry_after: Option<Duration>,
    },
    /// No such model there.
    #[error("the model `{model}` is not there: {message}")]
    NoSuchModel {
        /// The name asked for.
        model: String,
        /// What the server said.
        message: String,
    },
    /// The conversation does not fit the model's window.
    #[error("the conversation is too long for the model: {message}")]
    ContextLength {
        /// What the server said.
        message: String,
    },
    /// The server could not read the tool call that its own model wrote.
    #[error("the model server could not read its model's tool call: {message}")]
    UnreadableCall {
        /// What the server said.
        message: String,
    },
    /// The request was refused for what it says.
    #[error("the model server refused the request ({status}): {message}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// What the server said.
        message: String,
    },
    /// The server's answer makes no sense.
    #[error("the model server answered with something that is not its protocol: {0}")]
    Protocol(String),
    /// A budget for tokens or money is used up.
    #[error("the budget is used up: {0}")]
    Budget(String),
    /// A script has no further reply.
    #[error("{0}")]
    Script(String),
}

impl ModelError {
    /// Whether the same request may succeed a little later.
    pub fn is_retryable(&self) -> bool {
        match self {
            ModelError::Connect { .. }
            | ModelError::Timeout { .. }
            | ModelError::Cut
            | ModelError::RateLimited { .. }
            | ModelError::Server { .. } => true,
            ModelError::Auth { .. }
            | ModelError::NoSuchModel { .. }
            | ModelError::ContextLength { .. }
            | ModelError::UnreadableCall { .. }
            | ModelError::Refused { .. }
            | ModelError::Protocol(_)
            | ModelError::Budget(_)
            | ModelError::Script(_) => false,
        }
    }

    /// How long the server asked us to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            ModelError::RateLimited { retry_after, .. } | ModelError::Server { retry_after, .. } => {
                *retry_after
            }
            _ => None,
        }
    }

    /// A stable word for logs and scripts.
    pub fn code(&self) -> &'static str {
        match self {
            ModelError::Connect { .. } => "MODEL_UNREACHABLE",
            ModelError::Timeout { .. } => "MODEL_TIMEOUT",
            ModelError::Cut => "MODEL_REPLY_CUT",
            ModelError::Auth { .. } => "MODEL_AUTH",
            ModelError::RateLimited { .. } => "MODEL_RATE_LIMITED",
            ModelError::Server { .. } => "MODEL_SERVER_ERROR",
            ModelError::NoSuchModel { .. } => "MODEL_NOT_FOUND",
            ModelError::ContextLength { .. } => "CONTEXT_LENGTH",
            ModelError::UnreadableCall { .. } => "MODEL_CALL_UNREADABLE",
            ModelError::Refused { .. } => "MODEL_REFUSED_REQUEST",
            ModelError::Protocol(_) => "MODEL_PROTOCOL",
            ModelError::Budget(_) => "BUDGET_EXHAUSTED",
            ModelError::Script(_) => "SCRIPT_EXHAUSTED",
        }
    }

    /// What the person can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            ModelError::Connect { .. } => {
                Some("is the model server running? check the address with --api-base")
            }
            ModelError::Timeout { .. } => {
                Some("a large model may still be loading; try again or use a smaller one")
            }
            ModelError::Cut | ModelError::Server { .. } => Some("try again; the run can be resumed"),
            ModelError::Auth { .. } => Some("set the provider's key in the environment"),
            ModelError::RateLimited { .. } => Some("wait a little, then resume the run"),
            ModelError::NoSuchModel { .. } => Some("name an installed model with --model"),
            ModelError::ContextLength { .. } => Some("give a narrower task, or a model with a larger window"),
            ModelError::UnreadableCall { .. } => Some("resume the run, or use another model"),
            ModelError::Refused { .. } | ModelError::Protocol(_) => None,
            ModelError::Budget(_) => Some("raise the budget and resume the run"),
            ModelError::Script(_) => Some("add a reply to the script"),
        }
    }
}
