//! Running programs: what a command is, what it may touch, what comes back, and who runs it.
//!
//! [`CommandRunner`] is the door behind which a jail may stand. A jail need not start processes itself: it can wrap
//! another runner, rewrite the command so that it starts inside the jail, and pass it on.

mod environment;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

pub use environment::{ALLOWED_VARIABLES, Environment};

/// A command, ready to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The exact text that was judged and approved.
    pub text: String,
    /// How it is started.
    pub invocation: Invocation,
    /// The project, as an absolute path.
    pub root: PathBuf,
    /// Where it runs, as an absolute path inside the project.
    pub cwd: PathBuf,
    /// All variables it sees.
    pub environment: Environment,
    /// Longest run; then its whole process group is killed.
    pub timeout: Duration,
    /// Most bytes kept of each stream; the end survives.
    pub keep: usize,
    /// What it may touch, for runners that can enforce it.
    pub permissions: Permissions,
}

/// How a command is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invocation {
    /// The program and its arguments, without a shell.
    Direct(Vec<OsString>),
    /// By `sh -c`.
    Shell(String),
}

impl Invocation {
    /// The program and its arguments, the shell included where one is needed.
    pub fn argv(&self) -> Vec<OsString> {
        match self {
            Invocation::Direct(words) => words.clone(),
            Invocation::Shell(text) => vec!["/bin/sh".into(), "-c".into(), text.into()],
        }
    }
}

/// What a command may touch. The default is what a command gets that nobody was asked about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permissions {
    /// Files.
    pub profile: Profile,
    /// Other machines, and this one by way of its network.
    pub network: Network,
    /// The project's `.git`.
    pub git: GitFolder,
}

impl Permissions {
    /// These and one more.
    #[must_use]
    pub fn with(self, permission: Permission) -> Self {
        match permission {
            Permission::WriteWorkspace => {
                Permissions { profile: self.profile.max(Profile::WorkspaceWrite), ..self }
            }
            Permission::WriteGit => Permissions { git: GitFolder::Writable, ..self },
            Permission::Network => Permissions { network: Network::Allowed, ..self },
            Permission::Unrestricted => Permissions { profile: Profile::Unrestricted, ..self },
        }
    }
}

/// Which files a command may touch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// It changes nothing.
    ReadOnly,
    /// It changes the project, but for the files that are never written.
    #[default]
    WorkspaceWrite,
    /// Whatever the person who started the program may touch.
    Unrestricted,
}

/// Whether a command may use the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// Not at all, loopback included.
    #[default]
    Blocked,
    /// As anyone else.
    Allowed,
}

/// Whether a command may change the project's `.git`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GitFolder {
    /// It may look.
    #[default]
    ReadOnly,
    /// It is a git command that a person agreed to.
    Writable,
}

/// How a command went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// How it ended.
    pub end: End,
    /// The end of what it wrote.
    pub stdout: Captured,
    /// The end of what it complained about.
    pub stderr: Captured,
    /// How long it took.
    pub duration: Duration,
    /// What was really around it, such as `host` or `bubblewrap`; a runner that had to do with less says so here.
    pub isolation: String,
    /// Permissions it seems to have failed for. Empty when it succeeded, and where nothing was enforced.
    pub missing: Vec<Missing>,
}

/// A permission a command lacked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// Which.
    pub permission: Permission,
    /// What shows it, for the model and the person.
    pub because: String,
}

/// Something that can be asked for beyond what a command has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Permission {
    /// To change the project.
    WriteWorkspace,
    /// To change `.git`.
    WriteGit,
    /// To use the network.
    Network,
    /// To touch files outside the project.
    Unrestricted,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By itself, with this code.
    Exited(i32),
    /// By a signal of someone else.
    Signalled(i32),
    /// Killed because its time was up.
    TimedOut,
    /// Killed because the call was stopped.
    Cancelled,
}

/// What was kept of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// How many others were dropped.
    pub dropped: u64,
}

impl Captured {
    /// The text, unreadable bytes replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// Whether commands are confined. A policy that allows repository code to run only inside a jail asks this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confinement {
    /// Permissions are not enforced.
    None,
    /// A command cannot do more than its [`Permissions`] say.
    Jailed,
}

/// Someone who runs commands.
pub trait CommandRunner: Send + Sync {
    /// What is said about where commands run, such as `host`.
    fn name(&self) -> &str;

    /// Whether permissions are enforced here, on this machine, now.
    fn confinement(&self) -> Confinement;

    /// Why no command gets more here than every command has, whoever agrees; none where it can.
    fn grants_nothing(&self) -> Option<&str> {
        None
    }

    /// How long a command may really run that asks for so long.
    fn limit(&self, asked: Duration) -> Duration {
        asked
    }

    /// Runs a command to its end. Dropping the future kills it.
    fn run<'a>(
        &'a self,
        command: &'a Command,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, io::Result<Finished>>;
}
