//! Paths as text: where a word would point, and whether that is inside the root, secret or protected.
//!
//! The lists are data (`rules.toml`) and public, so that file tools refuse the same names.

use std::path::{Component, Path};

use serde::Deserialize;

use crate::glob;

/// The components of an absolute path, `.` and `..` resolved by text.
pub(crate) fn components(cwd: &Path, text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    if !text.starts_with('/') {
        push_all(&mut found, &cwd.to_string_lossy());
    }
    push_all(&mut found, text);
    found
}

fn push_all(found: &mut Vec<String>, text: &str) {
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                found.pop();
            }
            name => found.push(name.to_owned()),
        }
    }
}

/// The components of an absolute folder.
pub(crate) fn absolute(folder: &Path) -> Vec<String> {
    components(Path::new("/"), &folder.to_string_lossy())
}

/// Whether a path lies in or below a folder.
pub(crate) fn is_below(path: &[String], folder: &[String]) -> bool {
    path.len() >= folder.len() && folder.iter().zip(path).all(|(a, b)| a == b)
}

/// A pattern over a path. `**` stands for any number of components; without a leading `/` it fits at any depth.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
struct PathPattern(Vec<String>);

impl From<String> for PathPattern {
    fn from(text: String) -> Self {
        let anywhere = (!text.starts_with('/')).then(|| "**".to_owned());
        PathPattern(
            anywhere
                .into_iter()
                .chain(text.split('/').filter(|p| !p.is_empty()).map(str::to_owned))
                .collect(),
        )
    }
}

/// Whether the components may contain globs of a shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    Exact,
    Glob,
}

impl PathPattern {
    fn fits(&self, path: &[String], reading: Reading) -> bool {
        fits(&self.0, path, reading)
    }
}

fn fits(pattern: &[String], path: &[String], reading: Reading) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, None) => true,
        (None, Some(_)) => false,
        (Some((head, rest)), _) if head == "**" => {
            rest.is_empty()
                || (0..=path.len()).any(|skip| fits(rest, path.get(skip..).unwrap_or_default(), reading))
        }
        (Some(_), None) => false,
        (Some((head, rest)), Some((name, deeper))) => {
            let here = match reading {
                Reading::Exact => glob::matches(head, name),
                Reading::Glob => glob::could_match(head, name),
            };
            here && fits(rest, deeper, reading)
        }
    }
}

/// How secret the contents of a path are. The order is secrecy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Secrecy {
    /// Nothing known against it.
    Public,
    /// A pattern that could pick up a secret.
    Possible,
    /// A secret of a project: `.env`, a private key.
    Secret,
    /// A person's or system's credentials or history.
    Credential,
}

/// Names that must not be read, and names that must not be written. Data; see `rules.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathRules {
    /// Keys, tokens and histories of a person or the system.
    credentials: Vec<PathPattern>,
    /// Secrets that live in projects.
    secrets: Vec<PathPattern>,
    /// Names that look secret and are not.
    public: Vec<PathPattern>,
    /// Kinds of files that are no secrets whatever their name, unless they lie among credentials.
    sources: Vec<PathPattern>,
    /// What no command or patch may change.
    protected: Vec<PathPattern>,
    /// Devices that may be written.
    devices: Vec<PathPattern>,
    /// Secrets a user or project added; no exception applies to them.
    #[serde(skip)]
    added: Vec<PathPattern>,
}

impl PathRules {
    /// Adds a pattern to the secrets, such as `*.secret` or `config/prod/**`.
    pub fn add_secret(&mut self, pattern: &str) {
        self.added.push(PathPattern::from(pattern.to_owned()));
    }

    /// How secret a path is. Relative paths are taken as they are: most patterns fit at any depth.
    pub fn secrecy(&self, path: &Path) -> Secrecy {
        self.secrecy_of(&parts(path), Reading::Exact)
    }

    /// Whether a path's contents must not be read, searched, diffed or patched.
    pub fn is_sensitive(&self, path: &Path) -> bool {
        self.secrecy(path) >= Secrecy::Secret
    }

    /// Whether a path must not be changed: `.git/**`, `.env`, `gimlet.toml`, `mcp.json`.
    pub fn is_protected(&self, path: &Path) -> bool {
        self.is_protected_at(&parts(path), Reading::Exact)
    }

    pub(crate) fn secrecy_of(&self, path: &[String], reading: Reading) -> Secrecy {
        let any = |list: &[PathPattern]| list.iter().any(|pattern| pattern.fits(path, reading));
        match (any(&self.added), reading) {
            (true, Reading::Exact) => return Secrecy::Secret,
            (true, Reading::Glob) => return Secrecy::Possible,
            (false, _) => {}
        }
        if reading == Reading::Exact && any(&self.public) {
            return Secrecy::Public;
        }
        if any(&self.credentials) {
            return Secrecy::Credential;
        }
        // A pattern such as `src/*.py` only finds what its own ending allows.
        if self.sources.iter().any(|pattern| pattern.fits(path, Reading::Exact)) {
            return Secrecy::Public;
        }
        // A shell's pattern only finds a dot-file when it starts with a dot itself, so it was meant: `cat .e?v`.
        let dotted = |pattern: &&PathPattern| pattern.0.last().is_some_and(|last| last.starts_with('.'));
        if self.secrets.iter().filter(dotted).any(|pattern| pattern.fits(path, reading)) {
            return Secrecy::Secret;
        }
        match (any(&self.secrets), reading) {
            (true, Reading::Exact) => Secrecy::Secret,
            (true, Reading::Glob) => Secrecy::Possible,
            (false, _) => Secrecy::Public,
        }
    }

    pub(crate) fn is_protected_at(&self, path: &[String], reading: Reading) -> bool {
        self.protected.iter().any(|pattern| pattern.fits(path, reading))
    }

    /// Whether a path is a device whose writing can do harm.
    pub(crate) fn is_device(&self, path: &[String], reading: Reading) -> bool {
        let system = path.first().is_some_and(|first| match reading {
            Reading::Exact => first == "dev",
            Reading::Glob => glob::could_match("dev", first),
        });
        let trigger = path.len() == 2 && path[0] == "proc" && path[1] == "sysrq-trigger";
        (system && path.len() > 1 && !self.devices.iter().any(|pattern| pattern.fits(path, Reading::Exact)))
            || trigger
    }
}

fn parts(path: &Path) -> Vec<String> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_judged_by_component() {
        let at = |text: &str| components(Path::new("/repo/src"), text).join("/");
        assert_eq!(at("a..b"), "repo/src/a..b");
        assert_eq!(at("../x"), "repo/x");
        assert_eq!(at("../../../../x"), "x");
        assert_eq!(at("//dev/./sda"), "dev/sda");
        assert!(is_below(&components(Path::new("/repo"), "a/../b"), &absolute(Path::new("/repo/"))));
        assert!(!is_below(&components(Path::new("/repo"), "/repository"), &absolute(Path::new("/repo"))));
    }
}
