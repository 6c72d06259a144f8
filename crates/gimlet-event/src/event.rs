//! Everything that happens in a run, as it is logged, streamed by `--json`, shown and traced.
//!
//! The log is read by other programs and by later versions: a field is never renamed, new ones have defaults, and an
//! event of an unknown type is kept apart instead of being an error.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approval::{ApprovalRequest, Decision};
use crate::blob::BlobId;
use crate::cell::{CellEnd, Stream};
use crate::context::{Compacted, Variable};
use crate::effect::Effect;
use crate::guided::{Aimed, Checked, Edited, Found, Located};
use crate::ids::RunId;
use crate::limits::Limits;
use crate::message::{Finish, Thinking, ToolCall, Usage};
use crate::plan::{Plan, Planning};
use crate::work::Work;

/// One line of a run's log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The run it belongs to.
    pub run: RunId,
    /// Counts the run's events from 1 without gaps, sub-agents included.
    pub seq: u64,
    /// When it happened.
    pub time: Timestamp,
    /// Which sub-agent it happened to; empty for the main agent.
    #[serde(default, skip_serializing_if = "AgentPath::is_root")]
    pub path: AgentPath,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

impl Event {
    /// Whether the event must survive a power cut before the run goes on: what precedes an effect on the world, what
    /// a person decided, and where a run stands when it stops.
    pub fn is_barrier(&self) -> bool {
        match &self.kind {
            EventKind::ToolStarted { effects, .. } => effects.iter().any(Effect::changes_world),
            EventKind::ApprovalDecided { .. }
            | EventKind::RunSuspended { .. }
            | EventKind::RunFinished(_)
            | EventKind::RunFailed { .. } => true,
            EventKind::RunStarted(_)
            | EventKind::RunResumed { .. }
            | EventKind::StepStarted { .. }
            | EventKind::ModelDelta { .. }
            | EventKind::ModelMessage(_)
            | EventKind::Feedback { .. }
            | EventKind::UserMessage { .. }
            | EventKind::ToolRequested { .. }
            | EventKind::ToolFinished(_)
            | EventKind::CellStarted { .. }
            | EventKind::CellOutput { .. }
            | EventKind::CellFinished { .. }
            | EventKind::ApprovalRequested(_)
            | EventKind::AgentStarted(_)
            | EventKind::AgentFinished(_)
            | EventKind::ModelAsked { .. }
            | EventKind::PlanRequested
            | EventKind::Plan(_)
            | EventKind::ContextPruned(_)
            | EventKind::ContextCompacted(_)
            | EventKind::ActionChanged(_)
            | EventKind::GuidedAimed(_)
            | EventKind::GuidedFound(_)
            | EventKind::GuidedLocated(_)
            | EventKind::GuidedEdited(_)
            | EventKind::GuidedChecked(_)
            | EventKind::Warning { .. }
            | EventKind::Unknown => false,
        }
    }
}

impl EventKind {
    /// What a model was paid for what this tells of.
    pub fn usage(&self) -> Option<Usage> {
        match self {
            EventKind::ModelMessage(message) => Some(message.usage),
            EventKind::Plan(plan) => Some(plan.usage),
            EventKind::ContextCompacted(compacted) => Some(compacted.usage),
            EventKind::GuidedAimed(aimed) => aimed.asked.as_ref().map(|asked| asked.usage),
            EventKind::RunStarted(_)
            | EventKind::RunResumed { .. }
            | EventKind::StepStarted { .. }
            | EventKind::ModelDelta { .. }
            | EventKind::Feedback { .. }
            | EventKind::UserMessage { .. }
            | EventKind::ToolRequested { .. }
            | EventKind::ToolStarted { .. }
            | EventKind::ToolFinished(_)
            | EventKind::CellStarted { .. }
            | EventKind::CellOutput { .. }
            | EventKind::CellFinished { .. }
            | EventKind::ApprovalRequested(_)
            | EventKind::ApprovalDecided { .. }
            | EventKind::AgentStarted(_)
            | EventKind::AgentFinished(_)
            | EventKind::ModelAsked { .. }
            | EventKind::PlanRequested
            | EventKind::ContextPruned(_)
            | EventKind::ActionChanged(_)
            | EventKind::GuidedFound(_)
            | EventKind::GuidedLocated(_)
            | EventKind::GuidedEdited(_)
            | EventKind::GuidedChecked(_)
            | EventKind::Warning { .. }
            | EventKind::RunSuspended { .. }
            | EventKind::RunFinished(_)
            | EventKind::RunFailed { .. }
            | EventKind::Unknown => None,
        }
    }
}

/// Where in a tree of agents something happens: `researcher:call_2_0/reader:call_1_0`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AgentPath(String);

