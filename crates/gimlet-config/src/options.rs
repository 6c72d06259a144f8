//! What whoever starts a run may say about it, as plain values: a command line, a page or a program fills them in. What is
//! left out comes from the environment and the configuration files.

use std::num::NonZeroU32;
use std::path::PathBuf;

use gimlet::event::ActionFormat;
use gimlet::plan::Planning;
use serde::Deserialize;
use serde_json::Value;

/// One of a few named values.
pub trait Choice: Copy + PartialEq + Send + Sync + 'static {
    /// Every value with its name and a line about it.
    const ALL: &'static [(Self, &'static str, &'static str)];

    /// As people write it.
    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(value, _, _)| *value == self).map_or("", |(_, name, _)| name)
    }

    /// The value of this name.
    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known, _)| *known == name).map(|(value, _, _)| *value)
    }
}

/// Options of a run. [`Default`] says nothing, so that everything is as configured.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The project's folder; `None` is the working directory, or the folder of a run that is taken up.
    pub root: Option<PathBuf>,
    /// The model's id, or a name of the configuration.
    pub model: Option<String>,
    /// Address of the model server.
    pub api_base: Option<String>,
    /// Randomness of the replies.
    pub temperature: Option<f32>,
    /// Maximum tokens of one reply.
    pub max_tokens: Option<u32>,
    /// Window of the model, in tokens.
    pub context: Option<NonZeroU32>,
    /// How commands, patches and code are confined.
    pub sandbox: Sandbox,
    /// Files that name MCP servers, beside those of the configuration.
    pub mcp_files: Vec<PathBuf>,
    /// Names of the tools that the leading agent has, with `*` at the end for any ending; empty for those it would have.
    pub tools: Vec<String>,
    /// The agent of the configuration that does the work.
    pub agent: Option<String>,
    /// How the agent acts; `None` leaves it to the model's profile.
    pub action: Option<Action>,
    /// Maximum steps.
    pub max_steps: Option<u32>,
    /// When the model plans.
    pub plan: Option<Planning>,
    /// Time limit in seconds.
    pub timeout: Option<f64>,
    /// Maximum steps of the agent and of all agents below it, together.
    pub step_budget: Option<u32>,
    /// Maximum tokens of the whole run.
    pub token_budget: Option<u64>,
    /// Where the code of an agent runs.
    pub executor: Option<ExecutorChoice>,
    /// Changes to what Python code may import: `NAME` adds a module, `-NAME` takes one away.
    pub imports: Vec<String>,
    /// What happens when an approval is needed.
    /// `None` is as configured.
    pub approve: Option<ApproveMode>,
    /// Whether the model reads the project's instructions for agents.
    pub instructions: Option<bool>,
    /// Whether the agent may remember things about the project; `None` is as configured.
    pub memory: Option<bool>,
    /// Name of the conversation; approvals "for the session" are good in it.
    pub session: Option<String>,
    /// What spans tell of the run.
    pub trace: Trace,
    /// The JSON schema of the leading agent's answer, where its table has none.
    pub output: Option<Value>,
    /// Tables that the program which starts the run brings itself, in the form of a configuration file: `agents` and
    /// `mcp`. They are the user's word.
    pub given: Option<Value>,
}

/// Whether spans are sent, and what they carry.
#[derive(Debug, Clone, Copy, Default)]
pub struct Trace {
    /// Whether they are sent; `None` is as configured.
    pub enabled: Option<bool>,
    /// Whether they carry what was said.
    pub content: bool,
}

/// How commands, patches and code are confined.
#[derive(Debug, Clone, Default)]
pub struct Sandbox {
    /// What commands may change without a question.
    pub profile: CommandProfile,
    /// The jail around commands.
    pub jail: JailOptions,
    /// Where patches are checked.
    pub validation: Validation,
    /// A command that must succeed with a patch in place before it is offered.
    pub validation_tests: Option<String>,
}

/// The jail around commands, and what they may take of the machine.
#[derive(Debug, Clone)]
pub struct JailOptions {
    /// What confines commands.
    pub jail: JailChoice,
    /// Maximum memory of a command and all it starts, in megabytes.
    pub memory: u32,
    /// Maximum processor time of each process of a command, in seconds.
    pub cpu: Option<u64>,
}

impl JailOptions {
    /// Megabytes of memory when nobody says otherwise.
    pub const MEMORY: u32 = 8192;
}

impl Default for JailOptions {
    fn default() -> Self {
        JailOptions { jail: JailChoice::default(), memory: JailOptions::MEMORY, cpu: None }
    }
}

/// What commands may change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CommandProfile {
    /// Nothing.
    ReadOnly,
    /// The project.
    #[default]
    WorkspaceWrite,
    /// Everything the user may change; every command asks.
    Unrestricted,
    /// Nothing, in a Docker container.
    Docker,
}

