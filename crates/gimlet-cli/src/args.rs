//! The command line's types: raw words become these once, and nothing behind them reads flags again.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use gimlet::event::ActionFormat;

/// A coding agent for small local models: give it a task in a repository.
#[derive(Debug, Parser)]
#[command(name = "gimlet", version, args_conflicts_with_subcommands = true, max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 answered, 1 failed, 2 wrong usage or configuration, 3 an approval is needed,\n\
                        4 stopped by a limit, 130 interrupted."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run one task and print the answer.
    Run(RunArgs),
    /// Watch the whole story with no model server: everything is real but the model's replies.
    Demo(DemoArgs),
    /// Carry on a run that was suspended, interrupted or crashed.
    Resume(ResumeArgs),
    /// Look at the runs that were made.
    Runs {
        #[command(subcommand)]
        command: Option<RunsCommand>,
    },
    /// List the questions that wait for an answer.
    Approvals(JsonArgs),
    /// Say yes to a question.
    Approve(ApproveArgs),
    /// Say no to a question.
    Deny(DenyArgs),
    /// Look at the tools and call them.
    Tools {
        #[command(subcommand)]
        command: Option<ToolsCommand>,
        #[command(flatten)]
        root: RootArgs,
    },
    /// Look at the models a server has, and grade one.
    Models {
        #[command(subcommand)]
        command: Option<ModelsCommand>,
        #[command(flatten)]
        options: ModelOptions,
    },
    /// Run Python in the sandbox, like `python FILE`.
    Python(PythonArgs),
    /// Ask what a command would be judged as, and why.
    Policy {
        #[command(subcommand)]
        command: PolicyCommand,
        #[command(flatten)]
        root: RootArgs,
    },
    /// Print shell completions.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// What to do; `-` reads it from standard input.
    pub(crate) task: Option<String>,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

/// What can be said about any run, new or resumed.
#[derive(Debug, Clone, Args)]
pub(crate) struct RunOptions {
    #[command(flatten)]
    pub(crate) model: ModelOptions,
    #[command(flatten)]
    pub(crate) root: RootArgs,
    /// How the agent acts.
    #[arg(short, long, value_enum)]
    pub(crate) action: Option<Action>,
    /// Most steps [default: 25].
    #[arg(long, value_name = "N", env = "AGENT_MAX_STEPS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_steps: Option<u32>,
    /// Most seconds of work.
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub(crate) timeout: Option<f64>,
    /// Most tokens of the whole run.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) token_budget: Option<u64>,
    /// What happens when an approval is needed; `all` never passes a denial.
    #[arg(long, value_enum, default_value = "ask")]
    pub(crate) approve: ApproveMode,
    /// Name of the session that approvals "for the session" are good for.
    #[arg(long, value_name = "NAME")]
    pub(crate) session: Option<String>,
    /// Print every event as a line of JSON.
    #[arg(long, conflicts_with_all = ["quiet", "verbose", "debug"])]
    pub(crate) json: bool,
    /// Print the answer and nothing else.
    #[arg(short, long, conflicts_with_all = ["verbose", "debug"])]
    pub(crate) quiet: bool,
    /// Also tell what the runtime says to the model.
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Tell every step: seconds, arguments, first lines of results, tokens.
    #[arg(short, long)]
    pub(crate) debug: bool,
}