impl AgentPath {
    /// The path of a sub-agent called by this one.
    #[must_use]
    pub fn child(&self, agent: &str, call: &str) -> Self {
        if self.0.is_empty() {
            AgentPath(format!("{agent}:{call}"))
        } else {
            AgentPath(format!("{}/{agent}:{call}", self.0))
        }
    }

    /// The path of the agent that called this one; none for the main agent.
    pub fn parent(&self) -> Option<Self> {
        match self.0.rsplit_once('/') {
            Some((parent, _)) => Some(AgentPath(parent.into())),
            None if self.0.is_empty() => None,
            None => Some(AgentPath::default()),
        }
    }

    /// Whether this agent was called by the other one, or by one that was.
    pub fn is_below(&self, other: &AgentPath) -> bool {
        match self.0.strip_prefix(other.0.as_str()) {
            Some(rest) if other.is_root() => !rest.is_empty(),
            Some(rest) => rest.starts_with('/'),
            None => false,
        }
    }

    /// Names of the agents on the way from the main agent to this one.
    pub fn agents(&self) -> impl Iterator<Item = &str> {
        agents_of(&self.0)
    }

    /// Whether this is the main agent.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// How many agents are above this one.
    pub fn depth(&self) -> usize {
        if self.0.is_empty() { 0 } else { self.0.matches('/').count() + 1 }
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Names of the agents of a path as text.
pub fn agents_of(path: &str) -> impl Iterator<Item = &str> {
    let parts = path.split('/').filter(|part| !part.is_empty());
    parts.map(|part| part.split_once(':').map_or(part, |(agent, _)| agent))
}

/// What can happen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum EventKind {
    /// A run begins.
    #[serde(rename = "run.started")]
    RunStarted(Started),
    /// A stopped run goes on.
    #[serde(rename = "run.resumed")]
    RunResumed {
        /// Version of the program that goes on.
        version: String,
        /// Where it works now.
        root: String,
        /// The limits from here on.
        limits: Limits,
        /// When the agent plans from here on.
        #[serde(default, skip_serializing_if = "Planning::is_never")]
        plan: Planning,
    },
    /// The model is about to be asked.
    #[serde(rename = "step.started")]
    StepStarted {
        /// Counts from 1.
        step: u32,
    },
    /// A piece of a reply, for watching; the whole follows in `model.message`.
    #[serde(rename = "model.delta")]
    ModelDelta {
        /// The step it belongs to.
        step: u32,
        /// Visible text.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        text: String,
        /// Reasoning.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        thinking: String,
    },
    /// A whole reply, understood.
    #[serde(rename = "model.message")]
    ModelMessage(ModelMessage),
    /// The runtime tells the model something that is no tool result.
    #[serde(rename = "feedback")]
    Feedback {
        /// Why.
        reason: FeedbackReason,
        /// What the model reads.
        text: String,
    },
    /// The person adds something while the run goes on.
    #[serde(rename = "user.message")]
    UserMessage {
        /// What they said.
        text: String,
    },
    /// A tool is asked for; nothing has happened yet.
    #[serde(rename = "tool.requested")]
    ToolRequested {
        /// The call.
        #[serde(flatten)]
        call: RequestedCall,
    },
    /// The call was valid and allowed and is about to touch the world.
    #[serde(rename = "tool.started")]
    ToolStarted {
        /// Id of the call.
        id: String,
        /// Name of the tool.
        tool: String,
        /// What it is about to touch.
        effects: Vec<Effect>,
    },
    /// The call is over: done, failed or refused.
    #[serde(rename = "tool.finished")]
    ToolFinished(ToolFinished),
    /// Code begins to run.
    #[serde(rename = "cell.started")]
    CellStarted {
        /// Counts the cells of an agent from 0.
        cell: u32,
        /// The code.
        code: String,
    },
    /// Code printed.
    #[serde(rename = "cell.output")]
    CellOutput {
        /// The cell.
        cell: u32,
        /// What it printed.
        text: String,
        /// Where to.
        stream: Stream,
    },
    /// Code ended.
    #[serde(rename = "cell.finished")]
    CellFinished {
        /// The cell.
        cell: u32,
        /// How it ended.
        #[serde(flatten)]
        end: CellEnd,
        /// What the model reads about it.
        observation: String,
        /// Whether the observation leaves something out.
        #[serde(default)]
        truncated: bool,
        /// The variables there are now, the latest last; none when nobody knows.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        variables: Vec<Variable>,
        /// How long it took.
        seconds: f64,
    },
    /// A person is asked.
    #[serde(rename = "approval.requested")]
    ApprovalRequested(ApprovalRequest),
    /// A person answered.
    #[serde(rename = "approval.decided")]
    ApprovalDecided {
        /// Id of the question.
        id: String,
        /// The answer.
        #[serde(flatten)]
        decision: Decision,
    },
    /// The model is about to be asked for something beside its steps.
    #[serde(rename = "model.asked")]
    ModelAsked {
        /// What for.
        purpose: Purpose,
        /// What it is asked.
        text: String,
    },
    /// The person wants a plan, or a new one, before the next step.
    #[serde(rename = "plan.requested")]
    PlanRequested,
    /// A plan, or that there is none.
    #[serde(rename = "plan")]
    Plan(Box<Plan>),
    /// A sub-agent begins; the event carries its path.
    #[serde(rename = "agent.started")]
    AgentStarted(Started),
    /// A sub-agent is done.
    #[serde(rename = "agent.finished")]
    AgentFinished(Finished),
    /// Old observations give way to keep the conversation within the model's window.
    #[serde(rename = "context.pruned")]
    ContextPruned(Pruned),
    /// Old steps give way to a summary, for the same reason.
    #[serde(rename = "context.compacted")]
    ContextCompacted(Box<Compacted>),
    /// The agent acts in another way from here on.
    #[serde(rename = "action.changed")]
    ActionChanged(Box<ActionChange>),
    /// Guided work: what the task wants.
    #[serde(rename = "guided.aimed")]
    GuidedAimed(Aimed),
    /// Guided work: files the model picks from.
    #[serde(rename = "guided.found")]
    GuidedFound(Box<Found>),
    /// Guided work: the files to work on, and the check.
    #[serde(rename = "guided.located")]
    GuidedLocated(Box<Located>),
    /// Guided work: a reply was read as an edit. Nothing is written yet.
    #[serde(rename = "guided.edited")]
    GuidedEdited(Box<Edited>),
    /// Guided work: the check of an edit came to its end.
    #[serde(rename = "guided.checked")]
    GuidedChecked(Box<Checked>),
    /// Something the person should know that stops nothing.
    #[serde(rename = "warning")]
    Warning {
        /// What.
        message: String,
    },
    /// The run stops and can go on later.
    #[serde(rename = "run.suspended")]
    RunSuspended {
        /// Why.
        #[serde(flatten)]
        reason: Suspension,
    },
    /// The run is over.
    #[serde(rename = "run.finished")]
    RunFinished(Finished),
    /// The run broke.
    #[serde(rename = "run.failed")]
    RunFailed {
        /// What broke.
        error: Failure,
    },
    /// An event of a later version.
    #[serde(other)]
    Unknown,
}

/// How an agent begins: everything needed to fold its state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// What is to be done.
    pub task: String,
    /// Name of the agent.
    pub agent: String,
    /// The model it asks.
    pub model: String,
    /// The name it was asked for by, if that is not its id: what the configuration says of that name holds for the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_name: Option<String>,
    /// How it acts.
    pub action: ActionFormat,
    /// How tools and results are written into the conversation.
    pub dialect: Dialect,
    /// The folder it works in.
    pub root: String,
    /// What it may spend.
    pub limits: Limits,
    /// When it plans.
    #[serde(default, skip_serializing_if = "Planning::is_never")]
    pub plan: Planning,
    /// Its standing instructions.
    pub system: String,
    /// What it reads before its task, such as notes the project keeps for agents. Untrusted, and marked as such.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub context: String,
    /// Names of its tools.
    pub tools: Vec<String>,
    /// Hash of the tools' specs: a resumed run is told when they changed.
    pub tools_digest: String,
    /// Version of the program.
    pub version: String,
    /// In a fork: the run it shares its beginning with. Code that is replayed goes on with that run's seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<RunId>,
    /// In a fork: when it was made. The events it shares keep the times at which they happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked: Option<Timestamp>,
    /// Name of the session it belongs to, if somebody named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Address of the model server, where the person who began the run named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_base: Option<String>,
    /// What its code executor was made with, if a replay depends on it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub executor: Value,
}

