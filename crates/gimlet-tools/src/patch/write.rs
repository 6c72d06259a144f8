//! Writing the files of a patch: all of them or none, and only over what the patch was made for.

use std::path::Path;

use gimlet::patch::{FileChange, FileState};
use gimlet::tool::ToolError;
use serde::{Deserialize, Serialize};

use super::files::load;
use crate::code;
use crate::root::{Root, RootPath, Staged};

/// All that is needed to take an applied patch back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undo {
    /// The patch.
    pub patch_id: String,
    /// What it changed.
    pub changes: Vec<FileChange>,
    /// Folders it had to make, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<String>,
}

impl Undo {
    /// The record for a patch that is about to be applied.
    pub fn of(root: &Root, patch_id: &str, changes: &[FileChange]) -> Self {
        let folders = missing_folders(root, changes);
        Undo { patch_id: patch_id.into(), changes: changes.to_vec(), folders }
    }
}

/// Takes an applied patch back, if nobody has changed its files since. Files that are as they were before the patch,
/// as after a crash on the way, are fine as they are.
pub fn undo(root: &Root, undo: &Undo) -> Result<Vec<String>, ToolError> {
    let reversed: Vec<FileChange> = undo.changes.iter().rev().map(FileChange::reversed).collect();
    let paths = if is_written(root, &reversed) {
        reversed.iter().map(|change| change.path.clone()).collect()
    } else {
        write(root, &reversed, Purpose::Undo)?
    };
    remove_folders(root, &undo.folders);
    Ok(paths)
}

/// Why files are written, for what is said when they are not as expected.
#[derive(Debug, Clone, Copy)]
enum Purpose {
    Apply,
    Undo,
}

/// Whether the files already look as the changes leave them, as after a crash between writing and saying so.
pub(crate) fn is_written(root: &Root, changes: &[FileChange]) -> bool {
    changes.iter().all(|change| {
        let gone = change.renamed_from.as_ref().is_none_or(|from| matches!(load(root, from), Ok(None)));
        gone && match (load(root, &change.path), &change.after) {
            (Ok(None), None) => true,
            (Ok(Some(now)), Some(after)) => {
                now.text == after.text && (after.mode.is_none() || now.git_mode() == after.git_mode())
            }
            (Ok(_), _) | (Err(_), _) => false,
        }
    })
}

/// One file to write or remove.
struct Target<'a> {
    path: String,
    place: RootPath,
    expected: Option<&'a FileState>,
    wanted: Option<&'a FileState>,
}

/// Writes all changes or none; returns the paths. The files must be as the changes expect them.
pub fn write_changes(root: &Root, changes: &[FileChange]) -> Result<Vec<String>, ToolError> {
    write(root, changes, Purpose::Apply)
}

fn write(root: &Root, changes: &[FileChange], purpose: Purpose) -> Result<Vec<String>, ToolError> {
    let folders = missing_folders(root, changes);
    let written = write_all(root, changes, purpose);
    if written.is_err() {
        remove_folders(root, &folders);
    }
    written
}

fn write_all(root: &Root, changes: &[FileChange], purpose: Purpose) -> Result<Vec<String>, ToolError> {
    let targets = targets(root, changes, purpose)?;
    verify(root, &targets, purpose)?;
    let mut staged = Vec::with_capacity(targets.len());
    for target in &targets {
        staged.push(stage(root, target)?);
    }
    // Staging took time; what was verified must still be so.
    verify(root, &targets, purpose)?;
    for (index, staged) in staged.into_iter().enumerate() {
        if let Err(error) = commit(root, &targets[index], staged) {
            let message = take_back(root, &targets[..index], &error);
            return Err(ToolError::failed(code::PATCH_APPLY_FAILED, message)
                .with("path", targets[index].path.clone()));
        }
    }
    for target in &targets {
        let told = target.wanted.map_or(Ok(()), |wanted| root.tell_buffers(&target.place, &wanted.text));
        if let Err(error) = told {
            let message = take_back(root, &targets, &error);
            return Err(
                ToolError::failed(code::PATCH_APPLY_FAILED, message).with("path", target.path.clone())
            );
        }
    }
    Ok(targets.into_iter().map(|target| target.path).collect())
}

