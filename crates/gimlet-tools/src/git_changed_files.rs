//! `git_changed_files`: the names of changed files that still exist.

use std::path::PathBuf;

use gimlet::effect::Effect;
use gimlet::tool::{ToolCx, ToolError, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::git::{Change, Git};

/// The tool.
#[derive(Debug, Clone)]
pub struct GitChangedFiles {
    /// The repository.
    pub git: Git,
}

/// List the files that were added or changed. Deleted files are left out.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Input {
    /// true: staged changes. false: changes that are not staged.
    #[serde(default)]
    pub staged: bool,
    /// Also list new files that git does not track yet.
    #[serde(default)]
    pub include_untracked: bool,
}

/// The result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Output {
    /// Paths relative to the root, sorted.
    pub files: Vec<String>,
    /// How many.
    pub count: usize,
    /// Which changes.
    pub staged: bool,
}

impl TypedTool for GitChangedFiles {
    const NAME: &'static str = "git_changed_files";
    type Input = Input;
    type Output = Output;

    fn effects(&self, _input: &Input) -> Result<Vec<Effect>, ToolError> {
        Ok(vec![Effect::Read { path: PathBuf::new() }])
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        changed_files(&self.git, &input, &cx.cancel).await
    }
}

/// Asks git.
pub async fn changed_files(
    git: &Git,
    input: &Input,
    cancel: &CancellationToken,
) -> Result<Output, ToolError> {
    let status = git.status(cancel).await?;
    let is_meant = |change: &Change| {
        if change.is_untracked() {
            return input.include_untracked;
        }
        let letter = if input.staged { change.staged } else { change.unstaged };
        matches!(letter, b'A' | b'C' | b'M' | b'R' | b'T' | b'U')
    };
    let files: Vec<String> = status
        .changes
        .iter()
        .filter(|change| is_meant(change))
        .map(|change| change.path.to_string_lossy().into_owned())
        .collect();
    Ok(Output { count: files.len(), files, staged: input.staged })
}
