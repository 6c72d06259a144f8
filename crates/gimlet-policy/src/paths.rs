//! Paths as text: where a word would point, and whether that is inside the root, secret or protected.
//!
//! The lists are data (`rules.toml`) and public, so that file tools refuse the same names.

use std::borrow::Cow;
use std::path::{Component, Path};

use serde::Deserialize;

use crate::glob;

/// An absolute folder, taken apart.
pub(crate) type Folder = Vec<String>;

/// The components of an absolute path, `.` and `..` resolved by text.
pub(crate) fn components<'a>(cwd: &'a [String], text: &'a str) -> Vec<&'a str> {
    let mut found: Vec<&str> = Vec::with_capacity(cwd.len() + 4);
    if !text.starts_with('/') {
        found.extend(cwd.iter().map(String::as_str));
    }
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                found.pop();
            }
            name => found.push(name),
        }
    }
    found
}

/// The components of a path, to keep.
pub(crate) fn folder(cwd: &[String], text: &str) -> Folder {
    components(cwd, text).into_iter().map(str::to_owned).collect()
}

/// The components of an absolute folder.
pub(crate) fn absolute(path: &Path) -> Folder {
    folder(&[], &path.to_string_lossy())
}

/// Whether a path lies in or below a folder.
pub(crate) fn is_below(path: &[&str], folder: &[String]) -> bool {
    path.len() >= folder.len() && folder.iter().zip(path).all(|(a, b)| a == b)
}

/// A pattern over a path. `**` stands for any number of components; without a leading `/` it fits at any depth.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
struct PathPattern {
    start: Start,
    names: Vec<String>,
    /// How the name that is compared first begins, if that is one letter: most patterns are settled by it.
    initial: Option<u8>,
}

/// Where the names of a pattern stand in a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// At the root.
    Root,
    /// Anywhere.
    Anywhere,
    /// They are the last ones, which is all that is left of "anywhere" without a `**` among them.
    End,
}

impl From<String> for PathPattern {
    fn from(text: String) -> Self {
        let names: Vec<String> = text.split('/').filter(|p| !p.is_empty()).map(str::to_owned).collect();
        let start = if text.starts_with('/') {
            Start::Root
        } else if names.is_empty() || names.iter().any(|name| name == "**") {
            Start::Anywhere
        } else {
            Start::End
        };
        let first = match start {
            Start::Root | Start::Anywhere => names.first(),
            Start::End => names.last(),
        };
        let initial = first.and_then(|name| glob::initial(name));
        PathPattern { start, names, initial }
    }
}

/// Whether the components may contain globs of a shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    Exact,
    Glob,
    /// A pattern that a program matches itself: `*` finds dot-files and crosses folders.
    Match,
}

impl PathPattern {
    fn fits(&self, path: &[&str], reading: Reading) -> bool {
        let begins = |name: &&str| match (self.initial, name.as_bytes().first()) {
            (Some(initial), Some(letter)) => letter.eq_ignore_ascii_case(&initial),
            (Some(_), None) | (None, _) => true,
        };
        let possible = match (reading, self.start) {
            (Reading::Glob | Reading::Match, _) => true,
            (Reading::Exact, Start::Root) => path.first().is_none_or(begins),
            (Reading::Exact, Start::Anywhere) => self.initial.is_none() || path.iter().any(begins),
            (Reading::Exact, Start::End) => path.last().is_none_or(begins),
        };
        if !possible {
            return false;
        }
        match self.start {
            Start::Root => fits(&self.names, path, reading),
            Start::Anywhere => fits_anywhere(&self.names, path, reading),
            Start::End => path
                .len()
                .checked_sub(self.names.len())
                .and_then(|skip| path.get(skip..))
                .is_some_and(|end| fits(&self.names, end, reading)),
        }
    }
}

fn fits_anywhere(pattern: &[String], path: &[&str], reading: Reading) -> bool {
    pattern.is_empty()
        || (0..=path.len()).any(|skip| fits(pattern, path.get(skip..).unwrap_or_default(), reading))
}

