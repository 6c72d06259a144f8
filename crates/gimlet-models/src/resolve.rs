//! From what a person calls a model to a model that can be asked.
//!
//! The one place that decides who gets a key: the address in the provider's own file, or one the user named. An
//! address that only a project's file names gets none.

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use gimlet::model::Model;
use reqwest::Url;

use crate::catalog::{Profile, Server};
use crate::embed::EmbeddingModel;
use crate::http::HttpModel;
use crate::keys::Keys;
use crate::providers::{Cost, Place, Provider, Providers};
use crate::script::{Script, ScriptError};
use crate::scripted::ScriptedModel;
use crate::transport::{KeyHeader, Timeouts, Transport, TransportError, is_loopback};
use crate::wire::{Caching, Reasoning, Think, Wire, WireOptions};

/// An address and who named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Base {
    /// The user: a flag, the environment, the user's own config.
    User(Url),
    /// Only a project: its config or its `.env`.
    Project(Url),
}

impl Base {
    /// The address.
    pub fn url(&self) -> &Url {
        match self {
            Base::User(url) | Base::Project(url) => url,
        }
    }
}

/// What is asked for beyond the id. Everything absent comes from the provider.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The address.
    pub base: Option<Base>,
    /// Randomness.
    pub temperature: Option<f32>,
    /// Longest reply.
    pub max_tokens: Option<u32>,
    /// Requests a minute.
    pub requests_per_minute: Option<NonZeroU32>,
    /// Window in tokens.
    pub context: Option<u32>,
    /// How much it shall think.
    pub think: Option<Think>,
    /// Whether its reasoning goes back to it.
    pub reasoning: Option<Reasoning>,
    /// How long an idle model stays loaded.
    pub keep_alive: Option<String>,
    /// A grammar (GBNF) every reply must match; llama.cpp only.
    pub grammar: Option<Arc<str>>,
    /// How long to wait for what.
    pub timeouts: Option<Timeouts>,
    /// A proxy for everything off this machine.
    pub proxy: Option<String>,
}

impl Settings {
    /// Takes from a model's profile what was not asked for.
    #[must_use]
    pub fn or_profile(mut self, profile: &Profile) -> Self {
        self.temperature = self.temperature.or(profile.temperature);
        self.max_tokens = self.max_tokens.or(profile.max_tokens);
        self.context = self.context.or(Some(profile.window.tokens));
        self.think = self.think.or(Some(profile.think));
        self.reasoning = self.reasoning.or(Some(profile.reasoning));
        self
    }
}

/// A model, ready to be asked.
pub enum Resolved {
    /// Behind HTTP.
    Http {
        /// The model.
        model: HttpModel,
        /// What is known about it.
        facts: Facts,
    },
    /// A script.
    Scripted(ScriptedModel),
}

/// What is known about a model behind HTTP.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// The provider's prefix.
    pub provider: String,
    /// Where it runs.
    pub place: Place,
    /// Its window in tokens.
    pub context: u32,
    /// What it costs.
    pub cost: Cost,
    /// Why its key, though there is one, is not sent.
    pub key_withheld: Option<String>,
}

impl Resolved {
    /// The model, whatever it is.
    pub fn into_model(self) -> Arc<dyn Model> {
        match self {
            Resolved::Http { model, .. } => Arc::new(model),
            Resolved::Scripted(model) => Arc::new(model),
        }
    }
}

/// Why a model cannot be had. All of these are the user's to mend, before anything runs.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// The id is empty or ends after its prefix.
    #[error("`{id}` does not name a model")]
    NoName {
        /// The id.
        id: String,
    },
    /// No such provider.
    #[error("no provider is called `{prefix}`; known are {known}")]
    UnknownProvider {
        /// The prefix.
        prefix: String,
        /// The known ones.
        known: String,
    },
    /// A hosted provider without a key.
    #[error("{provider} needs a key in {variables}")]
    NoKey {
        /// The provider.
        provider: String,
        /// Where it may be.
        variables: String,
    },
    /// The address is not one of a web server.
    #[error("{url} is not an http or https address")]
    BadAddress {
        /// The address, without credentials.
        url: String,
    },
    /// A script, a recording, or a provider without vectors.
    #[error("`{id}` cannot make embeddings")]
    NoEmbeddings {
        /// The id.
        id: String,
    },
    /// The script cannot be used.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// Connections cannot be prepared.
    #[error(transparent)]
    Transport(#[from] TransportError),
}

