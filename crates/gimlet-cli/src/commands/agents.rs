//! `gimlet agents`: the agents that the configuration defines.

use std::io::Write;

use gimlet::agent::Report;
use gimlet::approval::Asking;
use gimlet::plan::Planning;
use serde_json::{Value, json};

use crate::app;
use crate::args::{AgentsCommand, JsonArgs, McpArgs, RootArgs};
use crate::diagnostics;
use crate::exit::ExitStatus;
use crate::show::clip;
use crate::style::{BOLD, DIM, NAME, WARNING};
use gimlet_runtime::config::{AgentEntry, Agents, shown};
use gimlet_runtime::options::Choice;
use gimlet_runtime::team::check;

/// Lists or shows agents.
pub(crate) fn agents(
    command: Option<AgentsCommand>,
    root: &RootArgs,
    mcp: &McpArgs,
    json: JsonArgs,
) -> anyhow::Result<ExitStatus> {
    let settings = app::settings(root)?;
    diagnostics::start(&settings);
    let agents = check::load(&settings, &mcp.files)?;
    match command.unwrap_or(AgentsCommand::List(json)) {
        AgentsCommand::List(JsonArgs { json: true }) => {
            let on = agents.defined.values().map(|entry| as_json(entry, true));
            let off = agents.inert.values().map(|entry| as_json(entry, false));
            crate::out::json(&Value::from_iter(on.chain(off)))?;
        }
        AgentsCommand::List(JsonArgs { json: false }) => list(&agents)?,
        AgentsCommand::Show { name, json: JsonArgs { json: true } } => {
            crate::out::json(&as_json(agents.get(&name)?, true))?;
        }
        AgentsCommand::Show { name, json: JsonArgs { json: false } } => show(agents.get(&name)?, &agents)?,
    }
    Ok(ExitStatus::Success)
}

fn list(agents: &Agents) -> anyhow::Result<()> {
    let mut stdout = crate::out::stdout();
    if agents.defined.is_empty() && agents.inert.is_empty() {
        writeln!(crate::out::stderr(), "no agent is defined")?;
        writeln!(
            crate::out::stderr(),
            "hint: add [agents.NAME] to gimlet.toml or to your own configuration"
        )?;
        return Ok(());
    }
    let all = agents.defined.keys().chain(agents.inert.keys());
    let width = all.map(String::len).max().unwrap_or(0);
    for entry in agents.defined.values() {
        let traits = traits(entry).join(" · ");
        write!(stdout, "{NAME}{:width$}{NAME:#}  ", entry.name)?;
        if !entry.description.is_empty() {
            write!(stdout, "{}\n{:width$}  ", clip(&entry.description, 100), "")?;
        }
        writeln!(stdout, "{DIM}{traits}{DIM:#}")?;
    }
    for entry in agents.inert.values() {
        let file = shown(&entry.spot.path);
        writeln!(
            stdout,
            "{NAME}{:width$}{NAME:#}  {WARNING}off{WARNING:#}: {file} is not trusted; read it, then run: gimlet trust {file}",
            entry.name
        )?;
    }
    Ok(())
}

/// What sets an agent apart, in a few words each.
fn traits(entry: &AgentEntry) -> Vec<String> {
    let mut traits = vec![entry.model.as_ref().map_or("the run's model", |model| &model.word).to_owned()];
    traits.extend(entry.action.map(|action| action.name().to_owned()));
    traits.extend(entry.max_steps.map(|steps| format!("{steps} steps")));
    traits.extend(entry.step_budget.map(|steps| format!("{steps} steps together")));
    traits.extend(entry.timeout.map(|seconds| format!("{seconds} s")));
    traits.extend(entry.token_budget.map(|tokens| format!("{tokens} tokens")));
    traits.push(match &entry.tools {
        None => "all tools".into(),
        Some(tools) if tools.is_empty() => "no tools".into(),
        Some(tools) => words(tools.iter().map(|tool| tool.word.as_str())),
    });
    if !entry.agents.is_empty() {
        traits.push(format!("calls {}", words(entry.agents.iter().map(|agent| agent.word.as_str()))));
    }
    traits.extend(approve_word(entry.asking).map(|word| format!("approve {word}")));
    traits
}

