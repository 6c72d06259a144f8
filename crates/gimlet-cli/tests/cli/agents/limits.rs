//! What agents may spend: steps, tokens and seconds of each, and how many and how deep there may be.

use super::{cells, events, of, result, says, team};
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

#[test]
fn there_may_be_so_many_agents_and_so_deep() {
    let project = team(
        "[agents.lead]\naction = \"code\"\ntools = []\nagents = [\"one\"]\n[agents.one]\ndescription = \"One of many.\"\ntools = []\n",
    );
    let code = "several = one(['task'] * 66)['answers']\n\
                print(one('task') if False else '')\n\
                final_answer([len([a for a in several if 'answer' in a]), several[-1]['error']])";
    let script = format!("{}{}", cells(&[code]), says("task", &["text = \"ok\""]));
    let (code, told) = events(&project, "lead", &script, &[]);
    assert_eq!(code, 0, "{told:#?}");
    assert_eq!(told.last().unwrap()["value"], json!([64, "AGENTS_TOO_MANY"]));

    let names = ["zero", "a", "b", "c", "d", "e"];
    let mut agents = String::new();
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
    let project = team(&agents);
    let (code, told) = events(&project, "zero", &script, &[]);
    assert_eq!(code, 0, "{told:#?}");
    let refused = of(&told, "tool.finished", "a:").into_iter().find(|end| end["ok"] == false).unwrap();
    assert_eq!((&refused["tool"], &refused["result"]["error"]), (&json!("e"), &json!("AGENT_TOO_DEEP")));
    assert_eq!(of(&told, "agent.started", "a:").len(), 4);
}
