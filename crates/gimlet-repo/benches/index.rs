//! Opening the index of 100,000 files, cold and warm, beside listing them: `rg --files` where it is installed, else the
//! same walk by the `ignore` crate.
#![expect(clippy::expect_used, clippy::print_stdout, reason = "a bench reports, and fails loudly")]

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use gimlet_repo::Index;

const FILES: usize = 100_000;
const ROUNDS: usize = 5;

/// A tree of small source files, made once and kept for the next run.
fn tree() -> PathBuf {
    let root = std::env::temp_dir().join(format!("gimlet-repo-bench-{FILES}"));
    if root.join("done").exists() {
        return root;
    }
    for folder in 0..FILES / 100 {
        let path = root.join(format!("pkg{:02}/mod{folder:04}", folder % 50));
        fs::create_dir_all(&path).expect("a folder");
        for file in 0..100 {
            let mut text = format!("from mod{:04} import function_{}_{file}_3\n", folder / 2, folder / 2);
            for line in 0..20 {
                writeln!(text, "def function_{folder}_{file}_{line}(argument): return {line}")
                    .expect("a line");
            }
            fs::write(path.join(format!("file{file:02}.py")), text).expect("a file");
        }
    }
    fs::write(root.join("done"), "").expect("a file");
    root
}

fn walk(root: &Path) -> Vec<PathBuf> {
    let walker = ignore::WalkBuilder::new(root).build();
    let files = walker.flatten().filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    files.filter_map(|entry| Some(entry.path().strip_prefix(root).ok()?.to_path_buf())).collect()
}

fn list(root: &Path) -> &'static str {
    let rg = Command::new("rg").arg("--files").current_dir(root).stdout(Stdio::null()).status();
    if rg.is_ok_and(|status| status.success()) {
        return "rg --files";
    }
    assert!(!walk(root).is_empty());
    "a walk by `ignore`"
}

fn best(mut work: impl FnMut()) -> Duration {
    let time = |work: &mut dyn FnMut()| {
        let began = Instant::now();
        work();
        began.elapsed()
    };
    (0..ROUNDS).map(|_| time(&mut work)).min().expect("a round")
}

fn main() {
    let root = tree();
    let cache = std::env::temp_dir().join("gimlet-repo-bench-cache");
    let files = walk(&root);
    let mut by = "";
    let listing = best(|| by = list(&root));
    let open = |cache: &Path| Index::open(&root, Some(cache), files.clone()).expect("an index");
    let cold = best(|| {
        fs::remove_dir_all(&cache).ok();
        assert_eq!(open(&cache).files().len(), files.len());
    });
    // Files changed just before the cache was written are read again; these are older.
    let warm = best(|| assert_eq!(open(&cache).reread(), 0));
    let index = open(&cache);
    let rank = best(|| assert!(!index.rank("fix function_77_12_3 in file12", 20).is_empty()));
    let map = best(|| assert!(!index.map(8000, &[]).is_empty()));
    println!("{} files, best of {ROUNDS}; {by}: {listing:?}", files.len());
    for (what, time) in [("open, cold", cold), ("open, warm", warm), ("rank", rank), ("map", map)] {
        println!("{what}: {time:?}, {:.2}x the listing", time.as_secs_f64() / listing.as_secs_f64());
    }
}
