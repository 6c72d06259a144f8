//! What the files of a project say about its tests. Files are read without following links and only up to a limit.

use std::path::{Path, PathBuf};

use crate::files::Folder;

/// Largest manifest that is read.
const MOST_BYTES: u64 = 1024 * 1024;
/// Most names of a folder that are looked at.
const MOST_NAMES: usize = 2_000;

/// A project's folder.
pub(super) struct Project {
    folder: Folder,
    root: PathBuf,
}

impl Project {
    pub(super) fn open(root: &Path) -> Option<Self> {
        Some(Project { folder: Folder::open(root).ok()?, root: root.into() })
    }

    pub(super) fn has(&self, path: &Path) -> bool {
        self.folder.stamp(path).is_some()
    }

    pub(super) fn text(&self, path: &Path) -> Option<String> {
        self.folder.text(path, MOST_BYTES)
    }

    pub(super) fn mentions(&self, path: &Path, word: &str) -> bool {
        self.text(path).is_some_and(|text| text.contains(word))
    }

    /// Names of the files in a folder of the project, sorted.
    pub(super) fn names(&self, folder: &Path) -> Vec<String> {
        let is_inside = folder.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        let path = self.root.join(folder);
        let is_folder =
            folder.as_os_str().is_empty() || path.symlink_metadata().is_ok_and(|found| found.is_dir());
        if !is_inside || !is_folder {
            return Vec::new();
        }
        let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
        let mut names: Vec<String> = entries
            .flatten()
            .take(MOST_NAMES)
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    /// Folders from a changed file up to the root, nearest first; without files, the root alone.
    pub(super) fn folders(&self, changed: &[PathBuf]) -> Vec<PathBuf> {
        let mut folders: Vec<PathBuf> = Vec::new();
        for path in changed {
            for folder in path.ancestors().skip(1) {
                if !folders.iter().any(|known| known == folder) {
                    folders.push(folder.into());
                }
            }
        }
        if !folders.iter().any(|folder| folder.as_os_str().is_empty()) {
            folders.push(PathBuf::new());
        }
        // The nearest first, the root last.
        folders.sort_by_key(|folder| std::cmp::Reverse(folder.components().count()));
        folders
    }
}

/// A path in a command. Names that a shell would read as something else are quoted.
pub(super) fn shell(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain =
        text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+' | '@' | ':'));
    // A name that begins with a dash would be an option.
    let text = if text.starts_with('-') { format!("./{text}") } else { text.into_owned() };
    if is_plain && !text.is_empty() { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}
