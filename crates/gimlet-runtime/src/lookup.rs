//! What a repository has to do with a task, as context for a model too small to look for the right thing: it takes any tool,
//! and answers from whatever that says. Files and lines are those that `list_files` and `rg_search` tell, redacted as their
//! results are, so what is hidden from the model stays hidden here.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use gimlet::guard::Redactor;
use gimlet_tools::Root;
use gimlet_tools::list_files::{self, list};
use gimlet_tools::rg_search::{Input, Match, search};

/// Most lines that are shown.
const MAX_LINES: usize = 8;
/// Most characters of each.
const MAX_CHARS: usize = 120;
/// Most lines that are looked at.
const MAX_MATCHES: usize = 2000;
/// A word in more lines than this tells nothing.
const TOO_COMMON: usize = 40;
/// Most words of a task that are looked for.
const MAX_WORDS: usize = 24;
/// Shorter words are in too many others.
const MIN_LETTERS: usize = 3;
/// Most files that are looked for by their names.
const MAX_NAMES: usize = 4;
/// How often the search may ask whether to go on: a huge tree is not worth the wait.
const MOST_QUESTIONS: u32 = 20_000;

/// Words that say what to do rather than with what.
const IDLE: &str = "about add after all also and answer any are before between but can change class code could did does each \
else every exactly file files find first fix for from function functions give had has have here how into its just last line \
lines list make method must name named names not nothing one only other our out please program project read repo repository \
run said say says should show sure tell test tests than that the their them then there they this three two use used uses \
using was were what when where which who why will with work works would write you your";

/// Words of tasks about what no file tells: the history. Lines would lead away from it.
const HISTORY: &[&str] = &["branch", "commit", "committed", "git", "merge", "staged", "uncommitted"];

/// What a task is about: files that it names and that are not there, and the lines nearest to it, by file and line. None
/// where there is neither.
pub(crate) fn of_task(root: &Root, task: &str, redactor: &Redactor) -> Option<String> {
    let asked = AtomicU32::new(0);
    let stop = || asked.fetch_add(1, Ordering::Relaxed) >= MOST_QUESTIONS;
    let missing = missing(root, task, &stop).into_iter().map(|name| format!("There is no file {name}."));
    let lines = lines(root, task, redactor, &stop);
    let told: Vec<String> = missing.chain(lines).collect();
    (!told.is_empty()).then(|| told.join("\n"))
}

/// Paths in a task at which nothing is. A bare name may be anywhere, also where nothing is listed.
fn missing<'a>(root: &Root, task: &'a str, stop: &(dyn Fn() -> bool + Sync)) -> Vec<&'a str> {
    let around = |c: char| c.is_ascii_punctuation() && !"._-/".contains(c);
    let words = task.split_whitespace().map(|word| word.trim_matches(around).trim_end_matches('.'));
    let mut named: Vec<&str> = Vec::new();
    for path in words.filter(|word| is_path(word)) {
        let elsewhere = list_files::Input { glob: format!("**/{path}"), limit: 1 };
        if named.len() < MAX_NAMES
            && !named.contains(&path)
            && root.may_show(Path::new(path))
            && !root.path().join(path).exists()
            && list(root, &elsewhere, stop).is_ok_and(|found| found.files.is_empty())
        {
            named.push(path);
        }
    }
    named
}

/// Whether a word looks like the path of a file: folders, a name, and an ending.
fn is_path(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    word.rsplit_once('/').is_some_and(|(_, name)| name.contains('.'))
        && word.chars().all(plain)
        && word.split('/').all(|part| !part.is_empty() && !part.starts_with('.'))
}

