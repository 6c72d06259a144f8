//! Ways out of the project, tried through every tool that takes a path.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gimlet::command::{Environment, Permissions};
use gimlet::effect::Effect;
use gimlet::tool::{Tool, ToolError};
use gimlet_tools::command::HostRunner;
use gimlet_tools::git::Git;
use gimlet_tools::patch::{self, Patches, ScratchValidator};
use gimlet_tools::read_file::Page;
use gimlet_tools::{
    Kit, Root, Rules, file_info, git_diff, git_log, list_definitions, list_files, read_file,
    read_file_snippet, rg_search, search_code,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const SECRET: &str = "TOP-SECRET";

/// A project with traps in it, and secrets around it.
struct Trap {
    _temp: tempfile::TempDir,
    outside: PathBuf,
    project: PathBuf,
    root: Root,
}

impl Trap {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        let (outside, project) = (base.join("outside"), base.join("project"));
        for folder in ["src", "sub", "keys", ".git", ".ssh", "home", "dir.key"] {
            fs::create_dir_all(project.join(folder)).unwrap();
        }
        fs::create_dir_all(outside.join("deep")).unwrap();
        for path in ["secret.txt", "deep/secret.txt", "a.txt"] {
            fs::write(outside.join(path), SECRET).unwrap();
        }
        fs::write(base.join("project-twin"), SECRET).unwrap();
        for path in [
            ".env",
            ".env.local",
            "src/.env.production",
            "keys/id_rsa",
            "keys/id_ed25519.bak",
            "server.pem",
            "a.key",
            ".git/config",
            ".ssh/known_hosts",
            "home/grants.json",
            "credentials.json",
            ".netrc",
            "dir.key/inside",
        ] {
            fs::write(project.join(path), SECRET).unwrap();
        }
        fs::write(project.join("src/a.txt"), "fine\n").unwrap();
        fs::write(project.join("a..b"), "fine\n").unwrap();
        fs::write(project.join("-dash"), "fine\n").unwrap();
        fs::write(project.join("id_utils.py"), "fine\n").unwrap();
        fs::write(project.join(".env.example"), "fine\n").unwrap();
        let outside_text = outside.to_str().unwrap();
        for (link, target) in [
            ("link_file", "../outside/secret.txt"),
            ("link_abs", &format!("{outside_text}/secret.txt")),
            ("link_dir", "../outside"),
            ("link_up", ".."),
            ("sub/up", "../.."),
            ("loop", "loop"),
            ("one", "two"),
            ("two", "three"),
            ("three", "../outside/secret.txt"),
            ("etc", "/etc"),
            ("passwd", "/etc/passwd"),
            ("null", "/dev/null"),
            ("proc", "/proc/self"),
            ("innocent.txt", ".env"),
            ("innocent_dir", ".ssh"),
            ("conf", ".git/config"),
            ("to_home", "home"),
            ("dangling", "../outside/none"),
            ("inside", "src/a.txt"),
            ("here", "."),
        ] {
            symlink(target, project.join(link)).unwrap();
        }
        let fifo = std::process::Command::new("mkfifo").arg(project.join("fifo")).status().unwrap();
        assert!(fifo.success());
        drop(std::os::unix::net::UnixListener::bind(project.join("socket")).unwrap());
        let root = Root::with_rules(&project, &Rules::default(), &[project.join("home")]).unwrap();
        Trap { _temp: temp, outside, project, root }
    }

    fn kit(&self) -> Kit {
        let environment = Environment::allowed(std::env::vars_os());
        Kit {
            root: self.root.clone(),
            page: Page::default(),
            threads: 2,
            patches: Patches::default(),
            validator: Arc::new(ScratchValidator { environment: environment.clone() }),
            runner: Arc::new(HostRunner),
            permissions: Permissions::default(),
            looks_only: Arc::new(|_| false),
            environment,
        }
    }

    /// Paths that must not lead anywhere.
    fn attempts(&self) -> Vec<String> {
        let outside = self.outside.to_str().unwrap();
        let project = self.project.to_str().unwrap();
        let mut attempts: Vec<String> = [
            "..",
            "../",
            "../outside/secret.txt",
            "./../outside/secret.txt",
            "src/../../outside/secret.txt",
            "src/../../../../../../../../etc/passwd",
            "../project-twin",
            "../project/../outside/secret.txt",
            "../..",
            "/",
            "//",
            "/etc/passwd",
            "//etc/passwd",
            "/etc/../etc/passwd",
            "/proc/self/environ",
            "/proc/self/root/etc/passwd",
            "/dev/null",
            "/dev/zero",
            "/dev/stdin",
            "/dev/fd/0",
            "/sys/kernel/notes",
            "link_file",
            "./link_file",
            "src/../link_file",
            "link_abs",
            "link_dir",
            "link_dir/",
            "link_dir/secret.txt",
            "link_dir/deep/secret.txt",
            "link_dir/new.txt",
            "link_up",
            "link_up/outside/secret.txt",
            "sub/up",
            "sub/up/outside/secret.txt",
            "sub/up/project-twin",
            "loop",
            "loop/x",
            "one",
            "two",
            "etc",
            "etc/passwd",
            "etc/hostname",
            "passwd",
            "null",
            "proc",
            "proc/environ",
            "proc/cwd/../outside/secret.txt",
            "here/link_file",
            "here/here/link_dir/secret.txt",
            ".env",
            "./.env",
            "src/../.env",
            ".ENV",
            ".env.local",
            "src/.env.production",
            "here/.env",
            "keys/id_rsa",
            "keys/id_ed25519.bak",
            "server.pem",
            "a.key",
            ".git/config",
            ".git/../.git/config",
            "here/.git/config",
            "conf",
            ".ssh/known_hosts",
            "innocent.txt",
            "innocent_dir/known_hosts",
            "credentials.json",
            ".netrc",
            "dir.key/inside",
            "home",
            "home/grants.json",
            "to_home/grants.json",
            "here/home/grants.json",
            "home/new.json",
            "fifo",
            "socket",
            "here/fifo",
            "",
            "   ",
            "\0",
            "src/a.txt\0",
            "link_file\0.txt",
            "src/a.txt/../../../outside/secret.txt",
        ]
        .map(String::from)
        .to_vec();
        attempts.extend([
            format!("{outside}/secret.txt"),
            format!("{project}/../outside/secret.txt"),
            format!("{project}-twin"),
            format!("{project}/link_dir/secret.txt"),
            format!("{project}/.env"),
            format!("{project}/home/grants.json"),
        ]);
        attempts
    }
}

