//! An agent as a tool of another. It has its own conversation and budget, a path in the log, and policies at least as
//! strict; what it spends counts for its caller.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::effect::Effect;
use crate::event::{FinishState, Finished};
use crate::limits::Limits;
use crate::message::ToolCall;
use crate::run::{Ending, Run};
use crate::state::State;
use crate::tool::{Keep, Manner, Tool, ToolCx, ToolError, ToolOutput, ToolSpec, tidy_schema};

/// Error words of this tool.
mod code {
    pub(super) const AGENT_FAILED: &str = "AGENT_FAILED";
    pub(super) const AGENT_TOO_DEEP: &str = "AGENT_TOO_DEEP";
}

/// Hand a task to a specialist.
#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    /// What to do, in full: the specialist sees nothing else of this conversation.
    task: String,
    /// Facts it needs, such as file names or earlier results.
    #[serde(default)]
    context: Option<String>,
}

/// Makes an agent callable.
pub(crate) fn as_tool(agent: Arc<Agent>) -> Arc<dyn Tool> {
    let mut input = schemars::schema_for!(Input).to_value();
    let general = tidy_schema(&mut input);
    let description = if agent.description.is_empty() { general } else { agent.description.clone() };
    let manner = Manner {
        // Its own limits end it.
        timeout: Duration::from_secs(60 * 60 * 24 * 365),
        keep: Keep::Head,
        parallel: true,
        resumable: true,
    };
    let spec = ToolSpec { name: agent.name.clone(), description, input, output: None, manner };
    Arc::new(Delegate { agent, spec: Arc::new(spec) })
}

struct Delegate {
    agent: Arc<Agent>,
    spec: Arc<ToolSpec>,
}

impl Tool for Delegate {
    fn spec(&self) -> Arc<ToolSpec> {
        self.spec.clone()
    }

    fn effects(&self, _args: &Value) -> Result<Vec<Effect>, ToolError> {
        Ok(vec![Effect::Delegate { agent: self.agent.name.clone() }])
    }

    fn call<'a>(
        &'a self,
        call: &'a ToolCall,
        cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let input: Input = serde_json::from_value(call.args.clone()).map_err(|error| {
                ToolError::failed(crate::tool::code::VALIDATION_FAILED, error.to_string())
            })?;
            let caller = &cx.services;
            let path = caller.journal.path().child(&self.agent.name, &call.id);
            let (limits, most_depth) = caller.journal.with_state(|state| {
                (share(&self.agent.limits, state, state.seconds(caller.clock.now())), state.limits.max_depth)
            });
            if path.depth() > most_depth {
                let message = format!("agents may call agents {most_depth} deep; do this part yourself");
                return Err(ToolError::failed(code::AGENT_TOO_DEEP, message));
            }
            let services = caller.of_child(&self.agent, path);
            let task = match input.context.filter(|context| !context.trim().is_empty()) {
                Some(context) => format!("{}\n\nContext:\n{context}", input.task),
                None => input.task,
            };
            let run = Run::nested(self.agent.clone(), services, &task, limits).await;
            let ending = match run {
                Ok(run) => run.drive().await,
                Err(error) => Err(error),
            };
            match ending {
                Ok(Ending::Finished(finished)) => report(finished),
                Ok(Ending::Suspended(suspension)) => Err(ToolError::Suspended(suspension)),
                Ok(Ending::Failed(failure)) => Err(ToolError::failed(code::AGENT_FAILED, failure.message)
                    .with("cause", failure.error)
                    .with("agent", self.agent.name.clone())),
                Err(error) => Err(ToolError::Fatal(error.to_string())),
            }
        }
        .boxed()
    }
}

/// What a sub-agent may spend: its own limits, and no more than its caller has left.
fn share(own: &Limits, caller: &State, spent_seconds: f64) -> Limits {
    let tokens = caller.limits.max_tokens.map(|most| most.saturating_sub(caller.usage.total()));
    let seconds = caller.limits.max_seconds.map(|most| (most - spent_seconds).max(0.0));
    Limits {
        max_tokens: least(own.max_tokens, tokens, Ord::min),
        max_seconds: least(own.max_seconds, seconds, f64::min),
        max_depth: own.max_depth.min(caller.limits.max_depth),
        ..own.clone()
    }
}

fn least<T>(a: Option<T>, b: Option<T>, min: impl Fn(T, T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(min(a, b)),
        (one, other) => one.or(other),
    }
}

/// The answer as the caller sees it; a limit is said, a failure is an error.
fn report(finished: Finished) -> Result<ToolOutput, ToolError> {
    let answer = finished.value.unwrap_or(Value::String(finished.answer));
    let note = match finished.state {
        FinishState::Answered => return Ok(ToolOutput::new(json!({ "answer": answer }))),
        FinishState::MaxSteps => "it ran out of steps; the answer may be incomplete",
        FinishState::Timeout => "it ran out of time; the answer may be incomplete",
        FinishState::TokenBudget => "it ran out of tokens; the answer may be incomplete",
        FinishState::Failed => {
            return Err(ToolError::failed(code::AGENT_FAILED, crate::state::result_text(&answer)));
        }
    };
    Ok(ToolOutput::new(json!({ "answer": answer, "note": note })))
}
