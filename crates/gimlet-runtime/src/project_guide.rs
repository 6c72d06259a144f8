//! What guided work knows of a project: the files a task names, likely ones where it names none, the test that judges
//! and the command that runs it. Files are those that `list_files` tells, so what is hidden from tools stays hidden.

mod command;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use gimlet::guided::{Candidate, Found, Guide, Reduced};
use gimlet_repo::{Index, Language, checks, syntax};
use gimlet_tools::Root;
use gimlet_tools::list_files::{Input, list};
use gimlet_tools::patch::text_of;
use gimlet_tools::run_tests;

/// Most files that are looked at by name.
const MOST_FILES: usize = 20_000;
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
    /// Where the index of the project's files is kept between runs.
    pub(crate) cache: Option<PathBuf>,
}

impl ProjectGuide {
    fn files(&self) -> Vec<String> {
        let asked = AtomicU32::new(0);
        let stop = || asked.fetch_add(1, Ordering::Relaxed) >= MOST_QUESTIONS;
        let input = Input { glob: "**".into(), limit: MOST_FILES };
        list(&self.root, &input, &stop).map(|found| found.files).unwrap_or_default()
    }

    /// The files that a task is likely about, the likeliest first.
    fn ranked(&self, task: &str, files: &[String]) -> Vec<Candidate> {
        let paths = files.iter().map(PathBuf::from).collect();
        let Ok(index) = Index::open(self.root.path(), self.cache.as_deref(), paths) else {
            return Vec::new();
        };
        let found = index
            .rank(task, CANDIDATES)
            .into_iter()
            .map(|found| Candidate { path: found.path.to_string_lossy().into_owned(), why: found.why });
        let mut found: Vec<Candidate> = found.collect();
        if files.len() <= CANDIDATES {
            let known: Vec<String> = found.iter().map(|candidate| candidate.path.clone()).collect();
            let rest = files.iter().filter(|path| is_text(path) && !known.contains(path));
            found.extend(rest.map(|path| Candidate { path: path.clone(), why: String::new() }));
            found.truncate(CANDIDATES);
        }
        found
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
        syntax::problem(Path::new(path), text).map(|problem| problem.text)
    }

    fn reduce(&self, command: &str, output: &str, most_chars: usize) -> Reduced {
        let inside = output.replace(&format!("{}/", self.root.path().display()), "");
        let checks::Reduced { text, passed, failed, .. } = checks::reduce(command, &inside, most_chars);
        Reduced { text, passed, failed }
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
        (temp, ProjectGuide { root, notes: String::new(), cache: None })
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
