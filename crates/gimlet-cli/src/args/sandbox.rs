//! Flags that confine commands and code.

use clap::{Args, Subcommand};
use gimlet_runtime::options::{CommandProfile, JailChoice, JailOptions, Sandbox, Validation};

use super::{JsonArgs, choice};

/// How commands are confined.
#[derive(Debug, Clone, Args)]
pub(crate) struct SandboxArgs {
    /// What commands may change without being asked about [default: workspace-write].
    #[arg(
        long,
        value_parser = choice::<CommandProfile>(),
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
        value_parser = choice::<Validation>(),
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
    #[arg(long, value_parser = choice::<JailChoice>(), value_name = "JAIL", env = "SANDBOX_JAIL", default_value = "auto", hide = true)]
    pub(crate) jail: JailChoice,
    /// Most memory of a command and all it starts, in megabytes.
    #[arg(long, value_name = "MB", env = "SANDBOX_MEMORY", default_value_t = JailOptions::MEMORY, hide = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(64..))]
    pub(crate) command_memory: u32,
    /// Most processor time of each process of a command, in seconds [default: an hour of every processor].
    #[arg(long, value_name = "S", env = "SANDBOX_CPU", hide = true)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) command_cpu: Option<u64>,
}

impl From<&JailArgs> for JailOptions {
    fn from(args: &JailArgs) -> JailOptions {
        JailOptions { jail: args.jail, memory: args.command_memory, cpu: args.command_cpu }
    }
}

impl From<&SandboxArgs> for Sandbox {
    fn from(args: &SandboxArgs) -> Sandbox {
        Sandbox {
            profile: args.sandbox,
            jail: (&args.jail).into(),
            validation: args.validation,
            validation_tests: args.validation_tests.clone(),
        }
    }
}

/// Which layers of isolation there are, and the image of one.
#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// Show which isolation layers this machine has.
    Status {
        #[command(flatten)]
        jail: JailArgs,
        #[command(flatten)]
        json: JsonArgs,
    },
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
