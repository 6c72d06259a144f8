//! `git_diff`: what has changed, line by line. Files with secrets are left out and named.

use gimlet::effect::Effect;
use gimlet::tool::{ToolCx, ToolError, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::git::sections::shown;
use crate::git::{DIFF_OPTIONS, Git};

/// The tool.
#[derive(Debug, Clone)]
pub struct GitDiff {
    /// The repository.
    pub git: Git,
}

/// Show changes as a diff: what is not staged yet, or what is staged.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Input {
    /// Only this file or folder. Leave out for the whole project.
    #[serde(default)]
    pub file_path: String,
    /// true: show staged changes.
    #[serde(default)]
    pub staged: bool,
}

/// The result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Output {
    /// The diff.
    pub diff: String,
    /// What was asked for.
    pub file_path: String,
    /// Which changes.
    pub staged: bool,
    /// Changed files that may hold secrets and are not shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub omitted: Vec<String>,
    /// What the model should know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl TypedTool for GitDiff {
    const NAME: &'static str = "git_diff";
    type Input = Input;
    type Output = Output;

    fn effects(&self, input: &Input) -> Result<Vec<Effect>, ToolError> {
        Ok(vec![Effect::Read { path: self.git.reads(&input.file_path)? }])
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        diff(&self.git, &input, &cx.cancel).await
    }
}

/// Asks git.
pub async fn diff(git: &Git, input: &Input, cancel: &CancellationToken) -> Result<Output, ToolError> {
    let path = git.pathspec(&input.file_path)?;
    let mut arguments = vec!["diff"];
    arguments.extend(DIFF_OPTIONS);
    if input.staged {
        arguments.push("--cached");
    }
    arguments.extend(["--", &path]);
    let printed = git.run(&arguments, cancel).await?;
    let shown = shown(&String::from_utf8_lossy(&printed), &git.root);
    let message = (shown.diff.is_empty() && shown.omitted.is_empty()).then(|| {
        if input.staged {
            "no staged changes"
        } else {
            "no unstaged changes; new files show up in git_status only"
        }
        .into()
    });
    Ok(Output {
        diff: shown.diff,
        file_path: input.file_path.clone(),
        staged: input.staged,
        omitted: shown.omitted,
        message,
    })
}