fn failure(error: &ToolError) -> (String, String) {
    match error {
        ToolError::Failed(failure) => (failure.error.clone(), serde_json::to_string(failure).unwrap()),
        other @ (ToolError::Suspended(_) | ToolError::Fatal(_)) => {
            panic!("a path must not end the run: {other}")
        }
    }
}

/// Refused for a reason that is about the path, and without a word of what is there.
fn assert_refused<T: std::fmt::Debug>(tool: &str, path: &str, result: Result<T, ToolError>) {
    let error = match result {
        Ok(output) => panic!("{tool} took {path:?}: {output:?}"),
        Err(error) => error,
    };
    let (word, whole) = failure(&error);
    let words = [
        "PATH_OUTSIDE_ROOT",
        "SENSITIVE_FILE",
        "PROTECTED_FILE",
        "NOT_A_FILE",
        "VALIDATION_FAILED",
        "READ_FAILED",
        "FILE_NOT_FOUND",
    ];
    assert!(words.contains(&word.as_str()), "{tool} {path:?}: {error}");
    assert!(!whole.contains(SECRET), "{tool} {path:?} told the secret: {whole}");
}

#[test]
fn there_are_enough_attempts() {
    assert!(Trap::new().attempts().len() >= 60);
}

#[test]
fn no_file_tool_leaves_the_root() {
    let trap = Trap::new();
    for path in trap.attempts() {
        let input = read_file::Input { path: path.clone(), start_line: 1, end_line: None };
        assert_refused("read_file", &path, read_file::read(&trap.root, Page::default(), &input, &|| false));
        let input = read_file_snippet::Input { path: path.clone(), pattern: "TOP".into(), context_lines: 1 };
        assert_refused("read_file_snippet", &path, read_file_snippet::snippet(&trap.root, &input, &|| false));
        let info = file_info::info(&trap.root, &file_info::Input { path: path.clone() });
        assert_refused("file_info", &path, info);
        let listed = list_definitions::list(&trap.root, &list_definitions::Input { file_path: path.clone() });
        assert_refused("list_definitions", &path, listed);
        if !path.trim().is_empty() {
            let input = search_code::Input {
                pattern: "TOP".into(),
                file_path: path.clone(),
                ignore_case: true,
                limit: 9,
            };
            assert_refused("search_code", &path, search_code::search(&trap.root, 1, &input, &|| false));
        }
    }
}

