//! Flags of looking at the memory.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

use super::{ExportFormat, JsonArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum MemoryCommand {
    /// List what is remembered, the newest first.
    List {
        /// What to list.
        #[arg(value_enum, default_value_t = Remembered::Notes)]
        what: Remembered,
        /// Only notes with this tag.
        #[arg(long, value_name = "TAG")]
        tag: Option<String>,
        /// Most to list.
        #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
        limit: usize,
        #[command(flatten)]
        json: JsonArgs,
    },
    /// Find notes as the agent does.
    Search {
        /// Words of what you look for.
        query: String,
        /// Only notes with this tag.
        #[arg(long, value_name = "TAG")]
        tag: Option<String>,
        /// Most to find.
        #[arg(short = 'n', long, value_name = "N", default_value_t = 10, value_parser = found)]
        limit: usize,
        #[command(flatten)]
        json: JsonArgs,
    },
    /// Show one thing as a whole.
    Show {
        /// Its id: n12 is a note, m3 a mental model, p7 a prediction.
        id: String,
        #[command(flatten)]
        json: JsonArgs,
    },
    /// Write all of it, to read or to take elsewhere.
    Export {
        /// As what.
        #[arg(long, value_enum, default_value = "json")]
        format: ExportFormat,
        /// The file to write [default: standard output].
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Take in what was exported as JSON; what is there already stays as it is.
    Import {
        /// The file; `-` reads standard input.
        file: PathBuf,
        #[command(flatten)]
        json: JsonArgs,
    },
    /// Forget something for good.
    Forget {
        /// Its id.
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        id: Option<String>,
        /// Everything that is remembered of this project.
        #[arg(long)]
        all: bool,
        /// Do not ask.
        #[arg(short, long)]
        yes: bool,
    },
    /// Tell how much is remembered, and where.
    Status(JsonArgs),
}

/// A kind of thing that is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Remembered {
    /// Facts, and syntheses of several.
    Notes,
    /// What agents believe.
    Models,
    /// What they expect.
    Predictions,
}

fn found(text: &str) -> Result<usize, String> {
    let most = gimlet_runtime::parts::memory::limits::FOUND;
    match text.parse() {
        Ok(limit) if (1..=most).contains(&limit) => Ok(limit),
        Ok(_) | Err(_) => Err(format!("it must be a number from 1 to {most}")),
    }
}
