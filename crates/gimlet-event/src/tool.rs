//! What a model is told about a tool, how the guard treats it, and how it fails.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a model is told about a tool, and how the guard treats it. Immutable; shared by `Arc`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// A Python identifier, unique in a toolbox.
    pub name: String,
    /// The prompt: what it does, in a sentence or two.
    pub description: String,
    /// JSON schema of the arguments; an object that takes no others.
    pub input: Value,
    /// JSON schema of the result, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// How the guard treats it.
    #[serde(default)]
    pub manner: Manner,
}

/// How the guard treats a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Manner {
    /// Longest execution; waiting for a person does not count.
    pub timeout: Duration,
    /// Which end of a long text survives truncation.
    pub keep: Keep,
    /// May run beside other calls of the same reply. Calls that change the world never do.
    pub parallel: bool,
    /// Keeps its own durable record, so that calling it again after a crash carries on instead of repeating.
    pub resumable: bool,
    /// What its results are about.
    #[serde(skip_serializing_if = "Tells::is_matter")]
    pub tells: Tells,
}

impl Default for Manner {
    fn default() -> Self {
        Manner {
            timeout: Duration::from_secs(30),
            keep: Keep::Head,
            parallel: true,
            resumable: false,
            tells: Tells::Matter,
        }
    }
}

/// What a tool's results are about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tells {
    /// The matter itself: an answer may rest on it.
    #[default]
    Matter,
    /// Only where there is something to look at: names, sizes, dates.
    Where,
}

impl Tells {
    fn is_matter(&self) -> bool {
        *self == Tells::Matter
    }
}

/// Which end of a long text matters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// The beginning, as for files.
    #[default]
    Head,
    /// The end, as for commands, whose summary comes last.
    Tail,
}

/// A failure as the model reads it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolFailure {
    /// A stable word, such as `FILE_NOT_FOUND`.
    pub error: String,
    /// What happened.
    pub message: String,
    /// The tool that failed; filled in by the guard.
    #[serde(default)]
    pub tool: String,
    /// Facts about it.
    #[serde(default)]
    pub context: Map<String, Value>,
    /// What to try next; never executed by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery_suggestion: Option<Suggestion>,
    /// The same failure came up before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub loop_detected: bool,
    /// What to do instead of repeating.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl ToolFailure {
    /// A failure without context.
    pub fn new(error: impl Into<String>, message: impl Into<String>) -> Self {
        ToolFailure { error: error.into(), message: message.into(), ..ToolFailure::default() }
    }
}

impl std::fmt::Display for ToolFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.error, self.message)
    }
}

/// A next step offered to the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Suggestion {
    /// The call to consider.
    pub tool_call: SuggestedCall,
    /// Why.
    pub rationale: String,
}

/// A call that is suggested, not made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SuggestedCall {
    /// Name of the tool.
    pub name: String,
    /// Its arguments.
    pub arguments: Value,
}

/// Error words the runtime itself uses. Tools add their own.
pub mod code {
    /// The arguments do not fit the schema.
    pub const VALIDATION_FAILED: &str = "VALIDATION_FAILED";
    /// No tool of that name.
    pub const UNKNOWN_TOOL: &str = "UNKNOWN_TOOL";
    /// The policy forbids it.
    pub const DENIED: &str = "DENIED";
    /// The policy forbids the command.
    pub const COMMAND_DENIED: &str = "COMMAND_DENIED";
    /// A person said no.
    pub const APPROVAL_DENIED: &str = "APPROVAL_DENIED";
    /// A hook said no.
    pub const HOOK_REFUSED: &str = "HOOK_REFUSED";
    /// It took too long.
    pub const TOOL_TIMEOUT: &str = "TOOL_TIMEOUT";
    /// It was stopped.
    pub const CANCELLED: &str = "CANCELLED";
    /// It broke.
    pub const TOOL_EXCEPTION: &str = "TOOL_EXCEPTION";
    /// The same call again and again.
    pub const LOOP_DETECTED: &str = "LOOP_DETECTED";
    /// The program stopped between its start and its end.
    pub const OUTCOME_UNKNOWN: &str = "OUTCOME_UNKNOWN";
}
