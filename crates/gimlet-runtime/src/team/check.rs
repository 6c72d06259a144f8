//! Checks what agents refer to: tools, models and each other. Everything that is wrong is an error with its line,
//! before anything runs.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use gimlet::tool::Tool;
use gimlet_memory::tools::NAMES;

use crate::project::Project;
use crate::{mcp, models};
use gimlet_config::{AgentEntry, Agents, NamedModels, Placed, Settings, key};
use gimlet_config::{UsageError, hint_of};

/// What agents may refer to that can be known before any server is started.
struct Known {
    tools: BTreeSet<String>,
    /// How names of MCP servers' tools begin.
    servers: Vec<String>,
    models: NamedModels,
}

/// The agents of the configuration, checked.
pub fn load(settings: &Settings, mcp: &[PathBuf]) -> anyhow::Result<Agents> {
    load_with(settings, mcp, Vec::new())
}

/// The same where there are tools that no configuration names.
pub(super) fn load_with(settings: &Settings, mcp: &[PathBuf], tools: Vec<String>) -> anyhow::Result<Agents> {
    let agents = settings.agents()?;
    if agents.defined.is_empty() {
        return Ok(agents);
    }
    let mut known = Known::new(settings, mcp)?;
    known.tools.extend(tools);
    for entry in agents.defined.values() {
        known.check(entry, settings)?;
        check_mates(&agents, entry)?;
    }
    for entry in agents.defined.values() {
        below(&agents, entry)?;
    }
    Ok(agents)
}

impl Known {
    fn new(settings: &Settings, mcp: &[PathBuf]) -> anyhow::Result<Self> {
        let named = mcp::named(settings, mcp)?;
        let on = named.servers.iter().map(|server| server.name.as_str());
        let off = named.inert.iter().map(|server| server.name.as_str());
        let tools = Project::to_look_at(settings)?.tools();
        Ok(Known {
            tools: tools.iter().map(|tool| tool.spec().name.clone()).collect(),
            servers: on.chain(off).map(gimlet_mcp::prefix).collect(),
            models: settings.named_models()?,
        })
    }

    fn check(&self, entry: &AgentEntry, settings: &Settings) -> anyhow::Result<()> {
        if self.tools.contains(&entry.name) {
            return Err(UsageError::new(format!(
                "{}: agent `{}`: there is a tool of this name",
                entry.spot, entry.name
            ))
            .hint("call it something else")
            .into());
        }
        for tool in entry.tools.iter().flatten() {
            self.check_tool(entry, tool)?;
        }
        match &entry.model {
            Some(model) => self.check_model(entry, model, settings),
            None => Ok(()),
        }
    }

    fn check_tool(&self, entry: &AgentEntry, tool: &Placed) -> Result<(), UsageError> {
        let foreign = self.servers.iter().any(|prefix| tool.word.starts_with(prefix.as_str()));
        let remembers = NAMES.contains(&tool.word.as_str());
        if foreign || remembers || self.tools.iter().any(|name| stands_for(&tool.word, name)) {
            return Ok(());
        }
        let error = wrong(entry, tool, &format!("there is no tool `{}`", tool.word));
        Err(match key::nearest(&tool.word, self.tools.iter().map(String::as_str)) {
            Some(nearest) => error.hint(format!("did you mean `{nearest}`?")),
            None => error.hint("see `gimlet tools`; tools of an MCP server are named SERVER__TOOL"),
        })
    }

    fn check_model(&self, entry: &AgentEntry, model: &Placed, settings: &Settings) -> anyhow::Result<()> {
        let names = self.models.names();
        if !model.word.contains('/') && !names.contains(model.word.as_str()) {
            self.models.check(&model.word)?;
            let error = wrong(entry, model, &format!("there is no model `{}`", model.word));
            return Err(match key::nearest(&model.word, names) {
                Some(nearest) => error.hint(format!("did you mean `{nearest}`?")),
                None => error.hint(
                    "name one of [models] or [routers], or an id such as ollama_chat/qwen2.5-coder:14b",
                ),
            }
            .into());
        }
        models::check(&model.word, settings, &self.models).map_err(|error| {
            let told = wrong(entry, model, &format!("{error:#}"));
            match hint_of(&error) {
                Some(hint) => told.hint(hint),
                None => told,
            }
            .into()
        })
    }
}

