//! The command line's types: raw words become these once, and nothing behind them reads flags again.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use gimlet::event::ActionFormat;

use crate::trace::Told;

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
    /// Carry on a run that was suspended, interrupted, limited or crashed, or go on with a conversation.
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
        #[command(flatten)]
        mcp: McpArgs,
    },
    /// Look at MCP servers, or offer these tools over MCP.
    Mcp {
        #[command(subcommand)]
        command: Option<McpCommand>,
        #[command(flatten)]
        root: RootArgs,
        #[command(flatten)]
        mcp: McpArgs,
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
    /// Look at the isolation layers, and build the image of the Docker sandbox.
    Sandbox {
        #[command(subcommand)]
        command: Option<SandboxCommand>,
        #[command(flatten)]
        root: RootArgs,
    },
    /// Show the settings in force and where each comes from, or write a file of them.
    Config {
        #[command(subcommand)]
        command: Option<ConfigCommand>,
        #[command(flatten)]
        root: RootArgs,
    },
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

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// What to do; `-` reads it from standard input, and what is piped in beside a task is attached to it. Without a
    /// task, on a terminal: an interactive session.
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
    #[command(flatten)]
    pub(crate) mcp: McpArgs,
    /// How the agent acts.
    #[arg(short, long, value_enum)]
    pub(crate) action: Option<Action>,
    /// Most steps [env: AGENT_MAX_STEPS] [default: 25].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_steps: Option<u32>,
    /// Most seconds of work.
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub(crate) timeout: Option<f64>,
    /// Most tokens of the whole run.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) token_budget: Option<u64>,
    /// Where the code of an agent runs; `docker` is for one that acts by code [default: python].
    #[arg(long, value_enum, value_name = "WHERE")]
    pub(crate) executor: Option<ExecutorChoice>,
    #[command(flatten)]
    pub(crate) imports: ImportArgs,
    /// What happens when an approval is needed; `all` never passes a denial.
    #[arg(long, value_enum, default_value = "ask")]
    pub(crate) approve: ApproveMode,
    /// Name of a conversation to begin or go on with; approvals "for the session" are good in it.
    #[arg(long, value_name = "NAME", value_parser = session_name)]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
    /// Do not offer the project's AGENTS.md to the model [env: AGENT_INSTRUCTIONS].
    #[arg(long)]
    pub(crate) no_instructions: bool,
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

/// Whether and what spans tell of a run.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TraceArgs {
    /// Send spans to the trace collector [default: PHOENIX_ENABLED, which is true].
    #[arg(long, overrides_with = "no_trace")]
    pub(crate) trace: bool,
    /// Send no spans.
    #[arg(long, overrides_with = "trace")]
    pub(crate) no_trace: bool,
    /// Also send what was said: tasks, messages, code, arguments and results.
    #[arg(long)]
    pub(crate) trace_content: bool,
}

impl TraceArgs {
    /// Whether spans are wanted, if anything is said about it.
    pub(crate) fn wish(&self) -> Option<bool> {
        match (self.trace, self.no_trace) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        }
    }
}

impl RunOptions {
    /// Who wants to hear of a trace that did not arrive.
    pub(crate) fn told(&self) -> Told {
        match (self.quiet, self.verbose || self.debug) {
            (true, _) => Told::Never,
            (false, true) => Told::Always,
            (false, false) => Told::WhenNamed,
        }
    }
}

/// Which model, and how it writes.
#[derive(Debug, Clone, Args)]
pub(crate) struct ModelOptions {
    /// The model, such as `ollama_chat/qwen2.5-coder:14b`, `anthropic/…`, `openai/…`, `scripted/FILE`, or a name of the
    /// configuration [env: MODEL_ID] [default: the best that Ollama has].
    #[arg(short, long, value_name = "ID")]
    pub(crate) model: Option<String>,
    /// Address of the model server [env: MODEL_API_BASE] [default: the provider's own].
    #[arg(long, value_name = "URL")]
    pub(crate) api_base: Option<String>,
    /// Randomness of the replies [env: MODEL_TEMPERATURE] [default: 0.1].
    #[arg(long, value_name = "T", value_parser = temperature)]
    pub(crate) temperature: Option<f32>,
    /// Most tokens of one reply [env: MODEL_MAX_TOKENS] [default: 1024 local, 4096 hosted].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_tokens: Option<u32>,
}

impl ModelOptions {
    /// These, and what the others say beyond them.
    pub(crate) fn or(self, others: ModelOptions) -> ModelOptions {
        ModelOptions {
            model: self.model.or(others.model),
            api_base: self.api_base.or(others.api_base),
            temperature: self.temperature.or(others.temperature),
            max_tokens: self.max_tokens.or(others.max_tokens),
        }
    }
}

