//! `[agents.NAME]` of the configuration: agents as data. What is wrong with one entry alone is found here, with its
//! line; what it refers to is checked where it is known. A project's agents are inert until its file is trusted.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::ops::Range;

use gimlet::agent::{Report, output_problem};
use gimlet::approval::Asking;
use gimlet::plan::Planning;
use gimlet::toolbox::is_callable_name;
use serde::Deserialize;
use toml::Spanned;

use super::file::ConfigFile;
use super::{Settings, Source, Spot, Standing, needs_trust, read_inside, read_small, shown};
use crate::UsageError;
use crate::options::{Action, Choice, ExecutorChoice};

/// The agent of a run that names none.
pub const DEFAULT_AGENT: &str = "gimlet";

/// The agents of the configuration, by name.
#[derive(Debug, Default)]
pub struct Agents {
    /// Those that can be used.
    pub defined: BTreeMap<String, AgentEntry>,
    /// Those that only a file defines which is not trusted.
    pub inert: BTreeMap<String, AgentEntry>,
}

/// One agent as it is written.
#[derive(Debug, Clone)]
pub struct AgentEntry {
    /// Its name.
    pub name: String,
    /// Where it is defined.
    pub spot: Spot,
    /// What it is good for, for agents that may call it.
    pub description: String,
    /// How it acts; `None` is as its model's profile says.
    pub action: Option<Action>,
    /// The model it asks; `None` is the run's.
    pub model: Option<Placed>,
    /// Randomness of its replies.
    pub temperature: Option<f32>,
    /// Maximum tokens of one reply.
    pub max_tokens: Option<u32>,
    /// Maximum steps.
    pub max_steps: Option<u32>,
    /// Maximum steps of it and of all agents below it, together.
    pub step_budget: Option<u32>,
    /// Time limit in seconds.
    pub timeout: Option<f64>,
    /// Maximum tokens.
    pub token_budget: Option<u64>,
    /// When it plans.
    pub plan: Option<Planning>,
    /// None stands for all tools there are.
    pub tools: Option<Vec<Placed>>,
    /// The agents it may call.
    pub agents: Vec<Placed>,
    /// What it is told beside the standing prompt.
    pub instructions: String,
    /// Where its code runs.
    pub executor: Option<ExecutorChoice>,
    /// Changes to what its code may import.
    pub imports: Vec<String>,
    /// The JSON schema of its answer.
    pub output: Option<serde_json::Value>,
    /// Who answers its questions.
    pub asking: Asking,
    /// What its caller gets to know.
    pub report: Report,
}

/// A word and where it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The word.
    pub word: String,
    /// Where it is written.
    pub spot: Spot,
}

/// The table of one agent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(default)]
    description: String,
    action: Option<Action>,
    model: Option<Spanned<String>>,
    temperature: Option<Spanned<f32>>,
    max_tokens: Option<NonZeroU32>,
    max_steps: Option<NonZeroU32>,
    step_budget: Option<NonZeroU32>,
    timeout: Option<Spanned<f64>>,
    token_budget: Option<NonZeroU64>,
    plan: Option<Spanned<toml::Value>>,
    tools: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    agents: Vec<Spanned<String>>,
    #[serde(default)]
    instructions: String,
    executor: Option<Spanned<ExecutorChoice>>,
    imports: Option<Spanned<Vec<String>>>,
    output: Option<Spanned<Output>>,
    approve: Option<Approve>,
    #[serde(default)]
    summary: bool,
}

/// The form of an answer.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Output {
    /// A file that holds the schema, beside the configuration.
    File(String),
    Schema(toml::Table),
}

/// What happens when an approval is needed: an agent can be stricter than its run, never looser.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Approve {
    Ask,
    Never,
}

impl Agents {
    /// The agent of a name. One that only an untrusted file defines is an error that says so.
    pub fn get(&self, name: &str) -> anyhow::Result<&AgentEntry> {
        if let Some(entry) = self.defined.get(name) {
            return Ok(entry);
        }
        if let Some(entry) = self.inert.get(name) {
            return Err(needs_trust(&entry.spot, &format!("defines the agent `{name}`")).into());
        }
        let error = UsageError::new(format!("there is no agent `{name}`"));
        Err(match super::key::nearest(name, self.defined.keys().map(String::as_str)) {
            Some(nearest) => error.hint(format!("did you mean `{nearest}`?")),
            None if self.defined.is_empty() => error.hint("define one as [agents.NAME]; see docs/agents.md"),
            None => error.hint("see `gimlet agents`"),
        }
        .into())
    }
}

