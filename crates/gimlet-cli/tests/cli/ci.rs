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

#[test]
fn the_security_model_names_tests_that_there_are() {
    let mut code = String::new();
    sources(&top().join("crates"), &mut code);
    let text = std::fs::read_to_string(top().join("docs/security.md")).unwrap();
    let words: Vec<&str> = text.split('`').skip(1).step_by(2).collect();
    let named: Vec<&str> = words.into_iter().filter(|word| word.starts_with("finding_")).collect();
    for name in &named {
        let start = format!("fn {}", name.trim_end_matches('*'));
        let whole = format!("{start}(");
        let is_there = if name.ends_with('*') { code.contains(&start) } else { code.contains(&whole) };
        assert!(is_there, "docs/security.md names {name}, which is no test");
    }
    for number in 1..=16 {
        let start = format!("finding_{number:02}_");
        assert!(named.iter().any(|name| name.starts_with(&start)), "docs/security.md names no test {start}");
    }
}
