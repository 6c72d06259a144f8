//! The check command that a task names, and the test files that belong to a command or to code.

/// How commands that check something begin.
const RUNNERS: [&str; 16] = [
    "python3 -m unittest",
    "python -m unittest",
    "python3 -m pytest",
    "python -m pytest",
    "pytest",
    "cargo test",
    "cargo nextest run",
    "npm test",
    "npm run test",
    "npx vitest",
    "npx jest",
    "node --test",
    "go test",
    "make test",
    "bundle exec rspec",
    "ctest",
];

/// The check command in a task: what stands in backticks, or a runner and the arguments after it.
pub(super) fn named(task: &str, files: &[String]) -> Option<String> {
    let quoted = task.split('`').skip(1).step_by(2).map(str::trim);
    let in_backticks = quoted.filter(|text| !text.contains('\n')).find(|text| begins_with_runner(text));
    in_backticks
        .map(str::to_owned)
        .or_else(|| RUNNERS.iter().find_map(|runner| in_prose(task, runner, files)))
}

fn begins_with_runner(text: &str) -> bool {
    RUNNERS
        .iter()
        .any(|runner| text.strip_prefix(runner).is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')))
}

/// A runner in prose, with the words after it that are arguments and not prose.
fn in_prose(task: &str, runner: &str, files: &[String]) -> Option<String> {
    let at = task.find(runner)?;
    let before = task[..at].chars().next_back();
    let rest = &task[at + runner.len()..];
    let apart = |c: Option<char>| c.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
    if !apart(before) || !apart(rest.chars().next()) {
        return None;
    }
    let mut command = runner.to_owned();
    for word in rest.split_whitespace() {
        // Other scripts write their prose right behind a word.
        let end = word
            .find(|c: char| !c.is_ascii() || matches!(c, ',' | ';' | ')' | '"' | '\''))
            .unwrap_or(word.len());
        let argument = word[..end].trim_end_matches(['.', ':', '!', '?']);
        let is_argument = argument.starts_with('-')
            || argument.contains(['/', '_'])
            || !tests_in(argument, files).is_empty();
        if !is_argument || argument.is_empty() {
            break;
        }
        command.push(' ');
        command.push_str(argument);
        if argument.len() < word.len() {
            break;
        }
    }
    Some(command)
}

/// The test files that a command names: as paths, or as Python modules.
pub(super) fn tests_in(command: &str, files: &[String]) -> Vec<String> {
    let mut tests = Vec::new();
    for word in command.split_whitespace().filter(|word| !word.starts_with('-')) {
        let path = word.split("::").next().unwrap_or(word).trim_start_matches("./");
        // A module may go on with a class and a method.
        let module = path.replace('.', "/");
        let named = files.iter().find(|file| {
            *file == path
                || file.strip_suffix(".py").is_some_and(|stem| {
                    module.strip_prefix(stem).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                })
        });
        if let Some(file) = named.filter(|file| !tests.contains(*file)) {
            tests.push(file.clone());
        }
    }
    tests
}

/// Whether a file holds tests, by its name or its folder.
pub(super) fn is_test(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.split('.').next().unwrap_or(name);
    stem.starts_with("test_")
        || ["_test", "_tests", "_spec", "Test"].iter().any(|end| stem.ends_with(end))
        || [".test.", ".spec."].iter().any(|part| name.contains(part))
        || ["tests/", "test/", "spec/"]
            .iter()
            .any(|folder| path.starts_with(folder) || path.contains(&format!("/{folder}")))
}

/// The test files that go with files of code, by their names.
pub(super) fn tests_beside(changed: &[String], files: &[String]) -> Vec<String> {
    let mut tests = Vec::new();
    for path in changed.iter().filter(|path| !is_test(path)) {
        let name = path.rsplit('/').next().unwrap_or(path);
        let Some((stem, ending)) = name.rsplit_once('.') else { continue };
        let names = [
            format!("{stem}_test.{ending}"),
            format!("test_{stem}.{ending}"),
            format!("{stem}.test.{ending}"),
            format!("{stem}.spec.{ending}"),
            format!("{stem}_spec.{ending}"),
        ];
        let found = files.iter().find(|file| names.iter().any(|name| file.rsplit('/').next() == Some(name)));
        tests.extend(found.filter(|file| !tests.contains(*file)).cloned());
    }
    tests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_after_a_command_is_no_part_of_it() {
        let files = ["leap_test.py".to_owned(), "tests/test_a.py".to_owned()];
        for (task, command) in [
            (
                "check with python3 -m unittest leap_test and make it pass",
                Some("python3 -m unittest leap_test"),
            ),
            ("Run `pytest -q tests` before.", Some("pytest -q tests")),
            ("All of cargo test must pass.", Some("cargo test")),
            ("use pytest tests/test_a.py -x, please", Some("pytest tests/test_a.py -x")),
            ("Fix it. The tests are in leap_test.py.", None),
            ("mypytest is broken", None),
        ] {
            assert_eq!(named(task, &files).as_deref(), command, "{task}");
        }
        assert_eq!(tests_in("python3 -m unittest tests.test_a.Case.test_one", &files), ["tests/test_a.py"]);
        assert_eq!(tests_in("pytest tests/test_a.py::test_one", &files), ["tests/test_a.py"]);
    }
}