impl Settings {
    /// The agents of the user's and of the project's file; of one name the project's counts, once it is trusted. One
    /// that the starting program brings itself counts before both.
    pub fn agents(&self) -> anyhow::Result<Agents> {
        let mut agents = Agents::default();
        for file in [&self.layers.user, &self.layers.project, &self.layers.given].into_iter().flatten() {
            let Some(part) = file.section::<BTreeMap<Spanned<String>, Table>>("agents")? else { continue };
            for (name, table) in part.value {
                let entry =
                    Reader { file, settings: self, name: name.get_ref() }.entry(name.span(), table)?;
                let (known, name) = (&mut agents, name.into_inner());
                let map = if part.source.is_trusted() { &mut known.defined } else { &mut known.inert };
                map.insert(name, entry);
            }
        }
        agents.inert.retain(|name, _| !agents.defined.contains_key(name));
        Ok(agents)
    }
}

/// Reads the table of one agent.
struct Reader<'a> {
    file: &'a ConfigFile,
    settings: &'a Settings,
    name: &'a str,
}

impl Reader<'_> {
    fn entry(&self, at: Range<usize>, table: Table) -> anyhow::Result<AgentEntry> {
        self.check_name(&at)?;
        if let Some(wrong) = table.temperature.as_ref().filter(|t| !(0.0..=2.0).contains(t.get_ref())) {
            return Err(self.wrong(&wrong.span(), "temperature must be a number from 0 to 2").into());
        }
        let seconds = |t: f64| t > 0.0 && t.is_finite();
        if let Some(wrong) = table.timeout.as_ref().filter(|timeout| !seconds(*timeout.get_ref())) {
            return Err(self.wrong(&wrong.span(), "timeout must be a number of seconds above 0").into());
        }
        self.check_code(&table)?;
        for list in [table.tools.as_deref().unwrap_or_default(), &table.agents] {
            self.check_once(list)?;
        }
        Ok(AgentEntry {
            name: self.name.to_owned(),
            spot: self.file.spot(&at),
            description: table.description.trim().to_owned(),
            action: table.action,
            model: table.model.map(|model| self.placed(model)),
            temperature: table.temperature.map(Spanned::into_inner),
            max_tokens: table.max_tokens.map(NonZeroU32::get),
            max_steps: table.max_steps.map(NonZeroU32::get),
            step_budget: table.step_budget.map(NonZeroU32::get),
            timeout: table.timeout.map(Spanned::into_inner),
            token_budget: table.token_budget.map(NonZeroU64::get),
            plan: table.plan.map(|plan| self.plan(&plan)).transpose()?,
            tools: table.tools.map(|tools| tools.into_iter().map(|tool| self.placed(tool)).collect()),
            agents: table.agents.into_iter().map(|agent| self.placed(agent)).collect(),
            instructions: table.instructions.trim().to_owned(),
            executor: table.executor.map(Spanned::into_inner),
            imports: table.imports.map(Spanned::into_inner).unwrap_or_default(),
            output: table.output.map(|output| self.output(output)).transpose()?.flatten(),
            asking: match table.approve {
                None => Asking::Open,
                Some(Approve::Ask) => Asking::Person,
                Some(Approve::Never) => Asking::Nobody,
            },
            report: if table.summary { Report::Summary } else { Report::Answer },
        })
    }

    fn check_name(&self, at: &Range<usize>) -> Result<(), UsageError> {
        let name = self.name;
        if name == DEFAULT_AGENT {
            return Err(self.wrong(at, "this is the name of the agent you get without `--agent`"));
        }
        if is_callable_name(name) {
            return Ok(());
        }
        let fit: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' })
            .collect();
        let error = self.wrong(at, "a name must be a Python identifier: other agents call it as a function");
        Err(if is_callable_name(&fit) && fit != name { error.hint(format!("[agents.{fit}]")) } else { error })
    }

    /// What only makes sense for code, and only in one place.
    fn check_code(&self, table: &Table) -> Result<(), UsageError> {
        let in_sandbox =
            table.executor.as_ref().is_none_or(|place| *place.get_ref() == ExecutorChoice::Python);
        let other = table.action.filter(|action| *action != Action::Code).map(Action::name);
        if let (Some(executor), Some(other)) = (&table.executor, other) {
            let text = format!("executor is where code runs, and this agent acts by {other}");
            return Err(self.wrong(&executor.span(), &text));
        }
        let Some(imports) = &table.imports else { return Ok(()) };
        if let Some(other) = other {
            let text = format!("imports are for code, and this agent acts by {other}");
            return Err(self.wrong(&imports.span(), &text));
        }
        if !in_sandbox {
            let text = "imports are for the Python sandbox; CPython imports what is installed where it runs";
            return Err(self.wrong(&imports.span(), text));
        }
        gimlet_python::imports::changed(imports.get_ref())
            .map(drop)
            .map_err(|error| self.wrong(&imports.span(), &format!("imports: {error}")))
    }

    /// When it plans, in the words of `agent.plan`.
    fn plan(&self, plan: &Spanned<toml::Value>) -> Result<Planning, UsageError> {
        let steps = plan.get_ref().as_integer().and_then(|steps| u32::try_from(steps).ok());
        match (plan.get_ref(), steps.and_then(NonZeroU32::new)) {
            (toml::Value::Boolean(false), _) => Ok(Planning::Never),
            (toml::Value::Boolean(true), _) => Ok(Planning::AtStart),
            (_, Some(steps)) => Ok(Planning::Every(steps)),
            (_, None) => Err(self.wrong(&plan.span(), "plan must be true, false, or a number of steps")),
        }
    }

    fn check_once(&self, list: &[Spanned<String>]) -> Result<(), UsageError> {
        let twice = |at: usize| list[..at].iter().any(|before| before.get_ref() == list[at].get_ref());
        match (0..list.len()).find(|&at| twice(at)) {
            Some(at) => {
                Err(self.wrong(&list[at].span(), &format!("`{}` is named twice", list[at].get_ref())))
            }
            None => Ok(()),
        }
    }

    /// The schema, which must be one. What a project's file leads to needs trust of its own: its bytes are not pinned
    /// with those of the file that names it.
    fn output(&self, output: Spanned<Output>) -> anyhow::Result<Option<serde_json::Value>> {
        let at = output.span();
        let schema = match output.into_inner() {
            Output::Schema(table) => serde_json::to_value(table)?,
            // Nothing is opened because an untrusted file says so.
            Output::File(_) if !self.file.source.is_trusted() => return Ok(None),
            Output::File(name) => {
                let beside = self.file.source.path().parent().unwrap_or(std::path::Path::new("."));
                let path = beside.join(&name);
                let foreign = matches!(self.file.source, Source::Project { .. });
                let root = &self.settings.root;
                let read = if foreign { read_inside(root, &path)? } else { read_small(&path)? };
                let bytes =
                    read.ok_or_else(|| self.wrong(&at, &format!("there is no file {}", shown(&path))))?;
                if foreign && self.settings.trust().standing(root, &path, &bytes) != Standing::Trusted {
                    let file = shown(&path);
                    return Err(self
                        .wrong(&at, &format!("{file} belongs to the project and is not trusted"))
                        .hint(format!("read it, then run: gimlet trust {file}"))
                        .into());
                }
                serde_json::from_slice(&bytes)
                    .map_err(|error| self.wrong(&at, &format!("{} is not JSON: {error}", shown(&path))))?
            }
        };
        match output_problem(&schema) {
            Some(problem) => {
                Err(self.wrong(&at, &format!("output is not a valid JSON schema: {problem}")).into())
            }
            None => Ok(Some(schema)),
        }
    }

    fn placed(&self, word: Spanned<String>) -> Placed {
        let spot = self.file.spot(&word.span());
        Placed { word: word.into_inner(), spot }
    }

    fn wrong(&self, at: &Range<usize>, what: &str) -> UsageError {
        UsageError::new(format!("{}: agent `{}`: {what}", self.file.spot(at), self.name))
    }
}
