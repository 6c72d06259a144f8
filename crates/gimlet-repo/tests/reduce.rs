//! The output of real test runners, reduced. Each fixture's first lines say which version wrote it and with which command.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use gimlet_repo::checks::{Runner, reduce};

fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/runners");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// The command and the output of a fixture.
fn read(path: &Path) -> (String, String) {
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    assert!(lines.next().unwrap().starts_with("# version: "), "{}", path.display());
    let command = lines.next().unwrap().strip_prefix("# command: ").unwrap().to_owned();
    (command, lines.collect::<Vec<_>>().join("\n"))
}

#[test]
fn what_is_kept_of_every_runner() {
    let mut shown = String::new();
    for path in fixtures() {
        let (command, output) = read(&path);
        let reduced = reduce(&command, &output, 900);
        let name = path.file_stem().unwrap().to_string_lossy();
        writeln!(
            shown,
            "## {name}: {:?}, passed {:?}, failed {:?}, first {:?}\n{}\n",
            reduced.runner, reduced.passed, reduced.failed, reduced.first_failure, reduced.text
        )
        .unwrap();
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn a_failure_is_told_whole_within_any_budget() {
    for path in fixtures() {
        let (command, output) = read(&path);
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        for budget in [0, 10, 60, 200, 400, 2000] {
            let reduced = reduce(&command, &output, budget);
            assert!(reduced.text.chars().count() <= budget, "{name} at {budget}");
            let fails = !name.ends_with("-passed");
            assert_eq!(reduced.failed != Some(0), fails, "{name}");
            assert_eq!(reduced.first_failure.is_some(), fails, "{name}");
        }
    }
}

/// `npm test`, `make test` and scripts only start a runner: it is known by what it prints.
#[test]
fn runners_are_known_by_their_output() {
    for path in fixtures() {
        let (command, output) = read(&path);
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if name.ends_with("-build")
            || ["pytest-collect", "pytest-passed", "pytest-failed"].contains(&name.as_str())
        {
            continue;
        }
        let expected = reduce(&command, &output, 500).runner;
        assert_ne!(expected, Runner::Other, "{name}");
        assert_eq!(reduce("make test", &output, 500).runner, expected, "{name}");
    }
}
