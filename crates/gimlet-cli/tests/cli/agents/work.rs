//! Agents that call agents: in both formats, several at once, with answers of a form, and when they fail.

use super::{ask, cells, events, of, result, says, team};
use gimlet_testkit::OtlpCollector;
use serde_json::{Value, json};

const TEAM: &str = r#"
[agents.lead]
tools = []
agents = ["reader"]
[agents.coder]
action = "code"
tools = []
agents = ["reader"]
[agents.reader]
description = "Reads code."
tools = ["read_file"]
max_steps = 3
"#;

const READ: &str = r#"calls = [{ name = "read_file", args = { path = "calc.py" } }]"#;

/// A reply that calls agents.
fn calls(calls: &[(&str, &str)]) -> String {
    let calls: Vec<String> = calls
        .iter()
        .map(|(name, task)| format!("{{ name = \"{name}\", args = {{ task = \"{task}\" }} }}"))
        .collect();
    format!("[[reply]]\ncalls = [{}]\n", calls.join(", "))
}

#[test]
fn an_agent_is_a_tool_of_another_with_a_conversation_of_its_own() {
    let project = team(TEAM);
    let child = says(
        "find the bug",
        &[READ, "expect = [\"return a - b\"]\ntext = \"line 2\"\nusage = { input = 30, output = 7 }"],
    );
    let script = format!(
        "{}[[reply]]\nexpect = [\"line 2\"]\ntext = \"It is in line 2.\"\n{child}",
        calls(&[("reader", "find the bug")])
    );
    let (code, told) = events(&project, "lead", &script, &[]);
    assert_eq!(code, 0);
    assert_eq!(result(&told), &json!({"answer": "line 2"}));
    let path = of(&told, "agent.started", "reader:")[0]["path"].as_str().unwrap();
    assert_eq!(of(&told, "tool.finished", path).len(), 1, "what it does carries its path");
    let started = of(&told, "agent.started", path)[0];
    assert_eq!((&started["task"], &started["tools"]), (&"find the bug".into(), &json!(["read_file"])));
    let finished = told.last().unwrap();
    assert_eq!((&finished["type"], &finished["usage"]["input"]), (&"run.finished".into(), &30.into()));
    assert_eq!(finished["work"]["files_read"], json!(["calc.py"]), "what it did counts for its caller");

    let said = ask(&project, "lead", &script, &[]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "It is in line 2.\n"), "{}", said.stderr);
    assert!(said.stderr.contains("  reader begins: find the bug\n"), "{}", said.stderr);
    assert!(said.stderr.contains("  reader is done: line 2\n"), "{}", said.stderr);
}

#[test]
fn in_code_an_agent_is_a_function() {
    let project = team(TEAM);
    let code =
        "found = reader('find the bug', context='look at calc.py')\nfinal_answer(found['answer'].upper())";
    let child = says("find the bug", &["expect = [\"look at calc.py\"]\ntext = \"line 2\""]);
    let said = ask(&project, "coder", &format!("{}{child}", cells(&[code])), &[]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "LINE 2\n"), "{}", said.stderr);
}

/// Both were at work at the same time, on their own.
fn check_side_by_side(told: &[Value], paths: [&str; 2]) {
    let at = |kind: &str, path: &str| {
        told.iter().position(|event| event["type"] == kind && event["path"] == path).unwrap()
    };
    for (one, other) in [(paths[0], paths[1]), (paths[1], paths[0])] {
        assert!(at("agent.started", one) < at("agent.finished", other), "{one} {other}");
        assert_eq!(of(told, "agent.started", one).len(), 1);
    }
}

/// Two tasks that take a while.
fn slow_pair() -> String {
    let slow = |task: &str| {
        says(task, &[&format!("delay_ms = 50\n{READ}"), &format!("delay_ms = 50\ntext = \"{task} is done\"")])
    };
    format!("{}{}", slow("first"), slow("second"))
}

#[test]
fn the_same_agent_twice_at_once_is_two_agents_in_the_tools_format() {
    let project = team(TEAM);
    let lead = calls(&[("reader", "first"), ("reader", "second")]);
    let script = format!("{lead}[[reply]]\nexpect = [\"second is done\"]\ntext = \"Both.\"\n{}", slow_pair());
    let (code, told) = events(&project, "lead", &script, &[]);
    assert_eq!(code, 0, "{told:#?}");
    let paths: Vec<&str> =
        of(&told, "agent.started", "reader:").iter().map(|event| event["path"].as_str().unwrap()).collect();
    check_side_by_side(&told, [paths[0], paths[1]]);
    let answers: Vec<&Value> = told
        .iter()
        .filter(|event| event["type"] == "tool.finished" && event.get("path").is_none())
        .map(|event| &event["result"]["answer"])
        .collect();
    assert_eq!(answers, [&json!("first is done"), &json!("second is done")], "in the order they were asked");
}

#[test]
fn the_same_agent_twice_at_once_is_two_agents_in_the_code_format() {
    let project = team(TEAM);
    let code = "both = reader(['first', 'second'])['answers']\nfinal_answer([one['answer'] for one in both])";
    let (code, told) = events(&project, "coder", &format!("{}{}", cells(&[code]), slow_pair()), &[]);
    assert_eq!(code, 0, "{told:#?}");
    check_side_by_side(&told, ["reader:cell_0_0.0", "reader:cell_0_0.1"]);
    assert_eq!(told.last().unwrap()["value"], json!(["first is done", "second is done"]));
}

