//! Who may say something about a setting, in order: the first word counts, and every word must make sense.

use std::path::PathBuf;
use std::sync::Arc;

use super::dotenv::Line;
use super::file::{ConfigFile, Source, shown};
use super::key::Key;
use super::value::{Raw, Value};
use crate::{Process, UsageError};

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    /// The file.
    pub path: PathBuf,
    /// Counted from 1.
    pub line: usize,
}

impl std::fmt::Display for Spot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} line {}", shown(&self.path), self.line)
    }
}

/// Who said it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The command line.
    Flag(&'static str),
    /// The environment.
    Environment,
    /// The `.env` file of the working directory, or the project's own file.
    Project {
        /// Where.
        spot: Spot,
        /// Whether the user pinned the file as it is.
        trusted: bool,
    },
    /// The user's own file.
    User(Spot),
    /// Nobody.
    Default,
}

impl Origin {
    /// Whether only a file of the project says so.
    pub fn is_project(&self) -> bool {
        match self {
            Origin::Project { .. } => true,
            Origin::Flag(_) | Origin::Environment | Origin::User(_) | Origin::Default => false,
        }
    }

    /// The place in a project's file that the user has not agreed to.
    pub fn untrusted(&self) -> Option<&Spot> {
        match self {
            Origin::Project { spot, trusted: false } => Some(spot),
            Origin::Project { trusted: true, .. }
            | Origin::Flag(_)
            | Origin::Environment
            | Origin::User(_)
            | Origin::Default => None,
        }
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::Flag(flag) => f.write_str(flag),
            Origin::Environment => f.write_str("environment"),
            Origin::Project { spot, .. } | Origin::User(spot) => spot.fmt(f),
            Origin::Default => f.write_str("default"),
        }
    }
}

/// A value and who said it.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Who said it.
    pub origin: Origin,
}

/// A setting as it is shown.
#[derive(Debug, Clone)]
pub struct Row {
    /// The setting.
    pub key: &'static Key,
    /// None where the default depends on other things.
    pub value: Option<serde_json::Value>,
    /// Who said it.
    pub origin: Origin,
}

/// The `.env` file.
#[derive(Debug)]
pub(crate) struct DotEnv {
    pub(crate) path: PathBuf,
    pub(crate) trusted: bool,
    pub(crate) lines: Vec<Line>,
}

/// Everyone who may say something, below the command line.
#[derive(Debug)]
pub(crate) struct Layers {
    pub(crate) process: Arc<Process>,
    pub(crate) dotenv: Option<DotEnv>,
    pub(crate) project: Option<ConfigFile>,
    pub(crate) user: Option<ConfigFile>,
    /// The tables that the starting program brings itself.
    pub(crate) given: Option<ConfigFile>,
    /// What was found so far.
    pub(crate) rows: Vec<Row>,
}

impl Layers {
    /// The setting, if anyone says something about it.
    pub(crate) fn find<T: Value>(
        &mut self,
        key: &'static Key,
        flag: Option<T>,
    ) -> anyhow::Result<Option<Setting<T>>> {
        let flag = flag.map(|value| Setting { value, origin: Origin::Flag(key.flag.unwrap_or("flag")) });
        let said = self.words(key)?;
        let found = flag.or_else(|| said.into_iter().next());
        let (value, origin) = match &found {
            Some(setting) => (Some(setting.value.shown()), setting.origin.clone()),
            None => (None, Origin::Default),
        };
        self.rows.push(Row { key, value, origin });
        Ok(found)
    }

