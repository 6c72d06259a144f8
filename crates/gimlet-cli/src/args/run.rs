//! Flags of a run, new or resumed.

use std::num::NonZeroU32;

use clap::Args;
use gimlet::plan::Planning;
use gimlet_runtime::Options;
use gimlet_runtime::options::{Action, ApproveMode, ExecutorChoice, Trace};

use super::{McpArgs, RootArgs, SandboxArgs, choice, seconds};
use crate::diagnostics::Told;

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
    pub(crate) work: WorkOptions,
    /// Name of a conversation to begin or go on with; approvals "for the session" are good in it.
    #[arg(long, value_name = "NAME", value_parser = session_name)]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
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

/// How an agent works, whoever watches it.
#[derive(Debug, Clone, Args)]
pub(crate) struct WorkOptions {
    #[command(flatten)]
    pub(crate) model: ModelOptions,
    #[command(flatten)]
    pub(crate) root: RootArgs,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,
    #[command(flatten)]
    pub(crate) mcp: McpArgs,
    /// Tools the agent has: names such as `read_file` or `git_*`, `all`, and Python files whose functions are tools
    /// (`notes.py`, or `'tools/*.py'` in quotes) [default: what suits the model].
    #[arg(long, value_name = "NAME|FILE.py", value_delimiter = ',')]
    pub(crate) tools: Vec<String>,
    /// The agent of the configuration that does the work; see `gimlet agents`.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// How the agent acts.
    #[arg(short, long, value_parser = choice::<Action>())]
    pub(crate) action: Option<Action>,
    /// Most steps [env: AGENT_MAX_STEPS] [default: 25].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_steps: Option<u32>,
    /// Have the model plan at the start, and again every N steps [env: AGENT_PLAN] [default: never].
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "start")]
    #[arg(value_parser = planning)]
    pub(crate) plan: Option<Planning>,
    /// Most seconds of work.
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub(crate) timeout: Option<f64>,
    /// Most steps of the agent and of all agents below it, together [default: 10 times --max-steps].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) step_budget: Option<u32>,
    /// Most tokens of the whole run.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) token_budget: Option<u64>,
    /// Where the code of an agent runs; `venv` and `docker` are for one that acts by code [default: python].
    #[arg(long, value_parser = choice::<ExecutorChoice>(), value_name = "WHERE")]
    pub(crate) executor: Option<ExecutorChoice>,
    #[command(flatten)]
    pub(crate) imports: ImportArgs,
    /// What happens when an approval is needed; no mode passes a denial [env: AGENT_APPROVE] [default: ask].
    #[arg(long, visible_alias = "mode", value_name = "MODE", value_parser = choice::<ApproveMode>())]
    pub(crate) approve: Option<ApproveMode>,
    /// Do not offer the project's AGENTS.md to the model [env: AGENT_INSTRUCTIONS].
    #[arg(long)]
    pub(crate) no_instructions: bool,
    /// Let the agent remember things about the project, for later runs [env: MEMORY_ENABLED].
    #[arg(long)]
    pub(crate) memory: bool,
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

impl From<&TraceArgs> for Trace {
    fn from(args: &TraceArgs) -> Trace {
        Trace { enabled: args.wish(), content: args.trace_content }
    }
}

impl From<&RunOptions> for Options {
    fn from(options: &RunOptions) -> Options {
        Options {
            session: options.session.clone(),
            trace: (&options.trace).into(),
            ..Options::from(&options.work)
        }
    }
}

impl From<&WorkOptions> for Options {
    fn from(options: &WorkOptions) -> Options {
        // A Python file is served as a server is.
        let (files, tools): (Vec<String>, Vec<String>) =
            options.tools.iter().cloned().partition(|tool| tool.ends_with(".py"));
        Options {
            root: options.root.root.clone(),
            sandbox: (&options.sandbox).into(),
            mcp_files: options.mcp.files.iter().cloned().chain(files.into_iter().map(Into::into)).collect(),
            tools,
            agent: options.agent.clone(),
            action: options.action,
            max_steps: options.max_steps,
            plan: options.plan,
            timeout: options.timeout,
            step_budget: options.step_budget,
            token_budget: options.token_budget,
            executor: options.executor,
            imports: options.imports.imports.clone(),
            approve: options.approve,
            instructions: options.no_instructions.then_some(false),
            memory: options.memory.then_some(true),
            ..Options::from(&options.model)
        }
    }
}

