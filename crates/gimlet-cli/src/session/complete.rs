//! What Tab offers: commands at the beginning of a line, models behind `/model`, files behind `@`.

use std::path::{Component, Path};
use std::sync::{Arc, Mutex, PoisonError};

use reedline::{Completer, CompletionResult, Span, Suggestion};

use gimlet_runtime::parts::tools::{Root, list_files};

use super::slash::ALL;

/// Most files that are offered at once.
const MOST: usize = 200;

/// Most files that are offered because they are similar to what was typed.
const MOST_SIMILAR: usize = 20;

/// Models that can be named, once the server has told them.
pub(super) type Models = Arc<Mutex<Vec<String>>>;

/// Commands of the person's and the project's own, with what they do.
pub(super) type Customs = Vec<(String, String)>;

/// Completes what is typed.
pub(super) struct Words {
    pub(super) root: Root,
    pub(super) models: Models,
    pub(super) customs: Customs,
}

impl Completer for Words {
    fn complete(&mut self, line: &str, pos: usize) -> CompletionResult {
        let before = line.get(..pos).unwrap_or(line);
        match self.suggest(before) {
            // No menu at all, instead of one that says that it is empty.
            none if none.is_empty() => CompletionResult::Pending,
            some => CompletionResult::fresh(some),
        }
    }
}

impl Words {
    fn suggest(&self, before: &str) -> Vec<Suggestion> {
        let start = before.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        let word = &before[start..];
        let span = Span::new(start, before.len());
        if let Some(path) = word.strip_prefix('@') {
            let begun = files(self.root.path(), path);
            let found = if begun.is_empty() { similar(&self.root, path) } else { begun };
            return found
                .into_iter()
                .map(|file| Suggestion {
                    append_whitespace: !file.ends_with('/'),
                    value: format!("@{file}"),
                    span,
                    ..Suggestion::default()
                })
                .collect();
        }
        if before.trim_start().starts_with("/model ") {
            let models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
            let fitting = models.iter().filter(|model| model.contains(word));
            return fitting
                .map(|model| Suggestion { value: model.clone(), span, ..Suggestion::default() })
                .collect();
        }
        if start == 0 && word.starts_with('/') {
            let built_in = ALL.iter().map(|(name, _, _, about)| (*name, *about));
            let own = self.customs.iter().map(|(name, about)| (name.as_str(), about.as_str()));
            return built_in
                .chain(own)
                .filter(|(name, _)| name.starts_with(word))
                .map(|(name, about)| Suggestion {
                    value: name.to_owned(),
                    description: Some(about.to_owned()),
                    span,
                    append_whitespace: true,
                    ..Suggestion::default()
                })
                .collect();
        }
        Vec::new()
    }
}

/// Files and folders that begin like the path, folders with a slash. Nothing outside of the root is looked at.
fn files(root: &Path, typed: &str) -> Vec<String> {
    let (folder, start) = typed.rsplit_once('/').map_or(("", typed), |(folder, start)| (folder, start));
    if !Path::new(folder).components().all(|part| matches!(part, Component::Normal(_))) {
        return Vec::new();
    }
    let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    let Ok(entries) = std::fs::read_dir(root.join(folder)) else { return Vec::new() };
    let mut found: Vec<String> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let hidden = name.starts_with('.') && !start.starts_with('.');
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let end = if is_folder { "/" } else { "" };
            (name.starts_with(start) && !hidden && name != ".git").then(|| format!("{prefix}{name}{end}"))
        })
        .collect();
    found.sort();
    found.truncate(MOST);
    found
}

/// Files of the project that hold what was typed somewhere in their path, letter by letter; the closest first.
fn similar(root: &Root, typed: &str) -> Vec<String> {
    if typed.is_empty() || typed.contains("..") {
        return Vec::new();
    }
    let all = list_files::all(root).unwrap_or_default();
    let mut found: Vec<(usize, String)> = all
        .iter()
        .filter_map(|path| path.to_str())
        .filter_map(|path| Some((distance(path, typed)?, path.to_owned())))
        .collect();
    found.sort();
    found.truncate(MOST_SIMILAR);
    found.into_iter().map(|(_, path)| path).collect()
}

/// How far apart the typed letters are in a path, seen from its end, where names are; none where one is missing.
fn distance(path: &str, typed: &str) -> Option<usize> {
    let lower = |c: char| c.to_ascii_lowercase();
    let mut letters = path.chars().rev().map(lower);
    let mut gaps = 0;
    for wanted in typed.chars().rev().map(lower) {
        gaps += letters.position(|letter| letter == wanted)?;
    }
    Some(gaps + path.len() / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(words: &Words, line: &str) -> Vec<String> {
        words.suggest(line).into_iter().map(|suggestion| suggestion.value).collect()
    }

    #[test]
    fn commands_files_and_models() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("src/.hidden")).unwrap();
        std::fs::write(folder.path().join("src/main.rs"), "").unwrap();
        std::fs::write(folder.path().join("setup.py"), "").unwrap();
        let models = Arc::new(Mutex::new(vec!["ollama_chat/qwen3:8b".to_owned()]));
        let words = Words {
            root: Root::open(folder.path()).unwrap(),
            models,
            customs: vec![("/cover".to_owned(), "write tests".to_owned())],
        };
        assert_eq!(offered(&words, "/co"), ["/compact", "/cost", "/context", "/copy", "/cover"]);
        assert_eq!(offered(&words, "look at @mnrs"), ["@src/main.rs"]);
        assert!(offered(&words, "look at @xyz").is_empty());
        assert_eq!(offered(&words, "look at @s"), ["@setup.py", "@src/"]);
        assert_eq!(offered(&words, "look at @src/"), ["@src/main.rs"]);
        assert_eq!(offered(&words, "look at @src/.h"), ["@src/.hidden/"]);
        assert!(offered(&words, "look at @../").is_empty());
        assert_eq!(offered(&words, "/model qw"), ["ollama_chat/qwen3:8b"]);
        assert!(offered(&words, "say /co").is_empty());
    }
}
