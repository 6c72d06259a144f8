//! The variables a child process sees: a list of what is needed, so that no key, token or password comes along.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// What is passed on. `LC_*` is, too.
pub const ALLOWED_VARIABLES: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "CARGO_TARGET_DIR",
    "GOPATH",
    "GOROOT",
    "GOCACHE",
    "GOMODCACHE",
    "JAVA_HOME",
    "NVM_DIR",
    "NODE_PATH",
    "PYENV_ROOT",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "GEM_HOME",
    "GEM_PATH",
    "RBENV_ROOT",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// All variables of a child process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// Keeps of the given variables what a child may see.
    pub fn allowed<K, V>(variables: impl IntoIterator<Item = (K, V)>) -> Self
    where
        K: Into<OsString>,
        V: Into<OsString>,
    {
        let kept = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        Environment(kept.filter(|(name, _)| is_allowed(name)).collect())
    }

    /// With one variable more, or another value for it.
    #[must_use]
    pub fn with(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.0.insert(name.into(), value.into());
        self
    }

    /// All names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

fn is_allowed(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| ALLOWED_VARIABLES.contains(&name) || name.starts_with("LC_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_pass() {
        let given = [
            "PATH",
            "HOME",
            "LC_ALL",
            "OPENAI_API_KEY",
            "GITHUB_TOKEN",
            "DB_PASSWORD",
            "GIMLET_HOME",
            "LD_PRELOAD",
            "GIT_DIR",
        ];
        let environment = Environment::allowed(given.map(|name| (name, "x")));
        assert_eq!(environment.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["HOME", "LC_ALL", "PATH"]);
    }
}
