//! `bench/`: that its commands work and that the report tells what the numbers say. How fast anything is, is no test.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// Whether there is a Python to run `bench/` with; nothing else here needs one, and CI has it.
fn has_python() -> bool {
    let there = Command::new("python3").arg("--version").output().is_ok();
    assert!(there || std::env::var_os("CI").is_none(), "Python is needed on CI");
    there
}

fn bench(name: &str) -> Command {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench");
    let mut command = Command::new("python3");
    command.arg(root.join(name));
    command
}

fn gimlet() -> PathBuf {
    assert_cmd::cargo::cargo_bin!("gimlet").to_path_buf()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn the_report_comes_from_the_raw_numbers() {
    if !has_python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bench/sample/first.json");
    let page = folder.path().join("page.md");
    std::fs::write(&page, "before\n\n<!-- bench -->\nold\n<!-- /bench -->\n\nafter\n").unwrap();
    let said = bench("report").arg(sample).arg(folder.path()).arg(page).output().unwrap();
    assert!(said.status.success(), "{}", text(&said));
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    insta::assert_snapshot!("report", read("README.md"));
    insta::assert_snapshot!("chart", read("chart.svg"));
    insta::assert_snapshot!("page", read("page.md"));
}

#[test]
fn a_page_without_marks_is_left_alone() {
    if !has_python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bench/sample/first.json");
    let page = folder.path().join("page.md");
    std::fs::write(&page, "no marks\n").unwrap();
    let said = bench("report").arg(sample).arg(folder.path()).arg(&page).output().unwrap();
    assert!(
        !said.status.success() && text(&said).contains("must have one <!-- bench -->"),
        "{}",
        text(&said)
    );
    assert_eq!(std::fs::read_to_string(page).unwrap(), "no marks\n");
}

#[test]
fn the_published_report_comes_from_its_raw_numbers() {
    if !has_python() {
        return;
    }
    let results = repository().join("bench/results");
    let published = |name: &str| std::fs::read_to_string(results.join(name)).unwrap();
    let report = published("README.md");
    let (_, named) = report.split_once("Made by `bench/run` from [").unwrap();
    let (raw, _) = named.split_once(']').unwrap();
    let page = std::fs::read_to_string(repository().join("README.md")).unwrap();
    let (before, marked) = page.split_once("<!-- bench -->").unwrap();
    let (_, after) = marked.split_once("<!-- /bench -->").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("page.md");
    std::fs::write(&copy, format!("{before}<!-- bench --><!-- /bench -->{after}")).unwrap();
    let said = bench("report").arg(results.join(raw)).arg(folder.path()).arg(&copy).output().unwrap();
    assert!(said.status.success(), "{}", text(&said));
    let made = std::fs::read_to_string(&copy).unwrap();
    assert!(made == page, "the figures in README.md are not what `bench/report` makes of {raw}");
    for name in ["README.md", "chart.svg"] {
        let made = std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(made == published(name), "bench/results/{name} is not what `bench/report` makes of {raw}");
    }
}

#[test]
fn a_quick_run_measures_gimlet_and_says_who_is_missing() {
    if !has_python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut run = bench("run");
    run.arg("--quick").arg("--gimlet").arg(gimlet()).arg("--results").arg(folder.path());
    let said = run.arg("--peers").arg(folder.path().join("nobody")).output().unwrap();
    assert!(said.status.success(), "{}", text(&said));
    let readme = repository().join("README.md");
    assert!(!text(&said).contains(readme.to_str().unwrap()), "only published numbers are told in README.md");

    let files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let raw = files.into_iter().find(|path| path.extension().is_some_and(|ext| ext == "json")).unwrap();
    let raw = std::fs::read_to_string(raw).unwrap();
    let results: Value = serde_json::from_str(&raw).unwrap();
    let rows = results["rows"].as_array().unwrap();
    for key in
        ["start.time", "two.memory", "long.late", "long.kept", "parallel.cpu", "python.mean", "search.few"]
    {
        let row = rows.iter().find(|row| row["key"] == key).unwrap();
        for who in ["gimlet", "gimlet-again"] {
            let values = row["values"][who].as_array().unwrap();
            assert!(values.iter().all(|value| value.as_f64().unwrap() > 0.0), "{key} of {who}: {values:?}");
        }
        assert!(row["missing"].get("gimlet-code").is_none(), "{}", row["missing"]);
    }
    let two = rows.iter().find(|row| row["key"] == "two.time").unwrap();
    for who in ["smolagents-tools", "smolagents-code", "goose", "codex"] {
        assert!(two["missing"][who].as_str().unwrap().starts_with("not installed"), "{who}");
    }
    // Every request of a run extends the one before it.
    let kept = rows.iter().find(|row| row["key"] == "long.kept").unwrap();
    assert_eq!(kept["values"]["gimlet"][0], 1.0);
    let report = std::fs::read_to_string(folder.path().join("README.md")).unwrap();
    assert!(
        report.contains("its numbers mean nothing") && report.contains("**goose** is missing"),
        "{report}"
    );
    let temporary = folder.path().to_str().unwrap();
    assert!(
        !raw.contains(temporary) && !raw.contains(env!("CARGO_MANIFEST_DIR")),
        "no paths in the raw numbers"
    );
}

#[test]
fn without_a_binary_it_says_how_to_build_one() {
    if !has_python() {
        return;
    }
    let said = bench("run").args(["--gimlet", "/nowhere/gimlet"]).output().unwrap();
    assert_eq!(said.status.code(), Some(2));
    let text = text(&said);
    assert!(
        text.contains("there is no /nowhere/gimlet") && text.contains("hint: cargo build --release"),
        "{text}"
    );
}
