//! An agent: a model, tools, and how it works. Immutable once built; any number of runs may share it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use crate::approval::Asking;
use crate::cell::Executor;
use crate::constrain::{self, Constrain};
use crate::effect::Policy;
use crate::event::{ActionFormat, Dialect};
use crate::guided::Guide;
use crate::hook::{Check, Hook};
use crate::limits::Limits;
use crate::model::{Model, Sampling};
use crate::plan::Planning;
use crate::run::{Ending, Env, Run, RunError};
use crate::tool::{Tool, ToolSpec, TypedTool, tool};
use crate::toolbox::{Toolbox, ToolboxError, is_callable_name};
use gimlet_reply::answer::Form;

/// Makes what an agent reads before a task; nothing if it is empty.
pub type ContextFor = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// An agent.
pub struct Agent {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) model_name: Option<String>,
    /// The tools as a model that calls natively is told of them.
    pub(crate) offered: Arc<[Arc<ToolSpec>]>,
    pub(crate) toolbox: Arc<Toolbox>,
    pub(crate) action: ActionFormat,
    pub(crate) dialect: Dialect,
    pub(crate) instructions: String,
    pub(crate) context: ContextFor,
    pub(crate) limits: Limits,
    pub(crate) plan: Planning,
    pub(crate) sampling: Sampling,
    pub(crate) constrain: Constrain,
    /// The schema of an action of this agent.
    pub(crate) schema: Arc<Value>,
    pub(crate) hooks: Vec<Arc<dyn Hook>>,
    pub(crate) checks: Vec<Arc<dyn Check>>,
    pub(crate) policies: Vec<Arc<dyn Policy>>,
    pub(crate) executor: Option<Arc<dyn Executor>>,
    /// What knows the project, for the guided format.
    pub(crate) guide: Option<Arc<dyn Guide>>,
    /// The form of its answer, if it must have one.
    pub(crate) form: Option<Form>,
    /// Who answers its questions.
    pub(crate) asking: Asking,
    /// What its caller gets to know.
    pub(crate) report: Report,
}

/// What the agent that called another gets to know when it is done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Report {
    /// Its answer.
    #[default]
    Answer,
    /// Its answer, and what it read, changed and ran, as the log knows it.
    Summary,
}

/// Why an agent cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Something is wrong with its tools.
    #[error(transparent)]
    Toolbox(#[from] ToolboxError),
    /// Its name cannot be called.
    #[error("`{0}` cannot be an agent's name: it must be a Python identifier")]
    BadName(String),
    /// The form of its answer is none.
    #[error("the schema of the answer is not valid: {0}")]
    BadOutput(String),
    /// It is to write code and has nothing to run it with.
    #[error("an agent that acts by code needs an executor")]
    NoExecutor,
    /// It is to be guided and nothing knows the project.
    #[error("an agent in the guided format needs a guide")]
    NoGuide,
}

/// What is wrong with the schema of an answer, if anything is.
pub fn output_problem(schema: &Value) -> Option<String> {
    Form::new(schema.clone()).err()
}

