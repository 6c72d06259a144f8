//! What a tool would touch, and what a policy says about it.
//!
//! Policies judge effects, never tool names: two tools that write the same file are judged alike.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// One thing a call would do to the world, exact enough to be approved by a person and bound by a hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Effect {
    /// Reads a file or folder.
    Read {
        /// Relative to the root.
        path: PathBuf,
    },
    /// Creates, changes or removes a file.
    Write {
        /// Relative to the root.
        path: PathBuf,
        /// SHA-256 of what the file is to hold; none when it is removed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
    },
    /// Runs a command.
    Run {
        /// The exact text.
        command: String,
        /// Where it runs, relative to the root.
        cwd: PathBuf,
    },
    /// Talks to another machine.
    Network {
        /// Host name or address.
        host: String,
    },
    /// Hands a task to another agent, whose own calls are judged one by one.
    Delegate {
        /// Name of the agent.
        agent: String,
    },
    /// Keeps something in the agent's own memory of this project, where only its owner can take it away again.
    Remember {
        /// What kind of thing.
        what: String,
        /// SHA-256 of all that is kept.
        digest: String,
    },
    /// Something the runtime cannot see into, such as a tool of a foreign server.
    Opaque {
        /// What is known about it, for the person who decides.
        what: String,
    },
}

impl Effect {
    /// Whether the world may be different afterwards. Decides what may run in parallel, what is synced to disk
    /// before it starts, and what counts as progress for loop detection.
    pub fn changes_world(&self) -> bool {
        match self {
            Effect::Read { .. } | Effect::Delegate { .. } => false,
            Effect::Write { .. }
            | Effect::Run { .. }
            | Effect::Network { .. }
            | Effect::Remember { .. }
            | Effect::Opaque { .. } => true,
        }
    }
}

/// What a policy says. The order is severity; verdicts combine by `max`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "verdict", content = "reason", rename_all = "snake_case")]
pub enum Verdict {
    /// Go ahead.
    Allow,
    /// A person must agree; the text says why.
    Ask(String),
    /// Never; the text says why. No approval passes it.
    Deny(String),
}

impl Verdict {
    /// The word used in spans, logs and on the command line.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Allow => "allow",
            Verdict::Ask(_) => "require_approval",
            Verdict::Deny(_) => "deny",
        }
    }
}

/// A policy could not come to a verdict. The guard treats that as a denial.
#[derive(Debug, thiserror::Error)]
#[error("the policy failed: {0}")]
pub struct PolicyError(pub String);

/// Judges effects. Pure: the same effect gets the same verdict.
pub trait Policy: Send + Sync {
    /// The verdict on one effect.
    fn judge(&self, effect: &Effect) -> Result<Verdict, PolicyError>;
}

/// The policy in force when none was given: look, delegate, remember, and ask for everything else.
#[derive(Debug, Clone, Copy, Default)]
pub struct AskBeforeChange;

impl Policy for AskBeforeChange {
    fn judge(&self, effect: &Effect) -> Result<Verdict, PolicyError> {
        Ok(match effect {
            Effect::Read { .. } | Effect::Delegate { .. } | Effect::Remember { .. } => Verdict::Allow,
            Effect::Write { .. } => Verdict::Ask("it changes a file".into()),
            Effect::Run { .. } => Verdict::Ask("it runs a command".into()),
            Effect::Network { .. } => Verdict::Ask("it uses the network".into()),
            Effect::Opaque { .. } => Verdict::Ask("its effects cannot be seen".into()),
        })
    }
}

/// The strictest verdict over all effects, and whether a policy failed on the way.
pub fn judge_all(policies: &[std::sync::Arc<dyn Policy>], effects: &[Effect]) -> Verdict {
    effects
        .iter()
        .flat_map(|effect| policies.iter().map(move |policy| policy.judge(effect)))
        .map(|judged| judged.unwrap_or_else(|error| Verdict::Deny(error.to_string())))
        .max()
        .unwrap_or(Verdict::Allow)
}
