//! The output of a test runner, reduced to what helps to mend the code: counts, the first failing test with its
//! assertion and the frames inside the project. What is left out is counted.

mod jvm;
mod native;
mod python;
mod script;

use std::borrow::Cow;

use super::Runner;

/// Most failing tests that are named beside the first.
const MOST_NAMES: usize = 10;
/// Most lines that are looked at, from the end: a runner says last what went wrong.
const MOST_LINES: usize = 50_000;

/// What a test run said.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Reduced {
    /// Whose output it is.
    pub runner: Runner,
    /// What is worth reading.
    pub text: String,
    /// How many tests passed, if the output says so.
    pub passed: Option<u32>,
    /// How many failed, errors included. A build that failed counts as one.
    pub failed: Option<u32>,
    /// The name of the first failing test, or of the error that kept tests from running.
    pub first_failure: Option<String>,
}

/// What a parser found.
#[derive(Debug, Default)]
pub(super) struct Findings<'t> {
    passed: Option<u32>,
    failed: Option<u32>,
    failures: Vec<Failure<'t>>,
}

/// A failing test, or an error of the build.
#[derive(Debug)]
pub(super) struct Failure<'t> {
    name: String,
    lines: Vec<&'t str>,
}

/// Reduces the output of a command to at most `budget_chars` characters.
pub fn reduce(command: &str, output: &str, budget_chars: usize) -> Reduced {
    let clean = without_escapes(output);
    let mut lines: Vec<&str> = clean.lines().map(str::trim_end).collect();
    if lines.len() > MOST_LINES {
        lines.drain(..lines.len() - MOST_LINES);
    }
    let runner = recognise(Runner::of(command), &lines);
    let mut found = match runner {
        Runner::Pytest => python::pytest(&lines),
        Runner::Unittest => python::unittest(&lines),
        Runner::Cargo => native::cargo(&lines),
        Runner::Go => native::go(&lines),
        Runner::Ctest => native::ctest(&lines),
        Runner::Jest => script::jest(&lines),
        Runner::Vitest => script::vitest(&lines),
        Runner::Node => script::node(&lines),
        Runner::Rspec => script::rspec(&lines),
        Runner::Minitest => script::minitest(&lines),
        Runner::Bats => script::tap(&lines),
        Runner::Maven => jvm::maven(&lines),
        Runner::Gradle => jvm::gradle(&lines),
        Runner::Make | Runner::Npm | Runner::Other => Findings::default(),
    };
    if found.failures.is_empty() && found.failed.is_none_or(|failed| failed > 0) {
        found.failures = native::compiler(&lines);
        if found.failures.is_empty() {
            found.failures = python::uncaught(&lines);
        }
        if !found.failures.is_empty() && found.failed.is_none() {
            found.failed = Some(1);
        }
    }
    let text = compose(&found, &lines, budget_chars);
    Reduced {
        runner,
        text,
        passed: found.passed,
        failed: found.failed,
        first_failure: found.failures.first().map(|failure| cut(&failure.name, 200)),
    }
}

/// The runner that wrote the output, where the command only says what started it.
fn recognise(named: Runner, lines: &[&str]) -> Runner {
    match named {
        Runner::Make | Runner::Npm | Runner::Other | Runner::Minitest | Runner::Node => {}
        Runner::Pytest
        | Runner::Unittest
        | Runner::Cargo
        | Runner::Go
        | Runner::Jest
        | Runner::Vitest
        | Runner::Maven
        | Runner::Gradle
        | Runner::Ctest
        | Runner::Rspec
        | Runner::Bats => return named,
    }
    let any = |test: &dyn Fn(&str) -> bool| lines.iter().any(|line| test(line));
    if any(&|line| line.starts_with("test result: ")) {
        Runner::Cargo
    } else if any(&|line| {
        line.contains("= short test summary info =") || line.contains("= test session starts =")
    }) {
        Runner::Pytest
    } else if any(&|line| line.starts_with("Ran ") && line.contains(" test") && line.contains(" in ")) {
        Runner::Unittest
    } else if any(&|line| line.contains("% tests passed, ")) {
        Runner::Ctest
    } else if any(&|line| line.starts_with("Tests: ") && line.contains(" total")) {
        Runner::Jest
    } else if any(&|line| line.trim_start().starts_with("Test Files  ")) {
        Runner::Vitest
    } else if any(&|line| line.starts_with("# pass ") || line.starts_with("ℹ pass ")) {
        Runner::Node
    } else if any(&|line| {
        line.starts_with("--- FAIL: ") || line.starts_with("ok  \t") || line.starts_with("FAIL\t")
    }) {
        Runner::Go
    } else if any(&|line| line.contains(" examples, ") && line.contains(" failure")) {
        Runner::Rspec
    } else if any(&|line| line.contains(" runs, ") && line.contains(" assertions, ")) {
        Runner::Minitest
    } else if any(&|line| line.contains("Tests run: ")) {
        Runner::Maven
    } else if any(&|line| line.starts_with("> Task :")) {
        Runner::Gradle
    } else if any(&|line| line.starts_with("1..") || line.starts_with("not ok ")) {
        Runner::Bats
    } else {
        named
    }
}

