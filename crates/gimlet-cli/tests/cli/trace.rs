//! Traces through the real binary: what a collector is sent, what it is never sent, and that no collector, however
//! unpleasant, changes a run.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use gimlet::event::Event;
use gimlet::store::RunLog as _;
use gimlet_testkit::{Collecting, ExportedSpan, ExportedStatus, ModelServer, OtlpCollector};
use serde_json::{Value, json};

use crate::support::{Project, Said, of_type};

const LOOK: &str = r#"
order = "turns"
[[reply]]
text = "Let me look."
calls = [{ name = "read_file", args = { path = "calc.py" } }, { name = "read_file", args = { path = "nothing.py" } }]
usage = { input = 100, output = 20, cached = 60 }
[[reply]]
calls = [{ name = "read_file", args = { wrong = 1 } }, { name = "run_cmd", args = { cmd = "rm -rf /" } }]
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
read_file(path="nothing.py")
```
"""
[[reply]]
text = "It subtracts."
"#;

const PATCH: &str = r#"
order = "turns"
[[reply]]
calls = [{ name = "propose_patch", args = { intent = "Add", file_path = "calc.py", original_content = "    return a - b\n", new_content = "    return a + b\n" } }]
[[reply]]
text = "Proposed."
"#;

/// A run against a script, its spans sent to a collector.
fn traced(project: &Project, endpoint: &str, script: &str, more: &[&str]) -> Said {
    let model = project.script(script);
    let mut args = vec!["--model", &model, "what is wrong?"];
    args.extend(more);
    Said::from(tracing(project, endpoint, &args).output().unwrap())
}

fn tracing(project: &Project, endpoint: &str, args: &[&str]) -> Command {
    let mut command = project.gimlet(args);
    command.env("PHOENIX_ENABLED", "true").env("PHOENIX_ENDPOINT", endpoint);
    command
}

#[test]
fn a_run_is_one_tree_of_spans_with_kinds_sizes_and_errors() {
    let (project, collector) = (Project::new(), OtlpCollector::start());
    let said = traced(&project, &collector.endpoint(), LOOK, &[]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "`add` subtracts.\n"), "{}", said.stderr);
    insta::assert_snapshot!("trace_tree", steady(&collector.tree()));

    let spans = collector.spans();
    let run = collector.only("agent.run");
    assert!(spans.iter().all(|span| span.trace == run.trace), "one trace");
    assert!(spans.iter().all(|span| span.text("session.id") == run.text("run.id")), "one session");
    assert_eq!(run.text("agent.steps"), "3");
    assert_eq!((run.text("agent.state"), run.status.clone()), ("answered".into(), ExportedStatus::Ok));
    assert_eq!(run.resource["service.name"], "gimlet");
    assert_eq!(run.resource["service.version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(run.resource["openinference.project.name"], "gimlet");

    let models: Vec<_> = spans.iter().filter(|span| span.name.starts_with("llm ")).collect();
    let tokens = |span: &ExportedSpan| {
        ["prompt", "completion", "total", "prompt_details.cache_read"]
            .map(|part| span.attributes[&format!("llm.token_count.{part}")].clone())
    };
    assert_eq!(tokens(models[0]), [json!(100), json!(20), json!(120), json!(60)]);
    assert_eq!(models[0].attributes["gen_ai.usage.input_tokens"], 100);
    assert_eq!(models[0].text("gen_ai.operation.name"), "chat");
    assert!(models[0].text("llm.model_name").starts_with("scripted/"));

    let read = collector.named("tool_wrapped.read_file");
    assert_eq!((read[0].text("tool.args.hash").len(), read[0].text("tool.args.size")), (8, "18".into()));
    assert_eq!((read[0].text("policy.verdict"), read[0].text("result.ok")), ("allow".into(), "true".into()));
    assert!(read[0].attributes["output.chars"].as_i64() > Some(0));
    assert_eq!(read[1].text("policy.suggested_next_tool"), "list_files", "{:?}", read[1].attributes);
    let refused = collector.only("tool_wrapped.run_cmd");
    assert_eq!(
        (refused.text("policy.verdict"), refused.text("result.error_type")),
        ("deny".into(), "COMMAND_DENIED".into())
    );
}

#[test]
fn what_code_calls_belongs_to_its_cell() {
    let (project, collector) = (Project::new(), OtlpCollector::start());
    let said = traced(&project, &collector.endpoint(), CODE, &["--action", "code"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    insta::assert_snapshot!("trace_code", steady(&collector.tree()));
}

#[test]
fn the_check_of_a_patch_says_where_it_was_and_why_not_in_docker() {
    const BY: &str = "git apply --check in a scratch folder (not in Docker: no engine answers)";
    let (project, collector) = (Project::new().ungated(), OtlpCollector::start());
    let model = project.script(PATCH);
    let mut command = tracing(&project, &collector.endpoint(), &["--model", &model, "what is wrong?"]);
    let said = Said::from(command.env("DOCKER_HOST", "unix:///nowhere/docker.sock").output().unwrap());
    assert_eq!(said.code, 0, "{}", said.stderr);
    let check = collector.only("sandbox.validate_patch");
    assert_eq!((check.text("sandbox.type"), check.text("result.ok")), (BY.into(), "true".into()));
    let events = project.say(&["runs", "show", "last", "--json"]).events();
    let proposed = of_type(&events, "tool.finished")[0];
    assert_eq!(proposed["result"]["validated_by"], BY, "{proposed}");
}

#[test]
fn a_plan_is_a_span_with_its_request_inside() {
    let (project, collector) = (Project::new(), OtlpCollector::start());
    let said = traced(&project, &collector.endpoint(), crate::plan::PLANNED, &["--plan=1"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    insta::assert_snapshot!("trace_plan", steady(&collector.tree()));
    let plans = collector.named("plan");
    let counts = ["plan.known", "plan.to_find", "plan.steps"].map(|key| plans[0].text(key));
    assert_eq!(counts, ["1", "1", "2"].map(String::from));
    assert_eq!(
        (plans[0].text("openinference.span.kind"), plans[0].text("result.ok")),
        ("CHAIN".into(), "true".into())
    );
    let run = collector.only("agent.run");
    assert_eq!(run.text("agent.token_count.prompt"), "300", "plans included");
}

#[test]
fn a_named_session_is_the_session_of_its_spans_also_when_told_again() {
    let (project, collector) = (Project::new(), OtlpCollector::start());
    let said = traced(&project, &collector.endpoint(), LOOK, &["--session", "fixing"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let sessions = || collector.spans().iter().map(|span| span.text("session.id")).collect::<Vec<_>>();
    assert!(sessions().len() > 5 && sessions().iter().all(|id| id == "fixing"), "{:?}", sessions());
    collector.clear();
    let said =
        Said::from(tracing(&project, &collector.endpoint(), &["runs", "trace", "last"]).output().unwrap());
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(sessions().len() > 5 && sessions().iter().all(|id| id == "fixing"), "{:?}", sessions());
}

#[test]
fn what_an_mcp_server_is_asked_lies_inside_the_call() {
    let (project, collector) = (Project::new(), OtlpCollector::start());
    let servers = crate::mcp::file(&project, &json!({"g": crate::mcp::ourselves(&project)}));
    let more = ["--approve", "all", "--mcp", &servers];
    let said = traced(&project, &collector.endpoint(), crate::mcp::LOOK, &more);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let (call, asked) = (collector.only("tool_wrapped.g__read_file"), collector.only("mcp.tools/call"));
    assert_eq!((asked.text("mcp.server"), asked.text("result.ok")), ("g".into(), "true".into()));
    assert_eq!((&asked.trace, asked.parent.as_ref()), (&call.trace, Some(&call.id)));
}

#[test]
fn what_was_said_leaves_only_when_asked_and_without_secrets() {
    const SECRET: &str = "swordfish-swordfish-42";
    let (project, collector) = (Project::new(), OtlpCollector::start());
    project.file("calc.py", &format!("KEY = '{SECRET}'\n{}", "# filler\n".repeat(2000)));
    let script = project.script(LOOK);
    let run = |more: &[&str], env: &[(&str, &str)]| {
        collector.clear();
        let mut args = vec!["--model", script.as_str(), "what is wrong?"];
        args.extend(more);
        let mut command = tracing(&project, &collector.endpoint(), &args);
        command.env("SOME_API_KEY", SECRET).envs(env.iter().copied());
        assert_eq!(Said::from(command.output().unwrap()).code, 0);
        serde_json::to_string(&collector.spans().iter().map(|span| &span.attributes).collect::<Vec<_>>())
            .unwrap()
    };
    let plain = run(&[], &[]);
    assert!(!plain.contains("what is wrong") && !plain.contains("filler") && !plain.contains(SECRET));
    assert!(!plain.contains("calc.py"), "arguments are payloads too");

    let full = run(&["--trace-content"], &[]);
    assert!(full.contains("what is wrong?") && full.contains("filler") && !full.contains(SECRET));
    let of_task = |span: &ExportedSpan| {
        span.name.starts_with("llm ") && span.text("llm.input_messages.1.message.content") == "what is wrong?"
    };
    let model = collector.spans().into_iter().rfind(of_task).unwrap();
    assert_eq!(model.text("llm.input_messages.0.message.role"), "system");
    assert_eq!(model.text("llm.input_messages.1.message.content"), "what is wrong?");
    assert_eq!(
        model.text("llm.input_messages.2.message.tool_calls.0.tool_call.function.name"),
        "read_file",
        "{:#?}",
        model.attributes
    );
    assert_eq!(model.text("llm.output_messages.0.message.content"), "`add` subtracts.");
    assert!(model.attributes.values().all(|value| value.to_string().len() < 6000), "payloads are bounded");
    let tool = &collector.named("tool_wrapped.read_file")[0];
    assert_eq!(tool.text("tool.parameters"), r#"{"path":"calc.py"}"#);
    assert!(tool.text("output.value").contains("[redacted]"), "{}", tool.text("output.value"));

    let outputs = run(&[], &[("OPENINFERENCE_HIDE_OUTPUTS", "false")]);
    assert!(!outputs.contains("what is wrong?") && outputs.contains("subtracts"));
    let hidden = run(&["--trace-content"], &[("OPENINFERENCE_HIDE_INPUTS", "true")]);
    assert!(!hidden.contains("what is wrong?") && hidden.contains("subtracts"));
}

#[test]
fn flags_and_variables_say_where_to_and_whether() {
    let (project, collector) = (Project::new(), OtlpCollector::start());
    let script = project.script(LOOK);
    let run = |more: &[&str], env: &[(&str, &str)]| {
        collector.clear();
        let mut args = vec!["--model", script.as_str(), "what is wrong?"];
        args.extend(more);
        let mut command = project.gimlet(&args);
        command.env_remove("PHOENIX_ENABLED").envs(env.iter().copied());
        let said = Said::from(command.output().unwrap());
        assert_eq!(said.code, 0, "{}", said.stderr);
        collector.requests().len()
    };
    let (base, endpoint) = (collector.base(), collector.endpoint());
    let to = ("PHOENIX_ENDPOINT", endpoint.as_str());
    assert_eq!(run(&[], &[to, ("PHOENIX_ENABLED", "false")]), 0);
    assert_eq!(run(&["--no-trace"], &[to]), 0);
    assert_eq!(run(&[], &[to, ("OTEL_SDK_DISABLED", "true")]), 0);
    assert!(run(&["--trace"], &[to, ("PHOENIX_ENABLED", "false")]) > 0);
    let headers = ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20abcd1234");
    let named = ("OTEL_SERVICE_NAME", "my-agent");
    let more = ("OTEL_RESOURCE_ATTRIBUTES", "team=tools");
    assert!(run(&[], &[("OTEL_EXPORTER_OTLP_ENDPOINT", base.as_str()), headers, named, more]) > 0);
    let request = &collector.requests()[0];
    assert_eq!(request.path, "/v1/traces");
    assert!(request.headers.contains(&("authorization".into(), "Bearer abcd1234".into())), "{request:?}");
    let resource = collector.only("agent.run").resource;
    assert_eq!((&resource["service.name"], &resource["team"]), (&json!("my-agent"), &json!("tools")));
    assert!(run(&[], &[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", endpoint.as_str())]) > 0);

    let wrong =
        project.gimlet(&["x"]).env("PHOENIX_ENABLED", "true").env("PHOENIX_ENDPOINT", "nowhere").output();
    let said = Said::from(wrong.unwrap());
    assert_eq!(said.code, 2);
    assert!(said.stderr.contains("PHOENIX_ENDPOINT"), "{}", said.stderr);
}

#[test]
fn a_project_cannot_send_spans_away_nor_get_at_keys() {
    let (project, collector) = (Project::new(), OtlpCollector::start());
    let model = project.script(LOOK);
    let args = ["--model", model.as_str(), "what is wrong?"];
    project.file(".env", "PHOENIX_ENDPOINT=http://collector.example.com/v1/traces\n");
    let said = Said::from(project.gimlet(&args).output().unwrap());
    assert_eq!(said.code, 2, "{}", said.stderr);
    assert!(
        said.stderr.contains("collector.example.com") && said.stderr.contains("gimlet trust"),
        "{}",
        said.stderr
    );
    assert_eq!(Said::from(project.gimlet(&[&args[..], &["--no-trace"]].concat()).output().unwrap()).code, 0);

    project.file(".env", &format!("PHOENIX_ENDPOINT={}\n", collector.endpoint()));
    assert_eq!(Said::from(project.gimlet(&args).output().unwrap()).code, 0);
    assert!(!collector.spans().is_empty(), "this machine needs no trust");
    collector.clear();
    let mut command = project.gimlet(&args);
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20abcd1234");
    let said = Said::from(command.output().unwrap());
    assert_eq!((said.code, collector.requests().len()), (2, 0), "{}", said.stderr);
    assert!(!said.stderr.contains("abcd1234"));
}

#[test]
fn a_call_outside_of_a_run_is_a_trace_of_its_own() {
    let (project, collector) = (Project::new(), OtlpCollector::start());
    let args = ["tools", "call", "read_file", r#"{"path":"calc.py"}"#];
    assert_eq!(Said::from(tracing(&project, &collector.endpoint(), &args).output().unwrap()).code, 0);
    assert_eq!(collector.only("tool_wrapped.read_file").parent, None);
}

/// The program ends although the hanging collector never answers: that is what bounds the flush.
#[test]
fn no_collector_however_unpleasant_changes_a_run() {
    let whole = |said: &Said| (said.code, said.stdout.clone(), without_note(&said.stderr));
    let project = Project::new();
    let model = project.script(LOOK);
    let args = ["--model", model.as_str(), "what is wrong?"];
    let expected = whole(&Said::from(project.gimlet(&args).output().unwrap()));
    assert_eq!(expected.0, 0);

    let absent = { OtlpCollector::start().endpoint() };
    let said = Said::from(tracing(&project, &absent, &args).output().unwrap());
    assert_eq!(whole(&said), expected);
    assert!(said.stderr.contains("note: the trace did not reach"), "it was named: {}", said.stderr);

    for behaviour in [Collecting::Answers(500), Collecting::Answers(403), Collecting::Hangs] {
        let collector = OtlpCollector::that(behaviour);
        let said = Said::from(tracing(&project, &collector.endpoint(), &args).output().unwrap());
        assert_eq!(whole(&said), expected, "{behaviour:?}");
        assert_eq!(said.stderr.matches("note: the trace").count(), 1, "{behaviour:?}: {}", said.stderr);
        assert!(!collector.requests().is_empty(), "{behaviour:?} was asked");
    }
}

#[test]
fn who_has_no_phoenix_hears_nothing_of_it_unless_they_want_to() {
    // Nothing but this test's own name space could listen on the default port; whoever does has a Phoenix.
    if std::net::TcpStream::connect(("localhost", 6006)).is_ok() {
        return;
    }
    let project = Project::new();
    let model = project.script(LOOK);
    let run = |more: &[&str]| {
        let mut args = vec!["--model", model.as_str(), "what is wrong?"];
        args.extend(more);
        Said::from(project.gimlet(&args).env_remove("PHOENIX_ENABLED").output().unwrap())
    };
    assert!(!run(&[]).stderr.contains("trace"));
    let verbose = run(&["-v"]);
    assert!(
        verbose.stderr.contains("note: the trace did not reach http://localhost:6006/v1/traces"),
        "{verbose:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_interrupted_still_sends_its_spans() {
    let script = toml::from_str("[[reply]]\nfault = { kind = \"hang\" }\n").unwrap();
    let server = ModelServer::builder(script).models(["scripted"]).start().await.unwrap();
    let (project, collector) = (Project::new(), OtlpCollector::start());
    let url = server.url();
    let args = ["-m", "ollama_chat/scripted", "--api-base", &url, "what is wrong?"];
    let mut command = tracing(&project, &collector.endpoint(), &args);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !server.visits().iter().any(|visit| visit.contains("/api/chat")) {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let ended = tokio::task::spawn_blocking(move || child.wait().unwrap()).await.unwrap();
    assert_eq!(ended.code(), Some(130));
    assert_eq!(collector.only("agent.run").text("agent.state"), "suspended");
    assert_eq!(collector.only("llm ollama_chat/scripted").status, ExportedStatus::Unset);
}

/// What a span is but for its id and its times: parent, name and status, attributes.
type Essence = (Option<String>, String, BTreeMap<String, Value>);

/// A span but for its times.
fn identity(span: &ExportedSpan) -> (String, Essence) {
    let attributes = span.attributes.iter().filter(|(key, _)| *key != "duration_ms");
    let attributes = attributes.map(|(key, value)| (key.clone(), value.clone())).collect();
    (span.id.clone(), (span.parent.clone(), format!("{} {:?}", span.name, span.status), attributes))
}

/// Spans of the log's own; operations inside a tool are not logged.
fn logged(collector: &OtlpCollector) -> BTreeMap<String, Essence> {
    collector.spans().iter().filter(|span| !span.name.starts_with("sandbox.")).map(identity).collect()
}

#[test]
fn a_run_told_again_is_the_run_that_was_watched() {
    let plan = (crate::plan::PLANNED, &["--plan=1"][..]);
    for (script, more) in [(LOOK, &[][..]), (CODE, &["--action", "code"][..]), plan] {
        let (project, live, again) = (Project::new(), OtlpCollector::start(), OtlpCollector::start());
        let mut args = vec!["--trace-content"];
        args.extend(more);
        assert_eq!(traced(&project, &live.endpoint(), script, &args).code, 0);
        let resend = ["runs", "trace", "last", "--trace-content"];
        let said = Said::from(tracing(&project, &again.endpoint(), &resend).output().unwrap());
        assert_eq!(said.code, 0, "{}", said.stderr);
        assert_eq!(said.stdout, format!("sent {} spans to {}\n", again.spans().len(), again.endpoint()));
        assert_eq!(logged(&again), logged(&live), "{}\n{}", live.tree(), again.tree());
        assert!(
            again.spans().iter().all(|span| span.time.0 > 1_600_000_000_000_000_000),
            "the times of the log"
        );
    }
}

#[test]
fn a_run_of_several_processes_is_one_trace() {
    let (project, live, again) = (Project::new(), OtlpCollector::start(), OtlpCollector::start());
    let script = "order = \"turns\"\n[[reply]]\ncalls = [{ name = \"run_cmd\", args = { cmd = \"touch made\" } }]\n[[reply]]\ntext = \"Made.\"\n";
    assert_eq!(traced(&project, &live.endpoint(), script, &[]).code, 3);
    let waiting: Vec<Value> = serde_json::from_str(&project.say(&["approvals", "--json"]).stdout).unwrap();
    assert_eq!(project.say(&["approve", waiting[0]["request"]["id"].as_str().unwrap()]).code, 0);
    let said = Said::from(tracing(&project, &live.endpoint(), &["resume", "last"]).output().unwrap());
    assert_eq!((said.code, said.stdout.as_str()), (0, "Made.\n"), "{}", said.stderr);
    insta::assert_snapshot!("trace_resumed", steady(&live.tree()));
    assert!(live.spans().iter().all(|span| span.trace == live.spans()[0].trace));

    let said = Said::from(tracing(&project, &again.endpoint(), &["runs", "trace", "last"]).output().unwrap());
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert_eq!(logged(&again), logged(&live), "{}\n{}", live.tree(), again.tree());
}

#[test]
fn nobody_to_send_to_is_an_error_when_that_is_all_one_wants() {
    let project = Project::new();
    assert_eq!(project.run(LOOK, &[]).code, 0);
    let absent = { OtlpCollector::start().endpoint() };
    let said = Said::from(tracing(&project, &absent, &["runs", "trace", "last"]).output().unwrap());
    assert_eq!((said.code, said.stdout.as_str()), (1, ""));
    assert!(said.stderr.contains(&absent) && said.stderr.contains("hint: docker run"), "{}", said.stderr);
}

/// A log with known times: a step with a slow model, an approval after a pause of a day, a failed call.
fn known_run(project: &Project) {
    let limits = json!({});
    let mut seq = 0;
    let mut log = Vec::new();
    let mut at = |time: &str, mut body: Value| {
        seq += 1;
        body["run"] = json!("20261115-120000-abcdef");
        body["seq"] = json!(seq);
        body["time"] = json!(time);
        log.push(
            serde_json::from_value::<Event>(body.clone()).unwrap_or_else(|error| panic!("{error}: {body}")),
        );
    };
    let request = json!({ "id": "ap_1", "of_run": "20261115-120000-abcdef", "binding": "b", "call": "c2", "asker": "",
        "tool": "run_cmd", "args": {}, "effects": [], "reason": "it changes files" });
    let finished = |id: &str, tool: &str, ok: bool, result: Value, seconds: f64| json!({ "type": "tool.finished", "id": id, "tool": tool, "ok": ok, "result": result, "seconds": seconds });
    at(
        "2026-11-15T12:00:00Z",
        json!({ "type": "run.started", "task": "t", "agent": "main",
        "model": "ollama_chat/qwen2.5-coder:14b", "action": "tools", "dialect": "native", "root": ".", "limits": limits,
        "system": "s", "tools": [], "tools_digest": "", "version": "0" }),
    );
    at("2026-11-15T12:00:00Z", json!({ "type": "step.started", "step": 1 }));
    at(
        "2026-11-15T12:00:12.5Z",
        json!({ "type": "model.message", "step": 1, "text": "",
        "tool_calls": [{ "id": "c1", "name": "read_file", "args": {} }], "usage": { "input": 1200, "output": 40 } }),
    );
    at(
        "2026-11-15T12:00:12.5Z",
        json!({ "type": "tool.requested", "id": "c1", "tool": "read_file", "args": {} }),
    );
    at(
        "2026-11-15T12:00:12.503Z",
        finished("c1", "read_file", false, json!({ "error": "FILE_NOT_FOUND", "message": "no" }), 0.003),
    );
    at("2026-11-15T12:00:12.503Z", json!({ "type": "step.started", "step": 2 }));
    at(
        "2026-11-15T12:00:20Z",
        json!({ "type": "model.message", "step": 2, "text": "",
        "tool_calls": [{ "id": "c2", "name": "run_cmd", "args": {} }], "usage": { "input": 1300, "output": 30 } }),
    );
    at(
        "2026-11-15T12:00:20Z",
        json!({ "type": "tool.requested", "id": "c2", "tool": "run_cmd", "args": {} }),
    );
    let mut asked = request.clone();
    asked["type"] = json!("approval.requested");
    at("2026-11-15T12:00:20Z", asked.clone());
    at("2026-11-15T12:00:20Z", json!({ "type": "run.suspended", "reason": "approval", "approval": "ap_1" }));
    at(
        "2026-11-18T12:00:00Z",
        json!({ "type": "run.resumed", "version": "0", "root": ".", "limits": limits }),
    );
    at("2026-11-18T12:00:00Z", asked);
    at(
        "2026-11-18T12:00:00Z",
        json!({ "type": "approval.decided", "id": "ap_1", "decision": "approve", "scope": "once" }),
    );
    at(
        "2026-11-18T12:00:00Z",
        json!({ "type": "tool.started", "id": "c2", "tool": "run_cmd", "effects": [] }),
    );
    at("2026-11-18T12:00:06Z", finished("c2", "run_cmd", true, json!("ok"), 6.0));
    at("2026-11-18T12:00:06Z", json!({ "type": "step.started", "step": 3 }));
    at(
        "2026-11-18T12:00:10Z",
        json!({ "type": "model.message", "step": 3, "text": "done", "answer": "done",
        "usage": { "input": 1400, "output": 5 } }),
    );
    at(
        "2026-11-18T12:00:10Z",
        json!({ "type": "run.finished", "answer": "done", "state": "answered", "steps": 3,
        "usage": {}, "seconds": 30.0 }),
    );
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let store = gimlet_store::FileStore::open(project.home.path()).unwrap();
        for event in &log {
            store.append(event).await.unwrap();
        }
    });
}

#[test]
fn the_timeline_reads_at_every_width_and_without_colour() {
    let project = Project::new();
    known_run(&project);
    for width in ["60", "100", "140"] {
        let mut command = project.gimlet(&["runs", "show", "20261115-120000-abcdef", "--timeline"]);
        let said = Said::from(command.env("COLUMNS", width).output().unwrap());
        assert_eq!(said.code, 0, "{}", said.stderr);
        let most: usize = width.parse().unwrap();
        assert!(said.stdout.lines().all(|line| line.chars().count() <= most), "{}", said.stdout);
        assert!(!said.stdout.contains('\u{1b}'));
        insta::assert_snapshot!(format!("timeline_{width}"), said.stdout);
    }
}

/// A tree without what differs from run to run.
fn steady(tree: &str) -> String {
    let line = |line: &str| match line.split_once("llm scripted/") {
        Some((before, after)) => {
            format!("{before}llm scripted/…{}", after.find(" [").map_or("", |at| &after[at..]))
        }
        None => line.to_owned(),
    };
    tree.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// What is told but for the note about the trace and what differs from run to run.
fn without_note(stderr: &str) -> Vec<String> {
    let lines = stderr.lines().filter(|line| !line.contains("note: the trace"));
    let steady = |line: &str| {
        let told = line.split(" · ").next().unwrap_or_default();
        // Seconds differ, too.
        match told.strip_suffix(" s").and_then(|told| told.rsplit_once(", ")) {
            Some((before, _)) => before.to_owned(),
            None => told.to_owned(),
        }
    };
    lines.map(steady).collect()
}
