//! What agents may spend: steps, tokens and seconds of each, and how many and how deep there may be.

use super::{cells, events, of, result, says, team};
use crate::support::Project;
use serde_json::{Value, json};

const READ: &str = r#"calls = [{ name = "read_file", args = { path = "calc.py" } }]"#;
const LIST: &str = r#"calls = [{ name = "list_files", args = {} }]"#;

#[test]
fn each_layer_has_its_own_cap() {
    let project = team(
        r#"
        [agents.top]
        tools = []
        agents = ["middle"]
        max_steps = 5
        [agents.middle]
        description = "Passes on."
        tools = []
        agents = ["bottom"]
        max_steps = 2
        [agents.bottom]
        description = "Looks."
        tools = ["read_file", "list_files"]
        max_steps = 1
        "#,
    );
    let ask_middle = "[[reply]]\ncalls = [{ name = \"middle\", args = { task = \"m1\" } }]\n";
    let ask_bottom =
        |task: &str| format!("calls = [{{ name = \"bottom\", args = {{ task = \"{task}\" }} }}]");
    let middle =
        says("m1", &[&ask_bottom("b1"), &ask_bottom("b2"), "expect = [\"all your steps\"]\ntext = \"half\""]);
    let bottom = |task: &str| says(task, &[READ, "expect = [\"all your steps\"]\ntext = \"something\""]);
    let script = format!(
        "{ask_middle}[[reply]]\nexpect = [\"ran out of steps\", \"half\"]\ntext = \"Done.\"\n{middle}{}{}",
        bottom("b1"),
        bottom("b2")
    );
    let (code, told) = events(&project, "top", &script, &[]);
    assert_eq!(code, 0, "{told:#?}");
    let ends: Vec<(&Value, &Value)> = of(&told, "agent.finished", "middle:")
        .into_iter()
        .map(|end| (&end["state"], &end["steps"]))
        .collect();
    let out = json!("max_steps");
    // The last answer, which may not act, is a step beyond the cap.
    assert_eq!(ends, [(&out, &json!(2)), (&out, &json!(2)), (&out, &json!(3))]);
    assert_eq!(of(&told, "cell.started", "").len() + of(&told, "tool.started", "middle:").len(), 4);
}

/// Two agents at once, each of which would like to spend 60 tokens a step for ever.
const SPENDERS: &str = r#"
[agents.lead]
tools = []
agents = ["spender"]
token_budget = 100
[agents.spender]
description = "Spends."
tools = ["read_file", "list_files"]
max_steps = 9
"#;

