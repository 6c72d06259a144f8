//! `repo_info`: where the project is.

use std::path::PathBuf;

use gimlet::effect::Effect;
use gimlet::tool::{Manner, Tells, ToolCx, ToolError, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::root::Root;

/// The tool.
#[derive(Debug, Clone)]
pub struct RepoInfo {
    /// The project.
    pub root: Root,
}

/// Tell the project's root folder, its name and whether it is a git repository.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Input {}

/// The result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Output {
    /// Absolute path of the root.
    pub root: String,
    /// Its last part.
    pub name: String,
    /// Whether it is, or lies in, a git repository.
    pub is_git: bool,
}

impl TypedTool for RepoInfo {
    const NAME: &'static str = "repo_info";
    type Input = Input;
    type Output = Output;

    fn manner(&self) -> Manner {
        Manner { tells: Tells::Where, ..Manner::default() }
    }

    fn effects(&self, _input: &Input) -> Result<Vec<Effect>, ToolError> {
        Ok(vec![Effect::Read { path: PathBuf::new() }])
    }

    async fn run(&self, _input: Input, _cx: &ToolCx) -> Result<Output, ToolError> {
        Ok(info(&self.root))
    }
}

/// Describes the root.
pub fn info(root: &Root) -> Output {
    let path = root.path();
    Output {
        root: path.to_string_lossy().into_owned(),
        name: path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
        is_git: path.ancestors().any(|folder| folder.join(".git").exists()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_a_repository_is_git() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(temp.path().join("repo/.git")).unwrap();
        std::fs::create_dir_all(temp.path().join("repo/pkg")).unwrap();
        let output = info(&Root::open(temp.path().join("repo/pkg")).unwrap());
        assert_eq!((output.name.as_str(), output.is_git), ("pkg", true));
        assert!(!info(&Root::open(temp.path()).unwrap()).is_git);
    }
}
