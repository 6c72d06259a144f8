//! The names of a repository's files, as context for a model too small to begin by looking: it would guess names instead.
//! They are names as `list_files` tells them, so what is hidden from the model stays hidden here.

use std::sync::atomic::{AtomicU32, Ordering};

use gimlet_tools::Root;
use gimlet_tools::list_files::{Input, list};

/// Most files that are named.
const MAX_FILES: usize = 60;
/// Most characters of their names; a small model's window is precious.
const MAX_CHARS: usize = 1500;
/// How often the walk may ask whether to go on, every few hundred entries: a huge tree is not worth the wait.
const MOST_QUESTIONS: u32 = 200;

/// Names the files, those nearest to the root first. None where there are none, or too many to look through.
pub(crate) fn of_project(root: &Root) -> Option<String> {
    let asked = AtomicU32::new(0);
    let stop = || asked.fetch_add(1, Ordering::Relaxed) >= MOST_QUESTIONS;
    let mut files = list(root, &Input { glob: "**".into(), limit: usize::MAX }, &stop).ok()?.files;
    if files.is_empty() || stop() {
        return None;
    }
    let total = files.len();
    files.sort_by_cached_key(|file| (file.matches('/').count(), file.clone()));
    let mut chars = 0;
    let named: Vec<String> = files
        .iter()
        .map(|file| file.replace(char::is_control, "?"))
        .take(MAX_FILES)
        .take_while(|file| {
            chars += file.chars().count() + 1;
            chars <= MAX_CHARS
        })
        .collect();
    let rest = match total - named.len() {
        0 => String::new(),
        more => format!("\n[{more} more; list_files names them]"),
    };
    Some(format!(
        "The files of this repository, by name only; what is in them you have yet to see:\n{}{rest}",
        named.join("\n")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_is_named_first_and_what_is_cut_is_counted() {
        let temp = tempfile::tempdir().unwrap();
        for name in (0..70).map(|n| format!("deep/{n:02}.txt")).chain(["README.md".into(), ".env".into()]) {
            let path = temp.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x\n").unwrap();
        }
        let text = of_project(&Root::open(temp.path()).unwrap()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1..3], ["README.md", "deep/00.txt"]);
        assert_eq!(lines.last(), Some(&"[11 more; list_files names them]"));
        assert!(!text.contains(".env"), "{text}");
    }

    #[test]
    fn nothing_is_said_of_an_empty_folder() {
        let temp = tempfile::tempdir().unwrap();
        assert_eq!(of_project(&Root::open(temp.path()).unwrap()), None);
    }
}
