//! Results on disk: a line of JSON for each finished try, written when it is finished. What is there is not done again,
//! and what belongs to another suite, or was tried with other settings, is not added to.

use std::collections::HashSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::check::Verdict;
use super::suite::{Level, Split, Suite, Task};
use super::transcript::Transcript;
use crate::options::Writing;
use gimlet_runtime::UsageError;
use gimlet_runtime::config::shown;

/// This program among those that are tried.
pub(crate) const OWN: &str = "gimlet";

/// Who is tried.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Contender {
    /// The program.
    pub(crate) agent: String,
    pub(crate) model: String,
    /// How it acts.
    pub(crate) action: String,
}

/// One try of a task.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Try {
    #[serde(flatten)]
    pub(crate) contender: Contender,
    pub(crate) task: String,
    /// Counts from 1.
    pub(crate) repetition: u32,
}

impl Try {
    /// A name for its folder: readable, and unlike that of any other.
    pub(crate) fn folder(&self) -> String {
        let Try { contender: Contender { model, action, .. }, task, repetition } = self;
        let model = model.rsplit('/').next().unwrap_or(model);
        let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_') { c } else { '-' };
        let model: String = model.chars().map(plain).take(40).collect();
        let hash = gimlet::digest::digest(self.contender.model.as_bytes());
        format!("{task}-{action}-{repetition}-{model}-{}", &hash[..6])
    }
}

/// What came of a try.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    #[serde(flatten)]
    pub(crate) attempt: Try,
    pub(crate) group: String,
    pub(crate) level: Level,
    pub(crate) split: Split,
    pub(crate) passed: bool,
    pub(crate) checks: Vec<Verdict>,
    pub(crate) transcript: Transcript,
}

impl Record {
    pub(crate) fn new(attempt: Try, task: &Task, checks: Vec<Verdict>, transcript: Transcript) -> Self {
        Record {
            attempt,
            group: task.group.clone(),
            level: task.level,
            split: task.split,
            passed: checks.iter().all(|check| check.failed.is_none()),
            checks,
            transcript,
        }
    }

    /// Why it did not pass.
    pub(crate) fn reason(&self) -> String {
        if let Some(broken) = &self.transcript.error {
            return format!("{}: {}", broken.error, broken.message);
        }
        let failed = self.checks.iter().find_map(|check| Some((&check.check, check.failed.as_ref()?)));
        failed.map(|(check, why)| format!("{check} – {why}")).unwrap_or_default()
    }
}

/// What all results of a folder have in common.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Stamp {
    suite: String,
    digest: String,
    version: String,
    /// SHA-256 of the program that tries, where it is this one.
    #[serde(default)]
    program: Option<String>,
    temperature: Option<f32>,
    max_tokens: Option<u32>,
    #[serde(default)]
    timeout: Option<f64>,
}

/// The results of a folder. Only one program at a time writes them.
pub(crate) struct Ledger {
    folder: PathBuf,
    /// Locked while this lives.
    file: File,
    pub(crate) records: Vec<Record>,
    done: HashSet<Try>,
}

/// Who adds to a folder.
pub(crate) enum Writer<'a> {
    /// This program, which tries models with these settings.
    Trying { writing: &'a Writing, timeout: Option<f64> },
    /// Another one, whose settings are its own.
    Grading,
}

impl Ledger {
    /// Opens a folder of results, or begins one.
    pub(crate) fn open(folder: &Path, suite: &Suite, writer: &Writer<'_>) -> anyhow::Result<Self> {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", shown(folder)))?;
        let path = folder.join("results.jsonl");
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(UsageError::new(format!("another evaluation writes to {}", shown(folder)))
                    .hint("wait for it, or name another folder with --out")
                    .into());
            }
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        stamp(folder, suite, writer)?;
        let records = read(&mut file, &path)?;
        let done = records.iter().map(|record| record.attempt.clone()).collect();
        Ok(Ledger { folder: folder.to_owned(), file, records, done })
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether a try is finished.
    pub(crate) fn has(&self, attempt: &Try) -> bool {
        self.done.contains(attempt)
    }

