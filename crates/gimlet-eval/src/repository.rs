//! Throw-away git repositories: the same on every machine, with nothing of the user's own configuration, which may sign
//! commits or run hooks.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use gimlet_runtime::{Process, isolation};

/// When the first commit was made, in seconds; each further one is a day later.
const FIRST_COMMIT: u64 = 1_767_261_600;
const DAY: u64 = 24 * 60 * 60;

/// A repository that is being made.
pub struct Repository {
    path: PathBuf,
    /// Made so far; dates the next one.
    commits: u64,
}

/// Who commits, and when.
struct Signature<'a> {
    author: &'a str,
    seconds: u64,
}

impl Repository {
    /// An empty one in a folder that may not exist yet.
    pub fn init(path: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))?;
        git(path, &["init", "--quiet", "--initial-branch=main", "--template="], None, "")?;
        Ok(Repository { path: path.to_owned(), commits: 0 })
    }

    /// Commits everything there is, even nothing.
    pub fn commit(&mut self, message: &str, author: &str) -> anyhow::Result<()> {
        let signature = Signature { author, seconds: FIRST_COMMIT + DAY * self.commits };
        git(&self.path, &["add", "--all"], None, "")?;
        let commit = ["commit", "--quiet", "--allow-empty", "--no-verify", "--message", message];
        git(&self.path, &commit, Some(&signature), "")?;
        self.commits += 1;
        Ok(())
    }
}

/// Applies a unified diff to the files in a folder.
pub fn apply(path: &Path, patch: &str) -> anyhow::Result<()> {
    git(path, &["apply", "--whitespace=nowarn", "-"], None, patch)
}

fn git(path: &Path, args: &[&str], signature: Option<&Signature<'_>>, input: &str) -> anyhow::Result<()> {
    let mut command = Command::new("git");
    // The caller's own repository must not leak in, whatever started this program, nor a git of the project it is in.
    let project = std::env::current_dir().unwrap_or_else(|_| path.to_owned());
    command.env_clear().envs(isolation::environment(&Process::current()?).outside(&project).iter());
    if let Some(Signature { author, seconds }) = signature {
        for role in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{role}_NAME"), author)
                .env(format!("GIT_{role}_EMAIL"), format!("{}@example.com", author.to_lowercase()))
                .env(format!("GIT_{role}_DATE"), format!("{seconds} +0000"));
        }
    }
    let mut child = command
        .args(["-c", "core.hooksPath=/dev/null", "-c", "commit.gpgSign=false", "-c", "gc.auto=0"])
        .args(args)
        .current_dir(path)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("git is needed for this")?;
    // A git that does not read its input says why when it ends.
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("git {} failed: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim_end());
    }
    Ok(())
}