#[test]
fn no_patch_leaves_the_root() {
    let trap = Trap::new();
    for path in trap.attempts() {
        let proposed = patch::propose_texts(&trap.root, "x", &path, "", "pwned\n");
        assert_refused("propose_patch", &path, proposed);
        let proposed = patch::propose_texts(&trap.root, "x", &path, SECRET, "pwned\n");
        assert_refused("propose_patch", &path, proposed);
        if path.trim().is_empty() || path.contains('\0') {
            continue;
        }
        for diff in [
            format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{SECRET}\n+pwned\n"),
            format!("--- {path}\n+++ {path}\n@@ -1 +1 @@\n-{SECRET}\n+pwned\n"),
            format!("--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+pwned\n"),
            format!("--- a/{path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-{SECRET}\n"),
            format!("diff --git a/{path} b/x.txt\nrename from {path}\nrename to x.txt\n"),
            format!("diff --git a/src/a.txt b/{path}\nrename from src/a.txt\nrename to {path}\n"),
            format!(
                "--- a/src/a.txt\n+++ b/src/a.txt\n@@ -1 +1 @@\n-fine\n+good\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{SECRET}\n+pwned\n"
            ),
        ] {
            if let Err(error) = patch::propose_diff(&trap.root, "x", &diff) {
                let (_, whole) = failure(&error);
                assert!(!whole.contains(&format!("{SECRET}\\n")), "{path:?}: {whole}");
            } else {
                panic!("a patch of {path:?} was taken: {diff}");
            }
        }
    }
    assert_eq!(fs::read_to_string(trap.outside.join("secret.txt")).unwrap(), SECRET);
}

#[test]
fn protected_files_are_read_only() {
    let trap = Trap::new();
    fs::write(trap.project.join("gimlet.toml"), "x = 1\n").unwrap();
    fs::write(trap.project.join(".git/HEAD"), "ref: x\n").unwrap();
    for path in [
        "gimlet.toml",
        "mcp.json",
        ".git/HEAD",
        ".git/hooks/pre-commit",
        ".git",
        "here/gimlet.toml",
        "sub/.git/config2",
    ] {
        let error = patch::propose_texts(&trap.root, "x", path, "", "x").unwrap_err();
        let word = failure(&error).0;
        assert!(["PROTECTED_FILE", "SENSITIVE_FILE"].contains(&word.as_str()), "{path}: {error}");
    }
    let input = read_file::Input { path: "gimlet.toml".into(), start_line: 1, end_line: None };
    assert!(read_file::read(&trap.root, Page::default(), &input, &|| false).is_ok());
}

