//! A map of the repository as context: the files that a task is likely about and their definitions. A model that sees it
//! goes to the right file at once instead of searching. Files are those that `list_files` tells, and the text is redacted
//! as results of tools are, so what is hidden from the model stays hidden here.

use std::path::PathBuf;

use gimlet::guard::Redactor;
use gimlet_repo::Index;
use gimlet_tools::{Root, list_files};

/// The smallest window in which a map is worth its room.
pub(crate) const LEAST_WINDOW: u32 = 16_384;
/// The part of the window that the map may take, and characters of a token.
const SHARE: usize = 32;
const CHARS_A_TOKEN: usize = 3;
/// Most characters of the map, whatever the window.
const MOST_CHARS: usize = 4000;
/// Files that are mapped first because the task is likely about them.
const FOCUS: usize = 6;
/// Of fewer files a map tells no more than a look at them.
const FEWEST_FILES: usize = 8;

/// The map for a task; none where the window or the repository is too small for one.
pub(crate) fn of_task(
    root: &Root,
    cache: Option<&PathBuf>,
    window: Option<u32>,
    task: &str,
    redactor: &Redactor,
) -> Option<String> {
    let window = window.filter(|window| *window >= LEAST_WINDOW)?;
    let files = list_files::all(root).ok().filter(|files| files.len() >= FEWEST_FILES)?;
    let index = Index::open(root.path(), cache.map(PathBuf::as_path), files).ok()?;
    let focus: Vec<PathBuf> = index.rank(task, FOCUS).into_iter().map(|found| found.path).collect();
    let most = (window as usize / SHARE * CHARS_A_TOKEN).min(MOST_CHARS);
    let map = index.map(most, &focus);
    let map = redactor.clean_text(map.trim_end());
    (!map.is_empty()).then(|| {
        format!(
            "A map of this repository, the likeliest files first; read a file before you change it:\n{map}"
        )
    })
}
