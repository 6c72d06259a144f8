//! Keys to model providers: from the environment, else from `keys.toml` in the data directory, which only its owner
//! may be able to read. Never from a project's files.

use std::collections::BTreeSet;
use std::path::PathBuf;

use gimlet_models::{Keys, Providers};
use secrecy::ExposeSecret;

use crate::{Home, Process, UsageError};

/// The user's file of keys.
pub fn file(process: &Process) -> Option<PathBuf> {
    process.home().map(Home::path).map(|home| home.join("keys.toml"))
}

/// The variables that may hold a key to a provider that comes with Gimlet.
pub fn variables() -> anyhow::Result<BTreeSet<String>> {
    Ok(names(&Providers::built_in()?))
}

fn names(providers: &Providers) -> BTreeSet<String> {
    let keys = providers.iter().flat_map(|provider| provider.keys.iter().cloned());
    keys.chain([Keys::ANY.to_owned()]).collect()
}

/// Keys of the environment alone.
pub fn of_environment(process: &Process, providers: &Providers) -> Keys {
    let key = |name: String| process.var(&name).map(str::to_owned).map(|key| (name, key));
    names(providers).into_iter().filter_map(key).collect()
}

/// The values of the user's file, for whoever hides them in texts. A file that cannot be used has none to hide.
pub fn of_file(process: &Process) -> Vec<String> {
    let mut keys = Keys::default();
    if let Some(path) = file(process) {
        let _ = keys.add_file(&path);
    }
    keys.secrets().map(|key| key.expose_secret().to_owned()).collect()
}

/// The variables that the user's file sets, for a child with a home of its own. One of the environment wins.
pub fn for_child(process: &Process) -> anyhow::Result<Vec<(String, String)>> {
    let all = keys(process, &Providers::built_in()?)?;
    let pairs = all.variables().zip(all.secrets());
    Ok(pairs.map(|(name, key)| (name.to_owned(), key.expose_secret().to_owned())).collect())
}

/// All keys; the environment wins.
pub fn keys(process: &Process, providers: &Providers) -> anyhow::Result<Keys> {
    let mut keys = of_environment(process, providers);
    if let Some(path) = file(process).filter(|path| path.exists()) {
        keys.add_file(&path).map_err(|error| UsageError::new(error.to_string()).maybe_hint(error.hint()))?;
    }
    Ok(keys)
}