#[test]
fn no_glob_leaves_the_root() {
    let trap = Trap::new();
    let globs = trap.attempts().into_iter().flat_map(|path| {
        [
            path.clone(),
            format!("{path}/*"),
            format!("{path}/**"),
            format!("{{{path},x}}"),
            format!("**/{path}"),
        ]
    });
    for glob in globs {
        let input = list_files::Input { glob: glob.clone(), limit: 10_000 };
        if let Ok(output) = list_files::list(&trap.root, &input, &|| false) {
            for file in output.files {
                assert!(trap.root.may_show(Path::new(&file)), "{glob:?} listed {file}");
                let real = trap.project.join(&file).canonicalize().unwrap();
                assert!(real.starts_with(&trap.project), "{glob:?} listed {file}");
            }
        }
        let input = rg_search::Input { pattern: "TOP.SECRET".into(), glob: glob.clone(), limit: 100 };
        if let Ok(output) = rg_search::search(&trap.root, 2, &input, &|| false) {
            assert!(output.matches.is_empty(), "{glob:?} found {:?}", output.matches);
        }
    }
}

#[tokio::test]
async fn no_pathspec_leaves_the_root() {
    let trap = Trap::new();
    fs::remove_dir_all(trap.project.join(".git")).unwrap();
    let environment = Environment::allowed(std::env::vars_os());
    for arguments in [&["init", "-q"][..], &["add", "-f", "src", ".env", "a.key"]] {
        let git =
            std::process::Command::new("git").args(arguments).current_dir(&trap.project).output().unwrap();
        assert!(git.status.success(), "{git:?}");
    }
    fs::create_dir_all(trap.project.join(".git")).unwrap();
    let git = Git { root: trap.root.clone(), environment };
    let cancel = CancellationToken::new();
    for path in trap.attempts().into_iter().filter(|path| !path.trim().is_empty()) {
        let input = git_log::Input { limit: 5, file_path: path.clone() };
        let logged = git_log::log(&git, &input, &cancel).await;
        let input = git_diff::Input { file_path: path.clone(), staged: true };
        let shown = git_diff::diff(&git, &input, &cancel).await;
        // A pipe has a name that git may be asked about; it has no contents there.
        for text in [format!("{logged:?}"), format!("{shown:?}")] {
            assert!(!text.contains(SECRET), "{path:?}: {text}");
        }
        if !path.ends_with("fifo") && !path.ends_with("socket") {
            assert_refused("git_log", &path, logged);
            assert_refused("git_diff", &path, shown);
        }
    }
    let all = git_diff::diff(&git, &git_diff::Input { file_path: String::new(), staged: true }, &cancel)
        .await
        .unwrap();
    assert!(all.diff.contains("+fine") && !all.diff.contains(SECRET));
    assert_eq!(all.omitted, [".env", "a.key", "src/.env.production"]);
}

