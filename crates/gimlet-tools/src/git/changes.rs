//! A set of changes as a whole, for a commit or a review: what is staged, what is not committed, or what a branch adds.

use tokio_util::sync::CancellationToken;

use gimlet::command::End;
use gimlet::tool::ToolError;

use super::sections::shown;
use super::{DIFF_OPTIONS, Git, failed};

/// Which changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Between {
    /// What is staged.
    Staged,
    /// What differs from the last commit, in files that git knows.
    Uncommitted,
    /// What the present commit adds to a commit since both parted.
    Since(String),
}

/// Changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// The diff without the files that may hold secrets.
    pub diff: String,
    /// Changed files that may hold secrets.
    pub omitted: Vec<String>,
}

impl Changes {
    /// Whether nothing has changed.
    pub fn is_empty(&self) -> bool {
        self.diff.is_empty() && self.omitted.is_empty()
    }
}

/// Asks git for changes.
pub async fn changes(git: &Git, between: &Between, cancel: &CancellationToken) -> Result<Changes, ToolError> {
    let mut arguments: Vec<String> = vec!["diff".into()];
    arguments.extend(DIFF_OPTIONS.iter().map(|option| (*option).to_owned()));
    match between {
        Between::Staged => arguments.push("--cached".into()),
        Between::Uncommitted => arguments.push("HEAD".into()),
        Between::Since(base) => arguments.push(format!("{}...HEAD", commit(git, base, cancel).await?)),
    }
    arguments.push("--".into());
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let printed = git.run(&words, cancel).await?;
    let shown = shown(&String::from_utf8_lossy(&printed), &git.root);
    Ok(Changes { diff: shown.diff, omitted: shown.omitted })
}

/// The hash of a commit that somebody names.
async fn commit(git: &Git, name: &str, cancel: &CancellationToken) -> Result<String, ToolError> {
    let revision = format!("{name}^{{commit}}");
    let arguments = ["rev-parse", "--quiet", "--verify", "--end-of-options", &revision];
    let finished = git.try_run(&arguments, cancel).await?;
    let hash = finished.stdout.text().trim().to_owned();
    match finished.end {
        End::Exited(0) if hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => Ok(hash),
        End::Exited(_) | End::Signalled(_) | End::TimedOut | End::Cancelled => {
            Err(failed(&format!("there is no commit `{name}`")))
        }
    }
}

/// Files that git does not know, and files with conflicts.
pub async fn loose_ends(git: &Git, cancel: &CancellationToken) -> Result<LooseEnds, ToolError> {
    let status = git.status(cancel).await?;
    let (conflicts, rest): (Vec<_>, Vec<_>) = status.changes.iter().partition(|change| change.is_conflict());
    let names = |change: &&super::Change| change.path.display().to_string();
    Ok(LooseEnds {
        conflicts: conflicts.iter().map(names).collect(),
        untracked: rest.iter().filter(|change| change.is_untracked()).count(),
        unstaged: rest.iter().filter(|change| !change.is_untracked() && change.unstaged != b'.').count(),
    })
}

/// What a commit would leave behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LooseEnds {
    /// Files with conflicts.
    pub conflicts: Vec<String>,
    /// How many files git does not know.
    pub untracked: usize,
    /// How many files have changes that are not staged.
    pub unstaged: usize,
}

/// The subjects of the last commits, the newest first; none where there are none.
pub async fn subjects(git: &Git, most: usize, cancel: &CancellationToken) -> Result<Vec<String>, ToolError> {
    if !git.has_commits(cancel).await? {
        return Ok(Vec::new());
    }
    let count = format!("--max-count={most}");
    let arguments = ["log", &count, "--no-merges", "--format=%s", "--no-color", "--no-show-signature"];
    let printed = git.run(&arguments, cancel).await?;
    Ok(String::from_utf8_lossy(&printed).lines().map(str::to_owned).collect())
}
