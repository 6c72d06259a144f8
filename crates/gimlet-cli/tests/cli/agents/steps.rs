//! Steps are drawn from the caller's: what an agent takes is gone for everyone above it, whoever works beside it and
//! whatever happens to the program.

use super::durable::working;
use super::{ask, cells, events, of, result, says, team, turns};
use crate::support::of_type;
use serde_json::{Value, json};

const LIST: &str = r#"calls = [{ name = "list_files", args = {} }]"#;
const LAST: &str = "expect = [\"all your steps\"]\ntext = \"That is all.\"";
const NOTE: &str = "the steps it shares with others are used up; the answer may be incomplete";

/// An agent that would look around for ever.
fn restless(task: &str) -> String {
    let read = |n| {
        format!("calls = [{{ name = \"read_file\", args = {{ path = \"calc.py\", start_line = {n} }} }}]")
    };
    let steps: Vec<String> =
        (0..40).map(|n| if n % 2 == 0 { read(n + 1) } else { LIST.to_owned() }).collect();
    says(task, &steps.iter().map(String::as_str).collect::<Vec<_>>())
}

fn asks(agent: &str, task: &str) -> String {
    format!("calls = [{{ name = \"{agent}\", args = {{ task = {task} }} }}]")
}

/// How an agent ended: why, its own steps and those below it.
fn end(finished: &Value) -> (&str, u64, u64) {
    let below = finished.get("steps_below").map_or(0, |steps| steps.as_u64().unwrap());
    (finished["state"].as_str().unwrap(), finished["steps"].as_u64().unwrap(), below)
}

/// Three layers; the bottom is restless.
fn layers(top: &str, middle: &str) -> String {
    format!(
        r#"
        [agents.lead]
        tools = []
        agents = ["middle"]
        {top}
        [agents.middle]
        description = "Passes on."
        tools = []
        agents = ["bottom"]
        {middle}
        [agents.bottom]
        description = "Looks."
        tools = ["read_file", "list_files"]
        "#
    )
}

#[test]
fn what_the_lowest_takes_is_gone_for_everyone_above() {
    let project = team(&layers("step_budget = 6", ""));
    let script = format!(
        "[[reply]]\n{}\n[[reply]]\n{LAST}\n{}{}",
        asks("middle", "\"m1\""),
        says("m1", &[&asks("bottom", "\"b1\"")]),
        restless("b1")
    );
    let (code, told) = events(&project, "lead", &script, &[]);
    assert_eq!(code, 4, "{told:#?}");
    let ends: Vec<_> = of(&told, "agent.finished", "middle:").into_iter().map(end).collect();
    assert_eq!(ends, [("step_budget", 4, 0), ("step_budget", 1, 4)], "one step was the lead's");
    assert_eq!(result(&told)["note"], NOTE);
    // Only the agent that leads may say a last word on top.
    assert_eq!(end(told.last().unwrap()), ("step_budget", 2, 5));
    assert_eq!(told.last().unwrap()["answer"], "That is all.");
}

#[test]
fn an_agent_may_have_less_than_its_caller_has_left() {
    let project = team(&layers("", "step_budget = 3"));
    let script = format!(
        "[[reply]]\n{}\n[[reply]]\nexpect = [\"That is all.\", \"are used up\"]\ntext = \"Enough.\"\n{}{}",
        asks("middle", "\"m1\""),
        says("m1", &[&asks("bottom", "\"b1\""), LAST]),
        restless("b1")
    );
    let (code, told) = events(&project, "lead", &script, &[]);
    assert_eq!(code, 0, "{told:#?}");
    let ends: Vec<_> = of(&told, "agent.finished", "middle:").into_iter().map(end).collect();
    // Its caller has steps left, so it may say its last word; the one below it may not.
    assert_eq!(ends, [("step_budget", 2, 0), ("step_budget", 2, 2)]);
    assert_eq!(end(told.last().unwrap()), ("answered", 2, 4));
}

