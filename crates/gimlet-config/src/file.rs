//! A configuration file: its values with their lines, and its tables for whoever owns them. Everything that is wrong
//! in it is an error that names the file, the line and the key.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use super::SECTIONS;
use super::key::{ALL, Key, nearest};
use super::layers::Spot;
use super::value::Raw;
use crate::UsageError;

/// Whose file it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The user's own.
    User(PathBuf),
    /// The project's.
    Project {
        /// Where it is.
        path: PathBuf,
        /// Whether the user pinned it as it is.
        trusted: bool,
    },
}

impl Source {
    /// The file.
    pub fn path(&self) -> &Path {
        match self {
            Source::User(path) | Source::Project { path, .. } => path,
        }
    }

    /// Whether what it says may take effect beyond harmless settings.
    pub fn is_trusted(&self) -> bool {
        match self {
            Source::User(_) => true,
            Source::Project { trusted, .. } => *trusted,
        }
    }
}

/// A part of a file, and whose file it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sourced<T> {
    /// The part.
    pub value: T,
    /// Whose file it is.
    pub source: Source,
}

/// A configuration file.
#[derive(Debug)]
pub struct ConfigFile {
    /// Whose file it is.
    pub source: Source,
    text: String,
}

/// Largest file that is read; a configuration is never larger, and a device is no configuration.
pub(super) const MAX_BYTES: u64 = 1 << 20;

/// The bytes of a file that may be absent.
pub fn read_small(path: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    let failed = |error: std::io::Error| UsageError::new(format!("cannot read {}: {error}", shown(path)));
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error).into()),
    };
    if !metadata.is_file() {
        return Err(UsageError::new(format!("{} is not a file", shown(path))).into());
    }
    if metadata.len() > MAX_BYTES {
        return Err(UsageError::new(format!("{} is larger than a megabyte", shown(path))).into());
    }
    Ok(Some(std::fs::read(path).map_err(failed)?))
}

/// A path as people know it: relative to where they are, when it is below.
pub fn shown(path: &Path) -> String {
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    let relative = here.ok().and_then(|here| path.strip_prefix(here).ok().map(Path::to_owned));
    relative.as_deref().unwrap_or(path).display().to_string()
}

impl ConfigFile {
    /// A file with these bytes, checked for words nobody knows.
    pub fn new(source: Source, bytes: Vec<u8>) -> anyhow::Result<Self> {
        let text = String::from_utf8(bytes)
            .map_err(|_| UsageError::new(format!("{} is not text in UTF-8", shown(source.path()))))?;
        let file = ConfigFile { source, text };
        file.check()?;
        Ok(file)
    }

    /// The value of a setting as it is written here, and its line.
    pub(crate) fn raw(&self, key: &Key) -> anyhow::Result<Option<(Raw, usize)>> {
        let table = self.table()?;
        let (part, name) = key.place();
        let value = match part {
            None => get(table.get_ref(), name),
            Some(part) => match get(table.get_ref(), part).map(Spanned::get_ref) {
                Some(DeValue::Table(inner)) => get(inner, name),
                _ => None,
            },
        };
        Ok(value.map(|value| (Raw::from(value.get_ref()), self.line(value.span()))))
    }

    /// A table of this file, as the type of whoever owns it. Settings of the same table are not part of it.
    pub fn section<T: DeserializeOwned>(&self, name: &str) -> anyhow::Result<Option<Sourced<T>>> {
        let mut file = self.table()?.into_inner();
        let Some((key, value)) = file.remove_entry(name) else { return Ok(None) };
        let span = value.span();
        let DeValue::Table(mut table) = value.into_inner() else {
            return Err(self.wrong(key.span(), &format!("`{name}` must be a table")).into());
        };
        let settings: Vec<&str> = ALL
            .iter()
            .map(|key| key.place())
            .filter(|(part, _)| *part == Some(name))
            .map(|(_, name)| name)
            .collect();
        for setting in &settings {
            table.remove(*setting);
        }
        if table.is_empty() && !settings.is_empty() {
            return Ok(None);
        }
        let value = T::deserialize(Deserializer::from(Spanned::new(span, table))).map_err(|error| {
            let span = error.span().unwrap_or(key.span());
            let message = error.message().trim_end();
            let about = self.key_at(&span).filter(|key| !message.contains(key));
            let about = about.map(|key| format!("`{key}`: ")).unwrap_or_default();
            self.wrong(span, &format!("[{name}] {about}{message}"))
        })?;
        Ok(Some(Sourced { value, source: self.source.clone() }))
    }

