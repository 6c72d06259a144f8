//! Traces of the real binary in a real Phoenix, read back over its own interface. Needs its address in
//! `GIMLET_TEST_PHOENIX`, such as `http://127.0.0.1:6006`; with `GIMLET_TEST_PHOENIX_PAGE`, the address of the demo's
//! trace page is written to that file.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    dead_code,
    reason = "a test fails by panicking; support is shared"
)]

#[path = "cli/support.rs"]
mod support;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::Project;

const LOOK: &str = r#"
order = "turns"
[[reply]]
text = "Let me look."
calls = [{ name = "read_file", args = { path = "calc.py" } }, { name = "read_file", args = { path = "nothing.py" } }]
usage = { input = 100, output = 20, cached = 60 }
[[reply]]
calls = [{ name = "run_cmd", args = { cmd = "rm -rf /" } }]
usage = { input = 150, output = 10 }
[[reply]]
text = "`add` subtracts."
usage = { input = 200, output = 5 }
"#;

const CODE: &str = r#"
order = "turns"
[[reply]]
text = """
```python
text = read_file(path="calc.py")
print(len(str(text)) > 0)
```
"""
usage = { input = 50, output = 9 }
[[reply]]
text = """
```python
1 / 0
```
"""
[[reply]]
text = "It subtracts."
"#;

/// A Phoenix, and one project in it.
struct Phoenix {
    url: String,
    project: String,
    client: reqwest::blocking::Client,
}

impl Phoenix {
    fn new(project: &str) -> Self {
        let url = std::env::var("GIMLET_TEST_PHOENIX")
            .unwrap_or_else(|_| panic!("GIMLET_TEST_PHOENIX must hold the address of a running Phoenix"));
        let client = reqwest::blocking::Client::builder().no_proxy().build().unwrap();
        let project = format!("{project}-{}", std::process::id());
        Phoenix { url: url.trim_end_matches('/').into(), project, client }
    }

