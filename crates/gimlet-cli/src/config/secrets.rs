//! Keys to model providers: from the environment, else from `keys.toml` in the data directory, which only its owner
//! may be able to read. Never from a project's files.

use std::collections::BTreeSet;
use std::path::PathBuf;

use gimlet_models::{Keys, Providers};
use secrecy::ExposeSecret;

use crate::exit::UsageError;
use crate::home;

/// The user's file of keys.
pub(crate) fn file() -> Option<PathBuf> {
    Some(home::path().ok()?.join("keys.toml"))
}

/// The variables that may hold a key to a provider that comes with Gimlet.
pub(crate) fn variables() -> anyhow::Result<BTreeSet<String>> {
    Ok(names(&Providers::built_in()?))
}

fn names(providers: &Providers) -> BTreeSet<String> {
    let keys = providers.iter().flat_map(|provider| provider.keys.iter().cloned());
    keys.chain([Keys::ANY.to_owned()]).collect()
}

/// Keys of the environment alone.
pub(crate) fn of_environment(providers: &Providers) -> Keys {
    names(providers).into_iter().filter_map(|name| Some((name.clone(), std::env::var(&name).ok()?))).collect()
}

/// The values of the user's file, for whoever hides them in texts. A file that cannot be used has none to hide.
pub(crate) fn of_file() -> Vec<String> {
    let mut keys = Keys::default();
    if let Some(path) = file() {
        let _ = keys.add_file(&path);
    }
    keys.secrets().map(|key| key.expose_secret().to_owned()).collect()
}

/// The variables that the user's file sets, for a child with a home of its own. One of the environment wins.
pub(crate) fn for_child() -> anyhow::Result<Vec<(String, String)>> {
    let all = keys(&Providers::built_in()?)?;
    let pairs = all.variables().zip(all.secrets());
    Ok(pairs.map(|(name, key)| (name.to_owned(), key.expose_secret().to_owned())).collect())
}

/// All keys; the environment wins.
pub(crate) fn keys(providers: &Providers) -> anyhow::Result<Keys> {
    let mut keys = of_environment(providers);
    if let Some(path) = file().filter(|path| path.exists()) {
        keys.add_file(&path).map_err(|error| {
            let usage = UsageError::new(error.to_string());
            match error.hint() {
                Some(hint) => usage.hint(hint),
                None => usage,
            }
        })?;
    }
    Ok(keys)
}
