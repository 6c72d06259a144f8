//! Questions of agents inside agents: who asks is shown, and a yes that comes days later finds its way back.

use super::{ask, cells, events, of, says, team};
use crate::support::{Project, of_type};
use serde_json::Value;

const TEAM: &str = r#"
[agents.lead]
action = "code"
tools = []
agents = ["manager"]
[agents.manager]
description = "Manages."
action = "code"
tools = []
agents = ["maker"]
[agents.maker]
description = "Makes things."
tools = ["run_cmd"]
"#;

const MAKE: &str = r#"calls = [{ name = "run_cmd", args = { cmd = "sh -c 'echo made >> made.txt'" } }]"#;

/// A leading agent whose code calls one whose code calls one that runs a command.
fn script() -> String {
    let lead = cells(&["before = 20\nfinal_answer(before + manager('manage it')['answer'])"]);
    let manager =
        "text = '''\n```python\nsaid = maker('make it')['answer']\nfinal_answer(len(said))\n```\n'''";
    format!("{lead}{}{}", says("manage it", &[manager]), says("make it", &[MAKE, "text = \"made\""]))
}

fn waiting(project: &Project) -> Value {
    let waiting: Vec<Value> = serde_json::from_str(&project.say(&["approvals", "--json"]).stdout).unwrap();
    assert_eq!(waiting.len(), 1, "{waiting:#?}");
    waiting[0]["request"].clone()
}

fn made(project: &Project) -> String {
    std::fs::read_to_string(project.repo.path().join("made.txt")).unwrap_or_default()
}

#[test]
fn a_grandchild_inside_code_asks_and_is_carried_on_by_a_yes() {
    let project = team(TEAM);
    let said = ask(&project, "lead", &script(), &[]);
    assert_eq!(said.code, 3, "{}", said.stderr);
    assert!(said.stderr.contains("approval needed: run_cmd (asked by manager → maker)"), "{}", said.stderr);
    let request = waiting(&project);
    assert_eq!(request["asker"], "manager:cell_0_0/maker:cell_0_0");
    assert!(project.say(&["approvals"]).stdout.contains("(asked by manager → maker)"));
    assert_eq!(made(&project), "", "nothing is done before the yes");

    assert_eq!(project.say(&["approve", request["id"].as_str().unwrap()]).code, 0);
    let said = project.say(&["resume", "last"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "24\n"), "{}", said.stderr);
    assert_eq!(made(&project), "made\n");
    let told = project.say(&["runs", "show", "last", "--json"]).events();
    assert_eq!(of(&told, "agent.started", "manager:").len(), 2, "nobody began anew");
    assert_eq!(of_type(&told, "model.message").len(), 4, "no model was asked twice");
}

#[test]
fn a_no_reaches_the_agent_that_asked() {
    let project = team(TEAM);
    let script = script().replace("text = \"made\"", "expect = [\"not today\"]\ntext = \"no\"");
    assert_eq!(ask(&project, "lead", &script, &[]).code, 3);
    let id = waiting(&project)["id"].as_str().unwrap().to_owned();
    assert_eq!(project.say(&["deny", &id, "--feedback", "not today"]).code, 0);
    let said = project.say(&["resume", "last"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "22\n"), "{}", said.stderr);
    assert_eq!(made(&project), "");
}

#[test]
fn an_agent_can_be_stricter_than_its_run_and_never_looser() {
    let strict = |approve: &str| {
        TEAM.replace("tools = [\"run_cmd\"]", &format!("tools = [\"run_cmd\"]\napprove = \"{approve}\""))
    };
    let project = team(&strict("ask"));
    let said = ask(&project, "lead", &script(), &["--approve", "all"]);
    assert_eq!(said.code, 3, "a person is asked: {}", said.stderr);
    assert_eq!(waiting(&project)["asking"], "person");

    let project = team(&strict("never"));
    let refused = script()
        .replace("text = \"made\"", "expect = [\"APPROVAL_DENIED\", \"needs an approval\"]\ntext = \"no\"");
    let (code, told) = events(&project, "lead", &refused, &["--approve", "all"]);
    assert_eq!((code, made(&project).as_str()), (0, ""), "{told:#?}");
    assert_eq!(of(&told, "tool.finished", "manager:cell_0_0/")[0]["result"]["error"], "APPROVAL_DENIED");

    // What holds for an agent holds for those it calls.
    let manager =
        TEAM.replace("description = \"Manages.\"", "description = \"Manages.\"\napprove = \"never\"");
    let project = team(&manager);
    let (code, _) = events(&project, "lead", &refused, &["--approve", "all"]);
    assert_eq!((code, made(&project).as_str()), (0, ""));

    let project = team(&strict("ask"));
    let said = script().replace("text = \"made\"", "expect = [\"APPROVAL_DENIED\"]\ntext = \"no\"");
    let (code, told) = events(&project, "lead", &said, &["--approve", "never"]);
    assert_eq!((code, made(&project).as_str()), (0, ""), "{told:#?}");
}
