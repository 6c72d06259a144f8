//! What is looked at to tell whether a task was done: the answer, the files, what was called, and commands that must
//! pass. Commands of a check run in the same jail as an agent's, since they run what a model wrote.

use std::path::{Path, PathBuf};
use std::time::Duration;

use gimlet::command::{Command, End, Invocation, Permissions, Profile};
use regex::Regex;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::fixture::Snapshot;
use super::suite::Task;
use super::transcript::{Ended, Transcript};
use gimlet_runtime::Process;
use gimlet_runtime::clip;
use gimlet_runtime::isolation::{self, Isolation};

/// Longest run of a check's command.
const COMMAND_TIME: Duration = Duration::from_secs(120);
/// Most of a file that is looked at.
const MOST_BYTES: u64 = 4 << 20;

/// Something that must hold after a try.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Check {
    /// The answer holds all of these, in any case.
    AnswerContains(Texts),
    /// The answer holds one of these, in any case.
    AnswerContainsAny(Texts),
    /// The answer holds none of these, in any case.
    AnswerLacks(Texts),
    /// The answer matches.
    AnswerMatches(Pattern),
    /// There is such a file.
    FileExists(PathBuf),
    /// There is no such file.
    FileMissing(PathBuf),
    /// A file holds a text.
    FileContains { path: PathBuf, text: String },
    /// A file is there and does not hold a text.
    FileLacks { path: PathBuf, text: String },
    /// A file matches.
    FileMatches { path: PathBuf, pattern: Pattern },
    /// These files are as they were.
    Unchanged(Paths),
    /// Every file and every commit is as it was, and none is new.
    NothingChanged,
    /// A command ends with success.
    CommandPasses(String),
    /// One of these tools was called.
    ToolCalled(Texts),
    /// None of these tools was called, not even in vain.
    ToolNotCalled(Texts),
    /// No tool was called.
    NoToolCalled,
    /// No command that matches was run.
    CommandNotRun(Pattern),
    /// A command that matches was run.
    CommandRun(Pattern),
    /// It took no more steps.
    StepsAtMost(u32),
    /// It ended by an answer, not at a limit.
    Answered,
}

/// One text or several.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Texts {
    One(String),
    Many(Vec<String>),
}

impl Texts {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        match self {
            Texts::One(text) => std::slice::from_ref(text),
            Texts::Many(texts) => texts,
        }
        .iter()
        .map(String::as_str)
    }

    fn quoted(&self) -> String {
        self.iter().map(|text| format!("{text:?}")).collect::<Vec<_>>().join(", ")
    }
}

/// One path or several.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Paths {
    One(PathBuf),
    Many(Vec<PathBuf>),
}

impl Paths {
    fn all(&self) -> &[PathBuf] {
        match self {
            Paths::One(path) => std::slice::from_ref(path),
            Paths::Many(paths) => paths,
        }
    }
}

/// A regular expression.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Pattern(Regex);

impl TryFrom<String> for Pattern {
    type Error = regex::Error;

    fn try_from(text: String) -> Result<Self, regex::Error> {
        Regex::new(&text).map(Pattern)
    }
}

/// What came of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Verdict {
    /// What had to hold.
    pub(crate) check: String,
    /// Why it does not; none when it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failed: Option<String>,
}

/// What a check looks at.
pub(crate) struct Grounds<'a> {
    pub(crate) transcript: &'a Transcript,
    /// The folder that was worked in.
    pub(crate) repo: &'a Path,
    /// What was in it before.
    pub(crate) before: &'a Snapshot,
    /// What stands around commands.
    pub(crate) isolation: &'a Isolation,
    pub(crate) cancel: &'a CancellationToken,
}

impl std::fmt::Display for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Check::AnswerContains(texts) => write!(f, "the answer contains {}", texts.quoted()),
            Check::AnswerContainsAny(texts) => write!(f, "the answer contains one of {}", texts.quoted()),
            Check::AnswerLacks(texts) => write!(f, "the answer does not contain {}", texts.quoted()),
            Check::AnswerMatches(Pattern(regex)) => write!(f, "the answer matches {regex}"),
            Check::FileExists(path) => write!(f, "{} exists", path.display()),
            Check::FileMissing(path) => write!(f, "{} does not exist", path.display()),
            Check::FileContains { path, text } => write!(f, "{} contains {text:?}", path.display()),
            Check::FileLacks { path, text } => write!(f, "{} does not contain {text:?}", path.display()),
            Check::FileMatches { path, pattern } => write!(f, "{} matches {}", path.display(), pattern.0),
            Check::Unchanged(paths) => {
                let names: Vec<_> = paths.all().iter().map(|path| path.display().to_string()).collect();
                write!(f, "unchanged: {}", names.join(", "))
            }
            Check::NothingChanged => f.write_str("nothing is changed"),
            Check::CommandPasses(command) => write!(f, "passes: {}", clip(command, 100)),
            Check::ToolCalled(tools) => write!(f, "one of these is called: {}", tools.quoted()),
            Check::ToolNotCalled(tools) => write!(f, "none of these is called: {}", tools.quoted()),
            Check::NoToolCalled => f.write_str("no tool is called"),
            Check::CommandNotRun(Pattern(regex)) => write!(f, "no command is run that matches {regex}"),
            Check::CommandRun(Pattern(regex)) => write!(f, "a command is run that matches {regex}"),
            Check::StepsAtMost(most) => write!(f, "at most {most} steps"),
            Check::Answered => f.write_str("it ends by an answer"),
        }
    }
}