/// Puts the parts together; the budget is counted in characters and never exceeded.
fn compose(found: &Findings<'_>, lines: &[&str], budget: usize) -> String {
    let mut head = String::new();
    match (found.failed, found.passed) {
        (Some(failed), Some(passed)) => head = format!("{failed} failed, {passed} passed\n"),
        (Some(failed), None) => head = format!("{failed} failed\n"),
        (None, Some(passed)) => head = format!("{passed} passed\n"),
        (None, None) => {}
    }
    let mut tail = String::new();
    let body: Vec<&str> = match found.failures.first() {
        Some(first) => {
            head.push_str(&format!("first failure: {}\n", cut(&first.name, 200)));
            let others: Vec<String> = found
                .failures
                .iter()
                .skip(1)
                .take(MOST_NAMES)
                .map(|failure| cut(&failure.name, 100))
                .collect();
            if !others.is_empty() {
                let more = found.failures.len().saturating_sub(1 + MOST_NAMES);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                tail = format!("also failing: {}{more}\n", others.join(", "));
            }
            tidy(&first.lines)
        }
        // All passed, and the count says so; otherwise the end of the output is all there is.
        None if found.failed == Some(0) => Vec::new(),
        None => tidy(lines),
    };
    let left_out = |shown: usize| lines.iter().filter(|line| !line.is_empty()).count().saturating_sub(shown);
    let note = |shown: usize| match left_out(shown) {
        0 => String::new(),
        1 => "(1 line of output left out)\n".to_owned(),
        many => format!("({many} lines of output left out)\n"),
    };
    let size = |text: &str| text.chars().count();
    let mut room = budget.saturating_sub(size(&head) + size(&note(0)));
    if size(&tail) * 3 > room {
        tail.clear();
    }
    room = room.saturating_sub(size(&tail));
    let keeps_end = found.failures.is_empty();
    let kept = fit(&body, room, keeps_end);
    let shown = kept.iter().filter(|line| !line.is_empty()).count();
    let mut text = head;
    for line in &kept {
        text.push_str(line);
        text.push('\n');
    }
    text.push_str(&tail);
    text.push_str(&note(shown));
    cut(text.trim_end(), budget)
}

/// Without empty lines at the ends, and without several in a row.
fn tidy<'t>(lines: &[&'t str]) -> Vec<&'t str> {
    let mut tidied: Vec<&str> = Vec::new();
    for line in lines {
        if !(line.trim().is_empty() && tidied.last().is_none_or(|last| last.is_empty())) {
            tidied.push(if line.trim().is_empty() { "" } else { line });
        }
    }
    while tidied.last().is_some_and(|line| line.is_empty()) {
        tidied.pop();
    }
    tidied
}

/// As many lines as fit: the end alone, or both ends of a failure with a mark between them.
fn fit<'t>(lines: &[&'t str], room: usize, keeps_end: bool) -> Vec<Cow<'t, str>> {
    let cost = |line: &str| line.chars().count().min(400) + 1;
    let short = |line: &'t str| match line.char_indices().nth(400) {
        Some(_) => Cow::Owned(cut(line, 400)),
        None => Cow::Borrowed(line),
    };
    if lines.iter().map(|line| cost(line)).sum::<usize>() <= room {
        return lines.iter().map(|line| short(line)).collect();
    }
    let room = room.saturating_sub(2);
    let (first, last) = if keeps_end { (0, room) } else { (room / 2, room - room / 2) };
    let mut used = 0;
    let head: Vec<&'t str> = lines
        .iter()
        .copied()
        .take_while(|line| {
            used += cost(line);
            used <= first
        })
        .collect();
    let rest = lines.get(head.len()..).unwrap_or_default();
    used = 0;
    let mut end: Vec<&'t str> = rest
        .iter()
        .rev()
        .copied()
        .take_while(|line| {
            used += cost(line);
            used <= last
        })
        .collect();
    end.reverse();
    let mut kept: Vec<Cow<'t, str>> = head.into_iter().map(short).collect();
    kept.push(Cow::Borrowed("…"));
    kept.extend(end.into_iter().map(short));
    kept
}