impl ResolveError {
    /// What the person can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            ResolveError::NoName { .. } => Some("write it as provider/model, such as ollama_chat/qwen3:8b"),
            ResolveError::UnknownProvider { .. } => {
                Some("for any OpenAI-compatible server, give its address with --api-base")
            }
            ResolveError::NoKey { .. } => Some(
                "set it in the environment, or in keys.toml of the data directory; keys in .env are not used",
            ),
            ResolveError::NoEmbeddings { .. } => {
                Some("name an embedding model, such as ollama/nomic-embed-text")
            }
            ResolveError::BadAddress { .. } | ResolveError::Script(_) | ResolveError::Transport(_) => None,
        }
    }
}

/// Where a model is, as far as its id and the address tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// The provider's prefix.
    pub provider: String,
    /// Its protocol.
    pub wire: Wire,
    /// Its address.
    pub base: Url,
    /// The model's name there.
    pub name: String,
    /// Where its provider's models usually run, whatever the address.
    pub nature: Place,
}

/// What the ids of cassettes begin with.
pub(crate) const REPLAY: &str = "replay/";

/// Finds where a model is, without asking anyone. A script or a cassette is nowhere.
pub fn locate(id: &str, settings: &Settings, providers: &Providers) -> Result<Option<Located>, ResolveError> {
    if id.starts_with("scripted/") || id.starts_with(REPLAY) {
        return Ok(None);
    }
    let (origin, name) = split(id, settings, providers)?;
    let provider = origin.provider();
    Ok(Some(Located {
        provider: provider.prefix.clone(),
        wire: provider.wire,
        base: settings.base.as_ref().map_or(&provider.base, Base::url).clone(),
        name: name.to_owned(),
        nature: provider.place,
    }))
}

/// Finds a model that makes vectors by its id.
pub fn resolve_embeddings(
    id: &str,
    settings: &Settings,
    providers: &Providers,
    keys: &Keys,
) -> Result<EmbeddingModel, ResolveError> {
    if id.starts_with("scripted/") || id.starts_with(REPLAY) {
        return Err(ResolveError::NoEmbeddings { id: id.to_owned() });
    }
    let reach = reach(id, settings, providers, keys)?;
    if reach.origin.provider().wire == Wire::Anthropic {
        return Err(ResolveError::NoEmbeddings { id: id.to_owned() });
    }
    let (transport, base) = (reach.transport(settings)?, reach.base.clone());
    Ok(EmbeddingModel::new(id, reach.name, Server::new(reach.origin.provider().wire, base, transport)))
}

/// A model's address, and what is shown there.
struct Reach<'a> {
    origin: Origin,
    /// The model's name there.
    name: &'a str,
    base: Url,
    place: Place,
    key: Key,
    key_withheld: Option<String>,
}

impl Reach<'_> {
    fn transport(&self, settings: &Settings) -> Result<Transport, TransportError> {
        let timeouts = settings.timeouts.unwrap_or(match self.place {
            Place::Local => Timeouts::LOCAL,
            Place::Hosted => Timeouts::HOSTED,
        });
        Transport::new(&self.base, timeouts, self.key.clone(), settings.proxy.as_deref())
    }
}

fn reach<'a>(
    id: &'a str,
    settings: &Settings,
    providers: &Providers,
    keys: &Keys,
) -> Result<Reach<'a>, ResolveError> {
    let (origin, name) = split(id, settings, providers)?;
    let provider = origin.provider();
    if name.is_empty() {
        return Err(ResolveError::NoName { id: id.to_owned() });
    }
    let base = settings.base.as_ref().map_or(&provider.base, Base::url).clone();
    if !matches!(base.scheme(), "http" | "https") || base.host_str().is_none() {
        let mut url = base;
        let _no_host = url.set_username("").and(url.set_password(None));
        return Err(ResolveError::BadAddress { url: url.into() });
    }
    let place = if settings.base.is_some() && is_loopback(&base) { Place::Local } else { provider.place };
    let (key, key_withheld) = key_for(&origin, settings.base.as_ref(), place, keys)?;
    Ok(Reach { origin, name, base, place, key, key_withheld })
}

