//! The checks that must hold before a change lands fail when one of their commands does, and the security model names tests
//! that there are.

use std::path::{Path, PathBuf};
use std::process::Command;

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn a_part_that_fails_in_the_middle_fails_the_whole() {
    let script = r#"set -euo pipefail
work=$(mktemp -d); log=$work/log
eval "$(sed -n '/^part() {/,/^}/p' .ci/run)"
broken() { false; echo WENT-ON; }
piped() { false | cat; echo WENT-ON; }
sound() { true; echo FINE; }
part sound sound
part "$1" "$1"
echo REACHED"#;
    for (name, holds) in [("sound", true), ("broken", false), ("piped", false)] {
        let output =
            Command::new("bash").args(["-c", script, "test", name]).current_dir(top()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.success(), holds, "{name}: {text}");
        assert_eq!(text.contains("REACHED"), holds, "{name}: {text}");
        assert!(!text.contains("WENT-ON"), "{name}: {text}");
    }
}

/// The gate of the core's packages fails when the list cannot be made, and when it is too long.
#[test]
fn the_package_gate_fails_without_a_list() {
    let script = r#"set -euo pipefail
eval "$(sed -n '/^packages() {/,/^}/p' .ci/run)"
cargo() { case $1$FAKE in treelong) seq 200;; treefine) seq 50;; *) return 101;; esac; }
packages"#;
    for (fake, holds) in [("broken", false), ("long", false), ("fine", true)] {
        let mut command = Command::new("bash");
        let output = command.args(["-c", script]).env("FAKE", fake).current_dir(top()).output().unwrap();
        assert_eq!(output.status.success(), holds, "{fake}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

/// What is installed for the checks is the same tomorrow.
#[test]
fn packages_of_the_checks_are_pinned() {
    let text = std::fs::read_to_string(top().join(".ci/run")).unwrap().replace("\\\n", " ");
    let is_install = |line: &&str| {
        line.contains("pip install") || line.contains("pip\" install") || line.contains("npm install")
    };
    let mut named = 0;
    for line in text.lines().filter(is_install) {
        let (_, words) = line.split_once("install").unwrap();
        let command = words.split(" || ").next().unwrap_or_default();
        let mut words = command.split_whitespace().peekable();
        while let Some(word) = words.next() {
            match word {
                "--prefix" | "--python" | "--only-binary" => drop(words.next()),
                option if option.starts_with('-') => {}
                package => {
                    named += 1;
                    let pinned = package.contains("==") || package[1..].contains('@');
                    assert!(pinned, ".ci/run installs {package} of any version");
                }
            }
        }
    }
    assert!(named >= 12, "{named} packages found");
}

/// Every crate is under the rule that closes all other ways to standard output and standard error.
#[test]
fn the_streams_have_one_door() {
    let rules = std::fs::read_to_string(top().join("clippy.toml")).unwrap();
    for path in ["std::io::stdout", "std::io::stderr", "tokio::io::stdout", "tokio::io::stderr"] {
        assert!(rules.contains(&format!("path = \"{path}\"")), "clippy.toml does not forbid {path}");
    }
    for entry in std::fs::read_dir(top().join("crates")).unwrap().flatten() {
        let own = entry.path().join("clippy.toml");
        assert!(!own.exists(), "{} takes the place of the workspace's rules", own.display());
        let manifest = std::fs::read_to_string(entry.path().join("Cargo.toml")).unwrap();
        assert!(
            manifest.contains("[lints]\nworkspace = true"),
            "{} has lints of its own",
            entry.path().display()
        );
    }
}

fn sources(folder: &Path, found: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
}

/// Words in a row of the security model that name tests.
fn tests_named(row: &str) -> Vec<&str> {
    let words = row.split('`').skip(1).step_by(2);
    words.filter(|word| word.matches('_').count() > 1 && !word.contains(['/', '.', ':', ' '])).collect()
}

#[test]
fn every_promise_of_the_security_model_names_tests_that_there_are() {
    let mut code = String::new();
    sources(&top().join("crates"), &mut code);
    let text = std::fs::read_to_string(top().join("docs/security.md")).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| property"));
    let mut all = Vec::new();
    for row in rows {
        let named = tests_named(row);
        assert!(!named.is_empty(), "docs/security.md names no test for: {row}");
        for name in &named {
            let start = format!("fn {}", name.trim_end_matches('*'));
            let is_there = match name.ends_with('*') {
                true => code.contains(&start),
                false => code.contains(&format!("{start}(")),
            };
            assert!(is_there, "docs/security.md names {name}, which is no test");
        }
        all.extend(named);
    }
    for number in 1..=16 {
        let start = format!("finding_{number:02}_");
        assert!(all.iter().any(|name| name.starts_with(&start)), "docs/security.md names no test {start}");
    }
}

/// SECURITY.md tells what is tried and how often; the numbers are counted here, from the tables themselves.
#[test]
fn the_security_policy_tells_how_much_is_tried() {
    let read = |name: &str| std::fs::read_to_string(top().join(name)).unwrap();
    let tables = ["commands.txt", "security.txt", "variants.txt"]
        .map(|name| read(&format!("crates/gimlet-policy/tests/{name}")))
        .join("\n");
    let verdicts = |words: &[&str]| {
        tables
            .lines()
            .filter(|line| line.split_once(' ').is_some_and(|(word, _)| words.contains(&word)))
            .count()
    };
    let cases = |name: &str| read(name).lines().filter(|line| line.starts_with("### ")).count();
    let mut code = String::new();
    sources(&top().join("crates"), &mut code);
    let counted = [
        ("commands that must be denied", verdicts(&["deny"])),
        ("commands that must ask or be denied", verdicts(&["ask", "ask!"])),
        ("everyday commands that must not ask", verdicts(&["allow"])),
        ("escapes from the Python sandbox", cases("crates/gimlet-python/tests/corpus/escapes.py.txt")),
        ("ways to exhaust the Python sandbox", cases("crates/gimlet-python/tests/corpus/denials.py.txt")),
        (
            "shapes of keys that are masked",
            read("crates/gimlet-text/src/shapes.json").matches("\"id\"").count(),
        ),
        ("tests named after a finding of the review", code.matches(&["fn ", "finding_"].concat()).count()),
    ];
    let table: String = counted.iter().map(|(what, count)| format!("| {what} | {count} |\n")).collect();
    let text = read("SECURITY.md");
    assert!(text.contains(&table), "the table of SECURITY.md should be:\n{table}");
}
