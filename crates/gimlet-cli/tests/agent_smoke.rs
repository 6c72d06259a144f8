//! The six criteria an agent of this kind is judged by, through the real binary. The sixth is that this suite is green.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    dead_code,
    reason = "a test fails by panicking; support is shared"
)]

#[path = "cli/support.rs"]
mod support;

use gimlet_testkit::OtlpCollector;
use serde_json::json;
use support::{Project, of_type};

const FIVE_STEPS: &str = r#"
order = "turns"
[[reply]]
calls = [{ name = "repo_info", args = {} }]
[[reply]]
calls = [{ name = "list_files", args = { glob = "**/*" } }]
[[reply]]
calls = [{ name = "rg_search", args = { pattern = "def " } }]
[[reply]]
calls = [{ name = "read_file", args = { path = "calc.py" } }]
[[reply]]
text = "`add` subtracts."
"#;

fn call(name: &str, args: &str) -> String {
    format!(
        "order = \"turns\"\n[[reply]]\ncalls = [{{ name = \"{name}\", args = {args} }}]\n[[reply]]\ntext = \"over\"\n"
    )
}

#[test]
fn a_task_of_five_steps_is_done() {
    let (code, events) = Project::new().events(FIVE_STEPS, &[]);
    let finished = of_type(&events, "run.finished")[0];
    assert_eq!((code, &finished["steps"], &finished["state"]), (0, &json!(5), &json!("answered")));
    assert!(of_type(&events, "tool.finished").iter().all(|event| event["ok"] == true), "{events:#?}");
}

#[test]
fn every_tool_call_is_a_span_with_its_attributes() {
    let (project, collector) = (Project::new(), OtlpCollector::start());
    let model = project.script(FIVE_STEPS);
    let output = project
        .gimlet(&["--model", &model, "what is wrong?"])
        .env("PHOENIX_ENDPOINT", collector.endpoint())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let spans = collector.spans();
    for tool in ["repo_info", "list_files", "rg_search", "read_file"] {
        let name = format!("tool_wrapped.{tool}");
        let found: Vec<_> = spans.iter().filter(|span| span.name == name).collect();
        let [span] = found.as_slice() else { panic!("{name}: {} spans of {spans:#?}", found.len()) };
        assert_eq!((span.text("tool.name"), span.text("result.ok")), (tool.to_owned(), "true".to_owned()));
        assert_eq!(span.text("tool.args.hash").len(), 8, "{span:?}");
        assert_eq!(span.text("policy.verdict"), "allow");
        assert!(span.attributes.contains_key("output.chars") && span.attributes.contains_key("duration_ms"));
    }
}

#[test]
fn removing_everything_is_blocked() {
    let project = Project::new();
    let (code, events) = project.events(&call("run_cmd", "{ cmd = \"rm -rf /\" }"), &["--approve", "all"]);
    assert_eq!(code, 0);
    assert_eq!(of_type(&events, "tool.finished")[0]["result"]["error"], "COMMAND_DENIED");
    assert!(of_type(&events, "tool.started").is_empty() && of_type(&events, "approval.requested").is_empty());
}

#[test]
fn installing_a_package_stops_for_an_approval() {
    let project = Project::new();
    let said = project.run(&call("run_cmd", "{ cmd = \"pip install numpy\" }"), &[]);
    assert_eq!(said.code, 3, "{}", said.stderr);
    assert!(said.stderr.contains("pip install numpy") && said.stderr.contains("hint: gimlet approve ap_"));
    let shown = project.say(&["runs", "show", "last", "--json"]).events();
    assert_eq!(of_type(&shown, "approval.requested").len(), 1);
    assert!(of_type(&shown, "tool.started").is_empty(), "nothing ran");
}

#[test]
fn a_missing_file_comes_back_with_a_hint() {
    let (code, events) = Project::new().events(&call("read_file", "{ path = \"src/calc.py\" }"), &[]);
    assert_eq!(code, 0);
    let result = &of_type(&events, "tool.finished")[0]["result"];
    assert_eq!(result["error"], "FILE_NOT_FOUND");
    assert_eq!(
        result["recovery_suggestion"]["tool_call"],
        json!({ "name": "list_files", "arguments": { "glob": "**/calc.py", "limit": 50 } })
    );
    assert_eq!(of_type(&events, "tool.requested").len(), 1, "a hint is never executed");
}