/// Finds a model by its id.
pub fn resolve(
    id: &str,
    settings: &Settings,
    providers: &Providers,
    keys: &Keys,
) -> Result<Resolved, ResolveError> {
    if let Some(file) = id.strip_prefix("scripted/") {
        let script = Script::load(Path::new(file))?;
        return Ok(Resolved::Scripted(ScriptedModel::new(id, script)));
    }
    let reach = reach(id, settings, providers, keys)?;
    let transport = reach.transport(settings)?;
    let Reach { origin, name, base, place, key_withheld, .. } = reach;
    let provider = origin.provider();
    let facts = provider.facts(name);
    let context = settings.context.or(facts.and_then(|facts| facts.context)).unwrap_or(provider.context);
    let mut quirks = provider.quirks;
    quirks.without = quirks.without.union(facts.map(|facts| facts.without).unwrap_or_default());
    quirks.reasoning = settings.reasoning.unwrap_or(quirks.reasoning);
    let options = WireOptions {
        temperature: Some(settings.temperature.unwrap_or(0.1)),
        max_tokens: settings.max_tokens.unwrap_or(place.max_tokens()),
        // A length that a person set is kept to.
        longest_reply: settings.max_tokens.unwrap_or(context / 4),
        context,
        keep_alive: settings.keep_alive.clone(),
        think: settings.think.unwrap_or_default(),
        caching: if provider.wire == Wire::Anthropic { Caching::Marked } else { Caching::Off },
        grammar: settings.grammar.clone(),
        quirks,
        ..WireOptions::new(name)
    };
    let facts = Facts {
        provider: provider.prefix.clone(),
        place,
        context,
        cost: provider.cost(name, place),
        key_withheld,
    };
    Ok(Resolved::Http { model: HttpModel::new(id, provider.wire, &base, transport, options), facts })
}

/// Where a provider's description comes from.
enum Origin {
    /// The list, address included.
    Listed(Provider),
    /// Made up around an address someone named.
    Anonymous(Provider),
}

impl Origin {
    fn provider(&self) -> &Provider {
        match self {
            Origin::Listed(provider) | Origin::Anonymous(provider) => provider,
        }
    }

    /// Whether the list itself names this address.
    fn names(&self, url: &Url) -> bool {
        match self {
            Origin::Listed(provider) => url.origin() == provider.base.origin(),
            Origin::Anonymous(_) => false,
        }
    }
}

/// The provider and the model's name there. Without a known prefix, an address means an OpenAI-compatible server and
/// no address means the local Ollama.
fn split<'a>(
    id: &'a str,
    settings: &Settings,
    providers: &Providers,
) -> Result<(Origin, &'a str), ResolveError> {
    let prefixed = id.split_once('/');
    if let Some((prefix, name)) = prefixed
        && let Some(provider) = providers.find(prefix)
    {
        return Ok((Origin::Listed(provider.clone()), name));
    }
    let fallback = match (&settings.base, prefixed) {
        (Some(base), _) => return Ok((Origin::Anonymous(anonymous(base.url())), id)),
        (None, None) => "ollama_chat",
        (None, Some((prefix, _))) => prefix,
    };
    providers.find(fallback).map(|provider| (Origin::Listed(provider.clone()), id)).ok_or_else(|| {
        ResolveError::UnknownProvider {
            prefix: fallback.to_owned(),
            known: providers.iter().map(|provider| provider.prefix.as_str()).collect::<Vec<_>>().join(", "),
        }
    })
}

/// Some OpenAI-compatible server.
fn anonymous(base: &Url) -> Provider {
    Provider {
        prefix: "openai-compatible".to_owned(),
        also: Vec::new(),
        wire: if base.port() == Some(11434) { Wire::Ollama } else { Wire::OpenAi },
        base: base.clone(),
        keys: Vec::new(),
        place: Place::Local,
        quirks: Default::default(),
        context: 8192,
        model: Vec::new(),
    }
}

type Key = Option<(KeyHeader, secrecy::SecretString)>;

fn key_for(
    origin: &Origin,
    base: Option<&Base>,
    place: Place,
    keys: &Keys,
) -> Result<(Key, Option<String>), ResolveError> {
    let provider = origin.provider();
    let header = match provider.wire {
        Wire::Anthropic => KeyHeader::ApiKey,
        Wire::Ollama | Wire::OpenAi => KeyHeader::Bearer,
    };
    let key = keys.of(&provider.keys);
    if let Some(Base::Project(url)) = base
        && !origin.names(url)
    {
        let withheld = key.map(|_| {
            format!(
                "the key for {} is not sent to {}, which only a project file names",
                provider.prefix,
                host(url)
            )
        });
        return Ok((None, withheld));
    }
    match key {
        Some(key) => Ok((Some((header, key.clone())), None)),
        None if place == Place::Hosted && base.is_none() => Err(ResolveError::NoKey {
            provider: provider.prefix.clone(),
            variables: provider.keys.join(" or "),
        }),
        None => Ok((None, None)),
    }
}

fn host(url: &Url) -> &str {
    url.host_str().unwrap_or("?")
}