/// The arguments of each tool that takes a path, with the path in place.
fn arguments(tool: &str, path: &str) -> Option<Value> {
    Some(match tool {
        "read_file" | "file_info" => json!({ "path": path }),
        "read_file_snippet" => json!({ "path": path, "pattern": "x" }),
        "git_diff" | "git_log" | "list_definitions" => json!({ "file_path": path }),
        "search_code" => json!({ "pattern": "x", "file_path": path }),
        "propose_patch" => {
            json!({ "intent": "x", "file_path": path, "original_content": "", "new_content": "y" })
        }
        "propose_patch_unified" => {
            json!({ "intent": "x", "unified_diff": format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-a\n+b\n") })
        }
        _ => return None,
    })
}

#[test]
fn effects_are_refused_before_anything_runs() {
    let trap = Trap::new();
    let kit = trap.kit();
    let tools: Vec<Arc<dyn Tool>> = kit.reading().into_iter().chain(kit.changing()).collect();
    let mut tried = 0;
    for tool in &tools {
        let name = tool.spec().name.clone();
        for path in trap.attempts() {
            let Some(arguments) = arguments(&name, &path) else { continue };
            let empty_means_all = ["git_diff", "git_log", "search_code", "propose_patch_unified"];
            if path.trim().is_empty() && empty_means_all.contains(&name.as_str()) {
                continue;
            }
            // A pipe may be named; it is refused when it is opened.
            if ["fifo", "socket"].iter().any(|end| path.ends_with(end)) {
                continue;
            }
            if let Ok(effects) = tool.effects(&arguments) {
                panic!("{name} would take {path:?}: {effects:?}");
            }
            tried += 1;
        }
    }
    assert!(tried >= 9 * 60, "{tried}");
}

#[test]
fn what_lies_inside_is_reached() {
    let trap = Trap::new();
    let absolute = format!("{}/src/a.txt", trap.project.display());
    for (path, real) in [
        ("src/a.txt", "src/a.txt"),
        ("./src/a.txt", "src/a.txt"),
        ("src/../src/./a.txt", "src/a.txt"),
        ("src//a.txt", "src/a.txt"),
        (" src/a.txt ", "src/a.txt"),
        ("inside", "src/a.txt"),
        ("here/src/a.txt", "src/a.txt"),
        ("here/here/inside", "src/a.txt"),
        (&absolute, "src/a.txt"),
        ("a..b", "a..b"),
        ("-dash", "-dash"),
        ("id_utils.py", "id_utils.py"),
        (".env.example", ".env.example"),
    ] {
        let input = read_file::Input { path: path.into(), start_line: 1, end_line: None };
        let output = read_file::read(&trap.root, Page::default(), &input, &|| false).unwrap();
        assert_eq!((output.path.as_str(), output.lines.as_str()), (real, "fine\n"), "{path}");
        let effects = trap.kit().reading()[3].effects(&json!({ "path": path })).unwrap();
        assert_eq!(effects, [Effect::Read { path: real.into() }]);
    }
}

#[test]
fn a_root_inside_a_hidden_folder_is_refused() {
    let trap = Trap::new();
    let home = trap.project.join("home");
    fs::create_dir(home.join("deep")).unwrap();
    for path in [home.clone(), home.join("deep"), trap.project.join("to_home/deep")] {
        assert!(Root::with_rules(path, &Rules::default(), std::slice::from_ref(&home)).is_err());
    }
}

proptest::proptest! {
    /// Whatever is put together, it ends inside or nowhere.
    #[test]
    fn no_path_resolves_to_the_outside(parts in proptest::collection::vec(0usize..14, 0..8), absolute: bool) {
        static TRAP: std::sync::LazyLock<Trap> = std::sync::LazyLock::new(Trap::new);
        let names = [
            "..", ".", "", "src", "sub", "up", "link_up", "link_dir", "here", "outside", "project", "a.txt", "inside", "new",
        ];
        let parts: Vec<&str> = parts.into_iter().map(|part| names[part]).collect();
        let start = if absolute { format!("{}/", TRAP.project.display()) } else { String::new() };
        let path = format!("{start}{}", parts.join("/"));
        if let Ok(resolved) = TRAP.root.resolve(&path) {
            let mut real = TRAP.project.join(resolved.as_path());
            while !real.exists() {
                real.pop();
            }
            proptest::prop_assert!(real.canonicalize().unwrap().starts_with(&TRAP.project), "{} -> {:?}", path, resolved);
        }
    }
}

/// Exchanges `place`, a folder of the project, with a link out of it, again and again until told to stop.
fn swap(place: &Path, outside: &Path, stop: &AtomicBool) {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    let link = place.with_extension("link");
    symlink(outside, &link).unwrap();
    let mut pause = 1u32;
    let mut exchange = || {
        renameat_with(CWD, place, CWD, &link, RenameFlags::EXCHANGE).unwrap();
        // Pauses of ever changing length, so that every step of a call is hit sooner or later.
        pause = pause.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        for _ in 0..pause >> 19 {
            std::hint::spin_loop();
        }
    };
    while !stop.load(Ordering::Relaxed) {
        exchange();
        exchange();
    }
}

/// Reads the way one must not, until the race has been lost: then it is fast enough to catch a mistake.
fn lose_the_race(root: &Root, place: &Path) {
    for _ in 0..1_000_000 {
        let checked = root.resolve("race/a.txt").is_ok();
        if checked && fs::read_to_string(place.join("a.txt")).is_ok_and(|text| text.contains(SECRET)) {
            return;
        }
    }
    panic!("the race is never lost, so winning it proves nothing");
}

#[test]
fn a_swapped_folder_never_leads_out() {
    let trap = Trap::new();
    let place = trap.project.join("race");
    fs::create_dir(&place).unwrap();
    fs::write(place.join("a.txt"), "fine\n").unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let swapping = scope.spawn(|| swap(&place, &trap.outside, &stop));
        lose_the_race(&trap.root, &place);
        for round in 0..2000 {
            let input = read_file::Input { path: "race/a.txt".into(), start_line: 1, end_line: None };
            if let Ok(output) = read_file::read(&trap.root, Page::default(), &input, &|| false) {
                assert_eq!(output.lines, "fine\n");
            }
            let info = file_info::info(&trap.root, &file_info::Input { path: "race/a.txt".into() });
            assert!(info.is_err() || info.is_ok_and(|info| info.size == 5));
            if round % 20 == 0 {
                let input = rg_search::Input { pattern: "TOP.SECRET".into(), glob: "*".into(), limit: 10 };
                assert_eq!(rg_search::search(&trap.root, 2, &input, &|| false).unwrap().count, 0);
                let input = list_files::Input { glob: "race*".into(), limit: 100 };
                for file in list_files::list(&trap.root, &input, &|| false).unwrap().files {
                    assert!(!file.contains("secret"), "{file}");
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
        swapping.join().unwrap();
    });
    // Whatever the race let through, the folder is back and the same call works.
    let input = read_file::Input { path: "race/a.txt".into(), start_line: 1, end_line: None };
    assert_eq!(read_file::read(&trap.root, Page::default(), &input, &|| false).unwrap().lines, "fine\n");
}

#[test]
fn a_swapped_folder_is_never_written_through() {
    let trap = Trap::new();
    let place = trap.project.join("race");
    fs::create_dir(&place).unwrap();
    fs::write(place.join("a.txt"), "one\n").unwrap();
    fs::write(trap.outside.join("a.txt"), "one\n").unwrap();
    let stop = AtomicBool::new(false);
    let mut written = 0;
    std::thread::scope(|scope| {
        let swapping = scope.spawn(|| swap(&place, &trap.outside, &stop));
        for round in 0..500 {
            let (old, new) = if written % 2 == 0 { ("one\n", "two\n") } else { ("two\n", "one\n") };
            let create = format!("--- /dev/null\n+++ b/race/new{round}.txt\n@@ -0,0 +1 @@\n+pwned\n");
            if let Ok(proposal) = patch::propose_diff(&trap.root, "x", &create) {
                let _ = patch::write_changes(&trap.root, &proposal.changes);
            }
            if let Ok(proposal) = patch::propose_texts(&trap.root, "x", "race/a.txt", old, new)
                && patch::write_changes(&trap.root, &proposal.changes).is_ok()
            {
                written += 1;
            }
        }
        stop.store(true, Ordering::Relaxed);
        swapping.join().unwrap();
    });
    // Whatever the race let through, the folder is back and the same call works.
    let old = fs::read_to_string(place.join("a.txt")).unwrap();
    let proposal = patch::propose_texts(&trap.root, "x", "race/a.txt", &old, "three\n").unwrap();
    patch::write_changes(&trap.root, &proposal.changes).unwrap();
    assert_eq!(fs::read_to_string(place.join("a.txt")).unwrap(), "three\n");
    assert_eq!(fs::read_to_string(trap.outside.join("a.txt")).unwrap(), "one\n");
    let names: Vec<_> = fs::read_dir(&trap.outside).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
}
