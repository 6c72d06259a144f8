//! Models and routers as people configure them, and the stack of wrappers each one gets.
//!
//! ```toml
//! [models.sonnet]
//! id = "anthropic/claude-sonnet-4-20250514"
//! temperature = 0.2
//!
//! [routers.claude-agent]
//! models = ["sonnet", "anthropic/claude-3-haiku-20240307"]
//! strategy = "simple-shuffle"
//! ```

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gimlet::model::Model;
use reqwest::Url;
use serde::{Deserialize, Serialize};

use crate::keys::Keys;
use crate::layer::cassette::CassetteError;
use crate::layer::{
    Budget, Concurrency, Ledger, Limits, RateLimit, Rates, Recorder, Replayer, Retry, RetryPolicy, Router,
    Strategy,
};
use crate::providers::{Cost, Providers};
use crate::resolve::{Base, REPLAY, ResolveError, Resolved, Settings, resolve};
use crate::wire::Think;

/// Named models and routers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelsConfig {
    /// Models by the name people give them.
    pub models: BTreeMap<String, ModelEntry>,
    /// Routers by name.
    pub routers: BTreeMap<String, RouterEntry>,
}

/// One model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelEntry {
    /// Its id, such as `ollama_chat/qwen3:8b`.
    pub id: String,
    /// Its address, if not the provider's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_base: Option<String>,
    /// Randomness.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    /// Longest reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Window in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<u32>,
    /// How much it shall think.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think: Option<Think>,
    /// How long an idle model stays loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_alive: Option<String>,
    /// Requests a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<NonZeroU32>,
    /// Tokens a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<NonZeroU32>,
    /// Replies at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<usize>,
    /// Most US dollars to spend on it in one process; where its price is not known, nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_dollars: Option<f64>,
    /// A file that keeps its replies, to be played again as `replay/FILE`. Not for a project to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<PathBuf>,
    /// Who wrote this entry; said by whoever read the file, never by the file.
    #[serde(skip)]
    pub author: Author,
}

/// Several models under one name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouterEntry {
    /// Names or ids of models.
    pub models: Vec<String>,
    /// Who is asked first.
    #[serde(default)]
    pub strategy: Strategy,
    /// Seconds a model that failed is left alone.
    #[serde(default = "default_rest")]
    pub cool_down: u64,
}

fn default_rest() -> u64 {
    60
}

/// Who wrote a model's entry; decides who may name addresses that get keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Author {
    /// The user.
    #[default]
    User,
    /// A project.
    Project,
}

/// Why a configured model cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// An address that is none.
    #[error("the address {address:?} of the model `{name}` is not valid: {reason}")]
    Address {
        /// The model.
        name: String,
        /// The address.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A router with nothing behind it.
    #[error("the router `{name}` has no models")]
    EmptyRouter {
        /// The router.
        name: String,
    },
    /// A router behind a router.
    #[error("the router `{name}` leads to the router `{inner}`; name models instead")]
    NestedRouter {
        /// The outer one.
        name: String,
        /// The inner one.
        inner: String,
    },
    /// A cassette that cannot be used.
    #[error("the model `{name}` cannot be used: {source}")]
    Cassette {
        /// The model.
        name: String,
        /// Why.
        source: CassetteError,
    },
    /// A project that wants replies written somewhere.
    #[error("the model `{name}` is to be recorded, which only your own configuration may say")]
    ForeignRecord {
        /// The model.
        name: String,
    },
    /// The model itself cannot be had.
    #[error("the model `{name}` cannot be used: {source}")]
    Resolve {
        /// The model.
        name: String,
        /// Why.
        source: ResolveError,
    },
}

/// Everything needed to build a model.
pub struct Workshop<'a> {
    /// Named models and routers.
    pub config: &'a ModelsConfig,
    /// The providers in force.
    pub providers: &'a Providers,
    /// Keys, by variable.
    pub keys: &'a Keys,
    /// What holds for models that say nothing else.
    pub settings: Settings,
    /// Where spending is counted.
    pub ledger: Option<Arc<Ledger>>,
    /// Seed of jitter and shuffling.
    pub seed: u64,
}

