//! Keys to providers: values that never show themselves.
//!
//! They come from the environment or from a file that only its owner can read; a file that others could read is
//! refused, not warned about.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use secrecy::SecretString;

/// Keys by the name of the variable that holds them.
#[derive(Debug, Clone, Default)]
pub struct Keys(HashMap<String, SecretString>);

/// Why a file of keys cannot be used. Says nothing of what is in it.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// It cannot be read.
    #[error("cannot read the keys in {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Others can read it.
    #[error("the keys in {path} can be read by others (mode {mode:03o})")]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// It is not a table of texts.
    #[error("the keys in {path} are not lines of NAME = \"value\": {reason}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong, without quoting the file.
        reason: String,
    },
}

impl KeysError {
    /// What the person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            KeysError::Exposed { path, .. } => Some(format!("chmod 600 {}", path.display())),
            KeysError::Read { .. } | KeysError::Invalid { .. } => None,
        }
    }
}

impl Keys {
    /// The key that goes to any provider without one of its own.
    pub const ANY: &'static str = "MODEL_API_KEY";

    /// Adds a key; an empty one is none.
    pub fn insert(&mut self, variable: impl Into<String>, key: impl Into<String>) {
        let key = key.into();
        if !key.trim().is_empty() {
            self.0.insert(variable.into(), SecretString::from(key.trim()));
        }
    }

    /// Adds the keys of a file that are not there yet: the environment wins over it.
    pub fn add_file(&mut self, path: &Path) -> Result<(), KeysError> {
        let failed = |source| KeysError::Read { path: path.to_owned(), source };
        check_permissions(path, &std::fs::metadata(path).map_err(failed)?)?;
        let text = std::fs::read_to_string(path).map_err(failed)?;
        // The parser's own message would quote the line, key and all.
        let table: HashMap<String, String> = toml::from_str(&text).map_err(|error| KeysError::Invalid {
            path: path.to_owned(),
            reason: match error.span() {
                Some(span) => format!("line {}", text[..span.start.min(text.len())].lines().count().max(1)),
                None => "not a table".to_owned(),
            },
        })?;
        for (variable, key) in table {
            if !self.0.contains_key(&variable) {
                self.insert(variable, key);
            }
        }
        Ok(())
    }

    /// The variables that have a key.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// All keys, for whoever hides them in texts.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretString> {
        self.0.values()
    }

    /// The key for a provider.
    pub(crate) fn of(&self, variables: &[String]) -> Option<&SecretString> {
        variables.iter().find_map(|variable| self.0.get(variable)).or_else(|| self.0.get(Keys::ANY))
    }
}

#[cfg(unix)]
fn check_permissions(path: &Path, metadata: &std::fs::Metadata) -> Result<(), KeysError> {
    use std::os::unix::fs::PermissionsExt;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 == 0 { Ok(()) } else { Err(KeysError::Exposed { path: path.to_owned(), mode }) }
}

#[cfg(not(unix))]
fn check_permissions(_path: &Path, _metadata: &std::fs::Metadata) -> Result<(), KeysError> {
    Ok(())
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Keys {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut keys = Keys::default();
        pairs.into_iter().for_each(|(variable, key)| keys.insert(variable, key));
        keys
    }
}
