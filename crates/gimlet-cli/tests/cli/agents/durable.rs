//! Agents inside agents survive what happens to the program: a kill, an interrupt, another day.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::{ask, of, says, team, turns, write_agents};
use crate::support::{Project, of_type};
use serde_json::Value;

const TEAM: &str = r#"
[agents.lead]
tools = []
agents = ["maker"]
[agents.maker]
description = "Makes things."
tools = ["run_cmd"]
"#;

/// Two makers at once: each makes something, thinks about it and answers.
fn script(thinking: &str) -> String {
    let lead = "[[reply]]\ncalls = [{ name = \"maker\", args = { task = [\"one\", \"two\"] } }]\n\
                [[reply]]\nexpect = [\"made one\", \"made two\"]\ntext = \"Both.\"\n";
    let maker = |task: &str| {
        let make = format!(
            "calls = [{{ name = \"run_cmd\", args = {{ cmd = \"sh -c 'echo {task} >> {task}.txt'\" }} }}]"
        );
        says(task, &[&make, &format!("{thinking}\ntext = \"made {task}\"")])
    };
    format!("{lead}{}{}", maker("one"), maker("two"))
}

const HANGS: &str = "fault = { kind = \"hang\" }";

fn log(project: &Project) -> Vec<Value> {
    let Ok(mut runs) = std::fs::read_dir(project.home.path().join("runs")) else { return Vec::new() };
    let Some(Ok(run)) = runs.next() else { return Vec::new() };
    let text = std::fs::read_to_string(run.path().join("log.jsonl")).unwrap_or_default();
    let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    whole.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Starts a run whose makers have made something and think about it for ever.
fn started(project: &Project) -> Child {
    working(project, &script(HANGS), 4)
}

/// Starts a run of the lead, and waits until its makers have begun so many steps.
pub(super) fn working(project: &Project, script: &str, steps: usize) -> Child {
    let model = turns(project, script);
    let mut child = project
        .gimlet(&["-m", &model, "--agent", "lead", "--approve", "all", "lead the work"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    for _ in 0..3000 {
        if of(&log(project), "step.started", "maker:").len() == steps {
            return child;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    panic!("the makers never came so far: {:#?}", log(project));
}

/// Both answered, each thing was made once, and nobody began anew.
fn check_whole(project: &Project) {
    turns(project, &script(""));
    let said = project.say(&["resume", "last", "--approve", "all"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "Both.\n"), "{}", said.stderr);
    for task in ["one", "two"] {
        let made = std::fs::read_to_string(project.repo.path().join(format!("{task}.txt"))).unwrap();
        assert_eq!(made, format!("{task}\n"), "a command ran twice");
    }
    let told = project.say(&["runs", "show", "last", "--json"]).events();
    assert_eq!(of(&told, "agent.started", "maker:").len(), 2);
    assert_eq!(of(&told, "agent.finished", "maker:").len(), 2);
    assert_eq!(of_type(&told, "run.started")[0]["agent"], "lead");
}

#[test]
fn a_run_that_is_killed_in_the_middle_of_its_agents_is_carried_on() {
    let project = team(TEAM);
    let mut child = started(&project);
    child.kill().unwrap();
    child.wait().unwrap();
    check_whole(&project);
}

#[test]
fn an_interrupt_stops_everyone_and_can_be_carried_on() {
    let project = team(TEAM);
    let mut child = started(&project);
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let told = log(&project);
    assert_eq!(told.last().unwrap()["type"], "run.suspended");
    assert!(of(&told, "agent.finished", "maker:").is_empty(), "they are open, not failed");
    check_whole(&project);
}

#[test]
fn a_run_goes_on_as_the_agent_it_began_as() {
    let project = team("[agents.lead]\ntools = [\"read_file\"]\nmax_steps = 4\n[agents.other]\ntools = []\n");
    let script = "[[reply]]\ntext = \"Hello.\"\n[[reply]]\nexpect = [\"and now?\"]\ntext = \"Again.\"\n";
    assert_eq!(ask(&project, "lead", script, &[]).stdout, "Hello.\n");
    let said = project.say(&["resume", "last", "and now?", "--agent", "other"]);
    assert_eq!(said.code, 2);
    assert!(
        said.stderr.contains("the run is the agent `lead`'s; it cannot go on as `other`"),
        "{}",
        said.stderr
    );
    let said = project.say(&["resume", "last", "and now?", "--json"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let told = project.say(&["runs", "show", "last", "--json"]).events();
    assert!(of_type(&told, "warning").is_empty(), "its tools are the same: {told:#?}");
    assert_eq!(
        of_type(&told, "run.resumed")[0]["limits"]["max_steps"],
        5,
        "one step was taken, four more may be"
    );

    write_agents(&project, "");
    let said = project.say(&["resume", "last", "still there?"]);
    assert_eq!(said.code, 2);
    assert!(said.stderr.contains("there is no agent `lead`"), "{}", said.stderr);
}

#[test]
fn a_named_conversation_keeps_its_agent() {
    let project = team("[agents.lead]\ntools = []\n");
    let script = "[[reply]]\ntext = \"Hello.\"\n[[reply]]\ntext = \"Again.\"\n";
    assert_eq!(ask(&project, "lead", script, &["--session", "mine"]).stdout, "Hello.\n");
    assert_eq!(ask(&project, "lead", script, &["--session", "mine"]).stdout, "Again.\n");
    let model = turns(&project, &format!("{script}[[reply]]\ntext = \"Still.\"\n"));
    let said = project.say(&["-m", &model, "--session", "mine", "more"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "Still.\n"), "{}", said.stderr);
    let told = project.say(&["runs", "show", "last", "--json"]).events();
    assert_eq!(of_type(&told, "run.started").len(), 1);
}
