//! The test command that a task names, in whatever language the sentence around it is.

/// Commands that check something: the words they begin with, and whether anything must follow.
const COMMANDS: &[&[&str]] = &[
    &["python3", "-m", "unittest"],
    &["python", "-m", "unittest"],
    &["python3", "-m", "pytest"],
    &["python", "-m", "pytest"],
    &["python3", "-m", "doctest"],
    &["python", "-m", "doctest"],
    &["uv", "run", "pytest"],
    &["poetry", "run", "pytest"],
    &["pytest"],
    &["py.test"],
    &["tox"],
    &["nox"],
    &["cargo", "test"],
    &["cargo", "nextest", "run"],
    &["cargo", "check"],
    &["cargo", "clippy"],
    &["cargo", "build"],
    &["npm", "test"],
    &["npm", "t"],
    &["npm", "run"],
    &["npx", "jest"],
    &["npx", "vitest"],
    &["npx", "mocha"],
    &["npx", "tsc"],
    &["yarn", "test"],
    &["yarn", "jest"],
    &["pnpm", "test"],
    &["pnpm", "run"],
    &["bun", "test"],
    &["deno", "test"],
    &["node", "--test"],
    &["jest"],
    &["vitest"],
    &["go", "test"],
    &["go", "vet"],
    &["go", "build"],
    &["mvn"],
    &["./mvnw"],
    &["gradle"],
    &["./gradlew"],
    &["make", "test"],
    &["make", "check"],
    &["make", "-C"],
    &["ctest"],
    &["cmake", "--build"],
    &["rspec"],
    &["bundle", "exec"],
    &["rake", "test"],
    &["rake", "spec"],
    &["bats"],
    &["just", "test"],
    &["mix", "test"],
    &["dotnet", "test"],
    &["swift", "test"],
    &["zig", "build", "test"],
    &["phpunit"],
    &["./vendor/bin/phpunit"],
];
/// Programs that run a script, which counts if its name speaks of tests.
const INTERPRETERS: &[&str] = &["python3", "python", "node", "ruby", "bash", "sh", "perl"];
/// Options that take the next word as their value.
const TAKES_VALUE: &[&str] = &[
    "-m",
    "-k",
    "-p",
    "-C",
    "-f",
    "-R",
    "-t",
    "-run",
    "-j",
    "--test",
    "--package",
    "--manifest-path",
    "--test-dir",
    "--tests",
    "--prefix",
];
/// Words that are part of a command although they look like prose.
const WORDS: &[&str] = &[
    "test", "tests", "check", "verify", "run", "rspec", "rake", "clean", "build", "lint", "spec", "discover",
];
const LONGEST: usize = 300;
/// Most words of a task that are looked at.
const MOST_WORDS: usize = 5_000;

/// The command that a task names to check the work with, such as `python3 -m unittest cart_test`. Only commands that are
/// known to test are found, and none with characters that mean something to a shell.
pub fn named_in(task: &str) -> Option<String> {
    quoted(task).find_map(|span| command(span, Ends::AtTheSpan)).or_else(|| {
        let starts = word_starts(task);
        starts.take(MOST_WORDS).find_map(|start| command(task.get(start..)?, Ends::WhereProseBegins))
    })
}

/// Where a command ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    AtTheSpan,
    WhereProseBegins,
}

/// Text in backticks, alone or in threes, line by line.
fn quoted(task: &str) -> impl Iterator<Item = &str> {
    task.split('`')
        .skip(1)
        .step_by(2)
        .filter(|span| !span.is_empty())
        .chain(fenced(task))
        .flat_map(str::lines)
        .map(|line| line.trim().trim_start_matches("$ "))
}

fn fenced(task: &str) -> impl Iterator<Item = &str> {
    task.split("```").skip(1).step_by(2)
}

/// Where words begin: behind anything that cannot be part of a program's name.
fn word_starts(task: &str) -> impl Iterator<Item = usize> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '/' | '_' | '-');
    task.char_indices()
        .scan(' ', move |previous, (at, c)| {
            let starts = is_part(c) && !is_part(*previous);
            *previous = c;
            Some(starts.then_some(at))
        })
        .flatten()
}