impl Check {
    /// Why it could never fail, whatever happens.
    pub(crate) fn cannot_fail(&self, max_steps: u32) -> Option<&'static str> {
        let none = |texts: &Texts| texts.iter().next().is_none();
        let empty = |texts: &Texts| texts.iter().any(str::is_empty);
        match self {
            Check::AnswerContains(texts) | Check::AnswerContainsAny(texts) | Check::AnswerLacks(texts) => {
                (none(texts) || empty(texts)).then_some("it looks for nothing")
            }
            Check::AnswerMatches(Pattern(regex)) | Check::FileMatches { pattern: Pattern(regex), .. } => {
                regex.is_match("").then_some("the pattern matches the empty text")
            }
            Check::FileContains { text, .. } | Check::FileLacks { text, .. } => {
                text.is_empty().then_some("it looks for nothing")
            }
            Check::Unchanged(paths) => paths.all().is_empty().then_some("it names no file"),
            Check::CommandPasses(command) => {
                matches!(command.trim(), "" | "true" | ":").then_some("the command does nothing")
            }
            Check::ToolCalled(tools) | Check::ToolNotCalled(tools) => {
                none(tools).then_some("it names no tool")
            }
            Check::StepsAtMost(most) => (*most >= max_steps).then_some("the task's max_steps is no larger"),
            Check::FileExists(_)
            | Check::FileMissing(_)
            | Check::NothingChanged
            | Check::NoToolCalled
            | Check::CommandNotRun(_)
            | Check::CommandRun(_)
            | Check::Answered => None,
        }
    }

    /// The files it looks at.
    pub(crate) fn paths(&self) -> Vec<&Path> {
        match self {
            Check::FileExists(path)
            | Check::FileMissing(path)
            | Check::FileContains { path, .. }
            | Check::FileLacks { path, .. }
            | Check::FileMatches { path, .. } => vec![path],
            Check::Unchanged(paths) => paths.all().iter().map(PathBuf::as_path).collect(),
            Check::AnswerContains(_)
            | Check::AnswerContainsAny(_)
            | Check::AnswerLacks(_)
            | Check::AnswerMatches(_)
            | Check::NothingChanged
            | Check::CommandPasses(_)
            | Check::ToolCalled(_)
            | Check::ToolNotCalled(_)
            | Check::NoToolCalled
            | Check::CommandNotRun(_)
            | Check::CommandRun(_)
            | Check::StepsAtMost(_)
            | Check::Answered => Vec::new(),
        }
    }

    /// Why it does not hold.
    async fn failure(&self, grounds: &Grounds<'_>) -> anyhow::Result<Option<String>> {
        let answer = &grounds.transcript.answer;
        let lower = answer.to_lowercase();
        let holds = |text: &str| lower.contains(&text.to_lowercase());
        let said = || format!("the answer is {:?}", clip(answer, 200));
        let calls = &grounds.transcript.calls;
        let mut commands = calls.iter().flat_map(|call| &call.commands);
        Ok(match self {
            Check::AnswerContains(texts) => {
                texts.iter().find(|text| !holds(text)).map(|text| format!("{text:?} is missing: {}", said()))
            }
            Check::AnswerContainsAny(texts) => (!texts.iter().any(holds)).then(said),
            Check::AnswerLacks(texts) => {
                texts.iter().find(|text| holds(text)).map(|text| format!("{text:?} is there: {}", said()))
            }
            Check::AnswerMatches(Pattern(regex)) => (!regex.is_match(answer)).then(said),
            Check::FileExists(path) => {
                text_of(grounds.repo, path).is_none().then(|| "there is no such file".into())
            }
            Check::FileMissing(path) => {
                grounds.repo.join(path).symlink_metadata().is_ok().then(|| "it is there".into())
            }
            Check::FileContains { path, text } => match text_of(grounds.repo, path) {
                None => Some("there is no such file".into()),
                Some(found) => (!found.contains(text)).then(|| "it does not".into()),
            },
            Check::FileLacks { path, text } => match text_of(grounds.repo, path) {
                None => Some("there is no such file".into()),
                Some(found) => found.contains(text).then(|| "it does".into()),
            },
            Check::FileMatches { path, pattern } => match text_of(grounds.repo, path) {
                None => Some("there is no such file".into()),
                Some(found) => (!pattern.0.is_match(&found)).then(|| "it does not".into()),
            },
            Check::Unchanged(paths) => {
                let now = Snapshot::of(grounds.repo)?;
                let changed = paths.all().iter().find(|path| now.file(path) != grounds.before.file(path));
                changed.map(|path| format!("{} is not what it was", path.display()))
            }
            Check::NothingChanged => {
                let now = Snapshot::of(grounds.repo)?;
                grounds.before.difference(&now).map(|path| format!("{} is not what it was", path.display()))
            }
            Check::CommandPasses(command) => passes(grounds, command).await?,
            Check::ToolCalled(tools) => {
                (!calls.iter().any(|call| tools.iter().any(|tool| tool == call.tool)))
                    .then(|| "none was called".into())
            }
            Check::ToolNotCalled(tools) => calls
                .iter()
                .find(|call| tools.iter().any(|tool| tool == call.tool))
                .map(|call| format!("{} was called", call.tool)),
            Check::NoToolCalled => calls.first().map(|call| format!("{} was called", call.tool)),
            Check::CommandNotRun(Pattern(regex)) => {
                commands.find(|command| regex.is_match(command)).map(|command| format!("it ran {command:?}"))
            }
            Check::CommandRun(Pattern(regex)) => {
                (!commands.any(|command| regex.is_match(command))).then(|| "none was run".into())
            }
            Check::StepsAtMost(most) => {
                let steps = grounds.transcript.steps;
                (steps > *most).then(|| format!("it took {steps}"))
            }
            Check::Answered => match grounds.transcript.ended {
                Ended::Answered => None,
                Ended::Limited => Some("it came to a limit".into()),
                Ended::Broken => Some("it broke".into()),
            },
        })
    }
}