/// Which model, and how it writes.
#[derive(Debug, Clone, Args)]
pub(crate) struct ModelOptions {
    /// The model, such as `ollama_chat/qwen2.5-coder:14b`, `anthropic/…`, `openai/…` or `scripted/FILE` [default: the
    /// best that Ollama has].
    #[arg(short, long, value_name = "ID", env = "MODEL_ID")]
    pub(crate) model: Option<String>,
    /// Address of the model server [default: the provider's own].
    #[arg(long, value_name = "URL", env = "MODEL_API_BASE")]
    pub(crate) api_base: Option<String>,
    /// Randomness of the replies [default: 0.1].
    #[arg(long, value_name = "T", env = "MODEL_TEMPERATURE", value_parser = temperature)]
    pub(crate) temperature: Option<f32>,
    /// Most tokens of one reply [default: 1024 local, 4096 hosted].
    #[arg(long, value_name = "N", env = "MODEL_MAX_TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_tokens: Option<u32>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct RootArgs {
    /// The folder to work in; nothing outside of it can be reached.
    #[arg(short, long, value_name = "DIR", default_value = ".", global = true)]
    pub(crate) root: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Action {
    /// The model calls tools.
    Tools,
    /// The model writes Python in which tools are functions.
    Code,
}

impl From<Action> for ActionFormat {
    fn from(action: Action) -> ActionFormat {
        match action {
            Action::Tools => ActionFormat::Tools,
            Action::Code => ActionFormat::Code,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ApproveMode {
    /// Ask on the terminal; without one, suspend the run.
    Ask,
    /// Refuse whatever needs an approval.
    Never,
    /// Agree to whatever may be agreed to.
    All,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Print every event as a line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Keep the demo's repository instead of removing it.
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The run: its id, the beginning or end of one, or `last`.
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List runs, newest first.
    List {
        /// At most so many.
        #[arg(short = 'n', long, default_value_t = 20)]
        limit: usize,
        #[command(flatten)]
        json: JsonArgs,
    },
    /// Show one run, event by event.
    Show {
        /// The run: its id, the beginning or end of one, or `last`.
        run: String,
        #[command(flatten)]
        json: JsonArgs,
    },
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct JsonArgs {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
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

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List the tools.
    List(JsonArgs),
    /// Show one tool as a model sees it.
    Show {
        /// Its name.
        name: String,
    },
    /// Call a tool through the full guard and print the JSON a model would see.
    Call {
        /// Its name.
        name: String,
        /// Its arguments as a JSON object.
        #[arg(default_value = "{}")]
        args: String,
        /// What happens when an approval is needed.
        #[arg(long, value_enum, default_value = "ask")]
        approve: ApproveMode,
    },
}

#[derive(Debug, Args)]
pub(crate) struct PythonArgs {
    /// The file; `-` reads standard input.
    #[arg(conflicts_with = "code")]
    pub(crate) file: Option<PathBuf>,
    /// The code itself.
    #[arg(short, long, value_name = "CODE")]
    pub(crate) code: Option<String>,
    /// Offer the built-in tools as functions.
    #[arg(long)]
    pub(crate) tools: bool,
    /// Also print the value of the last expression.
    #[arg(long)]
    pub(crate) value: bool,
    /// Longest computation, in seconds.
    #[arg(long, value_name = "S", default_value = "30", value_parser = seconds)]
    pub(crate) timeout: f64,
    /// Most memory, in megabytes.
    #[arg(long, value_name = "MB", default_value_t = 512, value_parser = clap::value_parser!(u32).range(64..))]
    pub(crate) memory: u32,
    /// Modules that may be imported beside the usual ones; `-NAME` takes one away.
    #[arg(long, value_name = "NAME", value_delimiter = ',', allow_hyphen_values = true)]
    pub(crate) imports: Vec<String>,
    /// Seed of everything random.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// What happens when a tool needs an approval.
    #[arg(long, value_enum, default_value = "ask")]
    pub(crate) approve: ApproveMode,
    #[command(flatten)]
    pub(crate) root: RootArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// List what the server has; the one that would be chosen is marked.
    List,
    /// Grade a model's tool calling by real micro-tasks.
    Probe {
        /// The model [default: the one that would be chosen].
        model: Option<String>,
    },
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
    },
    /// Show the rules in force.
    Show,
    /// Run every rule's own examples.
    Test,
}

fn temperature(text: &str) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(value) if (0.0..=2.0).contains(&value) => Ok(value),
        _ => Err("it must be a number from 0 to 2".into()),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && seconds > 0.0 => Ok(seconds),
        _ => Err("it must be a number of seconds above 0".into()),
    }
}