/// At most so many characters, the last of them an ellipsis if something was cut.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) if most == 0 => String::new(),
        Some(_) => text.chars().take(most - 1).chain(['…']).collect(),
    }
}

/// Without the colours of a terminal and without carriage returns.
fn without_escapes(text: &str) -> Cow<'_, str> {
    if !text.contains(['\u{1b}', '\r']) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\u{1b}' if characters.peek() == Some(&'[') => {
                characters.next();
                while characters.next().is_some_and(|c| !('@'..='~').contains(&c)) {}
            }
            '\u{1b}' => {}
            '\r' if characters.peek() == Some(&'\n') => {}
            '\r' => clean.push('\n'),
            c => clean.push(c),
        }
    }
    Cow::Owned(clean)
}

/// The number right in front of a word: `count("1 failed, 2 passed", "passed")` is 2.
pub(super) fn number_before(line: &str, word: &str) -> Option<u32> {
    let at = line.find(word)?;
    let before = line.get(..at)?.trim_end();
    let digits = before.bytes().rev().take_while(u8::is_ascii_digit).count();
    before.get(before.len() - digits..)?.parse().ok()
}

/// The number right behind a word: `number_after("failures=2", "failures=")` is 2.
pub(super) fn number_after(line: &str, word: &str) -> Option<u32> {
    let at = line.find(word)? + word.len();
    let after = line.get(at..)?.trim_start();
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    after.get(..digits)?.parse().ok()
}

/// Whether a frame of a traceback is outside the project: the language's own library, or an installed package.
pub(super) fn is_outside(path: &str) -> bool {
    const MARKS: &[&str] = &[
        "site-packages/",
        "dist-packages/",
        "/lib/python",
        "/pyenv/",
        "<frozen ",
        "node_modules/",
        "node:",
        "/rustc/",
        "/.cargo/",
        "/.rustup/",
        "/src/testing/",
        "/src/runtime/",
        "/pkg/mod/",
        "/gems/",
        "/rubygems/",
        "/usr/lib/ruby",
        "internal/",
    ];
    MARKS.iter().any(|mark| path.contains(mark))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parts_are_read() {
        assert_eq!(number_before("== 3 failed, 2 passed in 0.04s ==", "passed"), Some(2));
        assert_eq!(number_before("passed", "passed"), None);
        assert_eq!(number_after("FAILED (failures=2, errors=1)", "errors="), Some(1));
        assert_eq!(without_escapes("\u{1b}[31mred\u{1b}[0m\r\nx"), "red\nx");
        assert_eq!(cut("abcd", 3), "ab…");
    }

    #[test]
    fn output_of_an_unknown_program_keeps_its_end() {
        let output: String = (0..100).map(|line| format!("line {line}\n")).collect();
        let reduced = reduce("./check.sh", &output, 100);
        assert_eq!((reduced.runner, reduced.failed, reduced.first_failure), (Runner::Other, None, None));
        assert!(
            reduced.text.contains("line 99") && reduced.text.contains("lines of output left out"),
            "{}",
            reduced.text
        );
    }

    proptest! {
        #[test]
        fn the_budget_holds(
            lines in prop::collection::vec(
                prop_oneof![
                    Just("FAIL: test_a (x.T)".to_owned()), Just("=".repeat(70)), Just("-".repeat(70)),
                    Just("--- FAIL: TestA (0.00s)".to_owned()), Just("not ok 1 - a".to_owned()), Just("  ---".to_owned()),
                    Just("---- a stdout ----".to_owned()), Just("  ● a › b".to_owned()), Just(" FAIL  a > b".to_owned()),
                    Just("  1) a".to_owned()), Just("error: x".to_owned()), Just("a.c:1:2: error: x".to_owned()),
                    Just("___ test_a ___".to_owned()), Just("= FAILURES =".to_owned()), Just("1/2 Test #1: a ...***Failed".to_owned()),
                    Just("[ERROR] Failures: ".to_owned()), Just("A > b() FAILED".to_owned()), Just("✖ failing tests:".to_owned()),
                    "\\PC{0,60}",
                ],
                0..40,
            ),
            command in prop::sample::select(vec!["pytest", "python3 -m unittest", "cargo test", "go test", "jest", "vitest", "node --test", "rspec", "ruby x", "bats", "mvn test", "gradle test", "ctest", "make", "x"]),
            budget in 0usize..600,
        ) {
            let reduced = reduce(command, &lines.join("\n"), budget);
            prop_assert!(reduced.text.chars().count() <= budget, "{} > {budget}", reduced.text.chars().count());
        }
    }
}