fn words<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.collect::<Vec<_>>().join(", ")
}

fn approve_word(asking: Asking) -> Option<&'static str> {
    match asking {
        Asking::Open => None,
        Asking::Person => Some("ask"),
        Asking::Nobody => Some("never"),
    }
}

fn show(entry: &AgentEntry, agents: &Agents) -> anyhow::Result<()> {
    let mut stdout = crate::out::stdout();
    writeln!(stdout, "{BOLD}{}{BOLD:#} {DIM}{}{DIM:#}", entry.name, entry.spot)?;
    if !entry.description.is_empty() {
        writeln!(stdout, "{}", entry.description)?;
    }
    let shown = as_json(entry, true);
    for (key, value) in shown.as_object().into_iter().flatten() {
        if matches!(key.as_str(), "name" | "description" | "instructions" | "file" | "line" | "trusted") {
            continue;
        }
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Array(items) => words(items.iter().filter_map(Value::as_str)),
            other => other.to_string(),
        };
        writeln!(stdout, "  {NAME}{key:<13}{NAME:#} {value}")?;
    }
    if !entry.instructions.is_empty() {
        writeln!(stdout, "\n{}", entry.instructions)?;
    }
    if !entry.agents.is_empty() {
        writeln!(stdout)?;
        tree(&mut stdout, entry, agents, 0)?;
    }
    Ok(())
}

/// Who calls whom.
fn tree(out: &mut impl Write, entry: &AgentEntry, agents: &Agents, depth: usize) -> anyhow::Result<()> {
    let traits = traits(entry).join(" · ");
    writeln!(out, "{:indent$}{NAME}{}{NAME:#} {DIM}{traits}{DIM:#}", "", entry.name, indent = depth * 2)?;
    for mate in &entry.agents {
        tree(out, agents.get(&mate.word)?, agents, depth + 1)?;
    }
    Ok(())
}

/// When an agent plans, as its table says it.
fn plan_json(plan: Planning) -> Value {
    match plan {
        Planning::Never => json!(false),
        Planning::AtStart => json!(true),
        Planning::Every(steps) => json!(steps),
    }
}

/// An agent as programs read it: what its table says and nothing else.
fn as_json(entry: &AgentEntry, trusted: bool) -> Value {
    let list = |words: &[gimlet_runtime::config::Placed]| {
        json!(words.iter().map(|word| &word.word).collect::<Vec<_>>())
    };
    let text = |text: &str| (!text.is_empty()).then(|| json!(text));
    let fields = [
        ("name", Some(json!(entry.name))),
        ("description", text(&entry.description)),
        ("action", entry.action.map(|action| json!(action.name()))),
        ("model", entry.model.as_ref().map(|model| json!(model.word))),
        // By way of text, so that 0.2 is not shown as 0.20000000298.
        ("temperature", entry.temperature.and_then(|t| t.to_string().parse::<f64>().ok()).map(Value::from)),
        ("max_tokens", entry.max_tokens.map(Value::from)),
        ("max_steps", entry.max_steps.map(Value::from)),
        ("step_budget", entry.step_budget.map(Value::from)),
        ("timeout", entry.timeout.map(Value::from)),
        ("token_budget", entry.token_budget.map(Value::from)),
        ("plan", entry.plan.map(plan_json)),
        ("tools", entry.tools.as_deref().map(list)),
        ("agents", (!entry.agents.is_empty()).then(|| list(&entry.agents))),
        ("instructions", text(&entry.instructions)),
        ("executor", entry.executor.map(|executor| json!(executor.name()))),
        ("imports", (!entry.imports.is_empty()).then(|| json!(entry.imports))),
        ("output", entry.output.clone()),
        ("approve", approve_word(entry.asking).map(Value::from)),
        ("summary", (entry.report == Report::Summary).then_some(Value::Bool(true))),
        ("file", Some(json!(entry.spot.path))),
        ("line", Some(json!(entry.spot.line))),
        ("trusted", Some(json!(trusted))),
    ];
    fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}