impl Workshop<'_> {
    /// Builds what a name or an id stands for: a router, a named model, or a model by its id.
    pub fn build(&self, name: &str) -> Result<Arc<dyn Model>, ConfigError> {
        let Some(router) = self.config.routers.get(name) else { return self.model(name) };
        let models = router
            .models
            .iter()
            .map(|inner| {
                if self.config.routers.contains_key(inner) && !self.config.models.contains_key(inner) {
                    return Err(ConfigError::NestedRouter { name: name.to_owned(), inner: inner.clone() });
                }
                self.model(inner)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let rest = Duration::from_secs(router.cool_down);
        let router = Router::new(name, models, router.strategy, rest, self.seed)
            .ok_or_else(|| ConfigError::EmptyRouter { name: name.to_owned() })?;
        Ok(Arc::new(router))
    }

    fn model(&self, name: &str) -> Result<Arc<dyn Model>, ConfigError> {
        let by_id = ModelEntry { id: name.to_owned(), ..ModelEntry::default() };
        let entry = self.config.models.get(name).unwrap_or(&by_id);
        let cassette = |source| ConfigError::Cassette { name: name.to_owned(), source };
        if let Some(file) = entry.id.strip_prefix(REPLAY) {
            return Ok(Arc::new(Replayer::load(&entry.id, Path::new(file)).map_err(cassette)?));
        }
        let settings = self.settings(name, entry)?;
        let resolved = resolve(&entry.id, &settings, self.providers, self.keys)
            .map_err(|source| ConfigError::Resolve { name: name.to_owned(), source })?;
        let (wire, facts) = match resolved {
            Resolved::Scripted(model) => return Ok(self.counted(Arc::new(model), Cost::Free)),
            Resolved::Http { model, facts } => (model, facts),
        };
        if let Some(reason) = &facts.key_withheld {
            tracing::warn!("{reason}");
        }
        let rates = Rates {
            requests: entry
                .requests_per_minute
                .or(settings.requests_per_minute)
                .or(facts.place.requests_per_minute().and_then(NonZeroU32::new)),
            tokens: entry.tokens_per_minute,
        };
        let model = Retry::new(Arc::new(wire), RetryPolicy::new(self.seed));
        let model = RateLimit::new(Arc::new(model), rates);
        let model = Concurrency::new(Arc::new(model), entry.concurrency.unwrap_or(facts.place.concurrency()));
        let mut model: Arc<dyn Model> = Arc::new(model);
        if let Some(dollars) = entry.max_dollars {
            let limits = Limits { tokens: None, dollars: Some(dollars) };
            model = Arc::new(Budget::new(model, Ledger::new(limits), facts.cost));
        }
        match (&entry.record, entry.author) {
            (None, _) => {}
            (Some(file), Author::User) => model = Arc::new(Recorder::new(model, file).map_err(cassette)?),
            (Some(_), Author::Project) => return Err(ConfigError::ForeignRecord { name: name.to_owned() }),
        }
        Ok(self.counted(model, facts.cost))
    }

    fn settings(&self, name: &str, entry: &ModelEntry) -> Result<Settings, ConfigError> {
        let mut settings = self.settings.clone();
        if let Some(address) = &entry.api_base {
            let url: Url = address.parse().map_err(|error| ConfigError::Address {
                name: name.to_owned(),
                address: address.clone(),
                reason: format!("{error}"),
            })?;
            settings.base = Some(match entry.author {
                Author::User => Base::User(url),
                Author::Project => Base::Project(url),
            });
        }
        settings.temperature = entry.temperature.or(settings.temperature);
        settings.max_tokens = entry.max_tokens.or(settings.max_tokens);
        settings.context = entry.context.or(settings.context);
        settings.think = entry.think.or(settings.think);
        settings.keep_alive = entry.keep_alive.clone().or(settings.keep_alive);
        Ok(settings)
    }

    fn counted(&self, model: Arc<dyn Model>, cost: Cost) -> Arc<dyn Model> {
        match &self.ledger {
            Some(ledger) => Arc::new(Budget::new(model, Arc::clone(ledger), cost)),
            None => model,
        }
    }
}
