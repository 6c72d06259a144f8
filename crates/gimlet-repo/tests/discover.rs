//! Which test commands are found in projects of each kind.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::PathBuf;

use gimlet_repo::checks::discover;

fn commands(files: &[(&str, &str)], changed: &[&str]) -> Vec<String> {
    let temp = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = temp.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let changed: Vec<PathBuf> = changed.iter().map(PathBuf::from).collect();
    discover(temp.path(), &changed).into_iter().map(|found| found.command).collect()
}

#[test]
fn python() {
    let unittest = "import unittest\n";
    assert_eq!(
        commands(&[("leap.py", ""), ("leap_test.py", unittest)], &["leap.py"]),
        ["python3 -m unittest leap_test", "python3 -m unittest discover -p '*_test.py'"]
    );
    assert_eq!(
        commands(&[("leap.py", ""), ("leap_test.py", "import pytest\n")], &["leap.py"]),
        ["pytest -q leap_test.py", "pytest -q"]
    );
    assert_eq!(
        commands(
            &[("pyproject.toml", "[tool.pytest]"), ("src/a.py", ""), ("tests/test_a.py", unittest)],
            &["src/a.py"]
        ),
        ["pytest -q tests/test_a.py", "pytest -q"]
    );
    assert_eq!(commands(&[("test_a.py", unittest)], &[]), ["python3 -m unittest"]);
    assert_eq!(commands(&[("setup.py", "")], &[]), ["pytest -q"]);
    assert_eq!(commands(&[("svc/pytest.ini", ""), ("svc/a.py", "")], &["svc/a.py"]), ["pytest -q svc"]);
}

#[test]
fn rust_go_and_jvm() {
    assert_eq!(commands(&[("Cargo.toml", "")], &[]), ["cargo test"]);
    assert_eq!(
        commands(&[("core/Cargo.toml", ""), ("core/src/lib.rs", "")], &["core/src/lib.rs"]),
        ["cargo test --manifest-path core/Cargo.toml"]
    );
    assert_eq!(
        commands(&[("go.mod", ""), ("pkg/a.go", "")], &["pkg/a.go"]),
        ["go test ./pkg", "go test ./..."]
    );
    assert_eq!(commands(&[("pom.xml", "")], &[]), ["mvn -q test"]);
    assert_eq!(commands(&[("build.gradle.kts", ""), ("gradlew", "")], &[]), ["./gradlew test"]);
}

#[test]
fn javascript() {
    let script = |script: &str| format!("{{\"scripts\":{{\"test\":\"{script}\"}}}}");
    assert_eq!(commands(&[("package.json", &script("vitest run"))], &[]), ["npm test"]);
    assert_eq!(commands(&[("package.json", &script("jest")), ("pnpm-lock.yaml", "")], &[]), ["pnpm test"]);
    assert_eq!(commands(&[("package.json", r#"{"devDependencies":{"jest":"1"}}"#)], &[]), ["npx jest"]);
    assert_eq!(commands(&[("package.json", "{}"), ("a.test.js", "")], &[]), ["node --test"]);
    assert!(commands(&[("package.json", "not json")], &[]).is_empty());
    assert_eq!(
        commands(&[("web/package.json", &script("jest")), ("web/a.ts", "")], &["web/a.ts"]),
        ["npm --prefix web test"]
    );
}

#[test]
fn c_ruby_and_shell() {
    assert_eq!(commands(&[("Makefile", "all:\n\ntest: all\n\t./t\n")], &[]), ["make test"]);
    assert_eq!(commands(&[("Makefile", "check:\n\t./t\n")], &[]), ["make check"]);
    assert!(commands(&[("Makefile", "testing:\ntest := 1\n")], &[]).is_empty());
    let cmake = commands(&[("CMakeLists.txt", "enable_testing()\n")], &[]);
    assert_eq!(
        cmake,
        ["cmake -S . -B build && cmake --build build && ctest --test-dir build --output-on-failure"]
    );
    assert_eq!(
        commands(&[("lib/cart.rb", ""), ("spec/cart_spec.rb", "")], &["lib/cart.rb"]),
        ["rspec spec/cart_spec.rb", "rspec"]
    );
    assert_eq!(commands(&[("tests/a.bats", "")], &[]), ["bats tests"]);
}

#[test]
fn the_suite_of_the_changed_language_comes_first() {
    let files = &[
        ("Cargo.toml", ""),
        ("package.json", r#"{"scripts":{"test":"jest"}}"#),
        ("web/a.ts", ""),
        ("src/lib.rs", ""),
    ];
    assert_eq!(commands(files, &["web/a.ts"]), ["npm test", "cargo test"]);
    assert_eq!(commands(files, &["src/lib.rs"]), ["cargo test", "npm test"]);
}

#[test]
fn odd_names_are_quoted_and_paths_outside_are_not_followed() {
    assert_eq!(commands(&[("a b_test.py", "x")], &["a b_test.py"]), ["pytest -q 'a b_test.py'", "pytest -q"]);
    assert!(commands(&[], &["../x_test.py", "/etc/passwd"]).is_empty());
}
