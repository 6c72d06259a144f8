//! Finds the model a run asks: the one that was named, checked against what the server has, or the best that is
//! installed. What is known of it (its profile) decides how it is asked.

use std::sync::Arc;

use anyhow::Context;
use gimlet::event::Started;
use gimlet::model::Model;
use gimlet_models::catalog::{Installed, Profile, Scorecards, Server};
use gimlet_models::config::{Author, ConfigError, ModelEntry, Workshop};
use gimlet_models::providers::Place;
use gimlet_models::resolve::ResolveError;
use gimlet_models::transport::{Timeouts, Transport, is_loopback};
use gimlet_models::wire::Wire;
use gimlet_models::{Base, EmbeddingModel, Located, Url, locate, resolve_embeddings};

use gimlet_config::{NamedModels, Origin, Process, Settings, UsageError, needs_trust, secrets};

use crate::notice::{Notice, Notify};
use crate::served::{Manner, Served, Untold, served, unreachable_server};

/// A model, ready to be asked, and how it wants to be asked.
#[derive(Clone)]
pub struct Found {
    /// The model.
    pub model: Arc<dyn Model>,
    /// How it wants to be asked.
    pub manner: Manner,
    /// The name of the configuration that it was asked for by, if it was.
    pub name: Option<String>,
    /// Identifies the exact weights, where the server tells.
    pub digest: Option<String>,
    /// Why this one, when nobody named it.
    pub why: Option<String>,
    /// The window that was chosen for it and why, where nobody set one.
    pub window: Option<String>,
}

impl Found {
    /// What it can be asked for by again.
    pub fn reference(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.model.id().to_owned())
    }
}

/// The model the settings name, or the best one there is.
pub async fn chosen(settings: &Settings) -> anyhow::Result<Found> {
    let named = settings.named_models()?;
    let Some(setting) = &settings.model_id else { return best(settings, &named).await };
    if let Some(spot) = setting.origin.untrusted()
        && setting.value.trim().starts_with("scripted/")
    {
        return Err(needs_trust(spot, "has a file of replies stand in for the model").into());
    }
    if let Some(spot) = setting.origin.untrusted()
        && settings.api_base()?.is_none()
        && is_hosted(&setting.value, &named)
    {
        return Err(
            needs_trust(spot, &format!("chooses {}, which is not on this machine", setting.value)).into()
        );
    }
    by_name(&setting.value, settings, &named).await
}

/// The model of this name or id.
pub async fn find(name: &str, settings: &Settings) -> anyhow::Result<Found> {
    by_name(name, settings, &settings.named_models()?).await
}

/// The model of a run that is taken up: by the name it was asked for by, so that what the configuration says of that
/// name still holds, else by its id.
pub async fn of_run(started: &Started, settings: &Settings, notify: &Notify) -> anyhow::Result<Found> {
    let named = settings.named_models()?;
    let id = &started.model;
    let found = match &started.model_name {
        Some(name) if named.names().contains(name.as_str()) => by_name(name, settings, &named).await?,
        Some(name) => {
            notify(Notice::Note(format!(
                "the run's model was named `{name}`, which is no name any more; it goes on with {id}"
            )));
            return by_name(id, settings, &named).await;
        }
        None => return by_name(id, settings, &named).await,
    };
    if found.model.id() != id {
        let name = started.model_name.as_deref().unwrap_or_default();
        let now = found.model.id();
        notify(Notice::Note(format!("`{name}` was {id} when the run began and is {now} now")));
    }
    Ok(found)
}

/// Whether a name or id stands for a model, as far as that can be told without asking a server.
pub fn check(name: &str, settings: &Settings, named: &NamedModels) -> anyhow::Result<()> {
    named.check(name)?;
    let id = named.config.models.get(name).map_or(name, |entry| entry.id.as_str());
    if named.config.routers.contains_key(name) {
        return Ok(());
    }
    let base = address(name, settings, named)?;
    let settings = gimlet_models::Settings { base, ..gimlet_models::Settings::default() };
    locate(id, &settings, &named.providers).map(drop).map_err(|error| usage(&error).into())
}

