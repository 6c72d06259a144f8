//! Holding a model to the form of an action: a JSON schema of everything it may do next.
//!
//! Servers that can decode under a schema then cannot give anything else; one that cannot says so and is asked without
//! (the wires mind that). What comes back is read by the same ladder as any other reply.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::effect::Effect;
use crate::event::ActionFormat;
use crate::state::{CallSummary, State};
use crate::tool::{Tells, ToolSpec, code};

/// When a model's replies are held to a schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Constrain {
    /// Once two replies in a row could not be read.
    #[default]
    AfterFailures,
    /// From the first reply on, for models too small to begin by themselves, until a call has told them something of the
    /// matter, and again after a refused answer until a call has succeeded: held any longer they go on calling and never
    /// answer. Code is left free until it fails: the same models write it better in a fence than in a string.
    Always,
    /// Not at all.
    Never,
}

impl Constrain {
    /// Whether the next reply is held to a schema. The last answer of a run is prose, and a model that goes round in
    /// circles is let go: held to the form of a call, it makes the same one again.
    pub fn applies(self, state: &State, tools: &[Arc<ToolSpec>]) -> bool {
        let held = match self {
            Constrain::AfterFailures => state.constrained,
            Constrain::Always => {
                let waits = !has_looked(state, tools) || sent_back(state);
                state.constrained || (waits && !writes_code(state))
            }
            Constrain::Never => false,
        };
        held && state.closing.is_none() && !circles(state)
    }
}

/// Whether the last call was made before, with nothing changed in between, or was refused for being made too often.
fn circles(state: &State) -> bool {
    let Some((last, earlier)) = of_task(state).split_last() else { return false };
    let changes = |call: &&CallSummary| call.effects.iter().any(Effect::changes_world);
    let mut since = earlier.iter().rev().take_while(|call| !changes(call));
    let again = since.any(|call| call.tool == last.tool && call.args == last.args);
    again || last.error.as_deref() == Some(code::LOOP_DETECTED)
}

/// The calls of the present task.
fn of_task(state: &State) -> &[CallSummary] {
    state.history.get(state.before_task..).unwrap_or_default()
}

/// So many calls in vain tell something as well: that it is not there.
const IN_VAIN: usize = 3;

/// Whether a call of the present task has told something of the matter. Names of files do not, nor does a search that found
/// nothing: a small model that has seen nothing else makes up the rest.
fn has_looked(state: &State, tools: &[Arc<ToolSpec>]) -> bool {
    let only_where =
        |name: &str| tools.iter().any(|tool| tool.name == name && tool.manner.tells == Tells::Where);
    let found_nothing = |call: &&CallSummary| call.error.is_some() || call.count == Some(0);
    let calls = of_task(state);
    calls.iter().any(|call| !found_nothing(&call) && !only_where(&call.tool))
        || calls.iter().filter(found_nothing).count() >= IN_VAIN
}

/// Whether an answer was refused and nothing was achieved since: another one in other words would be refused as well.
fn sent_back(state: &State) -> bool {
    let since = state.refused.as_ref().and_then(|refused| state.history.get(refused.after..));
    since.is_some_and(|calls| calls.iter().all(|call| call.error.is_some()))
}

fn writes_code(state: &State) -> bool {
    state.action == ActionFormat::Code
}

pub use gimlet_reply::schema::schema;
