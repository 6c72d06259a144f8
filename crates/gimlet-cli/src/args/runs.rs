//! Flags of looking at runs and answering their questions.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::JsonArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List runs, newest first.
    List(RunsListArgs),
    /// Show one run, event by event.
    Show {
        /// The run: its id, the beginning or end of one, or `last`.
        run: String,
        #[command(flatten)]
        json: JsonArgs,
        /// Draw where the time went.
        #[arg(long, conflicts_with = "json")]
        timeline: bool,
    },
    /// Send a run's spans to the trace collector again, from its log.
    Trace {
        /// The run: its id, the beginning or end of one, or `last`.
        run: String,
        /// Also send what was said: tasks, messages, code, arguments and results.
        #[arg(long)]
        trace_content: bool,
    },
    /// Show a run again as it was seen, at its own pace or faster.
    Replay {
        /// The run: its id, the beginning or end of one, or `last`.
        run: String,
        /// How many times as fast.
        #[arg(long, value_name = "TIMES", default_value = "1", value_parser = speed)]
        speed: f64,
        /// Longest pause, in seconds.
        #[arg(long, value_name = "S", default_value = "3", value_parser = pause)]
        max_pause: f64,
    },
    /// Write a run as a document: Markdown for people, JSON for programs.
    Export {
        /// The run: its id, the beginning or end of one, or `last`.
        run: String,
        /// What to write.
        #[arg(short, long, value_enum, default_value = "markdown")]
        format: ExportFormat,
        /// Where to [default: standard output].
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Begin a new run that shares another's steps before one of them, and prints its id.
    Fork {
        /// The run: its id, the beginning or end of one, or `last`.
        run: String,
        /// The first step that is not shared.
        #[arg(long, value_name = "STEP")]
        at: u32,
        /// What to say there, so that it goes another way.
        message: Option<String>,
    },
    /// Take back patches that a run applied, the newest first; files that were changed since are left alone.
    Undo(UndoArgs),
    /// Remove runs: their logs and patches, and long results that no other run names.
    Delete {
        /// The runs: ids, beginnings or ends of them, or `last`.
        #[arg(required = true)]
        runs: Vec<String>,
    },
    /// Remove all runs that were last worked on before some time; none that is at work.
    Prune {
        /// How old: a number with `m`, `h`, `d` or `w`, such as `30d`.
        #[arg(long, value_name = "AGE", value_parser = age)]
        older_than: Duration,
        /// Only list them.
        #[arg(long)]
        dry_run: bool,
    },
}

fn age(text: &str) -> Result<Duration, String> {
    let wrong = || "a number with `m`, `h`, `d` or `w`, such as `30d`".to_owned();
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds: u64 = match unit {
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        'w' => 7 * 24 * 60 * 60,
        _ => return Err(wrong()),
    };
    let count: u64 = text[..text.len() - unit.len_utf8()].parse().map_err(|_| wrong())?;
    count.checked_mul(seconds).map(Duration::from_secs).ok_or_else(wrong)
}

#[derive(Debug, Args)]
pub(crate) struct RunsListArgs {
    /// At most so many.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
    /// Those of every folder, not only of this one.
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
    /// The folder whose runs are listed [default: this one].
    #[arg(short, long, value_name = "DIR", conflicts_with = "all")]
    pub(crate) root: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct UndoArgs {
    /// The run: its id, the beginning or end of one, or `last`.
    pub(crate) run: String,
    /// The patch; all that are applied when none is named.
    pub(crate) patch: Option<String>,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// A document to read.
    Markdown,
    /// One JSON object with all of it.
    Json,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ApprovalsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ApprovalsCommand>,
    #[command(flatten)]
    pub(crate) json: JsonArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// Show all of a question: every line of its preview and every argument.
    Show {
        /// The question.
        id: String,
        #[command(flatten)]
        json: JsonArgs,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {
    /// The question.
    pub(crate) id: String,
    /// For the rest of the session.
    #[arg(long, conflicts_with = "always")]
    pub(crate) session: bool,
    /// From now on.
    #[arg(long)]
    pub(crate) always: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DenyArgs {
    /// The question.
    pub(crate) id: String,
    /// What to do instead; the model reads it.
    #[arg(long, value_name = "TEXT")]
    pub(crate) feedback: Option<String>,
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(times) if times.is_finite() && times > 0.0 => Ok(times),
        _ => Err("it must be a number above 0".into()),
    }
}

fn pause(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && seconds >= 0.0 => Ok(seconds),
        _ => Err("it must be a number of seconds".into()),
    }
}
