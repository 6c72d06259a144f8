//! What a session has run so far, so that it can be run again.

use serde_json::Value;

use crate::protocol::{CallResult, Fate};
use crate::source;

/// One cell of the past.
#[derive(Debug, Clone)]
pub(crate) struct Ran {
    /// Its number, which tracebacks of later cells may name.
    pub(crate) number: u32,
    /// Its source.
    pub(crate) code: String,
    /// Its host calls in order.
    pub(crate) calls: Vec<Called>,
    /// Whether a replay runs it whole or to its last call.
    pub(crate) fate: Fate,
    /// Whether the model knows what a replay does not bring back of it.
    pub(crate) loss: Loss,
}

/// Whether a loss has been told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    Untold,
    Told,
}

/// One host call of the past.
#[derive(Debug, Clone)]
pub(crate) struct Called {
    /// Name of the tool.
    pub(crate) tool: String,
    /// Its arguments.
    pub(crate) args: Value,
    /// What came of it; none if the cell was ended while it waited.
    pub(crate) result: Option<CallResult>,
}

impl Ran {
    /// The call a replay stops at, if it does not run the cell whole.
    pub(crate) fn stops_at(&self) -> Option<usize> {
        match self.fate {
            Fate::Whole => None,
            Fate::Cut => self.calls.len().checked_sub(1),
        }
    }

    /// Whether a replay runs any of it.
    pub(crate) fn is_replayed(&self) -> bool {
        self.fate == Fate::Whole || !self.calls.is_empty()
    }

    /// Names whose values a replay that stopped at this line of it does not bring back.
    pub(crate) fn lost(&self, line: Option<u32>) -> Vec<String> {
        match (self.fate, self.loss) {
            (Fate::Whole, _) | (_, Loss::Told) => Vec::new(),
            (Fate::Cut, Loss::Untold) => source::bound_from(&self.code, line),
        }
    }
}