impl Choice for CommandProfile {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::ReadOnly, "read-only", "Nothing"),
        (Self::WorkspaceWrite, "workspace-write", "The project"),
        (Self::Unrestricted, "unrestricted", "Everything you may change; every command asks"),
        (Self::Docker, "docker", "Nothing, in a Docker container"),
    ];
}

/// Where patches are checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Validation {
    /// In a container where there is one, otherwise in a scratch folder.
    #[default]
    Auto,
    /// In a container or not at all.
    Docker,
    /// In a scratch folder.
    Worktree,
}

impl Choice for Validation {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Auto, "auto", "In a container where there is one, otherwise in a scratch folder"),
        (Self::Docker, "docker", "In a container or not at all"),
        (Self::Worktree, "worktree", "In a scratch folder"),
    ];
}

/// What confines commands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum JailChoice {
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

impl Choice for JailChoice {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Auto, "auto", "The best this machine has"),
        (Self::Bubblewrap, "bubblewrap", "Bubblewrap or nothing"),
        (Self::Landlock, "landlock", "Landlock and seccomp or nothing"),
        (Self::Off, "off", "Nothing: every command asks"),
    ];
}

/// Where the code of an agent that acts by code runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExecutorChoice {
    /// In the Python sandbox of this program.
    #[default]
    Python,
    /// In the CPython of a virtual environment, with its packages, in the jail of commands.
    Venv,
    /// In CPython in a Docker container.
    Docker,
}

impl Choice for ExecutorChoice {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Python, "python", "In the Python sandbox of this program"),
        (Self::Venv, "venv", "In your CPython with its packages, in the jail of commands"),
        (Self::Docker, "docker", "In CPython in a Docker container"),
    ];
}

/// How an agent acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The model calls tools.
    Tools,
    /// The model writes Python in which tools are functions.
    Code,
    /// The program leads; the model answers small questions and writes the edits.
    Guided,
}

impl Choice for Action {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Tools, "tools", "The model calls tools"),
        (Self::Code, "code", "The model writes Python in which tools are functions"),
        (
            Self::Guided,
            "guided",
            "The program leads, and the model answers small questions and writes the edits; for small models",
        ),
    ];
}

impl From<ActionFormat> for Action {
    fn from(format: ActionFormat) -> Action {
        match format {
            ActionFormat::Tools => Action::Tools,
            ActionFormat::Code => Action::Code,
            ActionFormat::Guided => Action::Guided,
        }
    }
}

impl From<Action> for ActionFormat {
    fn from(action: Action) -> ActionFormat {
        match action {
            Action::Tools => ActionFormat::Tools,
            Action::Code => ActionFormat::Code,
            Action::Guided => ActionFormat::Guided,
        }
    }
}

/// What happens when an approval is needed. The order is how much is agreed to; no mode passes a denial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ApproveMode {
    /// Nothing may be changed or run, asked for or not.
    Plan,
    /// Whatever needs an approval is refused.
    Never,
    /// Whoever watches is asked; without anybody the run is suspended.
    #[default]
    Ask,
    /// Edits to files of the project are agreed to; everything else is asked for.
    Edits,
    /// What only changes the project, and what a jail keeps to that, is agreed to; everything else is asked for.
    Auto,
    /// Whatever may be agreed to is agreed to.
    All,
}

impl Choice for ApproveMode {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Ask, "ask", "Ask on the terminal; without one, suspend the run"),
        (Self::Edits, "edits", "Apply edits to the project's files without asking; ask about commands"),
        (Self::Plan, "plan", "Read only: nothing that changes or runs is offered to the model, or allowed"),
        (
            Self::Auto,
            "auto",
            "Also run commands that only change the project inside the jail; ask about the rest",
        ),
        (Self::Never, "never", "Refuse whatever needs an approval"),
        (Self::All, "all", "Agree to whatever may be agreed to"),
    ];
}

impl ApproveMode {
    /// The next one of those that a person switches between by a key.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            ApproveMode::Ask => ApproveMode::Edits,
            ApproveMode::Edits => ApproveMode::Auto,
            ApproveMode::Auto => ApproveMode::Plan,
            ApproveMode::Plan | ApproveMode::Never | ApproveMode::All => ApproveMode::Ask,
        }
    }
}

impl Options {
    /// How the agent acts, given how it would otherwise.
    pub fn acting(&self, otherwise: ActionFormat) -> ActionFormat {
        match (self.action, self.executor) {
            (Some(action), _) => action.into(),
            (None, Some(ExecutorChoice::Docker | ExecutorChoice::Venv)) => ActionFormat::Code,
            (None, Some(ExecutorChoice::Python) | None) => otherwise,
        }
    }
}
