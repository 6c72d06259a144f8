//! Git on real repositories, friendly and hostile.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use gimlet::command::Environment;
use gimlet_tools::git::Git;
use gimlet_tools::{Root, git_changed_files, git_diff, git_log, git_status};
use tokio_util::sync::CancellationToken;

struct Repository {
    _temp: tempfile::TempDir,
    base: PathBuf,
    path: PathBuf,
}

impl Repository {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        let path = base.join("repo");
        fs::create_dir(&path).unwrap();
        fs::create_dir(base.join("home")).unwrap();
        let repository = Repository { _temp: temp, base, path };
        repository.git(&["init", "-q", "-b", "main"]);
        repository
    }

    fn with_commit() -> Self {
        let repository = Repository::new();
        repository.write("a.txt", "one\n");
        repository.write("b.txt", "two\n");
        repository.commit("first");
        repository
    }

    fn command(&self) -> Command {
        let mut command = Command::new("git");
        command
            .env("HOME", self.base.join("home"))
            .env_remove("XDG_CONFIG_HOME")
            .args(["-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "commit.gpgSign=false"])
            .current_dir(&self.path);
        command
    }

    fn git(&self, arguments: &[&str]) {
        let output = self.command().args(arguments).output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "-A", "-f"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    fn tools(&self) -> Git {
        self.tools_at("")
    }

    fn tools_at(&self, folder: &str) -> Git {
        let environment = Environment::allowed(std::env::vars_os())
            .with("HOME", self.base.join("home"))
            .with("XDG_CONFIG_HOME", self.base.join("home"));
        Git { root: Root::open(self.path.join(folder)).unwrap(), environment }
    }
}

/// Everything the four tools say.
struct Said {
    status: git_status::Output,
    diff: git_diff::Output,
    staged: git_diff::Output,
    log: git_log::Output,
    changed: git_changed_files::Output,
}

async fn ask(git: &Git) -> Said {
    let cancel = CancellationToken::new();
    let diff = |staged| git_diff::Input { file_path: String::new(), staged };
    let changed = git_changed_files::Input { staged: false, include_untracked: true };
    Said {
        status: git_status::status(git, &cancel).await.unwrap(),
        diff: git_diff::diff(git, &diff(false), &cancel).await.unwrap(),
        staged: git_diff::diff(git, &diff(true), &cancel).await.unwrap(),
        log: git_log::log(git, &git_log::Input { limit: 10, file_path: String::new() }, &cancel)
            .await
            .unwrap(),
        changed: git_changed_files::changed_files(git, &changed, &cancel).await.unwrap(),
    }
}

#[tokio::test]
async fn a_plain_repository_is_described() {
    let repository = Repository::with_commit();
    repository.write("a.txt", "one and a half\n");
    repository.write("new/c.txt", "three\n");
    repository.write("staged.txt", "s\n");
    repository.git(&["add", "staged.txt"]);
    fs::remove_file(repository.path.join("b.txt")).unwrap();
    let said = ask(&repository.tools()).await;
    assert_eq!(said.status.branch.as_deref(), Some("main"));
    assert_eq!(said.status.modified, ["a.txt", "b.txt"]);
    assert_eq!(said.status.staged, ["staged.txt"]);
    assert_eq!(said.status.untracked, ["new/c.txt"]);
    assert_eq!(said.status.total_changes, 4);
    assert!(said.diff.diff.contains("-one\n+one and a half\n") && said.diff.diff.contains("--- a/a.txt\n"));
    assert!(said.staged.diff.contains("+++ b/staged.txt"));
    let first = &said.log.commits[0];
    assert_eq!((first.message.as_str(), first.author.as_str()), ("first", "T"));
    assert!(first.date.len() == 10 && first.date.matches('-').count() == 2, "{}", first.date);
    assert_eq!(said.changed.files, ["a.txt", "new/c.txt"]);
    let only = git_diff::Input { file_path: "b.txt".into(), staged: false };
    let only = git_diff::diff(&repository.tools(), &only, &CancellationToken::new()).await.unwrap();
    assert!(only.diff.contains("deleted file") && !only.diff.contains("a.txt"));
}

#[tokio::test]
async fn a_folder_of_a_repository_shows_only_itself() {
    let repository = Repository::with_commit();
    repository.write("pkg/x.txt", "x\n");
    repository.commit("second");
    repository.write("a.txt", "outside the root\n");
    repository.write("pkg/x.txt", "inside\n");
    let said = ask(&repository.tools_at("pkg")).await;
    assert_eq!(said.status.modified, ["x.txt"]);
    assert!(said.diff.diff.contains("--- a/x.txt") && !said.diff.diff.contains("outside the root"));
    assert_eq!(said.log.commits.iter().map(|c| c.message.as_str()).collect::<Vec<_>>(), ["second"]);
}

#[tokio::test]
async fn no_commits_and_no_repository_are_told_apart() {
    let repository = Repository::new();
    repository.write("a.txt", "x\n");
    let said = ask(&repository.tools()).await;
    assert_eq!((said.log.count, said.status.untracked.as_slice()), (0, &["a.txt".to_owned()][..]));
    assert_eq!(said.staged.message.as_deref(), Some("no staged changes"));

    let temp = tempfile::tempdir().unwrap();
    let git = Git {
        root: Root::open(temp.path()).unwrap(),
        environment: Environment::allowed(std::env::vars_os()),
    };
    let error = git_status::status(&git, &CancellationToken::new()).await.unwrap_err();
    assert_eq!(error.to_string(), "GIT_FAILED: not a git repository");
}

#[tokio::test]
async fn strange_names_survive() {
    let repository = Repository::with_commit();
    for name in ["new\nline.txt", "-dash", "--output=x", "qu\"ote", "sp ace", "é.txt", ":(top)x", "tab\tx"] {
        repository.write(name, "x\n");
    }
    repository.commit("names");
    for name in ["new\nline.txt", "-dash", "--output=x", "qu\"ote", "sp ace", "é.txt", ":(top)x", "tab\tx"] {
        repository.write(name, "y\n");
    }
    let said = ask(&repository.tools()).await;
    let names = ["--output=x", "-dash", ":(top)x", "new\nline.txt", "qu\"ote", "sp ace", "tab\tx", "é.txt"];
    assert_eq!(said.status.modified, names);
    assert_eq!(said.changed.files, names);
    for name in names {
        let input = git_diff::Input { file_path: name.into(), staged: false };
        let one = git_diff::diff(&repository.tools(), &input, &CancellationToken::new()).await.unwrap();
        assert_eq!(one.diff.matches("diff --git").count(), 1, "{name:?}");
        let input = git_log::Input { limit: 10, file_path: name.into() };
        assert_eq!(
            git_log::log(&repository.tools(), &input, &CancellationToken::new()).await.unwrap().count,
            1
        );
    }
    assert!(!repository.path.join("x").exists());
}

#[tokio::test]
async fn secrets_are_left_out_of_diffs() {
    let repository = Repository::with_commit();
    repository.write(".env", "KEY=hush-1\n");
    repository.write("tls.pem", "hush-1\n");
    repository.commit("secrets, alas");
    repository.write(".env", "KEY=hush-2\n");
    repository.write("a.txt", "changed\n");
    repository.git(&["mv", "tls.pem", "plain.txt"]);
    let said = ask(&repository.tools()).await;
    assert!(said.diff.diff.contains("+changed") && !said.diff.diff.contains("hush"));
    assert_eq!(said.diff.omitted, [".env"]);
    assert!(!said.staged.diff.contains("hush"));
    assert_eq!(said.staged.omitted, ["tls.pem"]);
}

/// A program that leaves a mark when it runs.
fn trap(repository: &Repository, name: &str) -> String {
    let (script, mark) = (repository.base.join(format!("{name}.sh")), repository.base.join("sprung"));
    fs::write(&script, format!("#!/bin/sh\necho {name} >> '{}'\ncat\n", mark.display())).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    script.to_str().unwrap().into()
}

fn sprung(repository: &Repository) -> String {
    fs::read_to_string(repository.base.join("sprung")).unwrap_or_default()
}

/// Sets a trap by `prepare`, shows that plain git walks into it, and that the tools do not.
async fn assert_safe(name: &str, prepare: impl Fn(&Repository, &str), plain: &[&str]) {
    let repository = Repository::with_commit();
    let script = trap(&repository, name);
    prepare(&repository, &script);
    // Same size and a new time: git must look into the file again.
    let touch = |text: &str| {
        fs::write(repository.path.join("a.txt"), text).unwrap();
        let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1);
        fs::File::options()
            .write(true)
            .open(repository.path.join("a.txt"))
            .unwrap()
            .set_modified(time)
            .unwrap();
    };
    touch("two\n");
    let said = ask(&repository.tools()).await;
    assert_eq!(sprung(&repository), "", "{name}: the tools ran a program of the repository");
    assert!(said.status.modified.contains(&"a.txt".to_owned()), "{name}: {:?}", said.status);
    assert!(said.diff.diff.contains("+two"), "{name}: {:?}", said.diff);
    touch("six\n");
    let _ = repository.command().args(plain).output().unwrap();
    assert!(sprung(&repository).contains(name), "{name}: the trap does not work, so the test proves nothing");
}

#[tokio::test]
async fn fsmonitor_is_not_run() {
    assert_safe("fsmonitor", |r, script| r.git(&["config", "core.fsmonitor", script]), &["status"]).await;
}

#[tokio::test]
async fn external_diff_is_not_run() {
    assert_safe("external", |r, script| r.git(&["config", "diff.external", script]), &["diff"]).await;
}

#[tokio::test]
async fn diff_drivers_are_not_run() {
    let driver = |r: &Repository, script: &str| {
        r.git(&["config", "diff.evil.command", script]);
        r.write(".gitattributes", "*.txt diff=evil\n");
    };
    assert_safe("driver", driver, &["diff"]).await;
    let textconv = |r: &Repository, script: &str| {
        r.git(&["config", "diff.evil.textconv", script]);
        r.write(".git/info/attributes", "*.txt diff=evil\n");
    };
    assert_safe("textconv", textconv, &["diff"]).await;
}

#[tokio::test]
async fn filters_are_not_run() {
    for (kind, attributes) in
        [("clean", ".gitattributes"), ("process", ".git/info/attributes"), ("clean", ".git/info/attributes")]
    {
        let filter = |r: &Repository, script: &str| {
            r.git(&["config", &format!("filter.e=v.il.{kind}"), script]);
            r.git(&["config", "filter.e=v.il.required", "true"]);
            r.write(attributes, "*.txt filter=e=v.il\n");
        };
        assert_safe(kind, filter, &["diff"]).await;
    }
}

#[tokio::test]
async fn included_settings_are_no_way_around() {
    let include = |r: &Repository, script: &str| {
        r.write(
            ".git/more",
            &format!("[filter \"x\"]\n\tclean = {script}\n[core]\n\tfsmonitor = {script}\n"),
        );
        r.git(&["config", "include.path", "more"]);
        r.write(".gitattributes", "* filter=x\n");
    };
    assert_safe("include", include, &["status"]).await;
}

#[tokio::test]
async fn hooks_are_not_run() {
    let hook = |r: &Repository, script: &str| {
        fs::create_dir_all(r.path.join(".git/hooks")).unwrap();
        fs::copy(script, r.path.join(".git/hooks/post-index-change")).unwrap();
    };
    assert_safe("hook", hook, &["add", "a.txt"]).await;
    let hooks_path = |r: &Repository, script: &str| {
        fs::create_dir_all(r.base.join("hooks")).unwrap();
        fs::copy(script, r.base.join("hooks/post-index-change")).unwrap();
        r.git(&["config", "core.hooksPath", r.base.join("hooks").to_str().unwrap()]);
    };
    assert_safe("hooksPath", hooks_path, &["add", "a.txt"]).await;
}

#[tokio::test]
async fn signatures_are_not_checked() {
    let signed = |r: &Repository, script: &str| {
        r.git(&["config", "gpg.program", script]);
        r.git(&["config", "log.showSignature", "true"]);
        // A commit that claims to be signed.
        let tree = r.command().args(["rev-parse", "HEAD^{tree}"]).output().unwrap().stdout;
        let tree = String::from_utf8(tree).unwrap();
        let commit = format!(
            "tree {}\nauthor T <t@e> 1 +0000\ncommitter T <t@e> 1 +0000\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nsigned\n",
            tree.trim()
        );
        fs::write(r.base.join("commit"), commit).unwrap();
        let file = r.base.join("commit");
        let made =
            r.command().args(["hash-object", "-t", "commit", "-w", file.to_str().unwrap()]).output().unwrap();
        r.git(&["update-ref", "HEAD", String::from_utf8(made.stdout).unwrap().trim()]);
    };
    assert_safe("gpg", signed, &["log"]).await;
}

#[tokio::test]
async fn submodules_are_not_entered() {
    let submodule = |r: &Repository, script: &str| {
        let inner = r.path.join("inner");
        fs::create_dir(&inner).unwrap();
        let run = |arguments: &[&str]| {
            assert!(r.command().current_dir(&inner).args(arguments).status().unwrap().success())
        };
        run(&["init", "-q"]);
        fs::write(inner.join("f"), "x").unwrap();
        run(&["add", "f"]);
        run(&["commit", "-q", "-m", "inner"]);
        r.git(&["-c", "advice.addEmbeddedRepo=false", "add", "inner"]);
        r.git(&["commit", "-q", "-m", "submodule"]);
        run(&["config", "core.fsmonitor", script]);
        fs::write(inner.join("f"), "y").unwrap();
    };
    assert_safe("submodule", submodule, &["status"]).await;
}

#[tokio::test]
async fn another_work_tree_is_not_shown() {
    let repository = Repository::with_commit();
    let other = repository.base.join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("a.txt"), "hush\n").unwrap();
    repository.git(&["config", "core.worktree", other.to_str().unwrap()]);
    let said = ask(&repository.tools()).await;
    assert!(!said.diff.diff.contains("hush") && said.status.modified.is_empty());
}