fn fits(pattern: &[String], path: &[&str], reading: Reading) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, None) => true,
        (None, Some(_)) => false,
        (Some((head, rest)), _) if head == "**" => fits_anywhere(rest, path, reading),
        (Some(_), None) => false,
        (Some((head, rest)), Some((name, deeper))) => {
            let here = match reading {
                Reading::Exact => glob::matches(head, name),
                Reading::Glob => glob::could_match(head, name),
                Reading::Match => glob::could_be_found(head, name),
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
    /// Places outside of a project whose names may be listed.
    listable: Vec<PathPattern>,
    /// Files outside of a project that may be read.
    readable: Vec<PathPattern>,
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
        self.secrecy_of(&texts(&parts(path)), Reading::Exact)
    }

    /// Whether a path's contents must not be read, searched, diffed or patched.
    pub fn is_sensitive(&self, path: &Path) -> bool {
        self.secrecy(path) >= Secrecy::Secret
    }

    /// Whether a path must not be changed: `.git/**`, `.env`, `gimlet.toml`, `mcp.json`.
    pub fn is_protected(&self, path: &Path) -> bool {
        self.is_protected_at(&texts(&parts(path)), Reading::Exact)
    }

    /// Whether the names in a place outside of a project may be listed.
    pub(crate) fn is_listable(&self, path: &[&str]) -> bool {
        self.listable.iter().any(|pattern| pattern.fits(path, Reading::Exact))
    }

    /// Whether a file outside of a project may be read.
    pub(crate) fn is_readable(&self, path: &[&str]) -> bool {
        self.readable.iter().any(|pattern| pattern.fits(path, Reading::Exact))
    }

    /// Whether a name has an ending that only code and prose have.
    pub(crate) fn is_source(&self, path: &[&str]) -> bool {
        self.sources.iter().any(|pattern| pattern.fits(path, Reading::Exact))
    }

    /// Whether a pattern of a search picks up secrets in dot-files, which a search leaves out by itself.
    pub(crate) fn finds_hidden_secret(&self, name: &str) -> bool {
        let lists = [&self.added, &self.secrets, &self.credentials];
        let mut names = lists.into_iter().flatten().filter_map(|pattern| pattern.names.last());
        names.any(|known| known.starts_with('.') && glob::could_be_found(known.trim_end_matches('*'), name))
    }

    /// How secret the files are that a program finds by a pattern of its own, such as `*.py`.
    fn secrecy_of_match(&self, path: &[&str]) -> Secrecy {
        let Some((last, parents)) = path.split_last() else { return Secrecy::Possible };
        if !path.iter().any(|part| glob::is_pattern(part)) {
            return self.secrecy_of(path, Reading::Exact);
        }
        if self.credentials.iter().any(|pattern| pattern.fits(parents, Reading::Exact)) {
            return Secrecy::Credential;
        }
        let finds = |pattern: &PathPattern| {
            pattern.names.last().is_none_or(|name| name == "**" || glob::could_be_found(name, last))
        };
        if self.added.iter().any(finds) {
            return Secrecy::Possible;
        }
        if self.is_source(path) {
            return Secrecy::Public;
        }
        let starts_with_dot = last.starts_with('.');
        let any = |list: &[PathPattern]| {
            list.iter().filter(|p| p.names.last().is_some_and(|n| n != "**")).any(finds)
        };
        match any(&self.secrets) || any(&self.credentials) {
            true if starts_with_dot => Secrecy::Secret,
            true => Secrecy::Possible,
            false => Secrecy::Public,
        }
    }

    pub(crate) fn secrecy_of(&self, path: &[&str], reading: Reading) -> Secrecy {
        if reading == Reading::Match {
            return self.secrecy_of_match(path);
        }
        let any = |list: &[PathPattern]| list.iter().any(|pattern| pattern.fits(path, reading));
        match (any(&self.added), reading) {
            (true, Reading::Exact) => return Secrecy::Secret,
            (true, Reading::Glob | Reading::Match) => return Secrecy::Possible,
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
        let dotted = |pattern: &&PathPattern| pattern.names.last().is_some_and(|last| last.starts_with('.'));
        if self.secrets.iter().filter(dotted).any(|pattern| pattern.fits(path, reading)) {
            return Secrecy::Secret;
        }
        match (any(&self.secrets), reading) {
            (true, Reading::Exact) => Secrecy::Secret,
            (true, Reading::Glob | Reading::Match) => Secrecy::Possible,
            (false, _) => Secrecy::Public,
        }
    }

    pub(crate) fn is_protected_at(&self, path: &[&str], reading: Reading) -> bool {
        self.protected.iter().any(|pattern| pattern.fits(path, reading))
    }

    /// Whether a path is a device whose writing can do harm.
    pub(crate) fn is_device(&self, path: &[&str], reading: Reading) -> bool {
        let system = path.first().is_some_and(|first| match reading {
            Reading::Exact => *first == "dev",
            Reading::Glob | Reading::Match => glob::could_match("dev", first),
        });
        let trigger = path.len() == 2 && path[0] == "proc" && path[1] == "sysrq-trigger";
        (system && path.len() > 1 && !self.devices.iter().any(|pattern| pattern.fits(path, Reading::Exact)))
            || trigger
    }
}

fn parts(path: &Path) -> Vec<Cow<'_, str>> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_string_lossy()),
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
        })
        .collect()
}

fn texts<'a>(parts: &'a [Cow<'_, str>]) -> Vec<&'a str> {
    parts.iter().map(AsRef::as_ref).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_judged_by_component() {
        let (repo, src) = (absolute(Path::new("/repo/")), absolute(Path::new("/repo/src")));
        let at = |text: &str| components(&src, text).join("/");
        assert_eq!(at("a..b"), "repo/src/a..b");
        assert_eq!(at("../x"), "repo/x");
        assert_eq!(at("../../../../x"), "x");
        assert_eq!(at("//dev/./sda"), "dev/sda");
        assert!(is_below(&components(&repo, "a/../b"), &repo));
        assert!(!is_below(&components(&repo, "/repository"), &repo));
    }

    #[test]
    fn patterns_fit_where_they_say() {
        let fits = |pattern: &str, path: &str| {
            PathPattern::from(pattern.to_owned()).fits(&components(&[], path), Reading::Exact)
        };
        for (pattern, path) in [
            (".env*", "/srv/a/.env.local"),
            (".aws/credentials", "/home/me/.aws/credentials"),
            (".ssh/**", "/home/me/.ssh/keys/a"),
            (".ssh/**", "/home/me/.ssh"),
            ("a/**/z", "/x/a/b/c/z"),
            ("a/**/z", "/x/a/z"),
            ("/etc/shadow", "/etc/shadow"),
            ("/proc/*/environ", "/proc/1/environ"),
            ("", "/anything/at/all"),
        ] {
            assert!(fits(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            (".env*", "/srv/.env/a"),
            (".aws/credentials", "/credentials"),
            (".aws/credentials", "/.aws/x/credentials"),
            ("/etc/shadow", "/srv/etc/shadow"),
            ("a/**/z", "/x/a/b"),
            ("/", "/x"),
        ] {
            assert!(!fits(pattern, path), "{pattern} {path}");
        }
    }
}
