//! Language models for Gimlet.
//!
//! [`wire`] is what the three protocols say, and pure. [`transport`] and [`http`] send it. [`providers`] and
//! [`mod@resolve`] find a model by its id and decide who gets a key. [`embed`] makes vectors. [`layer`] holds the wrappers (retry, rate limit,
//! concurrency, router, budget, cassettes) and [`config`] stacks them. [`catalog`] lists, grades and chooses.
#![forbid(unsafe_code)]

pub mod catalog;
pub mod config;
pub mod embed;
pub mod http;
pub mod keys;
pub mod layer;
pub mod providers;
pub mod resolve;
pub mod script;
pub mod scripted;
mod status;
mod stop;
pub mod transport;
pub mod wire;

pub use embed::EmbeddingModel;
pub use http::HttpModel;
pub use keys::Keys;
pub use providers::Providers;
pub use reqwest::Url;
pub use resolve::{Base, Located, Resolved, Settings, locate, resolve, resolve_embeddings};
pub use script::Script;
pub use scripted::ScriptedModel;
