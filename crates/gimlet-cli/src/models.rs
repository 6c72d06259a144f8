//! Finds the model a run asks: the one that was named, checked against what the server has, or the best that is
//! installed. What is known of it (its profile) decides how it is asked.

use std::sync::Arc;

use anyhow::Context;
use gimlet::event::{ActionFormat, Dialect};
use gimlet::model::Model;
use gimlet_models::catalog::{
    Action, Calls, Choice, Families, Installed, Profile, Scorecards, Server, choose,
};
use gimlet_models::config::{Author, ConfigError, ModelsConfig, Workshop};
use gimlet_models::transport::{Timeouts, Transport};
use gimlet_models::wire::Wire;
use gimlet_models::{Base, Keys, Providers, Settings};

use crate::args::ModelOptions;
use crate::exit::UsageError;
use crate::home;

/// Where Ollama listens unless told otherwise.
const OLLAMA: &str = "http://localhost:11434";

/// A model, ready to be asked, and how it wants to be asked.
pub(crate) struct Found {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) action: ActionFormat,
    pub(crate) dialect: Dialect,
    /// Identifies the exact weights, where the server tells.
    pub(crate) digest: Option<String>,
    /// Why this one, when nobody named it.
    pub(crate) why: Option<String>,
}

/// The model that was asked for, or the best one there is.
pub(crate) async fn find(id: Option<&str>, options: &ModelOptions) -> anyhow::Result<Found> {
    let ollama =
        |id: &str| id.strip_prefix("ollama_chat/").or_else(|| id.strip_prefix("ollama/")).map(str::to_owned);
    match id {
        None => on_ollama(None, options).await,
        Some(id) => match ollama(id) {
            Some(name) => on_ollama(Some(&name), options).await,
            None => Ok(Found {
                model: build(id, options, None)?,
                action: ActionFormat::Tools,
                dialect: Dialect::Native,
                digest: None,
                why: None,
            }),
        },
    }
}

async fn on_ollama(name: Option<&str>, options: &ModelOptions) -> anyhow::Result<Found> {
    let server = server(Wire::Ollama, options)?;
    let families = Families::built_in()?;
    let installed = match name {
        // Only the names matter for finding one that was named.
        Some(_) => server.names().await,
        None => server.list().await,
    };
    let installed = installed.map_err(|error| unreachable_server(&error, name))?;
    let Choice { model, why } =
        choose(name, &installed, &families, Wire::Ollama, server.host()).map_err(|error| {
            let usage = UsageError::new(error.to_string());
            anyhow::Error::from(match error.hint() {
                Some(hint) => usage.hint(hint),
                None => usage,
            })
        })?;
    let model = server.describe(model).await.map_err(|error| unreachable_server(&error, name))?;
    let mut profile = families.profile(&model);
    if let Some(card) = model.digest.as_deref().and_then(|digest| scorecards().ok()?.get(digest).cloned()) {
        profile = profile.corrected(&card);
    }
    Ok(Found {
        model: build(&format!("ollama_chat/{}", model.name), options, Some(&profile))?,
        action: match profile.action {
            Action::Tools => ActionFormat::Tools,
            Action::Code => ActionFormat::Code,
        },
        dialect: match profile.calls {
            Calls::Native => Dialect::Native,
            Calls::Text => Dialect::Text,
        },
        digest: model.digest,
        why: name.is_none().then_some(why),
    })
}

fn unreachable_server(error: &gimlet::model::ModelError, name: Option<&str>) -> anyhow::Error {
    let hint = match name {
        None => "start Ollama, or name a model of another provider with --model".to_owned(),
        Some(_) => error.hint().unwrap_or("is the model server running?").to_owned(),
    };
    anyhow::anyhow!("{error}\nhint: {hint}")
}

/// What a server has, and which of it would be chosen. The wire is found by asking.
pub(crate) async fn installed(options: &ModelOptions) -> anyhow::Result<(Server, Vec<Installed>)> {
    let ollama = server(Wire::Ollama, options)?;
    match ollama.list().await {
        Ok(models) => Ok((ollama, models)),
        Err(error) if error.is_retryable() => Err(unreachable_server(&error, None)),
        Err(_) => {
            let other = server(Wire::OpenAi, options)?;
            let models = other.list().await.map_err(|error| unreachable_server(&error, None))?;
            Ok((other, models))
        }
    }
}

/// Grades that were given before.
pub(crate) fn scorecards() -> anyhow::Result<Scorecards> {
    Ok(Scorecards::load(&home::path()?.join("scorecards.json"))?)
}

fn server(wire: Wire, options: &ModelOptions) -> anyhow::Result<Server> {
    let address = options.api_base.as_deref().unwrap_or(OLLAMA);
    let base = address.parse().map_err(|error| {
        UsageError::new(format!("{address} is not an address: {error}"))
            .hint("--api-base http://localhost:11434")
    })?;
    let transport =
        Transport::new(&base, Timeouts::LOCAL, None, None).context("cannot prepare connections")?;
    Ok(Server::new(wire, base, transport))
}

fn build(id: &str, options: &ModelOptions, profile: Option<&Profile>) -> anyhow::Result<Arc<dyn Model>> {
    let base = match &options.api_base {
        Some(address) => Some(Base::User(address.parse().map_err(|error| {
            UsageError::new(format!("{address} is not an address: {error}"))
                .hint("--api-base http://localhost:8080")
        })?)),
        None => None,
    };
    let providers = Providers::built_in()?;
    let variables =
        providers.iter().flat_map(|provider| provider.keys.iter().map(String::as_str)).chain([Keys::ANY]);
    let keys: Keys = variables.filter_map(|name| Some((name, std::env::var(name).ok()?))).collect();
    let settings = Settings {
        base,
        temperature: options.temperature,
        max_tokens: options.max_tokens,
        ..Settings::default()
    };
    let settings = match profile {
        Some(profile) => settings.or_profile(profile),
        None => settings,
    };
    let workshop = Workshop {
        config: &ModelsConfig::default(),
        author: Author::User,
        providers: &providers,
        keys: &keys,
        settings,
        ledger: None,
        seed: u64::from(std::process::id()),
    };
    workshop.build(id).map_err(|error| {
        let mut usage = UsageError::new(match &error {
            ConfigError::Resolve { source, .. } => source.to_string(),
            other => other.to_string(),
        });
        if let ConfigError::Resolve { source, .. } = &error
            && let Some(hint) = source.hint()
        {
            usage = usage.hint(hint);
        }
        usage.into()
    })
}
