//! Where a program that embeds the runtime can look in and say no: before and after steps and calls, and at the answer.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::event::ToolFinished;
use crate::guided::Aim;
use crate::message::ToolCall;
use crate::state::CallSummary;
use crate::work::Work;

/// What a hook says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flow {
    /// Go on.
    Continue,
    /// Do not; the reason is read by the model (for a call) or by the person (for a step).
    Refuse(String),
}

/// Why a hook could not do its job. It is reported as a warning and stops neither other hooks nor the run.
pub type HookError = Box<dyn std::error::Error + Send + Sync>;

/// Looks in on a run. Every method has a default that does nothing.
pub trait Hook: Send + Sync {
    /// A name for warnings.
    fn name(&self) -> &str;

    /// Before the model is asked. A refusal ends the run.
    fn before_step(&self, _step: u32) -> BoxFuture<'_, Result<Flow, HookError>> {
        std::future::ready(Ok(Flow::Continue)).boxed()
    }

    /// After a step's actions are done.
    fn after_step(&self, _step: u32) -> BoxFuture<'_, Result<(), HookError>> {
        std::future::ready(Ok(())).boxed()
    }

    /// Before a call is validated and judged.
    fn before_tool<'a>(&'a self, _call: &'a ToolCall) -> BoxFuture<'a, Result<Flow, HookError>> {
        std::future::ready(Ok(Flow::Continue)).boxed()
    }

    /// After a call is over and before its result is recorded.
    fn after_tool<'a>(
        &'a self,
        _call: &'a ToolCall,
        _finished: &'a ToolFinished,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        std::future::ready(Ok(())).boxed()
    }
}

/// Judges a final answer. An answer may be refused only so often for the same reason; then it is taken with a note.
pub trait Check: Send + Sync {
    /// `Err` says what is missing, for the model.
    fn check<'a>(&'a self, answer: &'a str, facts: Facts<'a>) -> BoxFuture<'a, Result<(), String>>;

    /// Whether the check depends on what the task wants, given what was done. The model is then asked once for a task,
    /// and [`Facts::aim`] says what it replied.
    fn wants_aim(&self, _facts: &Facts<'_>) -> bool {
        false
    }
}

/// What a check may know of the run.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The task.
    pub task: &'a str,
    /// Names of the tools the agent has.
    pub tools: &'a [String],
    /// Every call that came to an end, in order.
    pub calls: &'a [CallSummary],
    /// What those calls, and those of sub-agents, came to.
    pub work: &'a Work,
    /// What the task wants; none if nobody asked the model, or it did not say.
    pub aim: Option<Aim>,
}
