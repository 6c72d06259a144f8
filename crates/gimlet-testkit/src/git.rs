//! Real git repositories that are the same on every machine: no configuration but their own, fixed authors and
//! dates, so that hashes are stable and can stand in snapshots.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// When the first commit was made; each further one is a minute later.
const FIRST_COMMIT: u64 = 1_767_225_600;

/// A repository in a folder of its own, which goes away with it.
#[derive(Debug)]
pub struct GitRepo {
    folder: TempDir,
    commits: u64,
}

impl GitRepo {
    /// An empty repository on the branch `main`.
    #[track_caller]
    #[expect(clippy::new_without_default, reason = "making one runs git; a default should not")]
    pub fn new() -> Self {
        let folder = match tempfile::Builder::new().prefix("gimlet-repo-").tempdir() {
            Ok(folder) => folder,
            Err(error) => crate::fixture_failed("make a folder for a repository", &error),
        };
        let repo = GitRepo { folder, commits: 0 };
        repo.git(&["init", "--quiet", "--initial-branch=main", "--template="]);
        repo
    }

    /// Writes a file, with the folders it needs.
    #[track_caller]
    #[must_use]
    pub fn file(self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> Self {
        self.write(path, content);
        self
    }

    /// Removes a file.
    #[track_caller]
    #[must_use]
    pub fn remove(self, path: impl AsRef<Path>) -> Self {
        if let Err(error) = std::fs::remove_file(self.join(&path)) {
            crate::fixture_failed(&format!("remove {}", path.as_ref().display()), &error);
        }
        self
    }

    /// Commits everything there is, even nothing.
    #[track_caller]
    #[must_use]
    pub fn commit(mut self, message: &str) -> Self {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--no-verify", "--message", message]);
        self.commits += 1;
        self
    }

    /// Begins a branch and goes there.
    #[track_caller]
    #[must_use]
    pub fn branch(self, name: &str) -> Self {
        self.git(&["checkout", "--quiet", "-b", name]);
        self
    }

    /// Goes to a branch or commit.
    #[track_caller]
    #[must_use]
    pub fn checkout(self, target: &str) -> Self {
        self.git(&["checkout", "--quiet", target]);
        self
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A path inside it.
    pub fn join(&self, path: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Writes a file without giving the repository away, for changes in the middle of a test.
    #[track_caller]
    pub fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        let full = self.join(&path);
        let folder = full.parent().map_or(Ok(()), std::fs::create_dir_all);
        if let Err(error) = folder.and_then(|()| std::fs::write(&full, content)) {
            crate::fixture_failed(&format!("write {}", path.as_ref().display()), &error);
        }
    }

    /// Reads a file.
    #[track_caller]
    pub fn read(&self, path: impl AsRef<Path>) -> String {
        match std::fs::read_to_string(self.join(&path)) {
            Ok(text) => text,
            Err(error) => crate::fixture_failed(&format!("read {}", path.as_ref().display()), &error),
        }
    }

    /// Hash of the commit one is at.
    #[track_caller]
    pub fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"]).trim().to_owned()
    }

    /// Runs git in it and returns what it prints; panics when git fails.
    #[track_caller]
    pub fn git(&self, args: &[&str]) -> String {
        let when = format!("{} +0000", FIRST_COMMIT + 60 * self.commits);
        let mut command = Command::new("git");
        // The caller's repository and identity must not leak in, whatever started the tests.
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"] {
            command.env_remove(name);
        }
        command
            .args(["-c", "core.hooksPath=/dev/null", "-c", "commit.gpgSign=false", "-c", "gc.auto=0"])
            .args(args)
            .current_dir(self.path())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_AUTHOR_NAME", "Ada")
            .env("GIT_AUTHOR_EMAIL", "ada@example.com")
            .env("GIT_AUTHOR_DATE", &when)
            .env("GIT_COMMITTER_NAME", "Ada")
            .env("GIT_COMMITTER_EMAIL", "ada@example.com")
            .env("GIT_COMMITTER_DATE", &when)
            .env("LC_ALL", "C");
        let what = format!("run git {}", args.join(" "));
        match command.output() {
            Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
            Ok(output) => crate::fixture_failed(&what, &String::from_utf8_lossy(&output.stderr)),
            Err(error) => crate::fixture_failed(&what, &error),
        }
    }
}