    /// Keeps a result.
    pub(crate) fn add(&mut self, record: Record) -> anyhow::Result<()> {
        let mut line = serde_json::to_string(&record)?;
        line.push('\n');
        self.file.write_all(line.as_bytes()).context("cannot keep a result")?;
        self.file.sync_data()?;
        self.done.insert(record.attempt.clone());
        self.records.push(record);
        Ok(())
    }
}

/// Checks what the results of a folder have in common, or says it first.
fn stamp(folder: &Path, suite: &Suite, writer: &Writer<'_>) -> anyhow::Result<()> {
    let path = folder.join("eval.json");
    let mut ours = Stamp {
        suite: suite.name.clone(),
        digest: suite.digest.clone(),
        version: env!("CARGO_PKG_VERSION").into(),
        program: None,
        temperature: None,
        max_tokens: None,
        timeout: None,
    };
    if let Writer::Trying { writing, timeout } = writer {
        (ours.temperature, ours.max_tokens) = (writing.temperature, writing.max_tokens);
        ours.timeout = *timeout;
        let program = std::fs::read(std::env::current_exe()?).context("cannot read this program")?;
        ours.program = Some(gimlet::digest::digest(&program));
    }
    let Some(bytes) = gimlet_runtime::config::read_small(&path)? else {
        std::fs::write(&path, serde_json::to_vec_pretty(&ours)?)?;
        return Ok(());
    };
    let theirs: Stamp =
        serde_json::from_slice(&bytes).with_context(|| format!("{} is damaged", shown(&path)))?;
    let differs = [
        ("the suite, or a file of it,", ours.digest != theirs.digest || ours.suite != theirs.suite),
        ("the version of this program", ours.version != theirs.version || ours.program != theirs.program),
        ("--temperature", ours.temperature != theirs.temperature),
        ("--max-tokens", ours.max_tokens != theirs.max_tokens),
        ("--timeout", ours.timeout != theirs.timeout),
    ];
    let settings = match writer {
        Writer::Trying { .. } => &differs[..],
        Writer::Grading => &differs[..1],
    };
    match settings.iter().find(|(_, differs)| *differs) {
        None => Ok(()),
        Some((what, _)) => {
            Err(UsageError::new(format!("{what} is not what the results in {} come from", shown(folder)))
                .hint("name another folder with --out, or remove that one to begin anew")
                .into())
        }
    }
}

/// Reads the lines. A last one that was cut off, by a program that was killed, never happened.
fn read(file: &mut File, path: &Path) -> anyhow::Result<Vec<Record>> {
    let mut text = String::new();
    std::io::Read::read_to_string(file, &mut text).with_context(|| format!("cannot read {}", shown(path)))?;
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    if whole < text.len() {
        file.set_len(whole as u64)?;
        file.seek(SeekFrom::End(0))?;
    }
    parse(&text[..whole], path)
}

/// The results in several files, or folders, together. The same try must not be in two of them: it would count twice.
pub(crate) fn gather(places: &[PathBuf]) -> anyhow::Result<Vec<Record>> {
    let mut gathered: Vec<Record> = Vec::new();
    let mut seen = HashSet::new();
    for place in places {
        let path = if place.is_dir() { place.join("results.jsonl") } else { place.clone() };
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", shown(&path)))?;
        for record in parse(&text, &path)? {
            let Try { contender, task, repetition } = &record.attempt;
            if !seen.insert(record.attempt.clone()) {
                let Contender { agent, model, action } = contender;
                return Err(UsageError::new(format!(
                    "{}: {agent}'s try {repetition} of {task} ({model}, {action}) is in another file as well",
                    shown(&path)
                ))
                .hint("report results of one version of a program at a time")
                .into());
            }
            gathered.push(record);
        }
    }
    Ok(gathered)
}

fn parse(text: &str, path: &Path) -> anyhow::Result<Vec<Record>> {
    text.lines()
        .enumerate()
        .map(|(index, line)| {
            serde_json::from_str(line)
                .with_context(|| format!("{} line {} is damaged", shown(path), index + 1))
        })
        .collect()
}
