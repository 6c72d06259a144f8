//! What an embedding program brings to a session beside options: values that no configuration file can hold.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use gimlet::hook::{Check, Facts};
use gimlet::ids::{Ids, RunId};
use gimlet::tool::Tool;
use gimlet_tools::Buffers;
use jiff::Timestamp;

/// What an embedding program brings to a session.
#[derive(Clone, Default)]
pub struct Extras {
    /// The id of the run, for a conversation that was given a name before its first task.
    pub id: Option<RunId>,
    /// Tools of the program.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Checks of the leading agent's answer.
    pub checks: Vec<Arc<dyn Check>>,
    /// The texts of files that an editor has open.
    pub buffers: Option<Arc<dyn Buffers>>,
}

/// Gives one id.
pub(crate) struct Reserved(pub(crate) RunId);

impl Ids for Reserved {
    fn run(&self, _now: Timestamp) -> RunId {
        self.0.clone()
    }
}

/// A check that several agents share.
pub(crate) struct Shared(pub(crate) Arc<dyn Check>);

impl Check for Shared {
    fn check<'a>(&'a self, answer: &'a str, facts: Facts<'a>) -> BoxFuture<'a, Result<(), String>> {
        self.0.check(answer, facts)
    }

    fn wants_aim(&self, facts: &Facts<'_>) -> bool {
        self.0.wants_aim(facts)
    }
}