fn lines(root: &Root, task: &str, redactor: &Redactor, stop: &(dyn Fn() -> bool + Sync)) -> Option<String> {
    let words = words(task);
    if words.is_empty() || words.iter().any(|word| HISTORY.contains(&word.as_str())) {
        return None;
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let find = |words: &str, limit| {
        let input = Input { pattern: format!("(?i){words}"), glob: "*".into(), limit };
        search(root, threads, &input, stop).ok()
    };
    let mut found = find(&words.join("|"), MAX_MATCHES)?;
    if found.truncated {
        // The common words have crowded the rare ones out.
        let alone = words.iter().filter_map(|word| find(word, TOO_COMMON)).filter(|found| !found.truncated);
        found.matches = alone.flat_map(|found| found.matches).collect();
        found.matches.sort_by(|one, other| (&one.file, one.line).cmp(&(&other.file, other.line)));
        found.matches.dedup();
    }
    let near = nearest(&words, found.matches);
    let lines: Vec<String> = near.iter().map(|found| shown(found, redactor)).collect();
    (!lines.is_empty()).then(|| format!("Lines in which words of the task occur:\n{}", lines.join("\n")))
}

/// The words of a task that may be in a file, in small letters and without the ending of a plural.
fn words(task: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let all = task.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    for word in all.map(str::to_ascii_lowercase).filter(|word| word.len() >= MIN_LETTERS) {
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        if is_number || IDLE.split_ascii_whitespace().any(|idle| idle == word) {
            continue;
        }
        let stem = word.strip_suffix('s').filter(|stem| stem.len() > MIN_LETTERS).unwrap_or(&word).to_owned();
        if !found.contains(&stem) && found.len() < MAX_WORDS {
            found.push(stem);
        }
    }
    found
}

/// The lines with the rarest words and the most of them, in the order of the files.
fn nearest(words: &[String], matches: Vec<Match>) -> Vec<Match> {
    let held: Vec<Vec<&str>> = matches.iter().map(|found| held(words, &found.text)).collect();
    let mut common: HashMap<&str, usize> = HashMap::new();
    for word in held.iter().flatten() {
        *common.entry(word).or_default() += 1;
    }
    // In whole numbers, so that the order is the same everywhere.
    let worth = |words: &[&str]| -> u64 {
        let rare = words.iter().map(|word| common[word]).filter(|lines| *lines <= TOO_COMMON);
        rare.map(|lines| 1_000_000 / lines as u64).sum()
    };
    let mut ranked: Vec<(u64, Match)> =
        held.iter().map(|words| worth(words)).zip(matches).filter(|(worth, _)| *worth > 0).collect();
    ranked.sort_by_key(|(worth, _)| std::cmp::Reverse(*worth));
    ranked.truncate(MAX_LINES);
    ranked.sort_by(|(_, one), (_, other)| (&one.file, one.line).cmp(&(&other.file, other.line)));
    ranked.into_iter().map(|(_, found)| found).collect()
}

/// The words that a line holds.
fn held<'a>(words: &'a [String], line: &str) -> Vec<&'a str> {
    let line = line.to_ascii_lowercase();
    words.iter().map(String::as_str).filter(|word| line.contains(word)).collect()
}

fn shown(found: &Match, redactor: &Redactor) -> String {
    let text: String = redactor.clean_text(found.text.trim()).chars().take(MAX_CHARS).collect();
    format!("{}:{}: {text}", found.file, found.line).replace(char::is_control, "?")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let temp = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(temp.path().join(name), text).unwrap();
        }
        let root = Root::open(temp.path()).unwrap();
        (temp, root)
    }

    #[test]
    fn words_say_what_a_task_is_about() {
        assert_eq!(
            words("Which functions call parse_line? Name them with their files."),
            ["call", "parse_line"]
        );
        assert_eq!(words("Where are vouchers used in 2024?"), ["voucher"]);
        assert!(words("What is 17 + 25?").is_empty());
    }

    #[test]
    fn the_rarest_words_come_first_and_secrets_do_not() {
        let many: String = (0..60).map(|n| format!("server {n}\n")).collect();
        let key = format!("sk-{}", "a".repeat(40));
        let (_temp, root) = project(&[
            ("a.js", &many),
            ("b.js", "const fallback = { port: 8123 };\nserver.listen(port);\n"),
            ("c.js", &format!("port = '{key}'\n")),
            (".env", "PORT=secret\n"),
        ]);
        let text = of_task(&root, "Which port does the server listen on?", &Redactor::default()).unwrap();
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(lines[..2], ["b.js:1: const fallback = { port: 8123 };", "b.js:2: server.listen(port);"]);
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[2].starts_with("c.js:1: port = '") && !text.contains(&key), "{text}");
        assert_eq!(of_task(&root, "Say good morning in French.", &Redactor::default()), None);
    }

    #[test]
    fn a_rare_word_is_found_among_very_many_common_ones() {
        let many = "return value\n".repeat(MAX_MATCHES + 1);
        let (_temp, root) = project(&[("a.py", &many), ("z.py", "def parse_port(text):\n")]);
        let text = of_task(&root, "Which value does parse_port return?", &Redactor::default()).unwrap();
        assert!(text.ends_with("occur:\nz.py:1: def parse_port(text):"), "{text}");
    }

    #[test]
    fn a_file_that_is_not_there_is_told() {
        let (temp, root) = project(&[("a.py", "x\n"), (".env", "y\n")]);
        std::fs::create_dir(temp.path().join("sub")).unwrap();
        std::fs::write(temp.path().join("sub/b.py"), "x\n").unwrap();
        std::fs::write(temp.path().join(".gitignore"), "built.js\n").unwrap();
        std::fs::write(temp.path().join("built.js"), "y\n").unwrap();
        let told = |task: &str| of_task(&root, task, &Redactor::default());
        assert_eq!(told("What does `shop/pay.py` do?").unwrap(), "There is no file shop/pay.py.");
        for task in [
            "What x is committed?",
            "What is in a.py?",
            "Is b.py short?",
            "What do no.py and calc.add do?",
            "Is version 1.5 out, i.e. done?",
            "Print .env and ../../x.py",
            "Is .github/ci.yml used?",
            "Read built.js.",
        ] {
            assert_eq!(told(task), None, "{task}");
        }
    }
}