/// How an agent acts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionFormat {
    /// It calls tools.
    #[default]
    Tools,
    /// It writes Python in which tools are functions.
    Code,
    /// The program leads; the model answers small questions and writes the edits.
    Guided,
}

/// How tool calls and results are written into the conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// In the provider's own structures.
    #[default]
    Native,
    /// As text, for models whose template knows no tools.
    Text,
}

/// Why an agent acts in another way from here on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeCause {
    /// The model could not keep to the first way.
    #[default]
    Unreadable,
    /// The task is one for the other way.
    Aim,
    /// A change was asked for and none was made.
    NoChange,
}

/// Another way to act.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionChange {
    /// How it acts now.
    pub action: ActionFormat,
    /// How tools and results are written now.
    pub dialect: Dialect,
    /// The standing instructions from here on.
    pub system: String,
    /// What the model is told; empty for nothing.
    pub text: String,
    /// Why, in words for the person.
    pub reason: String,
    /// Why, as one of the known causes.
    #[serde(default)]
    pub cause: ChangeCause,
}

/// A reply as the parser understood it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelMessage {
    /// The step it belongs to.
    pub step: u32,
    /// The text that stays in the conversation.
    pub text: String,
    /// Reasoning.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub thinking: Vec<Thinking>,
    /// Tools it asks for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Code it wants run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The final answer it gives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The final answer as a value, where it was given as one that is no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Why nothing of it could be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Whether there was a tool call that the model server itself could not read.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub misread: bool,
    /// Whether the server was told to hold the reply to a schema.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub constrained: bool,
    /// What it cost.
    pub usage: Usage,
    /// Why it ended.
    pub finish: Finish,
    /// The model that wrote it.
    pub model: String,
    /// How long it took.
    pub seconds: f64,
}

