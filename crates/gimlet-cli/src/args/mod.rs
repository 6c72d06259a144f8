//! The command line's types: raw words become these once, and nothing behind them reads flags again. A file for each
//! family of commands; here is what all of them share.

mod eval;
mod git;
mod memory;
mod order;
mod parts;
mod repo;
mod run;
mod runs;
mod sandbox;
mod serve;
mod setup;

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue};
use clap::{Args, CommandFactory, Parser, Subcommand};
use gimlet_runtime::Options;
use gimlet_runtime::options::Choice;

pub(crate) use eval::EvalArgs;
pub(crate) use git::{CommitArgs, FailOn, ReviewArgs};
pub(crate) use memory::{MemoryCommand, Remembered};
pub(crate) use parts::{
    AcpArgs, AgentsCommand, McpArgs, McpCommand, McpServeArgs, ModelsCommand, PythonArgs, ToolsCommand,
};
pub(crate) use repo::RepoCommand;
pub(crate) use run::{
    DemoArgs, ImportArgs, ModelOptions, ResumeArgs, RunArgs, RunOptions, ServerArgs, TraceArgs, WorkOptions,
};
pub(crate) use runs::{
    ApprovalsArgs, ApprovalsCommand, ApproveArgs, DenyArgs, ExportFormat, RunsCommand, RunsListArgs, UndoArgs,
};
pub(crate) use sandbox::{JailArgs, SandboxArgs, SandboxCommand};
pub(crate) use serve::ServeArgs;
pub(crate) use setup::{ConfigCommand, DoctorArgs, PolicyCommand, TrustArgs};

/// A coding agent for small local models: give it a task in a repository.
#[derive(Debug, Parser)]
#[command(name = "gimlet", version, args_conflicts_with_subcommands = true, max_term_width = 100)]
// What a run takes is not taken by every other command, too. A family of commands may share a flag that all of it heeds.
#[command(mut_args(|arg| arg.global(false)))]
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

impl Cli {
    /// What was typed. Ends the program where that makes no sense.
    pub(crate) fn read() -> Self {
        let mut command = Cli::command();
        command.build();
        let words: Vec<_> = std::env::args_os().collect();
        let words = order::reordered(&words, &command).unwrap_or(words);
        let words = order::joined(words, &command);
        let cli = Cli::try_parse_from(words).unwrap_or_else(|error| hinted(error).exit());
        cli.checked(&command).unwrap_or_else(|error| error.exit())
    }

    /// Makes sure that a single word is meant as a task where it looks like a misspelt command.
    fn checked(self, command: &clap::Command) -> Result<Self, clap::Error> {
        let word = self.run.task.as_deref().filter(|_| self.command.is_none());
        let Some((word, meant)) = word.and_then(|word| Some((word, order::meant(word, command)?))) else {
            return Ok(self);
        };
        if crate::out::can_ask() {
            let question =
                format!("`{meant}` is a command, `{word}` is none. Give it to the model as a task?");
            if crate::show::agreed(&mut crate::out::stderr(), &question).is_ok_and(|agreed| agreed) {
                return Ok(self);
            }
        }
        let message = format!(
            "there is no command `{word}`; did you mean `gimlet {meant}`?\n\nhint: gimlet run {word} gives it to the model as a task\n"
        );
        Err(command.clone().error(clap::error::ErrorKind::InvalidSubcommand, message))
    }
}

