//! Asking a person. An approval is bound to a tool, its exact effects and a root; nothing else counts as the same.

use futures_util::future::BoxFuture;
use gimlet_host::command::Confinement;
use gimlet_text::digest::digest_json;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::effect::Effect;
use crate::event::agents_of;
use crate::ids::RunId;

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    /// Names this question; the same call of the same run asks under the same id after a restart.
    pub id: String,
    /// The run that asks. Renamed because an event has a `run` of its own beside these fields.
    #[serde(rename = "of_run")]
    pub run: RunId,
    /// Hash of tool, effects and root: what a wider grant is bound to.
    pub binding: String,
    /// Id of the call.
    pub call: String,
    /// Who asks: empty for the main agent, else the sub-agent's path.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub asker: String,
    /// Name of the tool.
    pub tool: String,
    /// Its arguments.
    pub args: Value,
    /// What it would do.
    pub effects: Vec<Effect>,
    /// Why it must be asked.
    pub reason: String,
    /// Who has to answer.
    #[serde(default, skip_serializing_if = "Asking::is_open")]
    pub asking: Asking,
    /// What to look at before deciding, such as a diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// Whether the preview is a patch that may be changed before it is approved.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub editable: bool,
}

impl ApprovalRequest {
    /// Names of the agents on the way from the main agent to the one that asks; none for the main agent itself.
    pub fn askers(&self) -> impl Iterator<Item = &str> {
        agents_of(&self.asker)
    }
}

/// Who answers the questions of an agent. The order is strictness: an agent and those that called it combine by `max`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asking {
    /// Whoever the run has for that; nobody in particular.
    #[default]
    Open,
    /// A person: nothing that agrees on its own does.
    Person,
    /// Nobody: what would have to be asked is refused.
    Nobody,
}

impl Asking {
    fn is_open(&self) -> bool {
        *self == Asking::Open
    }
}

/// The hash a grant is bound to. A command that nothing confines is another one than the same command in a jail: whoever
/// agreed to the second has not agreed to the first.
pub fn binding(tool: &str, effects: &[Effect], root: &str, confinement: Confinement) -> String {
    let runs = effects.iter().any(|effect| matches!(effect, Effect::Run { .. }));
    let bound = match (confinement, runs) {
        (Confinement::None, true) => {
            serde_json::json!({ "tool": tool, "effects": effects, "root": root, "confinement": "none" })
        }
        (Confinement::None, false) | (Confinement::Jailed, _) => {
            serde_json::json!({ "tool": tool, "effects": effects, "root": root })
        }
    };
    digest_json(&bound)
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Decision {
    /// Yes.
    Approve {
        /// How far the yes reaches.
        scope: Scope,
    },
    /// Yes to another patch: what the person made of the one that was shown. It is approved once, and nothing else is.
    Edit {
        /// The patch as a unified diff.
        patch: String,
    },
    /// No; the model reads the feedback.
    Deny {
        /// What to do instead.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        feedback: Option<String>,
    },
    /// Nobody is there to ask: the run is suspended and can be resumed once someone has decided.
    Defer,
    /// No, and stop the run.
    Abort,
}

/// How far an approval reaches. It never passes a denial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// This call.
    Once,
    /// The same effects for the rest of the session.
    Session,
    /// The same effects from now on.
    Always,
}

/// Someone who can be asked.
pub trait Approver: Send + Sync {
    /// Asks. Remembering wider grants is the approver's business.
    fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, Decision>;
}

/// Says no to everything: the default.
#[derive(Debug, Clone, Copy, Default)]
pub struct DenyAll;

impl Approver for DenyAll {
    fn ask(&self, _request: ApprovalRequest) -> BoxFuture<'_, Decision> {
        Box::pin(async { Decision::Deny { feedback: None } })
    }
}

/// Says yes to everything that may be asked. It passes neither a policy's denial nor an agent that asks a person.
#[derive(Debug, Clone, Copy, Default)]
pub struct ApproveAll;

impl Approver for ApproveAll {
    fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, Decision> {
        Box::pin(async move {
            match request.asking {
                Asking::Open => Decision::Approve { scope: Scope::Once },
                Asking::Person | Asking::Nobody => Decision::Deny { feedback: None },
            }
        })
    }
}

/// Leaves every question open, so that the run is suspended.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeferAll;

impl Approver for DeferAll {
    fn ask(&self, _request: ApprovalRequest) -> BoxFuture<'_, Decision> {
        Box::pin(async { Decision::Defer })
    }
}