const PAIR: &str = r#"
[agents.lead]
tools = []
agents = ["maker"]
step_budget = 8
[agents.maker]
description = "Makes things."
tools = ["run_cmd", "read_file", "list_files"]
"#;

/// A lead that has two makers work at once and then says its last word, and then goes on if it may.
fn pair(maker: impl Fn(&str) -> String) -> String {
    let lead = format!(
        "[[reply]]\n{}\n[[reply]]\n{LAST}\n[[reply]]\nexpect = [\"the limit was raised\"]\n{}\n[[reply]]\ntext = \"Now it is.\"\n",
        asks("maker", "[\"one\", \"two\"]"),
        asks("maker", "\"three\""),
    );
    let third = says("three", &["text = \"made\""]);
    format!("{lead}{}{}{third}", maker("one"), maker("two"))
}

#[test]
fn agents_side_by_side_cannot_take_the_same_step_twice() {
    let project = team(PAIR);
    let said = ask(&project, "lead", &pair(restless), &[]);
    assert_eq!((said.code, said.stdout.as_str()), (4, "That is all.\n"), "{}", said.stderr);
    assert!(said.stderr.contains("the run reached the step budget"), "{}", said.stderr);
    assert!(said.stderr.contains("2 steps and 7 of agents below, "), "{}", said.stderr);
    assert!(said.stderr.contains(" --step-budget 18 carries on"), "{}", said.stderr);
    let told = project.say(&["runs", "show", "last", "--json"]).events();
    assert_eq!(of(&told, "step.started", "maker:").len(), 7, "eight in all, one of them the lead's");
    for answer in result(&told)["answers"].as_array().unwrap() {
        assert_eq!(answer["note"], NOTE);
    }

    let said = project.say(&["resume", "last", "--step-budget", "12", "--json"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert_eq!(end(said.events().last().unwrap()), ("answered", 4, 8));
    // A new task of the same conversation has as much again.
    let said = project.say(&["resume", "last", "more", "--json"]);
    assert_eq!(of_type(&said.events(), "run.resumed")[0]["limits"]["step_budget"], 12 + 8, "{}", said.stderr);
}

#[test]
fn a_run_that_is_killed_goes_on_with_the_steps_that_are_left() {
    let project = team(PAIR);
    let make = "calls = [{ name = \"run_cmd\", args = { cmd = \"sh -c true\" } }]";
    let thinking = pair(|task| says(task, &[make, "fault = { kind = \"hang\" }"]));
    let mut child = working(&project, &thinking, 4);
    child.kill().unwrap();
    child.wait().unwrap();
    turns(&project, &pair(restless));
    let said = project.say(&["resume", "last", "--approve", "all", "--json"]);
    assert_eq!(said.code, 4, "{}", said.stderr);
    assert_eq!(end(said.events().last().unwrap()), ("step_budget", 2, 7));
    let told = project.say(&["runs", "show", "last", "--json"]).events();
    assert_eq!(of(&told, "step.started", "maker:").len(), 7, "none was lost and none came on top");
    assert_eq!(of(&told, "agent.started", "maker:").len(), 2);
}

#[test]
fn without_a_word_a_run_has_ten_times_the_steps_of_who_leads_it() {
    let project = team(
        r#"
        [agents.lead]
        action = "code"
        tools = []
        agents = ["maker"]
        max_steps = 2
        [agents.maker]
        description = "Looks."
        tools = ["read_file", "list_files"]
        max_steps = 30
        "#,
    );
    let script = format!("{}{}", cells(&["final_answer(maker('look')['note'])"]), restless("look"));
    let (code, told) = events(&project, "lead", &script, &[]);
    // An answer that is there already needs no step.
    assert_eq!((code, &told.last().unwrap()["answer"]), (0, &json!(NOTE)), "{told:#?}");
    assert_eq!(end(told.last().unwrap()), ("answered", 1, 19));
}
