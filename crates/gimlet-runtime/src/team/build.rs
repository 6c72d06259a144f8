//! Builds agents: each from its table, its model and the agents it may call. Agents that name the same model share it,
//! and with it the limits on how often and how many at once it may be asked; code of agents that may import the same
//! runs in the same kind of sandbox.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gimlet::Agent;
use gimlet::agent::{AgentBuilder, ContextFor};
use gimlet::cell::Executor;
use gimlet::event::{ActionFormat, Dialect};
use gimlet::limits::Limits;
use gimlet::model::Sampling;
use gimlet::plan::Planning;
use gimlet::tool::Tool;
use gimlet_memory::tools::NAMES;
use gimlet_python::{PythonExecutor, Warmth};

use super::{check, entry_limits};
use crate::extras::Shared;
use crate::models::{self, Found};
use crate::project::Project;
use crate::script_tools::is_script;
use crate::served::{Manner, ToolSet};
use crate::{helper, isolation, memory};
use gimlet_config::UsageError;
use gimlet_config::options::{ApproveMode, ExecutorChoice, Options};
use gimlet_config::{AgentEntry, Agents, Settings};

/// One agent to be built.
pub(super) struct Part<'a> {
    /// Its table; none for the agent that needs none.
    pub(super) entry: Option<&'a AgentEntry>,
    pub(super) found: &'a Found,
    pub(super) action: ActionFormat,
    pub(super) executor: ExecutorChoice,
    pub(super) imports: Vec<String>,
    pub(super) limits: Limits,
    pub(super) sampling: Sampling,
    pub(super) plan: Planning,
    /// The tools that whoever starts the run names; none for those the agent would have.
    pub(super) chosen: Option<Vec<Arc<dyn Tool>>>,
    pub(super) mates: Vec<Arc<Agent>>,
}

