//! Flags that confine commands and code.

use clap::{Args, Subcommand, ValueEnum};
use serde::Deserialize;

/// How commands are confined.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SandboxArgs {
    /// What commands may change without being asked about [default: workspace-write].
    #[arg(
        long,
        value_enum,
        value_name = "PROFILE",
        env = "SANDBOX_PROFILE",
        default_value = "workspace-write"
    )]
    #[arg(hide_default_value = true)]
    pub(crate) sandbox: CommandProfile,
    #[command(flatten)]
    pub(crate) jail: JailArgs,
    /// Where patches are checked [default: auto].
    #[arg(
        long,
        value_enum,
        value_name = "WHERE",
        env = "SANDBOX_VALIDATION",
        hide_short_help = true,
        default_value = "auto"
    )]
    #[arg(hide_default_value = true)]
    pub(crate) validation: Validation,
    /// A command that must succeed with a patch in place before it is offered, such as `pytest -q` [env: SANDBOX_TESTS].
    #[arg(long, value_name = "CMD", hide_short_help = true)]
    pub(crate) validation_tests: Option<String>,
}

/// The jail around commands, and what they may take of the machine.
#[derive(Debug, Clone, Args)]
pub(crate) struct JailArgs {
    /// What confines commands.
    #[arg(long, value_enum, value_name = "JAIL", env = "SANDBOX_JAIL", default_value = "auto", hide = true)]
    pub(crate) jail: JailChoice,
    /// Most memory of a command and all it starts, in megabytes.
    #[arg(long, value_name = "MB", env = "SANDBOX_MEMORY", default_value_t = COMMAND_MEMORY, hide = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(64..))]
    pub(crate) command_memory: u32,
    /// Most processor time of each process of a command, in seconds [default: an hour of every processor].
    #[arg(long, value_name = "S", env = "SANDBOX_CPU", hide = true)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) command_cpu: Option<u64>,
}

const COMMAND_MEMORY: u32 = 8192;

impl Default for JailArgs {
    fn default() -> Self {
        JailArgs { jail: JailChoice::default(), command_memory: COMMAND_MEMORY, command_cpu: None }
    }
}

/// What commands may change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum CommandProfile {
    /// Nothing.
    ReadOnly,
    /// The project.
    #[default]
    WorkspaceWrite,
    /// Everything you may change; every command asks.
    Unrestricted,
    /// Nothing, in a Docker container.
    Docker,
}

/// Where patches are checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Validation {
    /// In a container where there is one, otherwise in a scratch folder.
    #[default]
    Auto,
    /// In a container or not at all.
    Docker,
    /// In a scratch folder.
    Worktree,
}

/// Where the code of a code agent runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ExecutorChoice {
    /// In the Python sandbox of this program.
    #[default]
    Python,
    /// In CPython in a Docker container.
    Docker,
}

impl ExecutorChoice {
    /// The one that a run's log names.
    pub(crate) fn recorded(settings: &serde_json::Value) -> Self {
        match settings["kind"].as_str() {
            Some(gimlet_sandbox::docker::KIND) => ExecutorChoice::Docker,
            Some(_) | None => ExecutorChoice::Python,
        }
    }

    /// As it is named on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ExecutorChoice::Python => "python",
            ExecutorChoice::Docker => "docker",
        }
    }
}

/// Which layers of isolation there are, and the image of one.
#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// Show which isolation layers this machine has.
    Status(JailArgs),
    /// Build the image of the Docker sandbox.
    Build {
        /// Print the Dockerfile instead.
        #[arg(long)]
        print: bool,
        /// The image to build on, with Python and a shell [default: the Dockerfile's].
        #[arg(long, value_name = "IMAGE", conflicts_with = "print")]
        base: Option<String>,
    },
}

/// What confines commands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum JailChoice {
    /// The best this machine has.
    #[default]
    Auto,
    /// Bubblewrap or nothing.
    Bubblewrap,
    /// Landlock and seccomp or nothing.
    Landlock,
    /// Nothing: every command asks.
    Off,
}

impl From<JailChoice> for gimlet_sandbox::jail::Wanted {
    fn from(choice: JailChoice) -> Self {
        match choice {
            JailChoice::Auto => Self::Auto,
            JailChoice::Bubblewrap => Self::Bubblewrap,
            JailChoice::Landlock => Self::Landlock,
            JailChoice::Off => Self::Off,
        }
    }
}
