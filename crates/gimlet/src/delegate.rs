//! An agent as a tool of another. Each task is worked on by an instance of its own, with its own conversation and
//! budget, a path in the log, and policies at least as strict; what it spends counts for its caller.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::agent::{Agent, Report};
use crate::effect::Effect;
use crate::event::{FinishState, Finished, Suspension};
use crate::limits::Limits;
use crate::message::ToolCall;
use crate::run::{Ending, Run};
use crate::state::State;
use crate::tool::{Manner, Tool, ToolCx, ToolError, ToolFailure, ToolOutput, ToolSpec, tidy_schema};

/// Error words of this tool.
mod code {
    pub(super) const AGENT_FAILED: &str = "AGENT_FAILED";
    pub(super) const AGENT_TOO_DEEP: &str = "AGENT_TOO_DEEP";
    pub(super) const AGENTS_TOO_MANY: &str = "AGENTS_TOO_MANY";
}

/// Hand a task to a specialist.
#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    /// What to do, in full: the specialist sees nothing else of this conversation. A list of tasks is worked on side
    /// by side, each by a specialist of its own.
    task: Tasks,
    /// Facts it needs, such as file names or earlier results.
    #[serde(default)]
    context: Option<String>,
}

/// One task, or several at once.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum Tasks {
    One(String),
    Several(Vec<String>),
}

/// Makes an agent callable.
pub(crate) fn as_tool(agent: Arc<Agent>) -> Arc<dyn Tool> {
    let mut input = schemars::schema_for!(Input).to_value();
    let general = tidy_schema(&mut input);
    let mut description = if agent.description.is_empty() { general } else { agent.description.clone() };
    if let Some(form) = &agent.form {
        description.push_str(&format!("\nIts answer is of this JSON schema: {}", form.schema()));
    }
    let manner = Manner {
        // Its own limits end it.
        timeout: Duration::from_secs(60 * 60 * 24 * 365),
        resumable: true,
        ..Manner::default()
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
            let context = input.context.filter(|context| !context.trim().is_empty());
            let told = |task: String| match &context {
                Some(context) => format!("{task}\n\nContext:\n{context}"),
                None => task,
            };
            match input.task {
                Tasks::One(task) => self.work(call.id.clone(), told(task), cx).await.map(ToolOutput::new),
                Tasks::Several(tasks) => {
                    let tasks = tasks.into_iter().map(told).collect();
                    self.side_by_side(&call.id, tasks, cx).await.map(ToolOutput::new)
                }
            }
        }
        .boxed()
    }
}

impl Delegate {
    /// Works on tasks at the same time. One that fails does not take the others along; one that waits for a person
    /// leaves the whole call open, and those that are done by then are not done again.
    async fn side_by_side(&self, call: &str, tasks: Vec<String>, cx: &ToolCx) -> Result<Value, ToolError> {
        let most = cx.services.journal.with_state(|state| state.limits.max_parallel.max(1));
        let mut instances: Vec<BoxFuture<'_, Result<Value, ToolError>>> = Vec::new();
        for (index, task) in tasks.into_iter().enumerate() {
            // An id of a call holds no dot, so this is nobody else's.
            instances.push(self.work(format!("{call}.{index}"), task, cx).boxed());
        }
        let results: Vec<_> = stream::iter(instances).buffered(most).collect().await;
        let mut answers = Vec::new();
        let mut waiting: Option<Suspension> = None;
        for result in results {
            match result {
                Ok(answer) => answers.push(answer),
                Err(ToolError::Failed(failure)) => answers.push(told_failure(&failure)),
                Err(ToolError::Suspended(suspension)) => {
                    waiting.get_or_insert(suspension);
                }
                Err(fatal @ ToolError::Fatal(_)) => return Err(fatal),
            }
        }
        match waiting {
            Some(suspension) => Err(ToolError::Suspended(suspension)),
            None => Ok(json!({ "answers": answers })),
        }
    }

