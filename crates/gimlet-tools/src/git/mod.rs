//! Asking git, on repositories that may be hostile.
//!
//! A repository's own configuration can name programs for git to run. [`Git`] switches off every kind that its commands
//! could reach, hands over a filtered environment, and tells git where the repository is instead of letting it search.

pub mod changes;
mod locate;
pub(crate) mod sections;
mod status;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use gimlet::command::{End, Environment, Finished};
use gimlet::tool::{ToolError, code as core};
use tokio_util::sync::CancellationToken;

use crate::code;
use crate::command::{Capture, Process, execute};
use crate::root::Root;
use locate::Location;
pub(crate) use status::{Change, Status};

/// What is said when there is no git.
pub const NOT_FOUND: &str =
    "git is not found (hint: install it; PATH's folders inside the project are not searched)";
/// Longest run of one git command.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Most bytes taken from git; nothing a model reads is that long.
const MOST_OUTPUT: usize = 8 * 1024 * 1024;

/// Settings that a repository could use to run a program or to change what git prints. Ours come last and win.
const SETTINGS: &[(&str, &str)] = &[
    ("safe.bareRepository", "explicit"),
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.attributesFile", "/dev/null"),
    ("core.pager", "cat"),
    ("core.sshCommand", "false"),
    ("core.askPass", "true"),
    ("core.quotePath", "true"),
    ("credential.helper", ""),
    ("protocol.allow", "never"),
    ("gpg.program", "false"),
    ("gpg.ssh.program", "false"),
    ("gpg.x509.program", "false"),
    ("log.showSignature", "false"),
    ("diff.external", ""),
    ("diff.noprefix", "false"),
    ("diff.mnemonicPrefix", "false"),
    ("diff.submodule", "short"),
    ("submodule.recurse", "false"),
    ("color.ui", "false"),
    ("i18n.logOutputEncoding", "UTF-8"),
];

/// Variables that do the same where a setting does not reach.
const VARIABLES: &[(&str, &str)] = &[
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", "true"),
    ("GIT_SSH_COMMAND", "false"),
    ("GIT_PAGER", "cat"),
    ("GIT_LITERAL_PATHSPECS", "1"),
    ("LC_ALL", "C.UTF-8"),
];

/// Options of every diff.
pub(crate) const DIFF_OPTIONS: &[&str] = &[
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--submodule=short",
    "--ignore-submodules=dirty",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--find-renames",
    "--relative",
];

/// What a git that runs outside of the jail sees: the given variables, and that no repository has it run a program. Its
/// `PATH` should be [`Environment::outside`] of the project.
pub fn guarded(environment: Environment, more_settings: &[(OsString, OsString)]) -> Environment {
    let settings = SETTINGS.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let count = SETTINGS.len() + more_settings.len();
    let mut environment = environment.with("GIT_CONFIG_COUNT", count.to_string());
    for (name, value) in VARIABLES {
        environment = environment.with(*name, *value);
    }
    for (i, (name, value)) in settings.chain(more_settings.iter().cloned()).enumerate() {
        environment = environment
            .with(format!("GIT_CONFIG_KEY_{i}"), name)
            .with(format!("GIT_CONFIG_VALUE_{i}"), value);
    }
    environment
}

/// The repository of a root.
#[derive(Debug, Clone)]
pub struct Git {
    /// The project; nothing outside it is reported.
    pub root: Root,
    /// What git sees of the environment: `PATH` to find it, `HOME` for the user's own settings.
    pub environment: Environment,
}

impl Git {
    /// Runs git and returns what it printed. A failure of git is a failure of the call.
    pub(crate) async fn run(
        &self,
        arguments: &[&str],
        cancel: &CancellationToken,
    ) -> Result<Vec<u8>, ToolError> {
        let finished = self.try_run(arguments, cancel).await?;
        match finished.end {
            End::Exited(0) if finished.stdout.dropped > 0 => Err(failed(&format!(
                "git prints more than {MOST_OUTPUT} bytes; ask about one file or folder"
            ))),
            End::Exited(0) => Ok(finished.stdout.bytes),
            End::Exited(_) | End::Signalled(_) => {
                let said = finished.stderr.text();
                let message = said.trim();
                Err(failed(if message.is_empty() { "git failed without a word" } else { message }))
            }
            End::TimedOut => Err(failed(&format!("git took longer than {} s", TIMEOUT.as_secs()))),
            End::Cancelled => Err(ToolError::failed(core::CANCELLED, "stopped before git was done")),
        }
    }