/// The model that makes vectors of what is remembered, if anyone names one.
pub fn embeddings(settings: &Settings) -> anyhow::Result<Option<EmbeddingModel>> {
    let Some(setting) = &settings.memory_embeddings else { return Ok(None) };
    let named = settings.named_models()?;
    let name = &setting.value;
    named.check(name)?;
    if let Some(spot) = setting.origin.untrusted()
        && settings.api_base()?.is_none()
        && is_hosted(name, &named)
    {
        return Err(needs_trust(spot, &format!("sends what is remembered to {name}")).into());
    }
    let id = named.config.models.get(name).map_or(name.as_str(), |entry| entry.id.as_str());
    let address = gimlet_models::Settings {
        base: address(name, settings, &named)?,
        ..gimlet_models::Settings::default()
    };
    let keys = secrets::keys(settings.process(), &named.providers)?;
    resolve_embeddings(id, &address, &named.providers, &keys).map(Some).map_err(|error| usage(&error).into())
}

/// Whether an id leads off this machine. What the user named is the user's to know.
fn is_hosted(id: &str, named: &NamedModels) -> bool {
    if named.names().contains(id) {
        return false;
    }
    let provider = id.split_once('/').and_then(|(prefix, _)| named.providers.find(prefix));
    provider.is_some_and(|provider| !is_loopback(&provider.base))
}

async fn by_name(name: &str, settings: &Settings, named: &NamedModels) -> anyhow::Result<Found> {
    named.check(name)?;
    let found = found_by_name(name, settings, named).await?;
    Ok(Found { name: named.names().contains(name).then(|| name.to_owned()), ..found })
}

async fn found_by_name(name: &str, settings: &Settings, named: &NamedModels) -> anyhow::Result<Found> {
    if named.config.routers.contains_key(name) {
        return unasked(name, settings, named);
    }
    let id = named.config.models.get(name).map_or(name, |entry| entry.id.as_str());
    let address = gimlet_models::Settings {
        base: address(name, settings, named)?,
        ..gimlet_models::Settings::default()
    };
    let located = locate(id, &address, &named.providers).map_err(|error| usage(&error))?;
    match located.filter(|located| located.nature == Place::Local || is_loopback(&located.base)) {
        Some(located) => on_this_machine(name, id, &located, settings, named).await,
        None => unasked(name, settings, named),
    }
}

/// A model that is taken as it was named, without asking its server about it.
fn unasked(name: &str, settings: &Settings, named: &NamedModels) -> anyhow::Result<Found> {
    let model = build(name, settings, named, None)?;
    Ok(Found { model, manner: Manner::default(), name: None, digest: None, why: None, window: None })
}

/// A model whose server can be asked about it.
async fn on_this_machine(
    name: &str,
    id: &str,
    located: &Located,
    settings: &Settings,
    named: &NamedModels,
) -> anyhow::Result<Found> {
    let server = server(located.wire, located.base.clone())?;
    match served(settings.process(), &server, Some(&located.name)).await {
        Ok(Served { model, profile, .. }) => {
            // A hosted provider at a local address is a proxy; what is behind it calls tools natively unless known not to.
            let native = located.nature == Place::Hosted && profile.family.is_none();
            let manner = if native { Manner::default() } else { Manner::from(&profile) };
            // The exact name that is installed takes the place of what was written.
            let exact =
                format!("{}{}", id.strip_suffix(located.name.as_str()).unwrap_or_default(), model.name);
            let built = match named.config.models.get(name) {
                Some(entry) => {
                    let mut named = named.clone();
                    named.config.models.insert(name.to_owned(), ModelEntry { id: exact, ..entry.clone() });
                    build(name, settings, &named, Some(&profile))?
                }
                None => build(&exact, settings, named, Some(&profile))?,
            };
            let is_set = named.config.models.get(name).is_some_and(|entry| entry.context.is_some());
            let window = if is_set { None } else { chosen_window(settings, &profile) };
            Ok(Found { model: built, manner, name: None, digest: model.digest, why: None, window })
        }
        // A proxy need not tell what it has, and a server need not have a list.
        Err(Untold::Choice(_)) if located.nature == Place::Hosted => unasked(name, settings, named),
        Err(Untold::Server(error)) if located.wire != Wire::Ollama && !error.is_retryable() => {
            unasked(name, settings, named)
        }
        Err(untold) => Err(untold.error(true)),
    }
}

/// The best model of the server: Ollama, or any other that is named by its address.
async fn best(settings: &Settings, named: &NamedModels) -> anyhow::Result<Found> {
    let (server, _) = installed(settings).await?;
    let prefix = if server.wire() == Wire::Ollama { "ollama_chat/" } else { "llamacpp/" };
    let Served { model, profile, why } =
        served(settings.process(), &server, None).await.map_err(|untold| untold.error(false))?;
    Ok(Found {
        model: build(&format!("{prefix}{}", model.name), settings, named, Some(&profile))?,
        manner: Manner::from(&profile),
        name: None,
        digest: model.digest,
        why: Some(why),
        window: chosen_window(settings, &profile),
    })
}

