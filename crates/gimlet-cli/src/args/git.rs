//! Flags of commands that work with git.

use clap::Args;
use gimlet_runtime::options::Choice;

use super::{JsonArgs, ModelOptions, RootArgs, TraceArgs, choice};

#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 committed, or the message was printed; 1 nothing to commit, refused, or the model failed;\n\
                  3 there is no terminal to ask on and no --yes."
)]
pub(crate) struct CommitArgs {
    /// Commit all changes of files that git knows, staged or not.
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Commit without asking.
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Print the message and commit nothing.
    #[arg(long, conflicts_with = "yes")]
    pub(crate) message_only: bool,
    #[command(flatten)]
    pub(crate) model: ModelOptions,
    #[command(flatten)]
    pub(crate) root: RootArgs,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 reviewed, and nothing as bad as --fail-on was found; 1 something was, or the model failed;\n\
                  2 wrong usage; 4 stopped by a limit; 130 interrupted."
)]
pub(crate) struct ReviewArgs {
    /// Review what the present commit adds to this branch or commit [default: what is not committed yet].
    pub(crate) base: Option<String>,
    /// The least severe finding that makes the exit code 1.
    #[arg(long, value_name = "LEVEL", value_parser = choice::<FailOn>(), default_value = "error")]
    pub(crate) fail_on: FailOn,
    /// Most steps.
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_steps: u32,
    #[command(flatten)]
    pub(crate) model: ModelOptions,
    #[command(flatten)]
    pub(crate) root: RootArgs,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
}

/// What makes a review fail. The order is how much does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FailOn {
    Never,
    Error,
    Warning,
    Note,
}

impl Choice for FailOn {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Never, "never", "No finding"),
        (Self::Error, "error", "Something is wrong"),
        (Self::Warning, "warning", "Something is probably wrong"),
        (Self::Note, "note", "Any finding"),
    ];
}
