//! What guided work knows of a project: the files a task names, likely ones where it names none, the test that judges
//! and the command that runs it. Files are those that `list_files` tells, so what is hidden from tools stays hidden.

mod command;
mod reduce;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use gimlet::guided::{Candidate, Found, Guide, Reduced};
use gimlet_tools::Root;
use gimlet_tools::list_files::{Input, list};
use gimlet_tools::patch::text_of;
use gimlet_tools::run_tests;
use gimlet_tools::syntax::Language;

use crate::lookup;

/// Most files that are looked at by name.
const MOST_FILES: usize = 20_000;
/// Most files whose text is searched for words of the task.
const MOST_SEARCHED: usize = 600;
/// Largest file that is searched, in bytes.
const MOST_BYTES: usize = 200_000;
/// Candidates the model picks from.
const CANDIDATES: usize = 8;
/// How often the walk may ask whether to go on: a huge tree is not worth the wait.
const MOST_QUESTIONS: u32 = 2000;
/// Endings of files that a task may ask to create, beside those of known languages.
const ENDINGS: [&str; 14] =
    ["md", "txt", "toml", "json", "yaml", "yml", "html", "css", "sh", "sql", "cfg", "ini", "xml", "csv"];

/// Knows one project.
pub(crate) struct ProjectGuide {
    pub(crate) root: Root,
    /// What the project tells agents.
    pub(crate) notes: String,
}

impl ProjectGuide {
    fn files(&self) -> Vec<String> {
        let asked = AtomicU32::new(0);
        let stop = || asked.fetch_add(1, Ordering::Relaxed) >= MOST_QUESTIONS;
        let input = Input { glob: "**".into(), limit: MOST_FILES };
        list(&self.root, &input, &stop).map(|found| found.files).unwrap_or_default()
    }

    /// Files in which words of the task occur, the likeliest first: rare words count more, and so do names.
    fn ranked(&self, task: &str, files: &[String]) -> Vec<Candidate> {
        let words = lookup::words(task);
        let mut hits: Vec<(&String, Vec<usize>)> = Vec::new();
        for path in files.iter().filter(|path| is_text(path)).take(MOST_SEARCHED) {
            let text = text_of(&self.root, path).ok().flatten().filter(|text| text.len() <= MOST_BYTES);
            let (text, name) = (text.unwrap_or_default().to_lowercase(), path.to_lowercase());
            let count = |word: &String| {
                text.matches(word.as_str()).count().min(5) + 5 * name.matches(word.as_str()).count()
            };
            hits.push((path, words.iter().map(count).collect()));
        }
        let mut in_files: HashMap<usize, usize> = HashMap::new();
        for (_, counts) in &hits {
            for at in (0..words.len()).filter(|at| counts[*at] > 0) {
                *in_files.entry(at).or_default() += 1;
            }
        }
        let mut ranked: Vec<(f64, Candidate)> = hits
            .iter()
            .map(|(path, counts)| {
                let worth = |at: usize| {
                    let rarity =
                        (1.0 + hits.len() as f64 / in_files.get(&at).copied().unwrap_or(1) as f64).ln();
                    counts[at] as f64 / (counts[at] as f64 + 2.0) * rarity
                };
                let sum: f64 = (0..words.len()).map(worth).sum();
                let held: Vec<&str> = (0..words.len())
                    .filter(|at| counts[*at] > 0)
                    .map(|at| words[at].as_str())
                    .take(4)
                    .collect();
                // A test is rarely what is to be changed.
                let sum = if command::is_test(path) { sum / 2.0 } else { sum };
                (sum, Candidate { path: (*path).clone(), why: held.join(", ") })
            })
            .collect();
        ranked.sort_by(|(one, a), (other, b)| other.total_cmp(one).then_with(|| a.path.cmp(&b.path)));
        let few = files.len() <= CANDIDATES;
        let kept = ranked.into_iter().filter(|(worth, _)| *worth > 0.0 || few);
        kept.map(|(_, candidate)| candidate).take(CANDIDATES).collect()
    }
}

impl Guide for ProjectGuide {
    fn locate(&self, task: &str) -> Found {
        let files = self.files();
        let command = command::named(task, &files);
        let judges = command.as_deref().map(|command| command::tests_in(command, &files)).unwrap_or_default();
        let (mut named, missing) = named_files(task, &files);
        named.retain(|path| !judges.contains(path));
        // A test that is named beside the code judges it.
        let (mut tests, code): (Vec<String>, Vec<String>) =
            named.iter().cloned().partition(|path| command::is_test(path));
        if code.is_empty() && missing.is_empty() {
            tests.clear();
        } else {
            named = code;
        }
        tests.splice(0..0, judges);
        let candidates =
            if named.is_empty() && missing.is_empty() { self.ranked(task, &files) } else { Vec::new() };
        Found { named, missing, tests, command, candidates }
    }

