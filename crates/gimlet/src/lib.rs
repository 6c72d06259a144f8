//! The Gimlet agent runtime: everything that must hold is enforced by code, never by a prompt.
//!
//! # A tool, a model, a run
//!
//! A tool is an input struct, whose doc comments are what the model reads, and a function. A model is anything that can
//! stream a reply; here is one that calls the tool and answers with what comes back.
//!
//! ```
//! use std::sync::Arc;
//!
//! use futures_util::future::BoxFuture;
//! use futures_util::{FutureExt, StreamExt, stream};
//! use gimlet::event::EventKind;
//! use gimlet::message::{Finish, Message, ToolCall};
//! use gimlet::model::{Model, ModelError, ModelEvent, ModelStream, Request};
//! use gimlet::store::{MemoryStore, RunLog};
//! use gimlet::tool::{ToolCx, ToolError, TypedTool};
//! use gimlet::{Agent, Ending, Env, Run};
//!
//! /// Count the words of a text.
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Input {
//!     /// The text to count.
//!     text: String,
//! }
//!
//! struct CountWords;
//!
//! impl TypedTool for CountWords {
//!     const NAME: &'static str = "count_words";
//!     type Input = Input;
//!     type Output = usize;
//!
//!     async fn run(&self, input: Input, _cx: &ToolCx) -> Result<usize, ToolError> {
//!         Ok(input.text.split_whitespace().count())
//!     }
//! }
//!
//! struct Counter;
//!
//! impl Model for Counter {
//!     fn id(&self) -> &str {
//!         "counter"
//!     }
//!
//!     fn stream(&self, request: Request) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
//!         let event = match request.messages.last().map(AsRef::as_ref) {
//!             Some(Message::Tool { text, .. }) => ModelEvent::Text(format!("It has {text} words.")),
//!             _ => ModelEvent::Call(ToolCall {
//!                 id: "call_1".into(),
//!                 name: "count_words".into(),
//!                 args: serde_json::json!({ "text": "small and sharp" }),
//!             }),
//!         };
//!         let events = [event, ModelEvent::Done(Finish::Stop)];
//!         std::future::ready(Ok(stream::iter(events.map(Ok)).boxed())).boxed()
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let agent = Agent::builder(Arc::new(Counter)).tool(CountWords).build()?;
//! let store = Arc::new(MemoryStore::default());
//! let env = Env { store: store.clone(), ..Env::default() };
//! let run = Run::start(agent, "How many words has 'small and sharp'?", env).await?;
//! let id = run.id().clone();
//!
//! let Ending::Finished(finished) = run.drive().await? else { panic!("it did not finish") };
//! assert_eq!(finished.answer, "It has 3 words.");
//!
//! // Everything that happened is in the log, and the log is all there is.
//! let events = store.load(&id).await?;
//! assert!(events.iter().any(|event| matches!(event.kind, EventKind::ToolFinished { .. })));
//! # Ok(())
//! # }
//! ```
//!
//! # What happens in a run
//!
//! An [`Agent`] is a model, tools and how it works. A [`Run`] is an agent at work on a task in an [`Env`], which brings
//! the store, the policies, the approver and the clock. The loop asks the pure function
//! [`next_action`](action::next_action) what to do, performs it, and records what happened as an
//! [`Event`](event::Event); the [`State`](state::State) is a fold over those events and nothing else, so a run can stop
//! after any of them and go on in another process with [`Run::resume`].
//!
//! # Where to put what is yours
//!
//! | you have | it becomes |
//! |---|---|
//! | something an agent can do | a [`TypedTool`](tool::TypedTool); the [`guard`] puts validation, policy, approval, limits, truncation, redaction, recording and tracing around it |
//! | a language model | a [`Model`](model::Model) that can [stream](model::Model::stream) a reply |
//! | a rule on what may be done | a [`Policy`](effect::Policy) over the [`Effect`](effect::Effect)s that tools declare; verdicts combine by `max` |
//! | somebody to ask | an [`Approver`](approval::Approver); one that defers suspends the run until [`Run::resume`] |
//! | a place for logs | a [`Store`](store::Store); `gimlet-store` has one that survives crashes |
//! | something to say before or after a call | a [`Hook`](hook::Hook) |
//! | a condition on the answer | a [`Check`](hook::Check) |
//! | somewhere for code to run | an [`Executor`](cell::Executor); `gimlet-python` has a sandbox |
//! | someone who watches | an [`Observer`](journal::Observer) |
//!
//! With [`Env::default`] nothing is kept, nobody is asked, and tools may only look.
#![forbid(unsafe_code)]

pub mod action;
pub mod agent;
mod brief;
pub mod cell;
pub mod constrain;
pub mod context;
mod delegate;
pub mod feed;
pub mod fork;
pub mod guard;
pub mod guided;
pub mod hook;
pub mod journal;
pub mod model;
pub mod plan;
pub mod run;
pub mod state;
pub mod store;
pub mod telemetry;
pub mod tool;
pub mod toolbox;
pub mod worker;

pub use agent::Agent;
pub use gimlet_event::{approval, effect, event, ids, limits, message, work};
pub use gimlet_host::{command, patch, paths};
pub use gimlet_reply::{parse, prompt, signature};
pub use gimlet_text::{digest, printable as text};
pub use run::{Ending, Env, Run};