    /// Has one instance work on a task, or carry on with it.
    async fn work(&self, instance: String, task: String, cx: &ToolCx) -> Result<Value, ToolError> {
        let caller = &cx.services;
        let path = caller.journal.path().child(&self.agent.name, &instance);
        let (limits, most) = caller.journal.with_state(|state| {
            (share(&self.agent.limits, state, state.seconds(caller.clock.now())), state.limits.clone())
        });
        if path.depth() > most.max_depth {
            let message = format!("agents may call agents {} deep; do this part yourself", most.max_depth);
            return Err(ToolError::failed(code::AGENT_TOO_DEEP, message));
        }
        let services = caller.of_child(&self.agent, path);
        let new = services.journal.with_state(|state| state.started.is_none());
        if new && !services.journal.admit(most.max_agents) {
            let message = format!("this run has had its {} agents; do this part yourself", most.max_agents);
            return Err(ToolError::failed(code::AGENTS_TOO_MANY, message));
        }
        let run = Run::nested(self.agent.clone(), services, &task, limits).await;
        let ending = match run {
            Ok(run) => run.drive().await,
            Err(error) => Err(error),
        };
        match ending {
            Ok(Ending::Finished(finished)) => self.report(finished),
            Ok(Ending::Suspended(suspension)) => Err(ToolError::Suspended(suspension)),
            Ok(Ending::Failed(failure)) => Err(ToolError::failed(code::AGENT_FAILED, failure.message)
                .with("cause", failure.error)
                .with("agent", self.agent.name.clone())),
            Err(error) => Err(ToolError::Fatal(error.to_string())),
        }
    }

    /// The answer as the caller sees it; a limit is said, a failure is an error.
    fn report(&self, finished: Finished) -> Result<Value, ToolError> {
        let limit = match finished.state {
            FinishState::Answered => None,
            FinishState::MaxSteps => Some("it ran out of steps"),
            FinishState::Timeout => Some("it ran out of time"),
            FinishState::TokenBudget => Some("it ran out of tokens"),
            FinishState::StepBudget => Some("the steps it shares with others are used up"),
            FinishState::Repeating => Some("it only repeated itself"),
            FinishState::Failed => {
                return Err(ToolError::failed(code::AGENT_FAILED, finished.answer)
                    .with("agent", self.agent.name.clone()));
            }
        };
        let mut told = Map::new();
        match (finished.value, limit) {
            // Whoever asked for a form gets nothing else.
            (None, Some(limit)) if self.agent.form.is_some() => {
                let message = format!("{limit} before it had an answer of the form that is asked for");
                return Err(ToolError::failed(code::AGENT_FAILED, message)
                    .with("agent", self.agent.name.clone())
                    .with("last_words", finished.answer));
            }
            (value, limit) => {
                told.insert("answer".into(), value.unwrap_or(Value::String(finished.answer)));
                if let Some(limit) = limit {
                    told.insert("note".into(), format!("{limit}; the answer may be incomplete").into());
                }
            }
        }
        match self.agent.report {
            Report::Answer => {}
            Report::Summary => {
                let work = serde_json::to_value(&finished.work).unwrap_or_default();
                told.insert("work".into(), work);
                told.insert("steps".into(), finished.steps.into());
            }
        }
        Ok(Value::Object(told))
    }
}

/// A failure among answers.
fn told_failure(failure: &ToolFailure) -> Value {
    let mut told = json!({ "error": failure.error, "message": failure.message });
    if !failure.context.is_empty() {
        told["context"] = json!(failure.context);
    }
    told
}

/// What a sub-agent may spend: its own limits, and no more than its caller has left.
fn share(own: &Limits, caller: &State, spent_seconds: f64) -> Limits {
    let tokens = caller.limits.max_tokens.map(|most| most.saturating_sub(caller.usage.total()));
    let steps = caller.limits.steps_together().saturating_sub(caller.steps_together());
    let seconds = caller.limits.max_seconds.map(|most| (most - spent_seconds).max(0.0));
    Limits {
        step_budget: Some(own.step_budget.map_or(steps, |most| most.min(steps))),
        max_tokens: least(own.max_tokens, tokens, Ord::min),
        max_seconds: least(own.max_seconds, seconds, f64::min),
        max_depth: own.max_depth.min(caller.limits.max_depth),
        max_agents: own.max_agents.min(caller.limits.max_agents),
        ..own.clone()
    }
}

fn least<T>(a: Option<T>, b: Option<T>, min: impl Fn(T, T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(min(a, b)),
        (one, other) => one.or(other),
    }
}
