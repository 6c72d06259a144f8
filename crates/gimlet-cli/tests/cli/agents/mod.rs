//! Agents as data, through the real binary: defined, listed, at work, stopped and carried on.

mod approvals;
mod define;
mod durable;
mod limits;
mod preset;
mod steps;
mod work;

use crate::support::{Project, Said};
use serde_json::Value;

/// A project with these agents in the user's own file, and answers taken as they come.
fn team(agents: &str) -> Project {
    let project = Project::new();
    write_agents(&project, agents);
    project
}

fn write_agents(project: &Project, agents: &str) {
    let text = format!("[gate]\nenabled = false\n{agents}");
    std::fs::write(project.home.path().join("config.toml"), text).unwrap();
}

/// Puts a script in place whose replies go by how often its agent has spoken already.
fn turns(project: &Project, script: &str) -> String {
    project.script(&format!("order = \"turns\"\n{script}"))
}

/// Has an agent work on a task; one script speaks for all agents, told apart by their tasks.
fn ask(project: &Project, agent: &str, script: &str, more: &[&str]) -> Said {
    let model = turns(project, script);
    let mut args = vec!["-m", &model, "--agent", agent, "lead the work"];
    args.extend(more);
    project.say(&args)
}

/// The same, with the events of it.
fn events(project: &Project, agent: &str, script: &str, more: &[&str]) -> (i32, Vec<Value>) {
    let said = ask(project, agent, script, &[&["--json"], more].concat());
    assert_eq!(said.stderr, "");
    (said.code, said.events())
}

/// The events of one type of the agents whose path begins so.
fn of<'a>(events: &'a [Value], kind: &str, path: &str) -> Vec<&'a Value> {
    let below = |event: &Value| event["path"].as_str().unwrap_or_default().starts_with(path);
    events.iter().filter(|event| event["type"] == kind && below(event)).collect()
}

/// The result of the main agent's only call.
fn result(events: &[Value]) -> &Value {
    let own = |event: &&Value| event["type"] == "tool.finished" && event.get("path").is_none();
    &events.iter().find(own).unwrap_or_else(|| panic!("{events:#?}"))["result"]
}

/// A script of code: each cell is a reply.
fn cells(cells: &[&str]) -> String {
    cells.iter().map(|code| format!("[[reply]]\ntext = '''\n```python\n{code}\n```\n'''\n")).collect()
}

/// What an agent with this text in its task says.
fn says(task: &str, replies: &[&str]) -> String {
    let replies: String = replies.iter().map(|reply| format!("[[conversation.reply]]\n{reply}\n")).collect();
    format!("[[conversation]]\nmatch = \"{task}\"\n{replies}")
}