impl Agent {
    /// Starts building an agent around a model.
    pub fn builder(model: Arc<dyn Model>) -> AgentBuilder {
        AgentBuilder {
            agent: Parts {
                name: "gimlet".into(),
                description: String::new(),
                model,
                model_name: None,
                tools: Vec::new(),
                action: ActionFormat::default(),
                dialect: Dialect::default(),
                instructions: String::new(),
                context: Arc::new(|_| String::new()),
                limits: Limits::default(),
                plan: Planning::default(),
                sampling: Sampling::default(),
                constrain: Constrain::default(),
                hooks: Vec::new(),
                checks: Vec::new(),
                policies: Vec::new(),
                executor: None,
                guide: None,
                driver_tools: Vec::new(),
                brief: BTreeSet::new(),
                output: None,
                asking: Asking::default(),
                report: Report::default(),
            },
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The context window of its model in tokens, where that is known.
    pub fn window(&self) -> Option<u32> {
        self.model.window().map(|window| window.tokens)
    }

    /// Its tools.
    pub fn toolbox(&self) -> &Arc<Toolbox> {
        &self.toolbox
    }

    /// Its limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What it is told beside the standing prompt, given how it acts: where its code runs, its instructions, and the form
    /// of its answer.
    pub(crate) fn told(&self, action: ActionFormat) -> String {
        let place = match (action, &self.executor) {
            (ActionFormat::Code, Some(executor)) => executor.told(),
            (ActionFormat::Code, None) | (ActionFormat::Tools | ActionFormat::Guided, _) => "",
        };
        let form = match action {
            // It answers from facts; an agent whose answer has a form hands over first.
            ActionFormat::Guided => String::new(),
            ActionFormat::Tools | ActionFormat::Code => {
                self.form.as_ref().map(|form| form.told(action)).unwrap_or_default()
            }
        };
        let parts = [place, self.instructions.trim(), form.trim()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
    }

    /// Runs a task in an environment that keeps nothing: the shortest way to an answer.
    pub async fn run(self: &Arc<Self>, task: &str) -> Result<Ending, RunError> {
        Run::start(self.clone(), task, Env::default()).await?.drive().await
    }
}

/// Builds an [`Agent`].
pub struct AgentBuilder {
    agent: Parts,
}

struct Parts {
    name: String,
    description: String,
    model: Arc<dyn Model>,
    model_name: Option<String>,
    tools: Vec<Arc<dyn Tool>>,
    action: ActionFormat,
    dialect: Dialect,
    instructions: String,
    context: ContextFor,
    limits: Limits,
    plan: Planning,
    sampling: Sampling,
    constrain: Constrain,
    hooks: Vec<Arc<dyn Hook>>,
    checks: Vec<Arc<dyn Check>>,
    policies: Vec<Arc<dyn Policy>>,
    executor: Option<Arc<dyn Executor>>,
    guide: Option<Arc<dyn Guide>>,
    driver_tools: Vec<Arc<dyn Tool>>,
    brief: BTreeSet<String>,
    output: Option<Value>,
    asking: Asking,
    report: Report,
}

impl AgentBuilder {
    /// Its name, by which other agents call it.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.agent.name = name.into();
        self
    }

    /// What it is good for, for the agents that may call it.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.agent.description = description.into();
        self
    }

    /// The name its model was asked for by, if that is not the model's id: a run that is taken up asks for it again.
    #[must_use]
    pub fn model_name(mut self, name: Option<String>) -> Self {
        self.agent.model_name = name;
        self
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool<T: TypedTool>(self, typed: T) -> Self {
        self.tools([tool(typed)])
    }

    /// Adds tools that are erased already.
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.agent.tools.extend(tools);
        self
    }

    /// Adds an agent it may hand tasks to.
    #[must_use]
    pub fn agent(self, agent: Arc<Agent>) -> Self {
        self.tools([crate::delegate::as_tool(agent)])
    }

    /// How it acts.
    #[must_use]
    pub fn action(mut self, action: ActionFormat) -> Self {
        self.agent.action = action;
        self
    }

    /// How tools are written into its conversation.
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.agent.dialect = dialect;
        self
    }

