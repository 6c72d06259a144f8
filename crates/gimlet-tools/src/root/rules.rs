//! The list of path rules as a [`Root`](super::Root) asks it, with what a configuration adds.

use std::path::Path;

use gimlet::paths::{Entry, PathRules};
use serde::{Deserialize, Serialize};

/// Patterns beyond the shipped list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// More files that are never shown.
    pub sensitive: Vec<String>,
    /// More files that look secret and are not. They do not lift a pattern added to `sensitive`.
    pub not_sensitive: Vec<String>,
    /// More files that are never written.
    pub read_only: Vec<String>,
}

/// The rules, ready to be asked.
#[derive(Debug, Clone)]
pub(crate) struct Compiled(PathRules);

impl Compiled {
    pub(crate) fn new(rules: &Rules) -> Self {
        let mut paths = PathRules::default();
        rules.sensitive.iter().for_each(|pattern| paths.add_secret(pattern));
        rules.not_sensitive.iter().for_each(|pattern| paths.lift(pattern));
        rules.read_only.iter().for_each(|pattern| paths.add_protected(pattern));
        Compiled(paths)
    }

    /// Whether a file, or a folder it lies in, must not be shown.
    pub(crate) fn is_sensitive(&self, path: &Path) -> bool {
        self.0.is_secret(path)
    }

    /// The same for a file whose folders were asked about before.
    pub(crate) fn names_secret_file(&self, path: &Path) -> bool {
        self.0.is_secret_entry(path, Entry::File)
    }

    /// The same for what may be a folder.
    pub(crate) fn names_secret(&self, path: &Path) -> bool {
        self.0.is_secret_entry(path, Entry::Folder)
    }

    /// Whether a file, or a folder it lies in, must not be written.
    pub(crate) fn is_read_only(&self, path: &Path) -> bool {
        self.0.is_protected(path)
    }
}