#[tokio::test]
async fn a_linked_worktree_works_and_a_foreign_one_is_refused() {
    let repository = Repository::with_commit();
    let linked = repository.base.join("linked");
    repository.git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    let at = |path: &Path| Git { root: Root::open(path).unwrap(), ..repository.tools() };
    assert_eq!(ask(&at(&linked)).await.log.count, 1);

    let thief = repository.base.join("thief");
    fs::create_dir(&thief).unwrap();
    let cancel = CancellationToken::new();
    for target in [repository.path.join(".git"), repository.path.join(".git/worktrees/linked")] {
        fs::write(thief.join(".git"), format!("gitdir: {}\n", target.display())).unwrap();
        let error = git_status::status(&at(&thief), &cancel).await.unwrap_err();
        assert!(error.to_string().contains("does not point back"), "{error}");
    }
    fs::remove_file(thief.join(".git")).unwrap();
    std::os::unix::fs::symlink(repository.path.join(".git"), thief.join(".git")).unwrap();
    let error = git_status::status(&at(&thief), &cancel).await.unwrap_err();
    assert!(error.to_string().contains("symbolic link"), "{error}");
}

#[tokio::test]
async fn the_index_is_left_alone() {
    let repository = Repository::with_commit();
    repository.write("a.txt", "changed\n");
    let before = fs::read(repository.path.join(".git/index")).unwrap();
    ask(&repository.tools()).await;
    assert_eq!(fs::read(repository.path.join(".git/index")).unwrap(), before);
    assert!(!repository.path.join(".git/index.lock").exists());
}

#[tokio::test]
async fn a_cancelled_call_ends() {
    let repository = Repository::with_commit();
    let cancel = CancellationToken::new();
    cancel.cancel();
    assert!(git_status::status(&repository.tools(), &cancel).await.is_err());
}