#[test]
fn a_child_that_fails_is_an_observation_and_takes_nobody_along() {
    let project = team(TEAM);
    let broken = says("break", &["fault = { kind = \"status\", status = 401 }"]);
    let lead = calls(&[("reader", "break")]);
    let script = format!("{lead}[[reply]]\nexpect = [\"AGENT_FAILED\"]\ntext = \"Alone then.\"\n{broken}");
    let (code, told) = events(&project, "lead", &script, &[]);
    assert_eq!(code, 0, "{told:#?}");
    assert_eq!(result(&told)["context"], json!({"cause": "MODEL_AUTH", "agent": "reader"}));

    let code = "try:\n    reader('break')\nexcept ToolError as error:\n    final_answer(error.error)";
    let said = ask(&project, "coder", &format!("{}{broken}", cells(&[code])), &[]);
    assert_eq!(said.stdout, "AGENT_FAILED\n", "{}", said.stderr);

    let code = "several = reader(['break', 'fine'])['answers']\nfinal_answer([several[0]['error'], several[1]['answer']])";
    let fine = says("fine", &["text = \"fine\""]);
    let said = ask(&project, "coder", &format!("{}{broken}{fine}", cells(&[code])), &[]);
    assert_eq!(said.stdout, "[\"AGENT_FAILED\",\"fine\"]\n", "{}", said.stderr);
}

const TYPED: &str = r#"
[agents.lead]
tools = []
agents = ["finder"]
[agents.finder]
description = "Finds a line."
tools = ["read_file"]
summary = true
output = { type = "object", properties = { name = { type = "string" }, line = { type = "integer" } }, required = ["name", "line"] }
"#;

#[test]
fn an_answer_of_a_form_is_held_to_it() {
    let project = team(TYPED);
    let lead = calls(&[("finder", "find it")]);
    let child = says(
        "find it",
        &[
            READ,
            "text = \"It is in line 2.\"",
            "expect = [\"does not have the form\", \"it holds no JSON\"]\ntext = '{\"name\": \"calc.py\", \"line\": \"two\"}'",
            "expect = [\"`line`\"]\ntext = '''```json\n{\"name\": \"calc.py\", \"line\": 2}\n```'''",
        ],
    );
    let script = format!("{lead}[[reply]]\nexpect = ['\"line\":2']\ntext = \"Two.\"\n{child}");
    let (code, told) = events(&project, "lead", &script, &[]);
    assert_eq!(code, 0, "{told:#?}");
    let found = result(&told);
    assert_eq!(found["answer"], json!({"name": "calc.py", "line": 2}));
    assert_eq!(found["work"]["files_read"], json!(["calc.py"]), "the summary is the log's: {found}");
    assert_eq!(found["steps"], 4);
    let system = of(&told, "agent.started", "finder:")[0]["system"].as_str().unwrap();
    assert!(system.contains("must be JSON and nothing else, of this schema"), "{system}");

    let wrong = "text = \"It is in line 2.\"";
    let child = says("find it", &[wrong, wrong, wrong]);
    let script = format!("{lead}[[reply]]\nexpect = [\"AGENT_FAILED\"]\ntext = \"No line.\"\n{child}");
    let (code, told) = events(&project, "lead", &script, &[]);
    assert_eq!(code, 0, "{told:#?}");
    assert_eq!(result(&told)["context"]["cause"], "ANSWER_MISSHAPEN");
    assert_eq!(of(&told, "feedback", "finder:").len(), 2, "it is corrected twice");
}

#[test]
fn the_agent_that_leads_is_held_to_its_form_as_well() {
    let project = team(TYPED);
    let wrong = "[[reply]]\ntext = \"It is in line 2.\"\n";
    let right = "[[reply]]\ntext = '{\"name\": \"calc.py\", \"line\": 2}'\n";
    let said = ask(&project, "finder", &format!("{wrong}{wrong}{right}"), &[]);
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (0, "{\"name\":\"calc.py\",\"line\":2}\n"),
        "{}",
        said.stderr
    );
    let said = ask(&project, "finder", &format!("{wrong}{wrong}{wrong}"), &[]);
    assert_eq!(said.code, 1);
    assert!(said.stderr.contains("does not have the form that is asked for"), "{}", said.stderr);
}

#[test]
fn spans_of_agents_at_work_side_by_side_are_below_the_call() {
    let project = team(TEAM);
    let collector = OtlpCollector::start();
    let code = "final_answer(len(reader(['first', 'second'])['answers']))";
    let model = project.script(&format!("order = \"turns\"\n{}{}", cells(&[code]), slow_pair()));
    let said = project
        .gimlet(&["-m", &model, "--agent", "coder", "-q", "lead the work"])
        .env("PHOENIX_ENABLED", "true")
        .env("PHOENIX_ENDPOINT", collector.endpoint())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(said.stdout).unwrap(), "2\n");
    let spans = collector.spans();
    let runs: Vec<_> = spans.iter().filter(|span| span.name == "agent.run").collect();
    let mut paths: Vec<String> = runs.iter().map(|span| span.text("agent.path")).collect();
    paths.sort();
    assert_eq!(paths, ["", "reader:cell_0_0.0", "reader:cell_0_0.1"]);
    let call = collector.only("tool_wrapped.reader");
    let below = runs.iter().filter(|span| span.parent.as_ref() == Some(&call.id)).count();
    assert_eq!(below, 2, "{}", collector.tree());
    assert!(runs.iter().all(|span| span.trace == call.trace));
}