    /// Runs git and returns how it went.
    pub(crate) async fn try_run(
        &self,
        arguments: &[&str],
        cancel: &CancellationToken,
    ) -> Result<Finished, ToolError> {
        let location = Location::of(&self.root).map_err(|error| failed(&error.to_string()))?;
        let filters = self.filter_settings(&location, cancel).await?;
        self.execute(&location, arguments, &filters, cancel).await
    }

    /// Switches off the filter programs that any configuration defines: git would run them on changed files.
    async fn filter_settings(
        &self,
        location: &Location,
        cancel: &CancellationToken,
    ) -> Result<Vec<(OsString, OsString)>, ToolError> {
        use std::os::unix::ffi::OsStrExt;
        let listed = self.execute(location, &["config", "--list", "--name-only", "-z"], &[], cancel).await?;
        if listed.end != End::Exited(0) || listed.stdout.dropped > 0 {
            return Err(failed(&format!(
                "the repository's settings cannot be read: {}",
                listed.stderr.text().trim()
            )));
        }
        let mut settings = Vec::new();
        for name in listed.stdout.bytes.split(|byte| *byte == 0) {
            let lower = name.to_ascii_lowercase();
            let value = match lower
                .strip_prefix(b"filter.")
                .and_then(|rest| rest.rsplit(|byte| *byte == b'.').next())
            {
                Some(b"clean" | b"smudge" | b"process") => "",
                Some(b"required") => "false",
                Some(_) | None => continue,
            };
            settings.push((std::ffi::OsStr::from_bytes(name).to_owned(), value.into()));
        }
        settings.sort();
        settings.dedup();
        Ok(settings)
    }

    async fn execute(
        &self,
        location: &Location,
        arguments: &[&str],
        more_settings: &[(OsString, OsString)],
        cancel: &CancellationToken,
    ) -> Result<Finished, ToolError> {
        let environment = self.environment.clone().outside(self.root.path());
        let environment = guarded(environment, more_settings)
            .with("GIT_DIR", &location.git_dir)
            .with("GIT_WORK_TREE", &location.work_tree);
        let process = Process {
            program: "git".into(),
            arguments: ["--no-pager"].iter().chain(arguments).map(OsString::from).collect(),
            cwd: self.root.path().to_path_buf(),
            environment,
            timeout: TIMEOUT,
            capture: Capture::Head(MOST_OUTPUT),
        };
        execute(&process, cancel).await.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => failed(NOT_FOUND),
            _ => failed(&format!("git cannot be started: {error}")),
        })
    }

    /// What has changed, below the root.
    pub(crate) async fn status(&self, cancel: &CancellationToken) -> Result<Status, ToolError> {
        let location = Location::of(&self.root).map_err(|error| failed(&error.to_string()))?;
        let printed = self
            .run(
                &[
                    "status",
                    "--porcelain=v2",
                    "-z",
                    "--branch",
                    "--untracked-files=all",
                    "--ignore-submodules=dirty",
                    "--",
                    ".",
                ],
                cancel,
            )
            .await?;
        let mut status = Status::parse(&printed).map_err(|error| failed(&error.to_string()))?;
        status.keep_below(&location.prefix, &self.root);
        Ok(status)
    }

    /// Whether there is a commit yet.
    pub(crate) async fn has_commits(&self, cancel: &CancellationToken) -> Result<bool, ToolError> {
        let finished = self.try_run(&["rev-parse", "--quiet", "--verify", "HEAD^{commit}"], cancel).await?;
        Ok(finished.end == End::Exited(0))
    }

    /// A path argument as git gets it: relative to the root, where git is started.
    pub(crate) fn pathspec(&self, path: &str) -> Result<String, ToolError> {
        if path.trim().is_empty() {
            return Ok(".".into());
        }
        Ok(self.root.resolve(path)?.display())
    }

    /// What a call would read: one file or the whole project.
    pub(crate) fn reads(&self, path: &str) -> Result<PathBuf, ToolError> {
        if path.trim().is_empty() {
            return Ok(PathBuf::new());
        }
        Ok(self.root.resolve(path)?.as_path().into())
    }
}

pub(crate) fn failed(message: &str) -> ToolError {
    ToolError::failed(code::GIT_FAILED, message)
}