    /// What it is told beside the standing prompt.
    #[must_use]
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.agent.instructions = instructions.into();
        self
    }

    /// What it reads before its task. Unlike instructions this may come from anywhere: it is said by the user's side of
    /// the conversation, and whoever gives it marks where it is from and keeps it short.
    #[must_use]
    pub fn context(self, context: impl Into<String>) -> Self {
        let context = context.into();
        self.context_for(Arc::new(move |_| context.clone()))
    }

    /// The same, made for each task.
    #[must_use]
    pub fn context_for(mut self, context: ContextFor) -> Self {
        self.agent.context = context;
        self
    }

    /// What it may spend.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.agent.limits = limits;
        self
    }

    /// When it plans.
    #[must_use]
    pub fn plan(mut self, plan: Planning) -> Self {
        self.agent.plan = plan;
        self
    }

    /// How its model writes.
    #[must_use]
    pub fn sampling(mut self, sampling: Sampling) -> Self {
        self.agent.sampling = sampling;
        self
    }

    /// When its model's replies are held to the form of an action.
    #[must_use]
    pub fn constrain(mut self, constrain: Constrain) -> Self {
        self.agent.constrain = constrain;
        self
    }

    /// Adds a hook.
    #[must_use]
    pub fn hook(mut self, hook: impl Hook + 'static) -> Self {
        self.agent.hooks.push(Arc::new(hook));
        self
    }

    /// Adds a check of the final answer.
    #[must_use]
    pub fn check(mut self, check: impl Check + 'static) -> Self {
        self.agent.checks.push(Arc::new(check));
        self
    }

    /// Adds a policy to those of the environment. Verdicts combine by `max`, so it can only tighten.
    #[must_use]
    pub fn policy(mut self, policy: Arc<dyn Policy>) -> Self {
        self.agent.policies.push(policy);
        self
    }

    /// What runs its code.
    #[must_use]
    pub fn executor(mut self, executor: Arc<dyn Executor>) -> Self {
        self.agent.executor = Some(executor);
        self
    }

    /// What knows the project, for the guided format.
    #[must_use]
    pub fn guide(mut self, guide: Arc<dyn Guide>) -> Self {
        self.agent.guide = Some(guide);
        self
    }

    /// Adds tools that the program calls in guided work and no model is told of. They are guarded as all others are.
    #[must_use]
    pub fn driver_tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.agent.driver_tools.extend(tools);
        self
    }

    /// Has native calls offered in few words for the tools of these names: each request carries all tools.
    #[must_use]
    pub fn brief_tools(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.agent.brief.extend(names);
        self
    }

    /// The JSON schema its answer must fit. An answer that does not is sent back twice; then the agent has failed.
    #[must_use]
    pub fn output(mut self, schema: Value) -> Self {
        self.agent.output = Some(schema);
        self
    }

    /// Who answers its questions, and those of the agents it calls. It can only tighten what holds for its caller.
    #[must_use]
    pub fn asking(mut self, asking: Asking) -> Self {
        self.agent.asking = asking;
        self
    }

    /// What the agent that calls it gets to know.
    #[must_use]
    pub fn report(mut self, report: Report) -> Self {
        self.agent.report = report;
        self
    }

    /// The agent.
    pub fn build(self) -> Result<Arc<Agent>, BuildError> {
        let parts = self.agent;
        if !is_callable_name(&parts.name) {
            return Err(BuildError::BadName(parts.name));
        }
        if parts.action == ActionFormat::Code && parts.executor.is_none() {
            return Err(BuildError::NoExecutor);
        }
        if parts.action == ActionFormat::Guided && parts.guide.is_none() {
            return Err(BuildError::NoGuide);
        }
        let toolbox = Arc::new(Toolbox::with_driver_tools(parts.tools, parts.driver_tools)?);
        Ok(Arc::new(Agent {
            schema: Arc::new(constrain::schema(parts.action, toolbox.specs())),
            offered: offered(toolbox.specs(), &parts.brief),
            toolbox,
            name: parts.name,
            description: parts.description,
            model: parts.model,
            model_name: parts.model_name,
            action: parts.action,
            dialect: parts.dialect,
            instructions: parts.instructions,
            context: parts.context,
            limits: parts.limits,
            plan: parts.plan,
            sampling: parts.sampling,
            constrain: parts.constrain,
            hooks: parts.hooks,
            checks: parts.checks,
            policies: parts.policies,
            executor: parts.executor,
            guide: parts.guide,
            form: parts.output.map(Form::new).transpose().map_err(BuildError::BadOutput)?,
            asking: parts.asking,
            report: parts.report,
        }))
    }
}

/// The tools as a model that calls natively is told of them.
fn offered(specs: &Arc<[Arc<ToolSpec>]>, brief: &BTreeSet<String>) -> Arc<[Arc<ToolSpec>]> {
    let told = |spec: &Arc<ToolSpec>| match brief.contains(&spec.name) {
        true => Arc::new(crate::brief::brief(spec)),
        false => spec.clone(),
    };
    specs.iter().map(told).collect()
}
