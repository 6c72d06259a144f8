//! `git_status`: what has changed.

use std::path::PathBuf;

use gimlet::effect::Effect;
use gimlet::tool::{ToolCx, ToolError, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::git::Git;

/// The tool.
#[derive(Debug, Clone)]
pub struct GitStatus {
    /// The repository.
    pub git: Git,
}

/// Show which files git sees as modified, staged or untracked.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Input {}

/// The result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Output {
    /// The current branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Changed and not staged, deleted files included.
    pub modified: Vec<String>,
    /// Staged for the next commit.
    pub staged: Vec<String>,
    /// Unknown to git.
    pub untracked: Vec<String>,
    /// In conflict.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conflicted: Vec<String>,
    /// How many files have changed.
    pub total_changes: usize,
}

impl TypedTool for GitStatus {
    const NAME: &'static str = "git_status";
    type Input = Input;
    type Output = Output;

    fn effects(&self, _input: &Input) -> Result<Vec<Effect>, ToolError> {
        Ok(vec![Effect::Read { path: PathBuf::new() }])
    }

    async fn run(&self, _input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        status(&self.git, &cx.cancel).await
    }
}

/// Asks git.
pub async fn status(git: &Git, cancel: &CancellationToken) -> Result<Output, ToolError> {
    let status = git.status(cancel).await?;
    let mut output =
        Output { branch: status.branch, total_changes: status.changes.len(), ..Output::default() };
    for change in status.changes {
        let path = change.path.to_string_lossy().into_owned();
        if change.is_untracked() {
            output.untracked.push(path);
        } else if change.is_conflict() {
            output.conflicted.push(path);
        } else {
            if change.staged != b'.' {
                output.staged.push(path.clone());
            }
            if change.unstaged != b'.' {
                output.modified.push(path);
            }
        }
    }
    Ok(output)
}