fn command(text: &str, ends: Ends) -> Option<String> {
    let line = text.lines().next()?;
    // Prose in another script may follow without a space.
    let line = match ends {
        Ends::AtTheSpan => line,
        Ends::WhereProseBegins => line.get(..line.find(|c: char| !c.is_ascii()).unwrap_or(line.len()))?,
    };
    let line: String = line.chars().take(LONGEST).collect();
    let words: Vec<&str> = line.split_whitespace().collect();
    let begins = |start: &&&[&str]| {
        start.len() <= words.len() && start.iter().zip(&words).all(|(known, word)| bare(word, ends) == *known)
    };
    let known = COMMANDS.iter().filter(begins).map(|start| start.len()).max();
    let script = || {
        let is_test = |word: &str| {
            let word = word.to_ascii_lowercase();
            (word.contains("test") || word.contains("spec") || word.contains("check"))
                && word.contains(['.', '/', '_'])
        };
        match words.as_slice() {
            [program, script, ..] if INTERPRETERS.contains(program) && is_test(bare(script, ends)) => Some(2),
            [script, ..] if script.starts_with("./") && is_test(bare(script, ends)) => Some(1),
            _ => None,
        }
    };
    let fixed = known.or_else(script)?;
    // Build tools take goals behind their options.
    let goals = matches!(words.first(), Some(&("mvn" | "./mvnw" | "gradle" | "./gradlew")));
    let mut taken: Vec<&str> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let previous = taken.last().copied().unwrap_or_default();
        let plain = bare(word, ends);
        let belongs = at < fixed
            || ends == Ends::AtTheSpan
            || plain.starts_with('-')
            || plain.contains(['/', '.', '_', ':', '=', '[', '*'])
            || plain.bytes().any(|byte| byte.is_ascii_digit())
            || TAKES_VALUE.contains(&previous)
            || (WORDS.contains(&plain) && (at == fixed || goals));
        if !belongs || plain.is_empty() {
            break;
        }
        taken.push(plain);
        // A comma or full stop ends the command with the sentence.
        if plain.len() < word.len() && ends == Ends::WhereProseBegins {
            break;
        }
    }
    let is_whole = match taken.as_slice() {
        ["mvn" | "./mvnw" | "gradle" | "./gradlew"] => false,
        ["npm" | "pnpm", "run"] | ["bundle", "exec"] | ["make", "-C"] | ["cmake", "--build"] => false,
        ["mvn" | "./mvnw" | "gradle" | "./gradlew", rest @ ..] => {
            rest.iter().any(|word| word.contains("test") || WORDS.contains(word))
        }
        ["npm" | "pnpm", "run", script, ..] => {
            ["test", "check", "lint", "spec", "verify", "build"].iter().any(|word| script.contains(word))
        }
        taken => taken.len() >= fixed,
    };
    let text = taken.join(" ");
    (is_whole && !text.contains([';', '|', '&', '>', '<', '$', '`', '\\', '\0'])).then_some(text)
}

/// A word without the punctuation of the sentence around it.
fn bare(word: &str, ends: Ends) -> &str {
    match ends {
        Ends::AtTheSpan => word,
        Ends::WhereProseBegins => {
            let open = word.trim_end_matches([')', ',', ';', ':', '!', '?', '"', '\'', ']']);
            // All packages of Go are `./...`.
            if open.ends_with("/...") { open } else { open.trim_end_matches(['.', ')', '"', '\'']) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn commands_are_found_in_any_language() {
        for (task, expected) in [
            (
                "write leap.py; check it with python3 -m unittest leap_test",
                Some("python3 -m unittest leap_test"),
            ),
            ("check it with python3 -m unittest leap_test.", Some("python3 -m unittest leap_test")),
            ("Prüfe es mit cargo test -p shop und melde dich.", Some("cargo test -p shop")),
            ("用python3 -m unittest leap_test检查", Some("python3 -m unittest leap_test")),
            ("Compruébalo con `npm run test:unit`, por favor", Some("npm run test:unit")),
            ("run pytest and fix what fails", Some("pytest")),
            ("make test fails since yesterday", Some("make test")),
            ("the tests (go test ./...) fail", Some("go test ./...")),
            ("```\n$ pytest -q tests/test_a.py::test_b\n```", Some("pytest -q tests/test_a.py::test_b")),
            ("run ./run_tests.sh afterwards", Some("./run_tests.sh")),
            ("python3 tests/check_all.py must pass", Some("python3 tests/check_all.py")),
            ("mvn -q test should pass", Some("mvn -q test")),
            ("fix the function in `leap.py`", None),
            ("make it faster", None),
            ("use `pytest; rm -rf /` to check", Some("pytest")),
            ("install it with npm run start", None),
            ("write tests in python", None),
            ("", None),
        ] {
            let found = named_in(task);
            if task.contains("rm -rf") {
                assert_ne!(found.as_deref(), Some("pytest; rm -rf /"), "{task}");
            } else {
                assert_eq!(found.as_deref(), expected, "{task}");
            }
        }
    }

    proptest! {
        #[test]
        fn no_shell_is_needed(task in "(pytest|cargo test|`|;|\\||&|\\$|python3 -m unittest| |\n|[a-z]{1,6}|ü|中){0,40}") {
            if let Some(found) = named_in(&task) {
                prop_assert!(!found.contains([';', '|', '&', '$', '`', '\n']), "{found}");
            }
        }
    }
}
