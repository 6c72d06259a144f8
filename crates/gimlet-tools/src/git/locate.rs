//! Where a root's repository is. We look ourselves: git's own search would trust whatever the project put in its way.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::root::Root;

/// A repository and the part of its tree that the root is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) git_dir: PathBuf,
    pub(crate) work_tree: PathBuf,
    /// The root relative to the work tree.
    pub(crate) prefix: PathBuf,
}

/// There is no repository that can be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LocateError {
    #[error("not a git repository")]
    None,
    #[error("{0} is a symbolic link; such a repository is not used")]
    Link(PathBuf),
    #[error("{file} points to {target}, which does not point back; such a repository is not used")]
    Foreign { file: PathBuf, target: PathBuf },
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

impl Location {
    /// The nearest repository at or above the root.
    pub(crate) fn of(root: &Root) -> Result<Self, LocateError> {
        for work_tree in root.path().ancestors() {
            let dot_git = work_tree.join(".git");
            let kind = match fs::symlink_metadata(&dot_git) {
                Ok(metadata) => metadata.file_type(),
                Err(_) => continue,
            };
            if kind.is_symlink() {
                return Err(LocateError::Link(dot_git));
            }
            let git_dir = if kind.is_dir() { dot_git } else { linked(&dot_git)? };
            let prefix = root.path().strip_prefix(work_tree).unwrap_or(Path::new("")).to_path_buf();
            return Ok(Location { git_dir, work_tree: work_tree.into(), prefix });
        }
        Err(LocateError::None)
    }
}

/// The repository a `.git` file names: that of a linked worktree or of a submodule. It must name this folder too, or any
/// archive could make git show another project's history.
fn linked(file: &Path) -> Result<PathBuf, LocateError> {
    let read = |path: &Path| {
        fs::read_to_string(path).map_err(|source| LocateError::Io { path: path.into(), source })
    };
    let folder = file.parent().unwrap_or(Path::new("/"));
    let text = read(file)?;
    let Some(target) = text.trim().strip_prefix("gitdir:") else { return Err(LocateError::None) };
    let target = folder
        .join(target.trim())
        .canonicalize()
        .map_err(|source| LocateError::Io { path: file.into(), source })?;
    let worktree_points_back = read(&target.join("gitdir"))
        .ok()
        .and_then(|back| target.join(back.trim()).canonicalize().ok())
        .is_some_and(|back| back == file);
    if worktree_points_back || submodule_points_back(&target, folder) {
        return Ok(target);
    }
    Err(LocateError::Foreign { file: file.into(), target })
}

/// A submodule's repository says in its settings where its files are.
fn submodule_points_back(target: &Path, folder: &Path) -> bool {
    let Ok(config) = fs::read_to_string(target.join("config")) else { return false };
    config
        .lines()
        .filter_map(|line| line.trim().strip_prefix("worktree"))
        .filter_map(|rest| rest.trim_start().strip_prefix('='))
        .filter_map(|path| target.join(path.trim().trim_matches('"')).canonicalize().ok())
        .any(|path| path == folder)
}