#[test]
fn agents_at_work_side_by_side_cannot_spend_the_same_tokens_twice() {
    let project = team(SPENDERS);
    let spend = |what: &str| format!("usage = {{ input = 50, output = 10 }}\n{what}");
    let greedy = |task: &str| {
        let steps: Vec<String> = (0..8).map(|n| spend(if n % 2 == 0 { READ } else { LIST })).collect();
        says(task, &steps.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let lead = "[[reply]]\ncalls = [{ name = \"spender\", args = { task = [\"one\", \"two\"] } }]\n";
    let (code, told) = events(&project, "lead", &format!("{lead}{}{}", greedy("one"), greedy("two")), &[]);
    assert_eq!(code, 4, "the budget of the one that leads is spent, too: {told:#?}");
    let ends = of(&told, "agent.finished", "spender:");
    assert!(ends.iter().all(|end| end["state"] == "token_budget"), "{ends:#?}");
    for answer in result(&told)["answers"].as_array().unwrap() {
        assert_eq!(answer["note"], "it ran out of tokens; the answer may be incomplete");
    }
    let usage = &told.last().unwrap()["usage"];
    let spent = usage["input"].as_u64().unwrap() + usage["output"].as_u64().unwrap();
    assert_eq!(spent, 120, "each asked once; a step that has begun is paid for");
}

#[test]
fn an_agent_that_runs_out_of_time_is_an_observation() {
    let project = team(
        "[agents.lead]\ntools = []\nagents = [\"slow\"]\n[agents.slow]\ndescription = \"Slow.\"\ntools = []\ntimeout = 0.2\n",
    );
    let lead = "[[reply]]\ncalls = [{ name = \"slow\", args = { task = \"wait\" } }]\n";
    let hang = says("wait", &["fault = { kind = \"hang\" }"]);
    let script = format!("{lead}[[reply]]\nexpect = [\"ran out of time\"]\ntext = \"Too slow.\"\n{hang}");
    let (code, told) = events(&project, "lead", &script, &[]);
    assert_eq!(code, 0, "{told:#?}");
    assert_eq!(of(&told, "agent.finished", "slow:")[0]["state"], "timeout");
}

/// A lead that hands out so many tasks at once, and says how many were done and why the last was not.
fn crowd(project: &Project, tasks: u32) -> Value {
    let code = format!(
        "several = one(['task'] * {tasks})['answers']\n\
         final_answer([len([a for a in several if 'answer' in a]), several[-1].get('error')])"
    );
    let script = format!("{}{}", cells(&[&code]), says("task", &["text = \"ok\""]));
    let (code, told) = events(project, "lead", &script, &[]);
    assert_eq!(code, 0, "{told:#?}");
    told.last().unwrap()["value"].clone()
}

const CROWD: &str = "[agents.lead]\naction = \"code\"\ntools = []\nagents = [\"one\"]\n[agents.one]\ndescription = \"One of many.\"\ntools = []\n";

/// Agents that each call the next, six in all: how many were called, and what the last call came to.
fn chain(settings: &str) -> (usize, Value) {
    let names = ["zero", "a", "b", "c", "d", "e"];
    let mut agents = settings.to_owned();
    let mut script = String::new();
    for pair in names.windows(2) {
        let [name, next] = pair else { panic!() };
        agents += &format!("[agents.{name}]\ndescription = \"{name}\"\ntools = []\nagents = [\"{next}\"]\n");
        let call = format!("calls = [{{ name = \"{next}\", args = {{ task = \"for {next}\" }} }}]");
        let answer = "text = \"as deep as it goes\"";
        script += &if *name == "zero" {
            format!("[[reply]]\n{call}\n[[reply]]\n{answer}\n")
        } else {
            says(&format!("for {name}"), &[&call, answer])
        };
    }
    agents += "[agents.e]\ndescription = \"e\"\ntools = []\n";
    script += &says("for e", &["text = \"as deep as it goes\""]);
    let (code, told) = events(&team(&agents), "zero", &script, &[]);
    assert_eq!(code, 0, "{told:#?}");
    let refused = of(&told, "tool.finished", "").into_iter().find(|end| end["ok"] == false);
    let refused = refused.map(|end| json!([end["tool"], end["result"]["error"]])).unwrap_or_default();
    (of(&told, "agent.started", "a:").len(), refused)
}

#[test]
fn there_may_be_so_many_agents_and_so_deep() {
    assert_eq!(crowd(&team(CROWD), 66), json!([64, "AGENTS_TOO_MANY"]));
    assert_eq!(chain(""), (4, json!(["e", "AGENT_TOO_DEEP"])));
}

#[test]
fn how_many_and_how_deep_is_a_setting() {
    assert_eq!(crowd(&team(&format!("[agent]\nmax_agents = 3\n{CROWD}")), 5), json!([3, "AGENTS_TOO_MANY"]));
    assert_eq!(crowd(&team(&format!("[agent]\nmax_agents = 70\n{CROWD}")), 66), json!([66, null]));
    assert_eq!(chain("[agent]\nmax_depth = 2\n"), (2, json!(["c", "AGENT_TOO_DEEP"])));
    assert_eq!(chain("[agent]\nmax_depth = 5\n"), (5, Value::Null));
}

#[test]
fn a_project_can_tighten_how_many_and_loosen_it_when_trusted() {
    let project = team(&format!("[agent]\nmax_agents = 4\n{CROWD}"));
    project.file("gimlet.toml", "[agent]\nmax_agents = 2\n");
    assert_eq!(crowd(&project, 5), json!([2, "AGENTS_TOO_MANY"]));
    project.file("gimlet.toml", "[agent]\nmax_depth = 1\nmax_agents = 400\n");
    let shown = project.say(&["config"]);
    assert!(shown.stdout.contains("AGENT_MAX_DEPTH            1"), "{}", shown.stdout);
    assert!(shown.stdout.contains("AGENT_MAX_AGENTS           4"), "{}", shown.stdout);
    assert!(
        shown.stderr.contains(
            "gimlet.toml line 3: agent.max_agents would be 400 instead of 4, and the file is not trusted"
        ),
        "{}",
        shown.stderr
    );
    let said = project.say(&["trust", "gimlet.toml", "--yes"]);
    assert!(
        said.stderr.contains("has up to 400 agents at work for a task"),
        "{}{}",
        said.stdout,
        said.stderr
    );
    assert_eq!(crowd(&project, 5), json!([5, null]));
}
