//! The variables a child process sees: a list of what is needed, so that no key, token or password comes along.

use std::collections::BTreeMap;
use std::env::{join_paths, split_paths};
use std::ffi::{OsStr, OsString};
use std::path::Path;

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

/// A place with no program in it.
const NOWHERE: &str = "/nonexistent";

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

    /// The same for a program that gimlet runs itself, outside of the jail of the project at `root`: it is not looked for
    /// where a jailed command could have put another of its name.
    #[must_use]
    pub fn outside(self, root: &Path) -> Self {
        let Some(path) = self.0.get(OsStr::new("PATH")) else { return self };
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let kept = join_paths(split_paths(path).filter(|folder| is_outside(folder, &root)));
        // An empty list would mean the working directory.
        let kept = kept.ok().filter(|kept| !kept.is_empty()).unwrap_or_else(|| NOWHERE.into());
        self.with("PATH", kept)
    }

    /// All names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

/// Whether a folder is there and no way to it leads through the project, by its name or by a link.
fn is_outside(folder: &Path, root: &Path) -> bool {
    let is_elsewhere = |above: &Path| above.canonicalize().is_ok_and(|real| !real.starts_with(root));
    folder.is_absolute() && folder.ancestors().all(is_elsewhere)
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
