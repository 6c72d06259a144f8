//! Flags of looking at a repository as an agent does.

use std::path::PathBuf;

use clap::Subcommand;

use super::JsonArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum RepoCommand {
    /// Print the most important files with their definitions.
    Map {
        /// Files that matter most; what they use and what uses them comes next.
        #[arg(value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// Maximum number of characters.
        #[arg(long, value_name = "N", default_value_t = 8000)]
        budget: usize,
        #[command(flatten)]
        json: JsonArgs,
    },
    /// List the files that a task is most likely about, best first.
    Rank {
        /// The task, in any language.
        task: String,
        /// Maximum number of files.
        #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
        limit: usize,
        #[command(flatten)]
        json: JsonArgs,
    },
}
