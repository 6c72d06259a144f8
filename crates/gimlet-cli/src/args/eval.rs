//! Flags of `gimlet eval`.

use std::path::PathBuf;

use clap::Args;
use gimlet_eval::{EvalMode, EvalOptions, Format, SplitChoice, Writing};
use gimlet_runtime::options::Action;

use super::run::temperature;
use super::{choice, seconds};

/// Flags that mean something only where models are tried.
const TRYING: [&str; 6] = ["models", "action", "repeat", "api_base", "temperature", "max_tokens"];

#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    /// The suite: a folder with a suite.toml, or such a file.
    pub(crate) suite: PathBuf,
    /// A model to try; may be given more than once [default: the one a run would use].
    #[arg(short, long = "model", value_name = "ID")]
    pub(crate) models: Vec<String>,
    /// How it is to act; every format named is tried.
    #[arg(short, long, value_parser = choice::<Action>(), value_delimiter = ',', default_values = ["tools", "code"])]
    pub(crate) action: Vec<Action>,
    /// How often each task is tried.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: u32,
    /// Which part of the suite.
    #[arg(long, value_parser = choice::<SplitChoice>(), value_name = "SPLIT", default_value = "all")]
    pub(crate) split: SplitChoice,
    /// Only tasks whose id matches, such as `git-*`; may be given more than once.
    #[arg(short, long = "task", value_name = "GLOB")]
    pub(crate) tasks: Vec<String>,
    /// Where results are kept; what is there already is not done again [default: gimlet-eval/NAME].
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) writing: WritingArgs,
    /// Most seconds of one task, where the suite allows it more.
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub(crate) timeout: Option<f64>,
    /// Print the report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the report as Markdown, with a line for each task.
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
    /// Try no model: show that every task can be failed, and that its reference solution passes.
    #[arg(long, conflicts_with_all = ["prepare", "grade", "report", "timeout", "out", "json", "markdown"])]
    #[arg(conflicts_with_all = TRYING)]
    pub(crate) check: bool,
    /// Try no model: lay the tasks out in a folder, for another program to work on.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["grade", "report", "out", "json", "markdown"])]
    #[arg(conflicts_with_all = TRYING)]
    pub(crate) prepare: Option<PathBuf>,
    /// Try no model: grade what another program did in a prepared folder.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["report", "timeout"], conflicts_with_all = TRYING)]
    pub(crate) grade: Option<PathBuf>,
    /// Try no model: report what is in files of results, or in folders of them, together; may be given more than once.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["timeout", "out"], conflicts_with_all = TRYING)]
    pub(crate) report: Vec<PathBuf>,
}

/// How the models write.
#[derive(Debug, Clone, Args)]
pub(crate) struct WritingArgs {
    /// Address of the model server [default: the provider's own].
    #[arg(long, value_name = "URL")]
    pub(crate) api_base: Option<String>,
    /// Randomness of the replies.
    #[arg(long, value_name = "T", value_parser = temperature)]
    pub(crate) temperature: Option<f32>,
    /// Most tokens of one reply.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_tokens: Option<u32>,
}

impl From<EvalArgs> for EvalOptions {
    fn from(args: EvalArgs) -> EvalOptions {
        let mode = match (args.check, args.prepare, args.grade) {
            (true, _, _) => EvalMode::Check,
            (false, Some(folder), _) => EvalMode::Prepare(folder),
            (false, None, Some(folder)) => EvalMode::Grade(folder),
            (false, None, None) if !args.report.is_empty() => EvalMode::Report(args.report),
            (false, None, None) => EvalMode::Try,
        };
        let WritingArgs { api_base, temperature, max_tokens } = args.writing;
        EvalOptions {
            suite: args.suite,
            models: args.models,
            actions: args.action,
            repeat: args.repeat,
            split: args.split,
            tasks: args.tasks,
            out: args.out,
            writing: Writing { api_base, temperature, max_tokens },
            timeout: args.timeout,
            format: match (args.json, args.markdown) {
                (true, _) => Format::Json,
                (false, true) => Format::Markdown,
                (false, false) => Format::Table,
            },
            mode,
        }
    }
}