    fn gimlet(&self, project: &Project, args: &[&str]) -> String {
        let output = project
            .gimlet(args)
            .env("PHOENIX_ENABLED", "true")
            .env("PHOENIX_ENDPOINT", format!("{}/v1/traces", self.url))
            .env("PHOENIX_PROJECT_NAME", &self.project)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The project's spans, once the root is among them: it ends last, so the others are there too.
    fn spans(&self) -> Vec<Value> {
        let patience = Instant::now() + Duration::from_secs(60);
        loop {
            let address = format!("{}/v1/projects/{}/spans?limit=1000", self.url, self.project);
            let body: Value =
                self.client.get(address).send().and_then(|answer| answer.json()).unwrap_or_default();
            let spans = body["data"].as_array().cloned().unwrap_or_default();
            let whole = |span: &Value| {
                span["parent_id"].is_null()
                    || spans.iter().any(|other| other["context"]["span_id"] == span["parent_id"])
            };
            if spans.iter().any(|span| span["parent_id"].is_null()) && spans.iter().all(whole) {
                return spans;
            }
            assert!(Instant::now() < patience, "the spans did not arrive: {body:#}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn ask(&self, query: &str) -> Value {
        let answer =
            self.client.post(format!("{}/graphql", self.url)).json(&json!({ "query": query })).send();
        answer.unwrap().json::<Value>().unwrap()["data"].clone()
    }
}

/// Every span as `path of names [KIND] status`, in no order of time.
fn tree(spans: &[Value]) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let by_id: BTreeMap<String, &Value> =
        spans.iter().map(|span| (text(&span["context"]["span_id"]), span)).collect();
    let short = |span: &Value| text(&span["name"]).split("/").next().unwrap_or_default().to_owned();
    let mut lines: Vec<String> = spans
        .iter()
        .map(|span| {
            let mut names = vec![short(span)];
            let mut at = text(&span["parent_id"]);
            while let Some(parent) = by_id.get(&at) {
                names.push(short(parent));
                at = text(&parent["parent_id"]);
            }
            names.reverse();
            let status = match span["status_code"].as_str() {
                Some("ERROR") => format!(" {}", text(&span["status_message"])),
                _ => String::new(),
            };
            format!("{} [{}]{status}", names.join(" > "), text(&span["span_kind"]))
        })
        .collect();
    lines.sort();
    lines
}

#[test]
#[ignore = "needs a running Phoenix"]
fn the_demo_is_one_trace_with_its_tokens() {
    let phoenix = Phoenix::new("demo");
    phoenix.gimlet(&Project::new(), &["demo", "--trace-content"]);
    let spans = phoenix.spans();
    let lines = tree(&spans);
    assert_eq!(lines.iter().filter(|line| *line == "agent.run [AGENT]").count(), 1, "{lines:#?}");
    for expected in [
        "agent.run > step 1 > llm scripted [LLM]",
        "agent.run > step 2 > tool_wrapped.read_file [TOOL]",
        "agent.run > step 3 > tool_wrapped.propose_patch > sandbox.validate_patch [CHAIN]",
        "agent.run > step 4 > tool_wrapped.apply_patch > approval.wait [GUARDRAIL]",
    ] {
        assert!(lines.iter().any(|line| line == expected), "{expected} is not in {lines:#?}");
    }
    let read: u64 =
        spans.iter().filter_map(|span| span["attributes"]["llm.token_count.prompt"].as_u64()).sum();
    let found = phoenix.ask(&format!(
        "{{ getProjectByName(name: \"{}\") {{ id tokenCountPrompt traceCount recordCount }} }}",
        phoenix.project
    ));
    let found = &found["getProjectByName"];
    assert!(read > 0);
    assert_eq!(found["tokenCountPrompt"].as_f64(), Some(read as f64), "no token is counted twice");
    assert_eq!((&found["traceCount"], found["recordCount"].as_u64()), (&json!(1), Some(spans.len() as u64)));
    if let Some(page) = std::env::var_os("GIMLET_TEST_PHOENIX_PAGE") {
        let trace = spans[0]["context"]["trace_id"].as_str().unwrap();
        let address = format!("{}/projects/{}/traces/{trace}", phoenix.url, found["id"].as_str().unwrap());
        std::fs::write(page, address).unwrap();
    }
}

#[test]
#[ignore = "needs a running Phoenix"]
fn kinds_attributes_tokens_and_errors_arrive() {
    let phoenix = Phoenix::new("look");
    let project = Project::new();
    let model = project.script(LOOK);
    phoenix.gimlet(&project, &["-m", &model, "--trace-content", "what is wrong?"]);
    let spans = phoenix.spans();
    assert_eq!(
        tree(&spans),
        [
            "agent.run > guided.aim > llm scripted [LLM]",
            "agent.run > guided.aim [CHAIN]",
            "agent.run > step 1 > llm scripted [LLM]",
            "agent.run > step 1 > tool_wrapped.read_file [TOOL]",
            "agent.run > step 1 > tool_wrapped.read_file [TOOL] FILE_NOT_FOUND",
            "agent.run > step 1 [CHAIN]",
            "agent.run > step 2 > llm scripted [LLM]",
            "agent.run > step 2 > tool_wrapped.run_cmd [TOOL] COMMAND_DENIED",
            "agent.run > step 2 [CHAIN]",
            "agent.run > step 3 > llm scripted [LLM]",
            "agent.run > step 3 [CHAIN]",
            "agent.run [AGENT]",
        ]
    );
    let mut models: Vec<&Value> = spans.iter().filter(|span| span["span_kind"] == "LLM").collect();
    models.sort_by_key(|span| span["start_time"].as_str().map(str::to_owned));
    let first = &models[0]["attributes"];
    assert_eq!(first["llm.token_count.prompt"], 100);
    assert_eq!(first["llm.token_count.completion"], 20);
    assert_eq!(first["llm.token_count.prompt_details.cache_read"], 60);
    assert_eq!(first["llm.input_messages.1.message.content"], "what is wrong?", "{first:#}");
    assert_eq!(first["llm.output_messages.0.message.tool_calls.0.tool_call.function.name"], "read_file");
    let refused = spans.iter().find(|span| span["name"] == "tool_wrapped.run_cmd").unwrap();
    assert_eq!(refused["attributes"]["policy.verdict"], "deny");
    assert_eq!(refused["attributes"]["tool.name"], "run_cmd");
    let run = spans.iter().find(|span| span["name"] == "agent.run").unwrap();
    assert_eq!(run["attributes"]["output.value"], "`add` subtracts.");

    let again = phoenix.gimlet(&project, &["runs", "trace", "last", "--trace-content"]);
    assert!(again.starts_with(&format!("sent {} spans", spans.len())), "{again}");
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(phoenix.spans().len(), spans.len(), "what Phoenix has it does not keep twice");
}

#[test]
#[ignore = "needs a running Phoenix"]
fn code_and_what_it_calls_arrive_from_a_log_too() {
    let phoenix = Phoenix::new("code");
    let project = Project::new();
    let model = project.script(CODE);
    let args = ["-m", &model, "--action", "code", "--no-trace", "what is wrong?"];
    phoenix.gimlet(&project, &args);
    phoenix.gimlet(&project, &["runs", "trace", "last"]);
    assert_eq!(
        tree(&phoenix.spans()),
        [
            "agent.run > guided.aim > llm scripted [LLM]",
            "agent.run > guided.aim [CHAIN]",
            "agent.run > step 1 > llm scripted [LLM]",
            "agent.run > step 1 > python.cell > tool_wrapped.read_file [TOOL]",
            "agent.run > step 1 > python.cell [CHAIN]",
            "agent.run > step 1 [CHAIN]",
            "agent.run > step 2 > llm scripted [LLM]",
            "agent.run > step 2 > python.cell [CHAIN] ZeroDivisionError",
            "agent.run > step 2 [CHAIN]",
            "agent.run > step 3 > llm scripted [LLM]",
            "agent.run > step 3 [CHAIN]",
            "agent.run [AGENT]",
        ]
    );
}