/// The second word of a task without quotes is taken for a command or an argument, which nobody meant.
fn hinted(mut error: clap::Error) -> clap::Error {
    let is_task = error.get(ContextKind::Usage).is_some_and(|usage| usage.to_string().contains("[TASK]"));
    let is_word = |kind| error.get(kind).is_some_and(|word| !word.to_string().starts_with('-'));
    if is_task && (is_word(ContextKind::InvalidSubcommand) || is_word(ContextKind::InvalidArg)) {
        let hint = "put a task of several words in quotes: gimlet \"explain what this project does\"";
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    }
    error
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run one task and print the answer.
    Run(RunArgs),
    /// Watch the whole story with no model server: everything is real but the model's replies.
    Demo(DemoArgs),
    /// Carry on a run that was suspended, interrupted, limited or crashed, or go on with a conversation.
    Resume(ResumeArgs),
    /// Commit what is staged, with a message that the model writes.
    Commit(CommitArgs),
    /// Review changes without touching them: findings with path and line.
    Review(ReviewArgs),
    /// Look at the runs that were made.
    #[command(args_conflicts_with_subcommands = true)]
    Runs {
        #[command(subcommand)]
        command: Option<RunsCommand>,
        #[command(flatten)]
        list: RunsListArgs,
    },
    /// List the questions that wait for an answer, or show all of one.
    Approvals(ApprovalsArgs),
    /// Say yes to a question.
    Approve(ApproveArgs),
    /// Say no to a question.
    Deny(DenyArgs),
    /// Look at the agents that the configuration defines.
    Agents {
        #[command(subcommand)]
        command: Option<AgentsCommand>,
        #[command(flatten)]
        root: RootArgs,
        #[command(flatten)]
        mcp: McpArgs,
        #[command(flatten)]
        json: JsonArgs,
    },
    /// Look at the tools and call them.
    Tools {
        #[command(subcommand)]
        command: Option<ToolsCommand>,
        #[command(flatten)]
        root: RootArgs,
        #[command(flatten)]
        mcp: McpArgs,
        #[command(flatten)]
        json: JsonArgs,
    },
    /// List the skills that agents can read.
    Skills {
        #[command(flatten)]
        root: RootArgs,
        #[command(flatten)]
        json: JsonArgs,
    },
    /// List the commands of your own and of the project, which `gimlet /NAME` runs.
    Commands {
        #[command(flatten)]
        root: RootArgs,
        #[command(flatten)]
        json: JsonArgs,
    },
    /// Look at MCP servers, or offer these tools over MCP.
    Mcp {
        #[command(subcommand)]
        command: Option<McpCommand>,
        #[command(flatten)]
        root: RootArgs,
        #[command(flatten)]
        mcp: McpArgs,
        #[command(flatten)]
        json: JsonArgs,
    },
    /// Be the agent of an editor or a program, over the Agent Client Protocol on standard input and output.
    Acp(Box<AcpArgs>),
    /// Look at what is remembered of the project, take it elsewhere, or forget it.
    Memory {
        #[command(subcommand)]
        command: Option<MemoryCommand>,
        #[command(flatten)]
        root: RootArgs,
        #[command(flatten)]
        json: JsonArgs,
    },
    /// Look at the repository as an agent does: its map, and the files that a task is about.
    Repo {
        #[command(subcommand)]
        command: RepoCommand,
        #[command(flatten)]
        root: RootArgs,
    },
    /// Look at the models a server has, and grade one.
    Models {
        #[command(subcommand)]
        command: Option<ModelsCommand>,
        #[command(flatten)]
        server: ServerArgs,
        #[command(flatten)]
        json: JsonArgs,
    },
    /// Try models on a suite of tasks, and report how they did.
    Eval(Box<EvalArgs>),
    /// Run Python in the sandbox, like `python FILE`.
    Python(PythonArgs),
    /// Ask what a command would be judged as, and why.
    Policy {
        #[command(subcommand)]
        command: PolicyCommand,
    },
    /// Look at the isolation layers, and build the image of the Docker sandbox.
    #[command(args_conflicts_with_subcommands = true)]
    Sandbox {
        #[command(subcommand)]
        command: Option<SandboxCommand>,
        #[command(flatten)]
        root: RootArgs,
        #[command(flatten)]
        jail: JailArgs,
        #[command(flatten)]
        json: JsonArgs,
    },
    /// Show the settings in force and where each comes from, or write a file of them.
    Config {
        #[command(subcommand)]
        command: Option<ConfigCommand>,
        #[command(flatten)]
        root: RootArgs,
        #[command(flatten)]
        json: JsonArgs,
    },
    /// Serve the page and the HTTP interface on this machine.
    Serve(ServeArgs),
    /// Trust a project's file as it is now.
    Trust(TrustArgs),
    /// Check everything a run needs, on one screen.
    Doctor(DoctorArgs),
    /// Print shell completions.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write one for every command.
    Man {
        /// The folder to write them to.
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

#[derive(Debug, Clone, Args)]
pub(crate) struct RootArgs {
    /// The folder to work in; nothing outside of it can be reached [default: this one; a resumed run's own].
    #[arg(short, long, value_name = "DIR", global = true)]
    pub(crate) root: Option<PathBuf>,
}

impl RootArgs {
    /// The folder as runs name it.
    pub(crate) fn canonical(&self) -> PathBuf {
        self.folder().canonicalize().unwrap_or_else(|_| self.folder().to_owned())
    }

    /// The folder, or the one the program was started in.
    pub(crate) fn folder(&self) -> &Path {
        self.root.as_deref().unwrap_or(Path::new("."))
    }
}

impl From<&RootArgs> for Options {
    fn from(args: &RootArgs) -> Options {
        Options { root: args.root.clone(), ..Options::default() }
    }
}

/// Reads one of a few named values.
fn choice<T: Choice>() -> impl TypedValueParser<Value = T> {
    let values = T::ALL.iter().map(|(_, name, about)| PossibleValue::new(*name).help(*about));
    PossibleValuesParser::new(values).try_map(|name| T::named(&name).ok_or("there is no such value"))
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct JsonArgs {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && seconds > 0.0 => Ok(seconds),
        _ => Err("it must be a number of seconds above 0".into()),
    }
}