    fn tests_for(&self, _task: &str, changed: &[String]) -> (Vec<String>, Option<String>) {
        if changed.iter().all(|path| Language::of(Path::new(path)).is_none()) {
            return (Vec::new(), None);
        }
        let files = self.files();
        let tests = command::tests_beside(changed, &files);
        let is_unittest = |path: &String| {
            path.ends_with(".py")
                && text_of(&self.root, path)
                    .ok()
                    .flatten()
                    .is_some_and(|text| text.contains("import unittest"))
        };
        if !tests.is_empty() && tests.iter().all(is_unittest) {
            let modules: Vec<String> =
                tests.iter().map(|path| path.trim_end_matches(".py").replace('/', ".")).collect();
            return (tests, Some(format!("python3 -m unittest {}", modules.join(" "))));
        }
        let guess = run_tests::guess(&self.root).filter(|guess| {
            !guess.starts_with("pytest")
                || files.iter().any(|path| path.ends_with(".py") && command::is_test(path))
        });
        (tests, guess.map(str::to_owned))
    }

    fn read(&self, path: &str) -> Result<Option<String>, String> {
        text_of(&self.root, path).map_err(|error| error.to_string())
    }

    fn syntax_problem(&self, path: &str, text: &str) -> Option<String> {
        let (line, near) = Language::of(Path::new(path))?.first_error(text)?;
        Some(format!("line {line}: `{near}`"))
    }

    fn reduce(&self, command: &str, output: &str, most_chars: usize) -> Reduced {
        reduce::reduce(command, output, self.root.path(), most_chars)
    }

    fn notes(&self) -> String {
        self.notes.clone()
    }
}

/// Files that a task names: those that are there, and those that are not.
fn named_files(task: &str, files: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut named, mut missing): (Vec<String>, Vec<String>) = Default::default();
    let around = |c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '/' | '.');
    for word in task.split(|c: char| c.is_whitespace() || around(c)) {
        let word = word.trim_matches('.').trim_start_matches("./").trim_end_matches('/');
        if word.is_empty() || word.starts_with('/') || word.contains("..") {
            continue;
        }
        let in_folder = format!("/{word}");
        let mut same = files.iter().filter(|path| *path == word || path.ends_with(&in_folder));
        let (list, path) = match (files.iter().find(|path| *path == word), same.next(), same.next()) {
            (Some(path), _, _) | (None, Some(path), None) if is_file_name(word) => (&mut named, path.clone()),
            (None, None, None) if is_file_name(word) => (&mut missing, word.to_owned()),
            _ => continue,
        };
        if !list.contains(&path) && list.len() < 6 {
            list.push(path);
        }
    }
    (named, missing)
}

/// Whether a word is the name of a file that can be edited, by its ending.
fn is_file_name(word: &str) -> bool {
    let Some((stem, ending)) = word.rsplit_once('.') else { return false };
    let known = Language::of(Path::new(word)).is_some() || ENDINGS.contains(&ending);
    known && stem.chars().any(char::is_alphanumeric)
}

fn is_text(path: &str) -> bool {
    is_file_name(path) || !path.rsplit('/').next().unwrap_or(path).contains('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guide(files: &[(&str, &str)]) -> (tempfile::TempDir, ProjectGuide) {
        let temp = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = temp.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = Root::open(temp.path()).unwrap();
        (temp, ProjectGuide { root, notes: String::new() })
    }

    #[test]
    fn a_task_names_its_file_its_test_and_its_check_in_any_language() {
        let (_temp, guide) = guide(&[("leap.py", "def f(): pass\n"), ("leap_test.py", "import unittest\n")]);
        for task in [
            "Write the solution into leap.py, which has only a stub now. Check it with python3 -m unittest leap_test.",
            "Schreibe die Lösung in `leap.py` und prüfe sie mit `python3 -m unittest leap_test`.",
            "把解答写入 leap.py，用 python3 -m unittest leap_test 检查",
        ] {
            let found = guide.locate(task);
            assert_eq!(
                (found.named, found.tests),
                (vec!["leap.py".to_owned()], vec!["leap_test.py".to_owned()]),
                "{task}"
            );
            assert_eq!(found.command.as_deref(), Some("python3 -m unittest leap_test"), "{task}");
        }
    }

    #[test]
    fn where_nothing_is_named_the_words_decide() {
        let (_temp, guide) = guide(&[
            ("src/port.py", "def parse_port(text):\n    return text\n"),
            ("src/other.py", "def parse_name(text):\n    return text\n"),
            ("tests/test_port.py", "import unittest\nfrom src.port import parse_port\n"),
        ]);
        let found = guide.locate("parse_port crashes on an empty string");
        assert_eq!(found.candidates[0].path, "src/port.py", "{found:?}");
        let (tests, command) = guide.tests_for("", &["src/port.py".into()]);
        assert_eq!(tests, ["tests/test_port.py"]);
        assert_eq!(command.as_deref(), Some("python3 -m unittest tests.test_port"));
        assert_eq!(guide.locate("Create notes/todo.md").missing, ["notes/todo.md"]);
        assert_eq!(guide.tests_for("", &["README.md".into()]), (Vec::new(), None));
    }

    #[test]
    fn a_syntax_error_has_its_line() {
        let (_temp, guide) = guide(&[("a.py", "")]);
        assert_eq!(guide.syntax_problem("a.py", "x = 1\n"), None);
        let problem = guide.syntax_problem("a.py", "x = 1\ndef f(:\n    pass\n").unwrap();
        assert!(problem.starts_with("line 2"), "{problem}");
        assert_eq!(guide.syntax_problem("a.unknown", "x ="), None);
    }
}
