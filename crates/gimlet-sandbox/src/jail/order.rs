//! What the runner tells the helper: everything about one command's jail, as one argument.

use std::path::PathBuf;

use gimlet::command::{Permissions, Profile};
use gimlet::paths::PathRules;
use serde::{Deserialize, Serialize};

use super::detect::{Mechanism, Outside};

/// What a helper must be of: one that is older or newer might leave out a wall.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What the helper is started for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Errand {
    pub(crate) outside: Outside,
    pub(crate) order: Order,
}

/// One command's jail.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Order {
    /// The version of the program that gives the order.
    pub(crate) version: String,
    /// The process that gives the order; when it is gone, so is the command.
    pub(crate) parent: u32,
    pub(crate) purpose: Purpose,
    pub(crate) mechanism: Mechanism,
    /// The project.
    pub(crate) root: PathBuf,
    /// Where the command starts.
    pub(crate) cwd: PathBuf,
    /// The person's home, hidden but for `read`.
    pub(crate) home: Option<PathBuf>,
    /// Folders that nothing may reach, wherever they are.
    pub(crate) hidden: Vec<PathBuf>,
    /// Patterns of secret files beyond the shipped list.
    pub(crate) secrets: Vec<String>,
    /// Patterns of files that are no secrets, whatever the shipped list says.
    pub(crate) public: Vec<String>,
    /// What can be read beside the system and the project: the toolchain.
    pub(crate) read: Vec<PathBuf>,
    /// What can be changed beside the project.
    pub(crate) write: Vec<PathBuf>,
    /// A folder of the project's own for what tools want to keep between commands.
    pub(crate) cache: Option<PathBuf>,
    /// Variables the command is not to see.
    pub(crate) unset: Vec<String>,
    pub(crate) permissions: Permissions,
    pub(crate) limits: Limits,
}

/// What a jail is built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Purpose {
    /// A command, which ends. Protected files that it made are put aside then.
    Command,
    /// A server, which lives as long as the session. A person may well make such files meanwhile, so the server is kept from
    /// making any: nothing is created at the top of the project.
    Server,
    /// An interpreter that runs a model's code for as long as the session lives. Confined like a server, and measured often:
    /// the code may take all memory at any moment.
    Worker,
}

impl Order {
    /// Whether the folder for caches can be changed. A server has one of its own.
    pub(crate) fn keeps_cache(&self) -> bool {
        match self.purpose {
            Purpose::Server => true,
            Purpose::Command | Purpose::Worker => self.permissions.profile != Profile::ReadOnly,
        }
    }

    /// The list of path rules in force.
    pub(crate) fn rules(&self) -> PathRules {
        let mut rules = PathRules::default();
        self.secrets.iter().for_each(|pattern| rules.add_secret(pattern));
        self.public.iter().for_each(|pattern| rules.lift(pattern));
        rules
    }
}

/// What a command and all it starts may use together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of memory, counted over all processes.
    pub memory: u64,
    /// Processes at the same time.
    pub processes: usize,
    /// Bytes of one file that is written.
    pub file: u64,
    /// Seconds of processor time of each process, all its threads together.
    pub cpu: u64,
}

impl Default for Limits {
    fn default() -> Self {
        // An hour of every processor: as much as the longest command could use.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Limits { memory: 8 << 30, processes: 512, file: 8 << 30, cpu: 3600 * cores as u64 }
    }
}
