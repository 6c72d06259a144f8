//! Flags of settings, trust, rules and the doctor.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{JailArgs, JsonArgs, ModelOptions, RootArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every setting, its value and its source.
    Show {
        #[command(flatten)]
        model: ModelOptions,
        /// Most steps.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        max_steps: Option<u32>,
        /// A command that must succeed with a patch in place before it is offered.
        #[arg(long, value_name = "CMD")]
        validation_tests: Option<String>,
        #[command(flatten)]
        json: JsonArgs,
    },
    /// Write a commented gimlet.toml; an existing one is left alone.
    Init {
        /// Your own file instead of the project's.
        #[arg(long)]
        user: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Do not ask the model for a tool call.
    #[arg(long)]
    pub(crate) quick: bool,
    #[command(flatten)]
    pub(crate) model: ModelOptions,
    #[command(flatten)]
    pub(crate) jail: JailArgs,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    #[command(flatten)]
    pub(crate) root: RootArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// The file [default: the project's gimlet.toml, .env, mcp.json, skills and commands, as far as they exist].
    pub(crate) file: Option<PathBuf>,
    /// Take trust away.
    #[arg(long, conflicts_with = "list")]
    pub(crate) revoke: bool,
    /// List what is trusted.
    #[arg(long, conflicts_with = "file")]
    pub(crate) list: bool,
    /// Do not ask.
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    #[command(flatten)]
    pub(crate) root: RootArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Classify a command: `allow`, `require_approval` or `deny`, a tab, and the reason.
    Check {
        /// The command, as one shell string.
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
        /// Judge as if no jail were around the command.
        #[arg(long)]
        no_jail: bool,
        #[command(flatten)]
        json: JsonArgs,
        #[command(flatten)]
        root: RootArgs,
    },
    /// Show the rules in force, where each stands, and what was answered with "always".
    Show {
        #[command(flatten)]
        root: RootArgs,
        #[command(flatten)]
        json: JsonArgs,
    },
    /// Take back an answer that was given with "always".
    Forget {
        /// Its name, as `gimlet policy show` tells it.
        id: String,
    },
    /// Run every rule's own examples.
    Test(RootArgs),
}