/// Builds the agents of one run.
pub(super) struct Builder<'a> {
    project: &'a Project,
    settings: &'a Settings,
    agents: &'a Agents,
    /// What an agent asks that names no model of its own.
    usual: &'a Found,
    tools: Vec<Arc<dyn Tool>>,
    /// The only tools that are offered, where not all are: in plan mode.
    only: Option<BTreeSet<String>>,
    models: BTreeMap<String, Found>,
    sandboxes: BTreeMap<Vec<String>, Arc<PythonExecutor>>,
    built: BTreeMap<String, Arc<Agent>>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(
        project: &'a Project,
        settings: &'a Settings,
        agents: &'a Agents,
        usual: &'a Found,
        mode: ApproveMode,
    ) -> Self {
        Builder {
            project,
            settings,
            agents,
            usual,
            tools: project.tools(),
            only: (mode == ApproveMode::Plan).then(|| project.looking()),
            models: BTreeMap::new(),
            sandboxes: BTreeMap::new(),
            built: BTreeMap::new(),
        }
    }

    /// The agents that another one may call, built from the bottom up.
    pub(super) async fn mates(&mut self, lead: &AgentEntry) -> anyhow::Result<Vec<Arc<Agent>>> {
        for name in check::below(self.agents, lead)? {
            let entry = self.agents.get(&name)?;
            let agent = self.mate(entry).await?;
            self.built.insert(name, agent);
        }
        Ok(self.called_by(lead))
    }

    /// The tools that are named for the leading agent, and those of the files that are named beside them.
    pub(super) fn chosen(&self, options: &Options) -> anyhow::Result<Option<Vec<Arc<dyn Tool>>>> {
        if options.tools.is_empty() {
            return Ok(None);
        }
        if options.tools.iter().any(|word| word == "all") {
            return Ok(Some(self.tools.clone()));
        }
        let scripts = options.mcp_files.iter().filter(|file| is_script(file));
        let stems = scripts.filter_map(|file| file.file_stem()?.to_str());
        let served = stems.map(|stem| format!("{}*", gimlet_mcp::prefix(stem)));
        let words: Vec<String> = options.tools.iter().cloned().chain(served).collect();
        Ok(Some(check::pick_named(&words, &self.tools)?))
    }

    fn called_by(&self, entry: &AgentEntry) -> Vec<Arc<Agent>> {
        entry.agents.iter().filter_map(|agent| self.built.get(&agent.word).cloned()).collect()
    }

    async fn mate(&mut self, entry: &AgentEntry) -> anyhow::Result<Arc<Agent>> {
        let found = match &entry.model {
            None => self.usual.clone(),
            Some(model) => match self.models.get(&model.word) {
                Some(found) => found.clone(),
                None => {
                    let found = models::find(&model.word, self.settings).await?;
                    self.models.insert(model.word.clone(), found.clone());
                    found
                }
            },
        };
        let action = acting(entry, found.manner.action);
        let imports = match (action, entry.executor) {
            (ActionFormat::Tools | ActionFormat::Guided, _) => Vec::new(),
            (ActionFormat::Code, Some(ExecutorChoice::Docker | ExecutorChoice::Venv)) => {
                entry.imports.clone()
            }
            (ActionFormat::Code, Some(ExecutorChoice::Python) | None) => {
                self.settings.imports(&entry.imports)?
            }
        };
        let part = Part {
            entry: Some(entry),
            found: &found,
            action,
            executor: entry.executor.unwrap_or_default(),
            imports,
            limits: entry_limits(entry, entry.executor, self.settings),
            sampling: sampling(Some(entry), (None, None)),
            plan: entry.plan.unwrap_or_default(),
            chosen: None,
            mates: self.called_by(entry),
        };
        self.finish(part, |builder| builder)
    }

    /// The agent that leads. It alone is held to finish what its task asks for: what the others do is part of that.
    pub(super) fn lead(
        &mut self,
        part: Part<'_>,
        context: ContextFor,
        output: Option<serde_json::Value>,
    ) -> anyhow::Result<Arc<Agent>> {
        let gate = self.project.gate();
        let checks = self.project.checks().to_vec();
        let imports = part.imports.clone();
        let agent = self.finish(part, |mut builder| {
            if let Some(gate) = gate {
                builder = builder.check(gate);
            }
            if let Some(schema) = output {
                builder = builder.output(schema);
            }
            for check in checks {
                builder = builder.check(Shared(check));
            }
            builder.context_for(context)
        })?;
        if let Some(sandbox) = self.sandboxes.get(&imports) {
            // The interpreter gets ready while the model thinks about its first reply.
            sandbox.warm_up();
        }
        Ok(agent)
    }

    fn finish(
        &mut self,
        part: Part<'_>,
        more: impl FnOnce(AgentBuilder) -> AgentBuilder,
    ) -> anyhow::Result<Arc<Agent>> {
        let manner = part.found.manner;
        let mut builder = Agent::builder(part.found.model.clone())
            .model_name(part.found.name.clone())
            .action(part.action)
            .dialect(manner.dialect)
            .constrain(manner.constrain)
            .sampling(part.sampling)
            .plan(part.plan)
            .limits(part.limits);
        builder = match part.entry {
            None => builder.tools(self.offered(part.chosen.unwrap_or_else(|| self.usual_tools(manner)))),
            Some(entry) => {
                let tools = match part.chosen {
                    Some(chosen) => chosen,
                    None => self.picked(entry, manner)?,
                };
                let mut builder = builder
                    .name(&entry.name)
                    .description(&entry.description)
                    .instructions(&entry.instructions)
                    .tools(self.offered(tools))
                    .asking(entry.asking)
                    .report(entry.report);
                if let Some(schema) = &entry.output {
                    builder = builder.output(schema.clone());
                }
                builder
            }
        };
        if manner.tools == ToolSet::Lean {
            builder = builder.brief_tools(self.project.own_names());
        }
        for mate in part.mates {
            builder = builder.agent(mate);
        }
        if part.action == ActionFormat::Code {
            builder = builder.executor(self.executor(part.executor, part.imports)?);
        }
        if part.action == ActionFormat::Guided || manner.takes_over {
            builder = builder
                .guide(
                    self.project.guide(self.settings, part.found.model.window().map(|window| window.tokens)),
                )
                .driver_tools(self.offered(self.driver_tools(part.entry)?));
        }
        let built = more(builder).build();
        built.map_err(|error| {
            let whose = part.entry.map(|entry| format!("{}: agent `{}`: ", entry.spot, entry.name));
            UsageError::new(format!("{}{error}", whose.unwrap_or_default())).into()
        })
    }

    /// The tools that the program itself calls for an agent in the guided format: the one that writes files and the one
    /// that runs tests. An agent whose table names no such tool has none of them.
    fn driver_tools(&self, entry: Option<&AgentEntry>) -> anyhow::Result<Vec<Arc<dyn Tool>>> {
        let picked = match entry.and_then(|entry| Some((entry, entry.tools.as_ref()?))) {
            Some((entry, words)) => check::pick(entry, words, &self.tools)?,
            None => self.tools.clone(),
        };
        let has = |names: &[&str]| picked.iter().any(|tool| names.contains(&tool.spec().name.as_str()));
        let writes = has(&["apply_patch", IN_ONE_STEP]).then(|| self.project.kit().writing());
        let tests =
            has(&["run_tests"]).then(|| self.tools.iter().find(|tool| tool.spec().name == "run_tests"));
        Ok(writes.into_iter().chain(tests.flatten().cloned()).collect())
    }

    /// Those of the tools that the mode lets a model know of.
    fn offered(&self, tools: Vec<Arc<dyn Tool>>) -> Vec<Arc<dyn Tool>> {
        let Some(only) = &self.only else { return tools };
        tools.into_iter().filter(|tool| only.contains(&tool.spec().name)).collect()
    }

    /// The tools of an agent that names none.
    fn usual_tools(&self, manner: Manner) -> Vec<Arc<dyn Tool>> {
        self.tools.iter().filter(|tool| suits(tool.as_ref(), manner)).cloned().collect()
    }

    /// The tools of an agent. One that names a tool of the memory has it, also where the memory is off for all others.
    fn picked(&self, entry: &AgentEntry, manner: Manner) -> anyhow::Result<Vec<Arc<dyn Tool>>> {
        let Some(words) = &entry.tools else { return Ok(self.usual_tools(manner)) };
        // A tool of that name that the embedding program brings is the one that is meant.
        let known = |tool: &str| self.tools.iter().any(|known| known.spec().name == tool);
        let named = |tool: &str| words.iter().any(|word| word.word == tool) && !known(tool);
        if self.project.memory().is_some() || !NAMES.iter().any(|tool| named(tool)) {
            return check::pick(entry, words, &self.tools);
        }
        let mut tools = self.tools.clone();
        tools.extend(memory::kit(self.settings)?.tools().into_iter().filter(|tool| named(&tool.spec().name)));
        check::pick(entry, words, &tools)
    }

    fn executor(
        &mut self,
        choice: ExecutorChoice,
        imports: Vec<String>,
    ) -> anyhow::Result<Arc<dyn Executor>> {
        let limits = self.project.python_limits();
        match choice {
            ExecutorChoice::Docker => isolation::docker_executor(
                self.settings,
                self.project.root(),
                &imports,
                limits,
                self.project.containers(),
            ),
            ExecutorChoice::Venv => isolation::venv_executor(self.settings, &imports, limits),
            ExecutorChoice::Python => {
                if let Some(sandbox) = self.sandboxes.get(&imports) {
                    return Ok(sandbox.clone());
                }
                let sandbox = helper::python(limits, &imports, Warmth::Warm)?;
                self.sandboxes.insert(imports, sandbox.clone());
                Ok(sandbox)
            }
        }
    }
}