/// The folders that new files need, outermost first.
fn missing_folders(root: &Root, changes: &[FileChange]) -> Vec<String> {
    let mut folders = Vec::new();
    for change in changes.iter().filter(|change| change.after.is_some()) {
        let ancestors = Path::new(&change.path).ancestors().skip(1);
        let missing = ancestors.filter(|folder| !folder.as_os_str().is_empty() && !root.holds(folder));
        folders.extend(missing.map(|folder| folder.to_string_lossy().into_owned()));
    }
    folders.sort();
    folders.dedup();
    folders
}

fn remove_folders(root: &Root, folders: &[String]) {
    for folder in folders.iter().rev() {
        root.remove_empty_folder(Path::new(folder));
    }
}

fn targets<'a>(
    root: &Root,
    changes: &'a [FileChange],
    purpose: Purpose,
) -> Result<Vec<Target<'a>>, ToolError> {
    let mut targets = Vec::new();
    let mut add = |path: &str, expected: Option<&'a FileState>, wanted: Option<&'a FileState>| {
        let place = root.resolve_for_writing(path)?;
        if place.as_path() != Path::new(path) {
            return Err(stale(path, "now leads somewhere else", purpose));
        }
        targets.push(Target { path: path.into(), place, expected, wanted });
        Ok(())
    };
    for change in changes {
        match &change.renamed_from {
            Some(from) => {
                add(&change.path, None, change.after.as_ref())?;
                add(from, change.before.as_ref(), None)?;
            }
            None => add(&change.path, change.before.as_ref(), change.after.as_ref())?,
        }
    }
    Ok(targets)
}

fn verify(root: &Root, targets: &[Target<'_>], purpose: Purpose) -> Result<(), ToolError> {
    for target in targets {
        let now = load(root, &target.path)?;
        let text = |state: Option<&FileState>| state.map(|state| state.text.clone());
        if text(now.as_ref()) != text(target.expected) {
            let what = match purpose {
                Purpose::Apply => "has changed since the patch was proposed",
                Purpose::Undo => "has changed since the patch was applied",
            };
            return Err(stale(&target.path, what, purpose));
        }
    }
    Ok(())
}

fn stale(path: &str, what: &str, purpose: Purpose) -> ToolError {
    let advice = match purpose {
        Purpose::Apply => ". Read it again and propose a new patch",
        Purpose::Undo => "",
    };
    let message = format!("{path} {what}; nothing was changed{advice}");
    ToolError::failed(code::PATCH_APPLY_FAILED, message).with("path", path)
}

/// Prepares a file's new contents; nothing for a removal. A file that stays keeps its mode, unless that is the change.
fn stage(root: &Root, target: &Target<'_>) -> Result<Option<Staged>, ToolError> {
    let Some(wanted) = target.wanted else { return Ok(None) };
    let mode = match target.expected {
        Some(before) if before.git_mode() == wanted.git_mode() => Some(root.mode(&target.place)?),
        Some(_) | None => wanted.mode,
    };
    Ok(Some(root.stage(&target.place, wanted.text.as_bytes(), mode)?))
}

fn commit(root: &Root, target: &Target<'_>, staged: Option<Staged>) -> Result<(), String> {
    match staged {
        Some(staged) => staged.commit().map_err(|error| format!("{}: {error}", target.path)),
        None => root.remove(&target.place).map_err(|error| error.to_string()),
    }
}

/// Puts back the files that were written before one failed, and says how that went.
fn take_back(root: &Root, done: &[Target<'_>], error: &str) -> String {
    let mut left = Vec::new();
    for target in done.iter().rev() {
        let restored = match target.expected {
            Some(before) => root
                .stage(&target.place, before.text.as_bytes(), before.mode)
                .map_err(|error| error.to_string())
                .and_then(|staged| staged.commit().map_err(|error| error.to_string()))
                .and_then(|()| root.tell_buffers(&target.place, &before.text)),
            None => root.remove(&target.place).map_err(|error| error.to_string()),
        };
        if restored.is_err() {
            left.push(target.path.clone());
        }
    }
    if left.is_empty() {
        format!("{error}; nothing was changed")
    } else {
        format!("{error}; these files were written and could not be put back: {}", left.join(", "))
    }
}