/// Files that name MCP servers.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct McpArgs {
    /// A file that names MCP servers, such as a standard `mcp.json`; may be given more than once.
    #[arg(id = "mcp_files", long = "mcp", value_name = "FILE", global = true)]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Start every configured server and tell how it is.
    List(JsonArgs),
    /// Be an MCP server over standard input and output: reading is free, changes ask, `ask` runs a whole task.
    Serve(Box<McpServeArgs>),
}

#[derive(Debug, Args)]
pub(crate) struct McpServeArgs {
    /// Offer only the tools that look.
    #[arg(long)]
    pub(crate) read_only: bool,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct RootArgs {
    /// The folder to work in; nothing outside of it can be reached [default: this one; a resumed run's own].
    #[arg(short, long, value_name = "DIR", global = true)]
    pub(crate) root: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,
}

impl RootArgs {
    /// The folder, or the one the program was started in.
    pub(crate) fn folder(&self) -> &Path {
        self.root.as_deref().unwrap_or(Path::new("."))
    }
}

/// How commands are confined.
#[derive(Debug, Clone, Args)]
pub(crate) struct SandboxArgs {
    /// What commands may change without being asked about [default: workspace-write].
    #[arg(
        long,
        value_enum,
        value_name = "PROFILE",
        env = "SANDBOX_PROFILE",
        default_value = "workspace-write",
        global = true
    )]
    #[arg(hide_default_value = true)]
    pub(crate) sandbox: CommandProfile,
    /// What confines them.
    #[arg(
        long,
        value_enum,
        value_name = "JAIL",
        env = "SANDBOX_JAIL",
        default_value = "auto",
        global = true,
        hide = true
    )]
    pub(crate) jail: JailChoice,
    /// Most memory of a command and all it starts, in megabytes.
    #[arg(
        long,
        value_name = "MB",
        env = "SANDBOX_MEMORY",
        default_value_t = 8192,
        global = true,
        hide = true
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(64..))]
    pub(crate) command_memory: u32,
    /// Where patches are checked [default: auto].
    #[arg(
        long,
        value_enum,
        value_name = "WHERE",
        env = "SANDBOX_VALIDATION",
        hide_short_help = true,
        default_value = "auto",
        global = true
    )]
    #[arg(hide_default_value = true)]
    pub(crate) validation: Validation,
}

impl Default for SandboxArgs {
    fn default() -> Self {
        SandboxArgs {
            sandbox: CommandProfile::default(),
            jail: JailChoice::default(),
            command_memory: 8192,
            validation: Validation::default(),
        }
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
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
    Status,
    /// Build the image of the Docker sandbox.
    Build {
        /// Print the Dockerfile instead.
        #[arg(long)]
        print: bool,
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

/// What Python code may import.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ImportArgs {
    /// Modules that Python code may import beside the usual ones; `-NAME` takes one away.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', allow_hyphen_values = true)]
    pub(crate) imports: Vec<String>,
}

impl RunOptions {
    /// How the agent acts, given how its model would.
    pub(crate) fn acting(&self, otherwise: ActionFormat) -> ActionFormat {
        match (self.action, self.executor) {
            (Some(action), _) => action.into(),
            (None, Some(ExecutorChoice::Docker)) => ActionFormat::Code,
            (None, Some(ExecutorChoice::Python) | None) => otherwise,
        }
    }
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
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The run: its id, the beginning or end of one, or `last`.
    pub(crate) run: String,
    /// Something to say to it first; a run that has answered needs that.
    pub(crate) message: Option<String>,
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
    /// One JSON object with every event.
    Json,
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
    /// Where the code runs [default: python].
    #[arg(long, value_enum, value_name = "WHERE")]
    pub(crate) executor: Option<ExecutorChoice>,
    #[command(flatten)]
    pub(crate) imports: ImportArgs,
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
    List {
        #[command(flatten)]
        options: ModelOptions,
    },
    /// Grade a model's tool calling by real micro-tasks. The grade is kept and decides how the model is asked.
    Probe {
        /// The model [default: the one that would be chosen].
        #[arg(id = "NAME", value_name = "MODEL")]
        name: Option<String>,
        #[command(flatten)]
        options: ModelOptions,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every setting, its value and its source.
    Show {
        #[command(flatten)]
        model: ModelOptions,
        /// Most steps.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        max_steps: Option<u32>,
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
    pub(crate) json: JsonArgs,
    #[command(flatten)]
    pub(crate) root: RootArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// The file [default: the project's gimlet.toml, .env and mcp.json, as far as they exist].
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
    },
    /// Show the rules in force, where each stands, and what was answered with "always".
    Show,
    /// Take back an answer that was given with "always".
    Forget {
        /// Its name, as `gimlet policy show` tells it.
        id: String,
    },
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

/// A session's name is also a file's.
fn session_name(text: &str) -> Result<String, String> {
    let fits = (1..=64).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && !text.starts_with('.');
    if fits { Ok(text.to_owned()) } else { Err("use letters, digits, `-`, `_` and `.`, at most 64".into()) }
}