/// Judges a try by every check of its task. One that broke has nothing to be judged by.
pub(crate) async fn judge(task: &Task, grounds: &Grounds<'_>) -> anyhow::Result<Vec<Verdict>> {
    let mut verdicts = Vec::new();
    for placed in &task.checks {
        let failed = match grounds.transcript.ended {
            Ended::Answered | Ended::Limited => placed.check.failure(grounds).await?,
            Ended::Broken => Some("the run broke".into()),
        };
        verdicts.push(Verdict { check: placed.check.to_string(), failed });
    }
    Ok(verdicts)
}

/// The text of a file inside the repository. A model may have made it, so it may be anything.
fn text_of(repo: &Path, path: &Path) -> Option<String> {
    let full = repo.join(path);
    let metadata = full.symlink_metadata().ok()?;
    let inside = full.canonicalize().ok()?.starts_with(repo.canonicalize().ok()?);
    if !metadata.is_file() || metadata.len() > MOST_BYTES || !inside {
        return None;
    }
    Some(String::from_utf8_lossy(&std::fs::read(full).ok()?).into_owned())
}

async fn passes(grounds: &Grounds<'_>, text: &str) -> anyhow::Result<Option<String>> {
    let root = grounds.repo.canonicalize()?;
    let command = Command {
        text: text.to_owned(),
        invocation: Invocation::Shell(text.to_owned()),
        cwd: root.clone(),
        root,
        environment: isolation::environment(&Process::current()?),
        timeout: COMMAND_TIME,
        keep: 16 << 10,
        permissions: Permissions { profile: Profile::WorkspaceWrite, ..grounds.isolation.permissions },
    };
    let finished = grounds.isolation.runner.run(&command, grounds.cancel).await?;
    let output = || {
        let both = format!("{}\n{}", finished.stdout.text(), finished.stderr.text());
        let tail: Vec<&str> = both.lines().rev().filter(|line| !line.trim().is_empty()).take(3).collect();
        clip(&tail.into_iter().rev().collect::<Vec<_>>().join(" | "), 300)
    };
    Ok(match finished.end {
        End::Exited(0) => None,
        End::Exited(code) => Some(format!("it ended with {code}: {}", output())),
        End::Signalled(signal) => Some(format!("signal {signal} ended it: {}", output())),
        End::TimedOut => Some(format!("it did not end within {} s", COMMAND_TIME.as_secs())),
        End::Cancelled => anyhow::bail!("interrupted"),
    })
}
