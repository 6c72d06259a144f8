//! The providers, as data: which protocol, which address, which key, what is different there.
//!
//! The built-in list is a file beside this crate; people add their own in the same format, and the later one wins.

use gimlet::message::Usage;
use reqwest::Url;
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};

use crate::wire::{Extras, Quirks, Wire};

const BUILT_IN: &str = include_str!("../providers.toml");

/// Where a model runs; decides limits and patience.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// On a machine of the user's: free, slow, one at a time.
    Local,
    /// At a company: paid, fast, rate-limited.
    Hosted,
}

impl Place {
    /// Longest reply by default.
    pub fn max_tokens(self) -> u32 {
        match self {
            Place::Local => 1024,
            Place::Hosted => 4096,
        }
    }

    /// Requests a minute by default.
    pub fn requests_per_minute(self) -> Option<u32> {
        match self {
            Place::Local => None,
            Place::Hosted => Some(60),
        }
    }

    /// Requests at once by default.
    pub fn concurrency(self) -> usize {
        match self {
            Place::Local => 1,
            Place::Hosted => 5,
        }
    }
}

/// A provider.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// What its model ids begin with; where providers are tables, the table's name.
    #[serde(default)]
    pub prefix: String,
    /// Other spellings of the prefix.
    #[serde(default)]
    pub also: Vec<String>,
    /// Its protocol.
    pub wire: Wire,
    /// Its address.
    #[serde(deserialize_with = "address")]
    pub base: Url,
    /// Environment variables that may hold its key.
    #[serde(default)]
    pub keys: Vec<String>,
    /// Where it runs.
    pub place: Place,
    /// What is different about it.
    #[serde(default)]
    pub quirks: Quirks,
    /// Window in tokens where nothing better is known.
    pub context: u32,
    /// Facts about its models.
    #[serde(default)]
    pub model: Vec<ModelFacts>,
}

/// Facts about the models whose names begin alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelFacts {
    /// How their names begin.
    pub name: String,
    /// Window in tokens.
    #[serde(default)]
    pub context: Option<u32>,
    /// What they cost.
    #[serde(default)]
    pub price: Option<Price>,
    /// Fields they refuse.
    #[serde(default)]
    pub without: Extras,
}

/// US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Read.
    pub input: f64,
    /// Written.
    pub output: f64,
    /// Read from the cache; like any other when absent.
    #[serde(default)]
    pub cached: Option<f64>,
}

impl Price {
    /// What some use cost, in US dollars.
    pub fn of(&self, usage: &Usage) -> f64 {
        let millions = |tokens: u64| tokens as f64 / 1e6;
        let fresh = usage.input.saturating_sub(usage.cached);
        millions(fresh) * self.input
            + millions(usage.cached) * self.cached.unwrap_or(self.input)
            + millions(usage.output) * self.output
    }
}

/// What a model costs, as far as anyone here knows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cost {
    /// It runs on the user's own machine.
    Free,
    /// So much.
    Known(Price),
    /// Something: a budget in money cannot be kept with it.
    Unknown,
}

/// Why a list of providers cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProvidersError {
    /// It is not a list of providers.
    #[error("the providers in {file} are not valid: {source}")]
    Invalid {
        /// The file.
        file: String,
        /// What is wrong, with its place.
        source: Box<toml::de::Error>,
    },
    /// One has no prefix.
    #[error("a provider in {file} has no prefix")]
    NoPrefix {
        /// The file.
        file: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    provider: Vec<Provider>,
}

fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Url, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|error| D::Error::custom(format!("{text:?} is not an address: {error}")))
}

/// The providers in force.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Providers {
    list: Vec<Provider>,
}

impl Providers {
    /// The providers that come with Gimlet.
    pub fn built_in() -> Result<Self, ProvidersError> {
        Providers::default().with("the built-in list", BUILT_IN)
    }

    /// Adds the providers of a user's file; one with a known prefix replaces the known one.
    pub fn with(mut self, file: &str, text: &str) -> Result<Self, ProvidersError> {
        let added: File = toml::from_str(text)
            .map_err(|source| ProvidersError::Invalid { file: file.to_owned(), source: Box::new(source) })?;
        for provider in added.provider {
            if provider.prefix.is_empty() {
                return Err(ProvidersError::NoPrefix { file: file.to_owned() });
            }
            self.insert(provider);
        }
        Ok(self)
    }

    /// Adds providers by their prefixes; one with a known prefix replaces the known one.
    #[must_use]
    pub fn with_all(mut self, providers: impl IntoIterator<Item = (String, Provider)>) -> Self {
        for (prefix, provider) in providers {
            self.insert(Provider { prefix, ..provider });
        }
        self
    }

    fn insert(&mut self, provider: Provider) {
        self.list.retain(|known| known.prefix != provider.prefix);
        self.list.push(provider);
    }

    /// The provider of a prefix.
    pub fn find(&self, prefix: &str) -> Option<&Provider> {
        // The last one wins, so that a user's `also` can take a name over.
        self.list
            .iter()
            .rev()
            .find(|known| known.prefix == prefix || known.also.iter().any(|name| name == prefix))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Provider> {
        self.list.iter()
    }
}

impl Provider {
    /// What is known about a model: the longest beginning of its name that the list has.
    pub fn facts(&self, model: &str) -> Option<&ModelFacts> {
        self.model.iter().filter(|facts| model.starts_with(&facts.name)).max_by_key(|facts| facts.name.len())
    }

    /// What a model costs. Siblings with similar names often cost something else, so a price holds only for the very
    /// name in the list, whatever its date.
    pub fn cost(&self, model: &str, place: Place) -> Cost {
        let price = self
            .facts(model)
            .filter(|facts| is_dated(&model[facts.name.len()..]))
            .and_then(|facts| facts.price);
        match (price, place) {
            (Some(price), _) => Cost::Known(price),
            (None, Place::Local) => Cost::Free,
            (None, Place::Hosted) => Cost::Unknown,
        }
    }
}

/// Whether what follows a name is nothing but a date: ``, `-20250514`, `-2024-07-18`, `-latest`.
fn is_dated(rest: &str) -> bool {
    match rest.strip_prefix(['-', '@']) {
        None => rest.is_empty(),
        Some("latest") => true,
        Some(date) => date.len() >= 8 && date.bytes().all(|b| b.is_ascii_digit() || b == b'-'),
    }
}
