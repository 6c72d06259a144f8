//! Who works in a run: the agent that leads it and those it may call, put together from the configuration and the
//! command line. Flags are about the agent that leads; the others are as their tables say.

mod build;
pub mod check;

use std::sync::Arc;

use gimlet::Agent;
use gimlet::agent::ContextFor;
use gimlet::event::{ActionFormat, Started};
use gimlet::limits::Limits;
use gimlet::plan::Planning;
use gimlet::state::State;

use crate::context;
use crate::knowledge::SKILL_TOOL;
use crate::models::{self, Found};
use crate::notice::Notify;
use crate::project::Project;
use crate::served::Manner;
use build::{Builder, Part};
use gimlet_config::UsageError;
use gimlet_config::options::{Action, Choice, ExecutorChoice, Options};
use gimlet_config::{AgentEntry, Agents, DEFAULT_AGENT, Origin, Settings};

/// Most steps of a new run in containers when nobody says otherwise: each of its steps may do a great deal.
const DOCKER_STEPS: u32 = 10;

/// The agents of a run. Without a name it is led by the agent that needs no configuration.
pub struct Team {
    lead: Option<AgentEntry>,
    agents: Agents,
}

/// A team at its place, ready to work.
pub struct Ready {
    /// Who works.
    pub team: Team,
    /// The agent that leads.
    pub agent: Arc<Agent>,
    /// How it acts.
    pub action: ActionFormat,
    /// Changes to what code of the leading agent may import.
    pub imports: Vec<String>,
    /// The leading agent's model.
    pub model: String,
    /// What that model can be asked for by again: the name it has in the configuration, or its id.
    pub asked_as: String,
    /// Why this model, when nobody named it.
    pub why: Option<String>,
    /// The window that was chosen for it and why, where nobody set one.
    pub window: Option<String>,
}

/// What the leading agent begins or goes on with.
pub struct Duty<'a> {
    /// Changes to what its code may import.
    pub imports: &'a [String],
    /// What it may spend.
    pub limits: Limits,
    /// What it reads before its task.
    pub context: ContextFor,
}

/// The agents of a new run.
pub async fn fresh(project: &Project, settings: &Settings, options: &Options) -> anyhow::Result<Ready> {
    let team = Team::of(options.agent.as_deref(), settings, options, project)?;
    let mut found = match team.own_model(options) {
        Some(name) => models::find(name, settings).await?,
        None => models::chosen(settings).await?,
    };
    let (why, window) = (found.why.take(), found.window.take());
    let action = team.action(options, found.manner.action);
    let imports = team.all_imports(action, options, settings)?;
    let duty = Duty {
        imports: &imports,
        limits: team.limits(options, settings),
        context: team.context(project, settings, options, &found, action),
    };
    let (model, asked_as) = (found.model.id().to_owned(), found.reference());
    let agent = team.assemble(project, settings, options, found, duty).await?;
    Ok(Ready { team, agent, action, imports, model, asked_as, why, window })
}

/// The agents of an earlier run, as it began: `options` say so already.
pub async fn as_before(
    project: &Project,
    settings: &Settings,
    options: &Options,
    state: &State,
    started: &Started,
    notify: &Notify,
) -> anyhow::Result<Ready> {
    let team = Team::of(options.agent.as_deref(), settings, options, project)?;
    let mut found = match options.model.as_deref().or(team.own_model(options)) {
        Some(name) => models::find(name, settings).await?,
        None => models::of_run(started, settings, notify).await?,
    };
    let (model, asked_as) = (found.model.id().to_owned(), found.reference());
    found.manner.dialect = started.dialect;
    // What its code could import before, its replay must find again, unless the command line says otherwise.
    let imports = if options.imports.is_empty() {
        serde_json::from_value(started.executor["imports"].clone()).unwrap_or_default()
    } else {
        team.all_imports(started.action, options, settings)?
    };
    // What a project tells agents is in the run's log.
    let duty = Duty { imports: &imports, limits: state.limits.clone(), context: context::no_context() };
    let agent = team.assemble(project, settings, options, found, duty).await?;
    Ok(Ready { team, agent, action: started.action, imports, model, asked_as, why: None, window: None })
}

impl Team {
    /// The team that an agent of the configuration leads. All that is wrong with any agent of it is found here.
    fn of(
        name: Option<&str>,
        settings: &Settings,
        options: &Options,
        project: &Project,
    ) -> anyhow::Result<Team> {
        let Some(name) = name.filter(|name| *name != DEFAULT_AGENT) else {
            return Ok(Team { lead: None, agents: Agents::default() });
        };
        let agents = check::load_with(settings, &options.mcp_files, project.foreign_names())?;
        Ok(Team { lead: Some(agents.get(name)?.clone()), agents })
    }

    /// The model the leading agent names, unless the command line names one.
    fn own_model(&self, options: &Options) -> Option<&str> {
        let own = self.lead.as_ref()?.model.as_ref()?;
        options.model.is_none().then_some(own.word.as_str())
    }

    /// How the leading agent acts, given how its model would.
    pub fn action(&self, options: &Options, otherwise: ActionFormat) -> ActionFormat {
        options.acting(self.lead.as_ref().map_or(otherwise, |entry| build::acting(entry, otherwise)))
    }