/// What is told about a window that this program chose.
fn chosen_window(settings: &Settings, profile: &Profile) -> Option<String> {
    let is_chosen = settings.sampling().context.is_none() && profile.window.is_chosen();
    is_chosen.then(|| format!("window: {}; --context N sets another", profile.window.told()))
}

/// What a server has, and which of it would be chosen. The wire is found by asking.
pub async fn installed(settings: &Settings) -> anyhow::Result<(Server, Vec<Installed>)> {
    let address = match settings.api_base()? {
        Some(base) => base.url().clone(),
        None => {
            let named = settings.named_models()?;
            named.providers.find("ollama_chat").context("there is no provider `ollama_chat`")?.base.clone()
        }
    };
    let ollama = server(Wire::Ollama, address.clone())?;
    match ollama.list().await {
        Ok(models) => Ok((ollama, models)),
        Err(error) if error.is_retryable() => Err(unreachable_server(&error, false)),
        Err(_) => {
            let other = server(Wire::OpenAi, address)?;
            let models = other.list().await.map_err(|error| unreachable_server(&error, false))?;
            Ok((other, models))
        }
    }
}

/// Grades that were given before.
pub fn scorecards(process: &Process) -> anyhow::Result<Scorecards> {
    Ok(Scorecards::load(&process.need_home()?.path().join("scorecards.json"))?)
}

/// The address a model is asked at, if not its provider's own. `MODEL_API_BASE` belongs to `MODEL_ID`: a model with a
/// name of its own says its own address, and only the command line says otherwise.
fn base(name: Option<&str>, settings: &Settings, named: &NamedModels) -> anyhow::Result<Option<Base>> {
    let by_flag = matches!(settings.api_base_origin(), Some(Origin::Flag(_)));
    let has_name = name.is_some_and(|name| named.names().contains(name));
    if has_name && !by_flag { Ok(None) } else { settings.api_base() }
}

/// The address a model of this name is asked at: its entry's own, or what the settings say.
fn address(name: &str, settings: &Settings, named: &NamedModels) -> anyhow::Result<Option<Base>> {
    let Some(entry) = named.config.models.get(name) else { return base(Some(name), settings, named) };
    let Some(address) = entry.api_base.as_deref() else { return base(Some(name), settings, named) };
    let url = address.parse().map_err(|error| {
        UsageError::new(format!("{address} is not an address: {error}")).hint("http://localhost:11434")
    })?;
    Ok(Some(match entry.author {
        Author::User => Base::User(url),
        Author::Project => Base::Project(url),
    }))
}

fn server(wire: Wire, base: Url) -> anyhow::Result<Server> {
    let transport =
        Transport::new(&base, Timeouts::LOCAL, None, None).context("cannot prepare connections")?;
    let free = if is_loopback(&base) { free_memory() } else { None };
    Ok(Server::new(wire, base, transport).with_memory(free))
}

/// Bytes of memory that programs on this machine can still take, where the system tells.
fn free_memory() -> Option<u64> {
    let told = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = told.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn usage(error: &ResolveError) -> UsageError {
    UsageError::new(error.to_string()).maybe_hint(error.hint())
}

fn build(
    name: &str,
    settings: &Settings,
    named: &NamedModels,
    profile: Option<&Profile>,
) -> anyhow::Result<Arc<dyn Model>> {
    let keys = secrets::keys(settings.process(), &named.providers)?;
    let sampling =
        gimlet_models::Settings { base: base(Some(name), settings, named)?, ..settings.sampling() };
    let sampling = match profile {
        Some(profile) => sampling.or_profile(profile),
        None => sampling,
    };
    let mut config = named.config.clone();
    if let (Some(tokens), Some(entry)) = (settings.context_flag(), config.models.get_mut(name)) {
        entry.context = Some(tokens);
    }
    let workshop = Workshop {
        config: &config,
        providers: &named.providers,
        keys: &keys,
        settings: sampling,
        ledger: None,
        seed: u64::from(std::process::id()),
    };
    workshop.build(name).map_err(|error| {
        match &error {
            ConfigError::Resolve { source, .. } => usage(source),
            other => UsageError::new(other.to_string()),
        }
        .into()
    })
}
