//! `gimlet repo`: the map of a repository, and the files that a task is about, as an agent gets them.

use std::io::Write;
use std::path::{Path, PathBuf};

use gimlet_runtime::parts::repo::Index;
use gimlet_runtime::parts::tools::{self, Root};
use gimlet_runtime::rules;
use serde_json::json;

use crate::args::{JsonArgs, RepoCommand, RootArgs};
use crate::exit::{ExitStatus, UsageError};
use crate::style::{DIM, NAME};
use crate::{app, diagnostics};

/// Prints the map, or ranks files for a task.
pub(crate) fn repo(command: RepoCommand, root: &RootArgs) -> anyhow::Result<ExitStatus> {
    let settings = app::settings(root)?;
    diagnostics::start(&settings);
    // The same view as the tools have: secrets and ignored files do not exist.
    let process = settings.process();
    let policy = rules::policy(process, &settings.root)?;
    let root = gimlet_runtime::root(process, &settings.root, &policy)?;
    let files = tools::list_files::all(&root)?;
    let cache = process.need_home()?.path().join("cache/repo");
    let index = Index::open(root.path(), Some(&cache), files)?;
    match command {
        RepoCommand::Map { paths, budget, json } => map(&index, &focus(&root, &index, &paths)?, budget, json),
        RepoCommand::Rank { task, limit, json } => rank(&index, &task, limit, json),
    }
}

/// The given paths as the index knows them: files, or all files of a folder.
fn focus(root: &Root, index: &Index, paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut focus = Vec::new();
    for path in paths {
        let inside =
            root.resolve(&path.to_string_lossy()).map_err(|error| UsageError::new(error.to_string()))?;
        let before = focus.len();
        focus.extend(index.files().iter().filter(|file| file.starts_with(inside.as_path())).cloned());
        if focus.len() == before {
            let message = format!("there is no file {}", path.display());
            return Err(UsageError::new(message).hint("ignored and secret files are left out").into());
        }
    }
    Ok(focus)
}

fn map(index: &Index, focus: &[PathBuf], budget: usize, json: JsonArgs) -> anyhow::Result<ExitStatus> {
    let map = index.map(budget, focus);
    let mut stdout = crate::out::stdout();
    if json.json {
        let told = json!({ "files": index.files().len(), "parsed": index.is_parsed(), "map": map });
        crate::out::json(&told)?;
    } else {
        write!(stdout, "{map}")?;
    }
    Ok(ExitStatus::Success)
}

fn rank(index: &Index, task: &str, limit: usize, json: JsonArgs) -> anyhow::Result<ExitStatus> {
    let found = index.rank(task, limit);
    let mut stdout = crate::out::stdout();
    if json.json {
        let tests = |path: &Path| index.tests_of(path);
        let told: Vec<_> = found
            .iter()
            .map(|one| json!({ "path": one.path, "score": one.score, "why": one.why, "tests": tests(&one.path) }))
            .collect();
        crate::out::json(&told)?;
        return Ok(ExitStatus::Success);
    }
    for one in &found {
        writeln!(stdout, "{NAME}{}{NAME:#}  {DIM}{}{DIM:#}", one.path.display(), one.why)?;
    }
    Ok(ExitStatus::Success)
}