    /// A bound: what a project's file says that is not trusted counts as far as it tightens what would hold without
    /// it, and is warned about where it would loosen it.
    pub(crate) fn bound<T: Value + Copy + Ord>(
        &mut self,
        key: &'static Key,
        default: T,
        warnings: &mut Vec<String>,
    ) -> anyhow::Result<Setting<T>> {
        let mut said = self.words::<T>(key)?;
        let firm = said.iter().position(|setting| setting.origin.untrusted().is_none());
        said.truncate(firm.map_or(said.len(), |at| at + 1));
        let held = match firm.and_then(|_| said.pop()) {
            Some(setting) => setting,
            None => Setting { value: default, origin: Origin::Default },
        };
        for wish in said.iter().filter(|wish| wish.value > held.value) {
            warnings.push(format!(
                "{}: {} would be {} instead of {}, and the file is not trusted",
                wish.origin,
                key.path,
                wish.value.shown(),
                held.value.shown()
            ));
        }
        let found = said.into_iter().find(|wish| wish.value <= held.value).unwrap_or(held);
        self.rows.push(Row { key, value: Some(found.value.shown()), origin: found.origin.clone() });
        Ok(found)
    }

    /// What is said about a setting, understood, the strongest word first. Every word must make sense.
    fn words<T: Value>(&self, key: &'static Key) -> anyhow::Result<Vec<Setting<T>>> {
        let mut words = Vec::new();
        for (raw, origin) in self.said(key)? {
            let value = T::read(&raw).ok_or_else(|| wrong(key, &raw, &origin, T::WANTED))?;
            words.push(Setting { value, origin });
        }
        Ok(words)
    }

    /// The setting, or its default.
    pub(crate) fn get<T: Value>(
        &mut self,
        key: &'static Key,
        flag: Option<T>,
        default: T,
    ) -> anyhow::Result<Setting<T>> {
        if let Some(setting) = self.find(key, flag)? {
            return Ok(setting);
        }
        if let Some(row) = self.rows.last_mut() {
            row.value = Some(default.shown());
        }
        Ok(Setting { value: default, origin: Origin::Default })
    }

    /// What is said about a setting, the strongest word first.
    fn said(&self, key: &Key) -> anyhow::Result<Vec<(Raw, Origin)>> {
        let mut said = Vec::new();
        if let Some(value) = self.process.var_os(key.variable).filter(|value| !value.is_empty()) {
            let value = value
                .to_owned()
                .into_string()
                .map_err(|_| UsageError::new(format!("{} in the environment is not UTF-8", key.variable)))?;
            said.push((Raw::Word(value), Origin::Environment));
        }
        if let Some(dotenv) = &self.dotenv {
            let last =
                dotenv.lines.iter().rev().find(|line| line.name == key.variable && !line.value.is_empty());
            said.extend(last.map(|line| {
                let spot = Spot { path: dotenv.path.clone(), line: line.number };
                (Raw::Word(line.value.clone()), Origin::Project { spot, trusted: dotenv.trusted })
            }));
        }
        for file in [&self.project, &self.user].into_iter().flatten() {
            let Some((raw, line)) = file.raw(key)? else { continue };
            let origin = match file.source.clone() {
                Source::User(path) => Origin::User(Spot { path, line }),
                Source::Project { path, trusted } => Origin::Project { spot: Spot { path, line }, trusted },
            };
            said.push((raw, origin));
        }
        Ok(said)
    }
}

fn wrong(key: &Key, raw: &Raw, origin: &Origin, wanted: &str) -> UsageError {
    let value = if key.example.is_empty() { key.default } else { key.example };
    let in_shell = format!("{}={}", key.variable, value.trim_matches('"'));
    let (name, example) = match (raw, origin) {
        (Raw::Word(_), _) => (key.variable, in_shell),
        _ => (key.path, format!("{} = {value}", key.place().1)),
    };
    let place = match origin {
        Origin::Environment => " (in the environment)".to_owned(),
        Origin::Project { .. } | Origin::User(_) | Origin::Flag(_) | Origin::Default => String::new(),
    };
    let spot = match origin {
        Origin::Project { spot, .. } | Origin::User(spot) => format!("{spot}: "),
        Origin::Environment | Origin::Flag(_) | Origin::Default => String::new(),
    };
    UsageError::new(format!("{spot}{name} must be {wanted}, not {raw}{place}"))
        .hint(format!("write {example}"))
}