/// What gave way so that a conversation fits. Sizes are in tokens, estimated and corrected by the server's counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pruned {
    /// The conversation before.
    pub before: u64,
    /// And after.
    pub after: u64,
    /// The model's window; 0 when only its server knows.
    pub window: u32,
    /// How many of the last steps stay word for word.
    pub kept_steps: u32,
    /// The observations of which one line is left.
    pub elided: Vec<Elided>,
}

/// An observation of which one line is left in the conversation. The log keeps it whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elided {
    /// Its place in the conversation, from 0.
    pub message: usize,
    /// The step that brought it.
    pub step: u32,
    /// What it is the result of.
    pub of: String,
    /// How long it is.
    pub chars: usize,
    /// How it begins.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub begins: String,
    /// How many bytes of its beginning stay, where more than a line can.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub kept: usize,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// What a model is asked for beside its steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A plan.
    Plan,
    /// A summary of what is to leave the conversation.
    Summary,
    /// Guided work: what the task wants.
    Aim,
    /// Guided work: which files to change.
    Pick,
    /// Guided work: an edit.
    Edit,
}

/// Why the runtime speaks to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedbackReason {
    /// The reply held no usable action.
    Malformed,
    /// The reply was empty.
    Empty,
    /// The reply was cut by the token limit.
    Cut,
    /// A check refused the final answer.
    AnswerRefused,
    /// The final answer does not have the form that is asked for.
    AnswerMisshapen,
    /// The step limit is reached, or nothing new comes: one last answer is asked for.
    LastAnswer,
}

/// A call as it was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestedCall {
    /// Id of the call.
    pub id: String,
    /// Name of the tool.
    pub tool: String,
    /// Its arguments as the model wrote them.
    pub args: Value,
    /// The cell it was made in, in code mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<u32>,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolFinished {
    /// Id of the call.
    pub id: String,
    /// Name of the tool.
    pub tool: String,
    /// False when the result is an error.
    pub ok: bool,
    /// What the model sees: the tool's result, or the error schema.
    pub result: Value,
    /// Whether something was cut.
    #[serde(default)]
    pub truncated: bool,
    /// Where the whole of what was cut is kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stored: Vec<BlobId>,
    /// How long it took.
    pub seconds: f64,
}

/// Why a run stops without being over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Suspension {
    /// A person must decide.
    Approval {
        /// Id of the question.
        approval: String,
    },
    /// The person stopped it.
    Interrupted,
    /// A replay did something else than the log says.
    Diverged {
        /// What.
        message: String,
    },
}

/// How an agent ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    /// The answer as text.
    pub answer: String,
    /// The answer as a value, when it was given as one that is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// How it came to an end.
    pub state: FinishState,
    /// Steps taken.
    pub steps: u32,
    /// Steps that agents below it took.
    #[serde(default, skip_serializing_if = "crate::work::is_zero")]
    pub steps_below: u32,
    /// Tokens spent.
    pub usage: Usage,
    /// How long it took, pauses excluded.
    pub seconds: f64,
    /// What the reader of the answer should know, such as a check that was not met.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What was done, sub-agents included.
    #[serde(default, skip_serializing_if = "Work::is_empty")]
    pub work: Box<Work>,
}

/// How an agent came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishState {
    /// It answered.
    Answered,
    /// It ran out of steps; the answer is what it could say.
    MaxSteps,
    /// It ran out of time.
    Timeout,
    /// It ran out of tokens.
    TokenBudget,
    /// It ran out of the steps that it shares with the agents below it.
    StepBudget,
    /// It did nothing but repeat itself; the answer is what it could say.
    Repeating,
    /// A sub-agent broke or was stopped, or guided work came to no usable result; the answer says how.
    Failed,
}

/// What broke a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// A stable word, such as `MODEL_UNREACHABLE`.
    pub error: String,
    /// What happened.
    pub message: String,
    /// What the person can do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}