    /// What the leading agent may spend on a new task: what the command line says, else its table, else the settings.
    pub fn limits(&self, options: &Options, settings: &Settings) -> Limits {
        let executor = self.executor(options);
        let own = match &self.lead {
            Some(entry) => entry_limits(entry, executor, settings),
            None => Limits { max_steps: usual_steps(executor, settings), ..settings.limits() },
        };
        said_limits(options, own)
    }

    /// When the leading agent plans: as the command line says, else its table, else the settings.
    fn planning(&self, options: &Options, settings: &Settings) -> Planning {
        let own = self.lead.as_ref().and_then(|entry| entry.plan);
        options.plan.or(own).unwrap_or(settings.plan.value)
    }

    /// What the leading agent reads before its task.
    pub fn context(
        &self,
        project: &Project,
        settings: &Settings,
        options: &Options,
        found: &Found,
        action: ActionFormat,
    ) -> ContextFor {
        let window = found.model.window().map(|window| window.tokens);
        let skills = self.reads_skills(options).then(|| project.knowledge().prompt(window)).flatten();
        context::context(project, settings, &Manner { action, ..found.manner }, window, skills)
    }

    /// Whether the leading agent has the tool that reads skills.
    fn reads_skills(&self, options: &Options) -> bool {
        let reads = |word: &str| word == "all" || check::stands_for(word, SKILL_TOOL);
        match self.lead.as_ref().and_then(|entry| entry.tools.as_ref()) {
            _ if !options.tools.is_empty() => options.tools.iter().any(|word| reads(word)),
            Some(words) => words.iter().any(|word| check::stands_for(&word.word, SKILL_TOOL)),
            None => true,
        }
    }

    fn executor(&self, options: &Options) -> Option<ExecutorChoice> {
        options.executor.or(self.lead.as_ref().and_then(|entry| entry.executor))
    }

    /// Changes to the imports that the leading agent's table and the command line make.
    fn imports(&self, options: &Options) -> Vec<String> {
        let own = self.lead.iter().flat_map(|entry| entry.imports.iter().cloned());
        own.chain(options.imports.iter().cloned()).collect()
    }

    /// All changes to what the leading agent's code may import. An agent that writes none needs none.
    fn all_imports(
        &self,
        action: ActionFormat,
        options: &Options,
        settings: &Settings,
    ) -> anyhow::Result<Vec<String>> {
        match action {
            ActionFormat::Code => settings.imports(&self.imports(options)),
            ActionFormat::Tools | ActionFormat::Guided => Ok(Vec::new()),
        }
    }

    /// Builds the leading agent on a model, and all it may call.
    pub async fn assemble(
        &self,
        project: &Project,
        settings: &Settings,
        options: &Options,
        found: Found,
        duty: Duty<'_>,
    ) -> anyhow::Result<Arc<Agent>> {
        let action = self.action(options, found.manner.action);
        let outside = options.executor.filter(|executor| *executor != ExecutorChoice::Python);
        if let Some(executor) = outside.filter(|_| action != ActionFormat::Code) {
            return Err(UsageError::new(format!(
                "`--executor {}` runs code, and this agent acts by {}",
                executor.name(),
                Action::from(action).name()
            ))
            .hint("`--action code`, or `--sandbox docker` for commands")
            .into());
        }
        let mode = options.approve.unwrap_or(settings.approve.value);
        let mut builder = Builder::new(project, settings, &self.agents, &found, mode);
        let mates = match &self.lead {
            Some(entry) => builder.mates(entry).await?,
            None => Vec::new(),
        };
        let chosen = builder.chosen(options)?;
        let flags = (options.temperature, options.max_tokens);
        let executor = self.executor(options).unwrap_or_default();
        let part = Part {
            entry: self.lead.as_ref(),
            found: &found,
            action,
            executor,
            imports: match executor {
                // CPython imports what is installed where it runs; who asks for more is told so.
                ExecutorChoice::Docker | ExecutorChoice::Venv => self.imports(options),
                ExecutorChoice::Python => duty.imports.to_vec(),
            },
            limits: duty.limits,
            sampling: build::sampling(self.lead.as_ref(), flags),
            plan: self.planning(options, settings),
            chosen,
            mates,
        };
        builder.lead(part, duty.context, options.output.clone())
    }
}

/// What an agent of the configuration may spend.
fn entry_limits(entry: &AgentEntry, executor: Option<ExecutorChoice>, settings: &Settings) -> Limits {
    Limits {
        max_steps: entry.max_steps.unwrap_or_else(|| usual_steps(executor, settings)),
        step_budget: entry.step_budget,
        max_seconds: entry.timeout,
        max_tokens: entry.token_budget,
        ..settings.limits()
    }
}

fn usual_steps(executor: Option<ExecutorChoice>, settings: &Settings) -> u32 {
    match (&settings.max_steps.origin, executor) {
        (Origin::Default, Some(ExecutorChoice::Docker)) => DOCKER_STEPS,
        _ => settings.max_steps.value,
    }
}

/// Limits with what the command line says on top.
pub fn said_limits(options: &Options, base: Limits) -> Limits {
    Limits {
        max_steps: options.max_steps.unwrap_or(base.max_steps),
        step_budget: options.step_budget.or(base.step_budget),
        max_seconds: options.timeout.or(base.max_seconds),
        max_tokens: options.token_budget.or(base.max_tokens),
        ..base
    }
}