/// The agents an agent calls must be there, be trusted, and say what they are for.
fn check_mates(agents: &Agents, entry: &AgentEntry) -> anyhow::Result<()> {
    for mate in &entry.agents {
        if !agents.defined.contains_key(&mate.word) && !agents.inert.contains_key(&mate.word) {
            let error = wrong(entry, mate, &format!("there is no agent `{}`", mate.word));
            let names = agents.defined.keys().filter(|name| **name != entry.name).map(String::as_str);
            return Err(match key::nearest(&mate.word, names) {
                Some(nearest) => error.hint(format!("did you mean `{nearest}`?")),
                None => error.hint(format!("define [agents.{}]", mate.word)),
            }
            .into());
        }
        let called = agents.get(&mate.word)?;
        if called.description.is_empty() {
            return Err(UsageError::new(format!(
                "{}: agent `{}`: it has no description, and `{}` calls it",
                called.spot, called.name, entry.name
            ))
            .hint("description = \"what it is good for\": this is how the other agent knows when to call it")
            .into());
        }
    }
    Ok(())
}

/// The agents below one, each after all it calls itself. Agents that call each other in a circle are an error.
pub(super) fn below(agents: &Agents, lead: &AgentEntry) -> anyhow::Result<Vec<String>> {
    let mut done = Vec::new();
    visit(agents, lead, &mut vec![lead.name.clone()], &mut done)?;
    Ok(done)
}

fn visit(
    agents: &Agents,
    entry: &AgentEntry,
    way: &mut Vec<String>,
    done: &mut Vec<String>,
) -> anyhow::Result<()> {
    for mate in &entry.agents {
        if let Some(at) = way.iter().position(|name| *name == mate.word) {
            let circle = [&way[at..], std::slice::from_ref(&mate.word)].concat().join(" → ");
            return Err(wrong(entry, mate, &format!("agents call each other in a circle: {circle}")).into());
        }
        if done.contains(&mate.word) {
            continue;
        }
        way.push(mate.word.clone());
        visit(agents, agents.get(&mate.word)?, way, done)?;
        way.pop();
        done.push(mate.word.clone());
    }
    Ok(())
}

/// The tools of an agent, in the order of all tools; each word of its list must stand for at least one.
pub(super) fn pick(
    entry: &AgentEntry,
    words: &[Placed],
    all: &[Arc<dyn Tool>],
) -> anyhow::Result<Vec<Arc<dyn Tool>>> {
    let names: Vec<String> = all.iter().map(|tool| tool.spec().name.clone()).collect();
    if let Some(missing) = words.iter().find(|word| !names.iter().any(|name| stands_for(&word.word, name))) {
        return Err(wrong(entry, missing, &format!("there is no tool `{}` now", missing.word))
            .hint("see `gimlet mcp`: its server may be down or not trusted")
            .into());
    }
    let wanted = |name: &String| words.iter().any(|word| stands_for(&word.word, name));
    Ok(all.iter().zip(&names).filter(|(_, name)| wanted(name)).map(|(tool, _)| tool.clone()).collect())
}

/// The tools that words of a command line stand for.
pub(super) fn pick_named(words: &[String], all: &[Arc<dyn Tool>]) -> anyhow::Result<Vec<Arc<dyn Tool>>> {
    let names: Vec<String> = all.iter().map(|tool| tool.spec().name.clone()).collect();
    if let Some(missing) = words.iter().find(|word| !names.iter().any(|name| stands_for(word, name))) {
        let error = UsageError::new(format!("there is no tool `{missing}`"));
        return Err(match key::nearest(missing, names.iter().map(String::as_str)) {
            Some(nearest) => error.hint(format!("did you mean `{nearest}`?")),
            None => error.hint("see `gimlet tools`; a file of tools ends in .py"),
        }
        .into());
    }
    let wanted = |name: &String| words.iter().any(|word| stands_for(word, name));
    Ok(all.iter().zip(&names).filter(|(_, name)| wanted(name)).map(|(tool, _)| tool.clone()).collect())
}

/// Whether a word of a list stands for a tool: by its name, or by how its name begins, as in `git_*`.
pub(super) fn stands_for(word: &str, tool: &str) -> bool {
    match word.strip_suffix('*') {
        Some(beginning) => !beginning.is_empty() && tool.starts_with(beginning),
        None => word == tool,
    }
}

fn wrong(entry: &AgentEntry, at: &Placed, what: &str) -> UsageError {
    UsageError::new(format!("{}: agent `{}`: {what}", at.spot, entry.name))
}
