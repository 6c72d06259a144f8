//! Named models, routers and providers of the configuration. A project may name models and routers once it is trusted;
//! providers decide which address gets which key, so only the user names those.

use std::collections::{BTreeMap, BTreeSet};

use gimlet_models::Providers;
use gimlet_models::config::{Author, ModelEntry, ModelsConfig, RouterEntry};
use gimlet_models::providers::Provider;

use super::{Settings, Source, Sourced, Spot, needs_trust};
use crate::UsageError;

/// What names may stand for.
#[derive(Debug, Clone, Default)]
pub struct NamedModels {
    /// Named models and routers.
    pub config: ModelsConfig,
    /// Providers, shipped and the user's own.
    pub providers: Providers,
    /// Names that only a file defines which is not trusted, and where.
    inert: BTreeMap<String, Spot>,
}

impl NamedModels {
    /// An error when a name is defined by a file that is not trusted, and by no other.
    pub fn check(&self, name: &str) -> anyhow::Result<()> {
        match self.inert.get(name) {
            Some(spot) => Err(needs_trust(spot, &format!("defines `{name}`")).into()),
            None => Ok(()),
        }
    }

    /// The names that can be used.
    pub fn names(&self) -> BTreeSet<&str> {
        self.config.models.keys().chain(self.config.routers.keys()).map(String::as_str).collect()
    }
}

impl Settings {
    /// Named models, routers and providers.
    pub fn named_models(&self) -> anyhow::Result<NamedModels> {
        let mut named = NamedModels { providers: Providers::built_in()?, ..NamedModels::default() };
        for part in self.section::<BTreeMap<String, Provider>>("providers")? {
            match &part.source {
                Source::User(_) => named.providers = named.providers.with_all(part.value),
                Source::Project { .. } => {
                    let spot = self.spot_of("providers")?;
                    return Err(UsageError::new(format!("{spot}: a project cannot define [providers]"))
                        .hint("they decide who gets your keys; put them into your own file (`gimlet config init --user`)")
                        .into());
                }
            }
        }
        for Sourced { value, source } in self.section::<BTreeMap<String, ModelEntry>>("models")? {
            for (name, mut entry) in value {
                entry.author = author(&source);
                if self.admits(&mut named, &name, "models", &source)? {
                    named.config.routers.remove(&name);
                    named.config.models.insert(name, entry);
                }
            }
        }
        for Sourced { value, source } in self.section::<BTreeMap<String, RouterEntry>>("routers")? {
            for (name, entry) in value {
                if self.admits(&mut named, &name, "routers", &source)? {
                    named.config.routers.insert(name, entry);
                }
            }
        }
        named.inert.retain(|name, _| {
            !named.config.models.contains_key(name) && !named.config.routers.contains_key(name)
        });
        Ok(named)
    }

    /// Whether a definition is in force; one that is not is remembered.
    fn admits(
        &self,
        named: &mut NamedModels,
        name: &str,
        table: &str,
        source: &Source,
    ) -> anyhow::Result<bool> {
        if source.is_trusted() {
            return Ok(true);
        }
        named.inert.insert(name.to_owned(), self.spot_of(table)?);
        Ok(false)
    }

    /// Where a table of the project's file begins.
    fn spot_of(&self, table: &str) -> anyhow::Result<Spot> {
        let Some(file) = &self.layers.project else { return Ok(Spot { path: self.root.clone(), line: 1 }) };
        let line = file.line_of(table)?.unwrap_or(1);
        Ok(Spot { path: file.source.path().to_owned(), line })
    }
}

fn author(source: &Source) -> Author {
    match source {
        Source::User(_) => Author::User,
        Source::Project { .. } => Author::Project,
    }
}
