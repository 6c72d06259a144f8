//! `rg_search` and `list_files` beside the `rg` binary on the path, on the same generated tree of 100,000 files, in turns.
#![expect(clippy::expect_used, clippy::print_stdout, reason = "a bench reports, and fails loudly")]

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::Instant;

use gimlet_tools::{Root, list_files, rg_search};

const FILES: usize = 100_000;
const ROUNDS: usize = 9;

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

fn rg(arguments: &[&str]) {
    let status = Command::new("rg").args(arguments).current_dir(&*TREE).stdout(Stdio::null()).status();
    assert!(status.expect("rg runs").success());
}

/// Runs both in turns, so that whatever else the machine does meets both alike, and tells the ratio.
fn compare(what: &str, ours: impl Fn() -> usize, rg_arguments: &[&str]) {
    let (mut mine, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let began = Instant::now();
        assert!(std::hint::black_box(ours()) > 0);
        mine.push(began.elapsed());
        let began = Instant::now();
        rg(rg_arguments);
        theirs.push(began.elapsed());
    }
    mine.sort();
    theirs.sort();
    let ratio = |at: usize| mine[at].as_secs_f64() / theirs[at].as_secs_f64();
    println!(
        "{what}: {:.2}x the time of rg in the best of {ROUNDS} rounds ({:?} to {:?}), {:.2}x in the median one",
        ratio(0),
        mine[0],
        theirs[0],
        ratio(ROUNDS / 2)
    );
}

fn main() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let root = Root::open(&*TREE).expect("a root");
    let input = rg_search::Input { pattern: "the n[e]+dle".into(), glob: "*".into(), limit: 50 };
    let search = || rg_search::search(&root, threads, &input, &|| false).expect("matches").count;
    compare("rg_search", search, &["--line-number", "--no-heading", "the n[e]+dle"]);
    let input = list_files::Input { glob: "*.py".into(), limit: 100 };
    let list = || list_files::list(&root, &input, &|| false).expect("files").total_matches;
    compare("list_files", list, &["--files", "--glob", "*.py"]);
}
