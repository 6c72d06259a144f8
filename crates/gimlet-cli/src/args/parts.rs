//! Flags of looking at the parts: tools, models, MCP servers, the Python sandbox.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use gimlet_runtime::options::{ApproveMode, ExecutorChoice};

use super::{
    ImportArgs, JsonArgs, ModelOptions, RootArgs, SandboxArgs, TraceArgs, WorkOptions, choice, seconds,
};

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
    pub(crate) options: WorkOptions,
}

#[derive(Debug, Args)]
#[command(
    after_help = "An editor starts this itself: see docs/editors.md. Standard output carries nothing but the protocol."
)]
pub(crate) struct AcpArgs {
    #[command(flatten)]
    pub(crate) options: WorkOptions,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// List the agents.
    List(JsonArgs),
    /// Show one agent, and those it calls.
    Show {
        /// Its name.
        name: String,
        #[command(flatten)]
        json: JsonArgs,
    },
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
        #[arg(long, value_parser = choice::<ApproveMode>(), default_value = "ask")]
        approve: ApproveMode,
        #[command(flatten)]
        sandbox: SandboxArgs,
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
    #[arg(long, value_parser = choice::<ExecutorChoice>(), value_name = "WHERE")]
    pub(crate) executor: Option<ExecutorChoice>,
    #[command(flatten)]
    pub(crate) imports: ImportArgs,
    /// Seed of everything random.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// What happens when a tool needs an approval.
    #[arg(long, value_parser = choice::<ApproveMode>(), default_value = "ask", requires = "tools")]
    pub(crate) approve: ApproveMode,
    #[command(flatten)]
    pub(crate) root: RootArgs,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// List what the server has; the one that would be chosen is marked.
    List(JsonArgs),
    /// Grade a model's tool calling by real micro-tasks. The grade is kept and decides how the model is asked.
    Probe {
        /// The model [default: the one that would be chosen].
        #[arg(id = "NAME", value_name = "MODEL", conflicts_with = "model")]
        name: Option<String>,
        /// Forget the grade of the model, or all grades if none is named, and ask nothing.
        #[arg(long)]
        reset: bool,
        #[command(flatten)]
        options: ModelOptions,
    },
}
