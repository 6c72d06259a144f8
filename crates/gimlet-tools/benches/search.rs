//! `rg_search` and `list_files` beside the `rg` binary, on the same generated tree of 100,000 files in the same run.
//!
//! Without `rg` on the path only our side is measured.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use divan::Bencher;
use gimlet_tools::{Root, list_files, rg_search};

const FILES: usize = 100_000;

fn main() {
    divan::main();
}

/// A tree of small source files, made once and kept for the next run.
static TREE: LazyLock<PathBuf> = LazyLock::new(|| {
    let root = std::env::temp_dir().join(format!("gimlet-bench-{FILES}"));
    if !root.join("done").exists() {
        for folder in 0..FILES / 100 {
            let path = root.join(format!("pkg{:02}/mod{folder:04}", folder % 50));
            fs::create_dir_all(&path).expect("a folder");
            for file in 0..100 {
                let mut text = String::new();
                for line in 0..20 {
                    writeln!(text, "def function_{folder}_{file}_{line}(argument): return {line}")
                        .expect("a line");
                }
                if file == 7 && folder % 100 == 3 {
                    text.push_str("# the needle\n");
                }
                fs::write(path.join(format!("file{file:02}.py")), text).expect("a file");
            }
        }
        fs::write(root.join(".gitignore"), "*.log\n").expect("a file");
        fs::write(root.join("done"), "").expect("a file");
    }
    root
});

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn rg(arguments: &[&str]) {
    let status = Command::new("rg").args(arguments).current_dir(&*TREE).stdout(Stdio::null()).status();
    assert!(status.expect("rg runs").success());
}

fn rg_is_here() -> bool {
    Command::new("rg").arg("--version").stdout(Stdio::null()).status().is_ok()
}

#[divan::bench(sample_count = 10)]
fn search_ours(bencher: Bencher<'_, '_>) {
    let root = Root::open(&*TREE).expect("a root");
    let input = rg_search::Input { pattern: "the n[e]+dle".into(), glob: "*".into(), limit: 50 };
    bencher.bench_local(|| rg_search::search(&root, threads(), &input, &|| false).expect("matches").count);
}

#[divan::bench(sample_count = 10)]
fn search_rg(bencher: Bencher<'_, '_>) {
    if rg_is_here() {
        bencher.bench_local(|| rg(&["--line-number", "--no-heading", "the n[e]+dle"]));
    }
}

#[divan::bench(sample_count = 10)]
fn list_ours(bencher: Bencher<'_, '_>) {
    let root = Root::open(&*TREE).expect("a root");
    let input = list_files::Input { glob: "*.py".into(), limit: 100 };
    bencher.bench_local(|| list_files::list(&root, &input, &|| false).expect("files").total_matches);
}

#[divan::bench(sample_count = 10)]
fn list_rg(bencher: Bencher<'_, '_>) {
    if rg_is_here() {
        bencher.bench_local(|| rg(&["--files", "--glob", "*.py"]));
    }
}
