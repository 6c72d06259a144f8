//! A suite of tasks, checked: whoever holds one need not ask again whether it makes sense.

use std::path::PathBuf;
use std::sync::Arc;

use gimlet_runtime::options::Choice;
use globset::{Glob, GlobSetBuilder};
use serde::{Deserialize, Serialize};

use super::check::Check;
use super::fixture::Fixture;
use crate::options::SplitChoice;
use gimlet_runtime::UsageError;
use gimlet_runtime::config::Spot;

/// A suite.
#[derive(Debug)]
pub(crate) struct Suite {
    pub(crate) name: String,
    pub(crate) about: String,
    /// Over every file it was read from: results of different suites are not mixed.
    pub(crate) digest: String,
    pub(crate) tasks: Vec<Task>,
}

/// A task, and how to tell whether it was done.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) id: String,
    /// What kind of work it is.
    pub(crate) group: String,
    pub(crate) level: Level,
    pub(crate) split: Split,
    /// What the agent is told.
    pub(crate) words: String,
    pub(crate) fixture: Arc<Fixture>,
    pub(crate) approve: Approve,
    pub(crate) max_steps: u32,
    /// In seconds.
    pub(crate) timeout: f64,
    /// Programs without which it cannot be tried.
    pub(crate) needs: Vec<String>,
    /// All must pass.
    pub(crate) checks: Vec<PlacedCheck>,
    pub(crate) reference: Option<Reference>,
    pub(crate) spot: Spot,
}

/// A check, and where it is written.
#[derive(Debug)]
pub(crate) struct PlacedCheck {
    pub(crate) check: Check,
    pub(crate) spot: Spot,
}

/// A solution that must pass, to show that the task can be solved.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Reference {
    /// What could be answered.
    pub(crate) answer: String,
    /// A unified diff.
    pub(crate) patch: String,
    /// Tools that are called.
    pub(crate) calls: Vec<String>,
    /// Commands that are run.
    pub(crate) commands: Vec<String>,
}

/// How hard a task is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Level {
    Trivial,
    #[default]
    Easy,
    Medium,
    Hard,
}

/// What a task is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Split {
    /// To learn from: whoever changes prompts may look at these.
    Tuning,
    /// To measure by, after the changes.
    HeldOut,
}

/// What happens in a try when an approval is needed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Approve {
    /// It is refused.
    #[default]
    Never,
    /// It is given: the copy is thrown away.
    All,
}

impl Approve {
    /// As `gimlet run --approve` calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Approve::Never => "never",
            Approve::All => "all",
        }
    }
}

impl Split {
    fn is_chosen(self, choice: SplitChoice) -> bool {
        match choice {
            SplitChoice::All => true,
            SplitChoice::Tuning => self == Split::Tuning,
            SplitChoice::HeldOut => self == Split::HeldOut,
        }
    }
}

impl Suite {
    /// The tasks of a part of the suite whose ids match one of the patterns, if there are any.
    pub(crate) fn choose(&self, split: SplitChoice, patterns: &[String]) -> anyhow::Result<Vec<&Task>> {
        let mut builder = GlobSetBuilder::new();
        for pattern in patterns {
            builder.add(Glob::new(pattern).map_err(|error| UsageError::new(error.to_string()))?);
        }
        let globs = builder.build()?;
        let chosen: Vec<&Task> = self
            .tasks
            .iter()
            .filter(|task| task.split.is_chosen(split))
            .filter(|task| patterns.is_empty() || globs.is_match(&task.id))
            .collect();
        if chosen.is_empty() {
            return Err(UsageError::new("no task of the suite is chosen")
                .hint(format!(
                    "the suite has {} tasks; --split is {} and --task {}",
                    self.tasks.len(),
                    split.name(),
                    if patterns.is_empty() { "not given".to_owned() } else { patterns.join(", ") }
                ))
                .into());
        }
        Ok(chosen)
    }

    /// Gives no task more seconds than this.
    pub(crate) fn hurry(&mut self, most: f64) {
        for task in &mut self.tasks {
            task.timeout = task.timeout.min(most);
        }
    }

    /// A task by its id.
    pub(crate) fn task(&self, id: &str) -> Option<&Task> {
        self.tasks.iter().find(|task| task.id == id)
    }
}

impl Task {
    /// The programs it needs that this machine has not.
    pub(crate) fn lacks(&self) -> Vec<&str> {
        let folders: Vec<PathBuf> =
            std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
        let has = |name: &str| folders.iter().any(|folder| folder.join(name).is_file());
        self.needs.iter().map(String::as_str).filter(|name| !has(name)).collect()
    }
}