/// How an agent of the configuration acts, given how its model would.
pub(super) fn acting(entry: &AgentEntry, otherwise: ActionFormat) -> ActionFormat {
    match (entry.action, entry.executor) {
        (Some(action), _) => action.into(),
        (None, Some(ExecutorChoice::Docker | ExecutorChoice::Venv)) => ActionFormat::Code,
        (None, Some(ExecutorChoice::Python) | None) => otherwise,
    }
}

/// How an agent's model writes, where its table says so and no flag does: flags are part of the model already.
pub(super) fn sampling(entry: Option<&AgentEntry>, flags: (Option<f32>, Option<u32>)) -> Sampling {
    let Some(entry) = entry else { return Sampling::default() };
    Sampling {
        temperature: entry.temperature.filter(|_| flags.0.is_none()),
        max_tokens: entry.max_tokens.filter(|_| flags.1.is_none()),
        ..Sampling::default()
    }
}

/// Tools that a local model does without: they tell only of where to look, or another one does the same. A proposal
/// that is to be applied is one of them: small models forget the second step.
const SPARED: [&str; 9] = [
    "repo_info",
    "file_info",
    "read_file_snippet",
    "search_code",
    "git_changed_files",
    "propose_patch_unified",
    "propose_patch",
    "show_patch",
    "apply_patch",
];
/// The tool that changes a file in one step.
const IN_ONE_STEP: &str = "edit_file";

/// A tool that a model with native calls does without as well: `git_diff` and `run_cmd` tell the same.
const SPARED_WITH_NATIVE_CALLS: &str = "git_status";

/// Whether a tool is offered to a model when nobody says which it shall have.
fn suits(tool: &dyn Tool, manner: Manner) -> bool {
    let spec = tool.spec();
    let name = spec.name.as_str();
    match (manner.tools, manner.dialect) {
        (ToolSet::Lean, Dialect::Native) => !SPARED.contains(&name) && name != SPARED_WITH_NATIVE_CALLS,
        (ToolSet::Lean, Dialect::Text) => !SPARED.contains(&name),
        (ToolSet::All, Dialect::Native | Dialect::Text) => true,
    }
}