    /// The line at which a table begins, to point at it.
    pub fn line_of(&self, name: &str) -> anyhow::Result<Option<usize>> {
        let table = self.table()?;
        Ok(table.get_ref().get_key_value(name).map(|(key, _)| self.line(key.span())))
    }

    /// The place of a part of the text.
    pub fn spot(&self, span: &Range<usize>) -> Spot {
        Spot { path: self.source.path().to_owned(), line: self.line(span.clone()) }
    }

    fn table(&self) -> anyhow::Result<Spanned<DeTable<'_>>> {
        DeTable::parse(&self.text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            self.wrong(span, error.message().lines().next().unwrap_or("not valid TOML")).into()
        })
    }

    fn check(&self) -> anyhow::Result<()> {
        for (name, value) in self.table()?.get_ref() {
            let word: &str = name.get_ref();
            let owned: Vec<&str> = ALL
                .iter()
                .map(|key| key.place())
                .filter(|(part, _)| *part == Some(word))
                .map(|(_, key)| key)
                .collect();
            let is_section = SECTIONS.contains(&word);
            match value.get_ref() {
                DeValue::Table(inner) if !owned.is_empty() || is_section => {
                    if is_section {
                        continue;
                    }
                    for (key, _) in inner {
                        let key_word: &str = key.get_ref();
                        if !owned.contains(&key_word) {
                            return Err(self
                                .unknown(key.span(), &format!("{word}."), key_word, &owned)
                                .into());
                        }
                    }
                }
                _ if !owned.is_empty() || is_section => {
                    return Err(self.wrong(value.span(), &format!("`{word}` must be a table")).into());
                }
                _ if ALL.iter().any(|key| key.path == word) => {}
                _ => {
                    let known: Vec<&str> = ALL
                        .iter()
                        .map(|key| key.place().0.unwrap_or(key.path))
                        .chain(SECTIONS.iter().copied())
                        .collect();
                    return Err(self.unknown(name.span(), "", word, &known).into());
                }
            }
        }
        Ok(())
    }

    fn unknown(&self, span: Range<usize>, prefix: &str, word: &str, known: &[&str]) -> UsageError {
        let error = self.wrong(span, &format!("there is no setting `{prefix}{word}`"));
        if word.contains("key") || word.contains("token") && !word.contains("max") {
            return error.hint("keys come from the environment or from keys.toml in the data directory");
        }
        // Someone may well write the variable's name, or forget the table.
        let elsewhere = || {
            ALL.iter()
                .find(|key| key.place().1 == word || key.variable == word.to_uppercase())
                .map(|key| key.path)
        };
        match nearest(word, known.iter().copied()) {
            Some(nearest) => error.hint(format!("did you mean `{prefix}{nearest}`?")),
            None => match elsewhere() {
                Some(path) => error.hint(format!("did you mean `{path}`?")),
                None => error.hint(format!("known here: {}", {
                    let mut known = known.to_vec();
                    known.sort_unstable();
                    known.dedup();
                    known.join(", ")
                })),
            },
        }
    }

    fn wrong(&self, span: Range<usize>, message: &str) -> UsageError {
        UsageError::new(format!("{} line {}: {message}", shown(self.source.path()), self.line(span)))
    }

    fn line(&self, span: Range<usize>) -> usize {
        line_at(&self.text, span.start)
    }

    /// The key at the beginning of a line.
    fn key_at(&self, span: &Range<usize>) -> Option<&str> {
        let line = self.text.lines().nth(self.line(span.clone()) - 1)?;
        line.split_once('=').map(|(key, _)| key.trim())
    }
}

/// The line of a byte, counted from 1.
pub fn line_at(text: &str, byte: usize) -> usize {
    text.as_bytes().iter().take(byte).filter(|byte| **byte == b'\n').count() + 1
}

fn get<'a, 'i>(table: &'a DeTable<'i>, name: &str) -> Option<&'a Spanned<DeValue<'i>>> {
    table.get(name)
}