impl From<&ModelOptions> for Options {
    fn from(options: &ModelOptions) -> Options {
        Options {
            model: options.model.clone(),
            temperature: options.temperature,
            max_tokens: options.max_tokens,
            context: options.context,
            ..Options::from(&options.server)
        }
    }
}

impl From<&ServerArgs> for Options {
    fn from(args: &ServerArgs) -> Options {
        Options { api_base: args.api_base.clone(), ..Options::default() }
    }
}

/// Which model, and how it writes.
#[derive(Debug, Clone, Args)]
pub(crate) struct ModelOptions {
    /// The model, such as `ollama_chat/qwen2.5-coder:14b`, `anthropic/…`, `openai/…`, `scripted/FILE`, or a name of the
    /// configuration [env: MODEL_ID] [default: the best that Ollama has].
    #[arg(short, long, value_name = "ID")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Randomness of the replies [env: MODEL_TEMPERATURE] [default: 0.1].
    #[arg(long, value_name = "T", value_parser = temperature)]
    pub(crate) temperature: Option<f32>,
    /// Most tokens of one reply [env: MODEL_MAX_TOKENS] [default: 1024 local, 4096 hosted].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_tokens: Option<u32>,
    /// Window of the model in tokens [env: MODEL_CONTEXT] [default: the server's, else by the model and the free memory].
    #[arg(long, value_name = "N", value_parser = window)]
    pub(crate) context: Option<NonZeroU32>,
}

/// Where models are.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServerArgs {
    /// Address of the model server [env: MODEL_API_BASE] [default: the provider's own].
    #[arg(long, value_name = "URL", global = true)]
    pub(crate) api_base: Option<String>,
}

/// What Python code may import.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ImportArgs {
    /// Modules that Python code may import beside the usual ones; `-NAME` takes one away.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', allow_hyphen_values = true)]
    pub(crate) imports: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Print every event as a line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Show the demo on the page of `gimlet serve` instead.
    #[arg(long, conflicts_with = "json")]
    pub(crate) web: bool,
    /// Keep the demo's repository instead of removing it.
    #[arg(long)]
    pub(crate) keep: bool,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
}

#[derive(Debug, Args)]
#[command(mut_arg("no_instructions", |arg| arg.hide(true)))]
pub(crate) struct ResumeArgs {
    /// The run: its id, the beginning or end of one, or `last`.
    pub(crate) run: String,
    /// Something to say to it first; a run that has answered needs that.
    pub(crate) message: Option<String>,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

pub(super) fn temperature(text: &str) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(value) if (0.0..=2.0).contains(&value) => Ok(value),
        _ => Err("it must be a number from 0 to 2".into()),
    }
}

/// An agent cannot work in less.
fn window(text: &str) -> Result<NonZeroU32, String> {
    match text.parse::<NonZeroU32>() {
        Ok(tokens) if tokens.get() >= 2048 => Ok(tokens),
        _ => Err("it must be a number of tokens, 2048 or more".into()),
    }
}

/// A session's name is also a file's.
fn session_name(text: &str) -> Result<String, String> {
    let fits = (1..=64).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && !text.starts_with('.');
    if fits { Ok(text.to_owned()) } else { Err("use letters, digits, `-`, `_` and `.`, at most 64".into()) }
}

fn planning(text: &str) -> Result<Planning, String> {
    match text {
        "start" => Ok(Planning::AtStart),
        "never" => Ok(Planning::Never),
        number => match number.parse() {
            Ok(steps) => Ok(Planning::Every(steps)),
            Err(_) => Err("a number of steps, `start` or `never`".to_owned()),
        },
    }
}
