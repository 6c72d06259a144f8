//! `git_log`: the last commits.

use gimlet::effect::Effect;
use gimlet::tool::{ToolCx, ToolError, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::git::{Git, failed};

/// The tool.
#[derive(Debug, Clone)]
pub struct GitLog {
    /// The repository.
    pub git: Git,
}

/// Show the last commits with their authors, newest first.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Input {
    /// Most commits to return.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 50))]
    pub limit: usize,
    /// Only commits that changed this file or folder. Leave out for all.
    #[serde(default)]
    pub file_path: String,
}

fn ten() -> usize {
    10
}

/// The result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Output {
    /// The commits.
    pub commits: Vec<Commit>,
    /// How many.
    pub count: usize,
}

/// A commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Commit {
    /// Its short name.
    pub hash: String,
    /// Who wrote it.
    pub author: String,
    /// The day on which it was written.
    pub date: String,
    /// The first line of its message.
    pub message: String,
}

impl TypedTool for GitLog {
    const NAME: &'static str = "git_log";
    type Input = Input;
    type Output = Output;

    fn effects(&self, input: &Input) -> Result<Vec<Effect>, ToolError> {
        Ok(vec![Effect::Read { path: self.git.reads(&input.file_path)? }])
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        log(&self.git, &input, &cx.cancel).await
    }
}

/// Asks git. A repository without commits has an empty log.
pub async fn log(git: &Git, input: &Input, cancel: &CancellationToken) -> Result<Output, ToolError> {
    let path = git.pathspec(&input.file_path)?;
    if !git.has_commits(cancel).await? {
        return Ok(Output { commits: Vec::new(), count: 0 });
    }
    let limit = format!("--max-count={}", input.limit.clamp(1, 50));
    let printed = git
        .run(
            &[
                "log",
                &limit,
                "--format=%h%x00%an%x00%as%x00%s",
                "-z",
                "--no-color",
                "--no-show-signature",
                "--no-ext-diff",
                "--no-textconv",
                "--encoding=UTF-8",
                "--",
                &path,
            ],
            cancel,
        )
        .await?;
    let text = String::from_utf8_lossy(&printed);
    let mut fields = text.split('\0');
    let mut commits = Vec::new();
    while let Some(hash) = fields.next().filter(|hash| !hash.is_empty()) {
        let mut next =
            || fields.next().map(str::to_owned).ok_or_else(|| failed("git printed half of a commit"));
        commits.push(Commit { hash: hash.into(), author: next()?, date: next()?, message: next()? });
    }
    Ok(Output { count: commits.len(), commits })
}
