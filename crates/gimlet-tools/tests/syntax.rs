//! Definitions and code search over all languages.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::fmt::Write;
use std::fs;
use std::path::Path;

use gimlet_tools::{Root, list_definitions, search_code};

fn fixtures() -> Root {
    Root::open(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/code")).unwrap()
}

/// What a model reads about each fixture, compactly.
#[test]
fn definitions_of_every_language() {
    let root = fixtures();
    let mut names: Vec<_> =
        fs::read_dir(root.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let mut text = String::new();
    for name in names {
        let output =
            list_definitions::list(&root, &list_definitions::Input { file_path: name.clone() }).unwrap();
        writeln!(text, "## {name}").unwrap();
        for found in output.definitions {
            let inside = found.inside.map(|inside| format!("  < {inside}")).unwrap_or_default();
            let doc = found.doc.map(|doc| format!("  -- {doc}")).unwrap_or_default();
            writeln!(text, "{}-{} {}{inside}{doc}", found.line, found.end_line, found.signature).unwrap();
        }
    }
    insta::assert_snapshot!(text);
}

fn search(root: &Root, pattern: &str, path: &str) -> Vec<String> {
    let input =
        search_code::Input { pattern: pattern.into(), file_path: path.into(), ignore_case: true, limit: 50 };
    let output = search_code::search(root, 2, &input, &|| false).unwrap();
    output
        .matches
        .into_iter()
        .map(|m| format!("{}:{} {:?} in {}", m.file, m.line, m.part, m.inside.unwrap_or_else(|| "-".into())))
        .collect()
}

#[test]
fn matches_tell_what_they_are_in() {
    let root = fixtures();
    insta::assert_snapshot!(search(&root, "total", "").join("\n"));
    assert_eq!(search(&root, "TOTAL", "shop.py"), search(&root, "total", "./shop.py"));
    assert_eq!(search(&root, "total", ".").len(), search(&root, "total", "").len());
}

#[test]
fn unknown_languages_are_searched_and_not_outlined() {
    let temp = tempfile::tempdir().unwrap();
    fs::write(temp.path().join("notes.txt"), "the total\n").unwrap();
    fs::write(temp.path().join(".hidden.py"), "total = 1\n").unwrap();
    let root = Root::open(temp.path()).unwrap();
    assert_eq!(search(&root, "total", ""), ["notes.txt:1 None in -"]);
    assert_eq!(search(&root, "total", ".hidden.py").len(), 1, "a file that is named is searched");
    let error = list_definitions::list(&root, &list_definitions::Input { file_path: "notes.txt".into() })
        .unwrap_err();
    assert!(
        error.to_string().starts_with("UNSUPPORTED_LANGUAGE") && error.to_string().contains("tsx"),
        "{error}"
    );
}

#[test]
fn broken_and_deep_code_is_survived() {
    let temp = tempfile::tempdir().unwrap();
    let deep = format!("x = {}{}\ndef f():\n  pass\n", "(".repeat(20_000), ")".repeat(20_000));
    fs::write(temp.path().join("deep.py"), deep).unwrap();
    fs::write(temp.path().join("broken.rs"), "fn a( {{{ \n struct S { x: \n\u{0}\u{ff}").unwrap();
    let root = Root::open(temp.path()).unwrap();
    for name in ["deep.py", "broken.rs"] {
        list_definitions::list(&root, &list_definitions::Input { file_path: name.into() }).unwrap();
    }
}

#[test]
fn secrets_stay_secret() {
    let temp = tempfile::tempdir().unwrap();
    fs::write(temp.path().join("id_rsa"), "total\n").unwrap();
    fs::write(temp.path().join(".env"), "total\n").unwrap();
    let root = Root::open(temp.path()).unwrap();
    assert!(search(&root, "total", "").is_empty());
    for path in ["id_rsa", ".env", "../x", "/etc/passwd"] {
        let input =
            search_code::Input { pattern: "a".into(), file_path: path.into(), ignore_case: true, limit: 5 };
        assert!(search_code::search(&root, 1, &input, &|| false).is_err(), "{path}");
        let input = list_definitions::Input { file_path: path.into() };
        assert!(list_definitions::list(&root, &input).is_err(), "{path}");
    }
}
