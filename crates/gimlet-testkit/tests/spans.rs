//! Every run, step, request, call, question and cell is a span, refusals included, and nothing is told twice.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;

use gimlet::approval::{Decision, Scope};
use gimlet::effect::Effect;
use gimlet::guard::Redactor;
use gimlet::store::{MemoryStore, RunLog};
use gimlet::telemetry::{self, Payloads};
use gimlet::tool::{ToolCx, ToolError, TypedTool};
use gimlet::{Agent, Ending, Env, Run};
use gimlet_models::{Script, ScriptedModel};
use gimlet_testkit::{ScriptedApprover, SpanCollector};
use schemars::JsonSchema;
use serde::Deserialize;
use tracing::instrument::WithSubscriber;

/// Read a file.
#[derive(Deserialize, JsonSchema)]
struct ReadInput {
    /// Where.
    path: String,
}

struct ReadFile;

impl TypedTool for ReadFile {
    const NAME: &'static str = "read_file";
    type Input = ReadInput;
    type Output = String;

    async fn run(&self, input: ReadInput, _cx: &ToolCx) -> Result<String, ToolError> {
        match input.path.as_str() {
            "missing" => Err(ToolError::failed("FILE_NOT_FOUND", "it is not there")),
            path => Ok(format!("{path}\nsecond line")),
        }
    }
}

struct ListFiles;

/// List files.
#[derive(Deserialize, JsonSchema)]
struct ListInput {
    /// Which.
    glob: String,
}

impl TypedTool for ListFiles {
    const NAME: &'static str = "list_files";
    type Input = ListInput;
    type Output = Vec<String>;

    fn effects(&self, input: &ListInput) -> Result<Vec<Effect>, ToolError> {
        Ok(vec![Effect::Opaque { what: input.glob.clone() }])
    }

    async fn run(&self, _input: ListInput, _cx: &ToolCx) -> Result<Vec<String>, ToolError> {
        Ok(vec!["a".into(), "b".into()])
    }
}

async fn run(script: &str) -> SpanCollector {
    let script: Script = toml::from_str(script).unwrap();
    let child = Agent::builder(Arc::new(ScriptedModel::new("child-model", script.clone())))
        .name("child")
        .tool(ReadFile)
        .build()
        .unwrap();
    let agent = Agent::builder(Arc::new(ScriptedModel::new("main-model", script)))
        .tool(ReadFile)
        .tool(ListFiles)
        .agent(child)
        .build()
        .unwrap();
    let approver = ScriptedApprover::new([Decision::Approve { scope: Scope::Once }]);
    let env = Env { approver: Arc::new(approver), ..Env::default() };
    let spans = SpanCollector::new();
    let ending = async { Run::start(agent, "look", env).await.unwrap().drive().await.unwrap() }
        .with_subscriber(spans.subscriber())
        .await;
    assert!(matches!(ending, Ending::Finished(_)), "{ending:?}");
    assert!(spans.spans().iter().all(|span| span.finished), "{}", spans.tree());
    spans
}

#[tokio::test]
async fn calls_carry_what_was_asked_and_what_came_of_it() {
    let spans = run(
        r#"
        [[reply]]
        calls = [{ name = "read_file", args = { path = "a" } }, { name = "read_file", args = { path = "missing" } }]
        usage = { input = 12, output = 3, cached = 4 }
        [[reply]]
        calls = [{ name = "read_file", args = { wrong = 1 } }, { name = "list_files", args = { glob = "*" } }]
        [[reply]]
        text = "done"
        "#,
    )
    .await;
    let tools = spans.named("tool_wrapped");
    let field = |at: usize, name: &str| tools[at].field(name).unwrap_or_default();
    assert_eq!(tools.len(), 4, "one span a call:\n{}", spans.tree());
    assert_eq!(field(0, "otel.name"), "tool_wrapped.read_file");
    assert_eq!(field(0, "openinference.span.kind"), "TOOL");
    assert_eq!((field(0, "result.ok"), field(0, "policy.verdict")), ("true".into(), "allow".into()));
    assert_eq!((field(0, "output.lines"), field(0, "output.truncated")), ("2".into(), "false".into()));
    assert_eq!((field(0, "tool.args.hash").len(), field(0, "tool.args.size")), (8, "12".into()));
    assert_eq!(
        (field(1, "result.ok"), field(1, "result.error_type")),
        ("false".into(), "FILE_NOT_FOUND".into())
    );
    assert_eq!(field(1, "policy.suggested_next_tool"), "list_files");
    assert_eq!(field(2, "result.error_type"), "VALIDATION_FAILED", "a refusal is traced too");
    assert_eq!(field(3, "policy.verdict"), "require_approval");
    assert_eq!(field(3, "output.items"), "2");
    let asked = spans.only("approval.wait");
    assert_eq!(
        (asked.field("approval.granted"), asked.field("approval.kind")),
        (Some("true".into()), Some("list_files".into()))
    );
    let models = spans.named("llm");
    assert_eq!(models[0].field("llm.token_count.prompt"), Some("12".into()));
    assert_eq!(models[0].field("llm.token_count.prompt_details.cache_read"), Some("4".into()));
    assert_eq!(spans.only("agent.run").field("agent.steps"), Some("3".into()));
}

#[tokio::test]
async fn spans_nest_as_the_work_does() {
    let spans = run(r#"
        [[conversation]]
        match = "part of it"
        [[conversation.reply]]
        calls = [{ name = "read_file", args = { path = "deep" } }]
        [[conversation.reply]]
        text = "read"
        [[reply]]
        calls = [{ name = "child", args = { task = "part of it" } }]
        [[reply]]
        text = "done"
        "#)
    .await;
    let all = spans.spans();
    let path = |mut at: usize| {
        let mut names = vec![all[at].name.clone()];
        while let Some(parent) = all[at].parent {
            names.push(all[parent].name.clone());
            at = parent;
        }
        names.reverse();
        names.join(" > ")
    };
    let deep = all.iter().position(|span| span.field("tool.name") == Some("read_file".into())).unwrap();
    assert_eq!(
        path(deep),
        "agent.run > step > tool_wrapped > agent.run > step > tool_wrapped",
        "{}",
        spans.tree()
    );
    let root = all.iter().filter(|span| span.parent.is_none()).count();
    assert_eq!(root, 1, "{}", spans.tree());
}

/// A call that waits for another thread, and a span opened while it does.
struct Threaded;

impl TypedTool for Threaded {
    const NAME: &'static str = "threaded";
    type Input = ReadInput;
    type Output = String;

    async fn run(&self, input: ReadInput, _cx: &ToolCx) -> Result<String, ToolError> {
        let elsewhere = tokio::task::spawn_blocking(move || input.path);
        let work = async { elsewhere.await.map_err(|error| error.to_string()) };
        telemetry::sandboxed("read", 0, |_| "thread".into(), |_| "LOST", work)
            .await
            .map_err(|error| ToolError::failed("LOST", error))
    }
}

/// Every span as a line: its path of names, and its fields but for how long it took.
fn lines(spans: &SpanCollector) -> Vec<String> {
    let all = spans.spans();
    let mut lines: Vec<String> = all
        .iter()
        .filter(|span| span.name != "sandbox")
        .map(|span| {
            let mut names = vec![span.field("otel.name").unwrap_or_else(|| span.name.clone())];
            let mut at = span.parent;
            while let Some(parent) = at {
                names.push(all[parent].field("otel.name").unwrap_or_else(|| all[parent].name.clone()));
                at = all[parent].parent;
            }
            names.reverse();
            let mut fields: Vec<String> = span
                .fields
                .iter()
                .filter(|(name, _)| *name != "duration_ms")
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            fields.sort();
            format!("{} {}", names.join(" > "), fields.join(" "))
        })
        .collect();
    lines.sort();
    lines
}

/// Live spans against the same run told again from its log.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_with_agents_code_and_threads_is_told_again_as_it_was() {
    let script: Script = toml::from_str(
        r#"
        [[conversation]]
        match = "part of it"
        [[conversation.reply]]
        calls = [{ name = "threaded", args = { path = "a" } }, { name = "threaded", args = { path = "b" } }]
        usage = { input = 7, output = 2 }
        [[conversation.reply]]
        text = "read"
        [[conversation]]
        match = "broken"
        [[conversation.reply]]
        fault = { kind = "status", status = 401 }
        [[reply]]
        calls = [{ name = "child", args = { task = "part of it" } }, { name = "child", args = { task = "broken" } }]
        [[reply]]
        calls = [{ name = "list_files", args = { glob = "*" } }, { name = "threaded", args = { path = "c" } }]
        [[reply]]
        text = "done"
        "#,
    )
    .unwrap();
    let child = Agent::builder(Arc::new(ScriptedModel::new("child/model", script.clone())))
        .name("child")
        .tool(Threaded)
        .build()
        .unwrap();
    let agent = Agent::builder(Arc::new(ScriptedModel::new("main/model", script)))
        .tool(Threaded)
        .tool(ListFiles)
        .agent(child)
        .build()
        .unwrap();
    let approver = ScriptedApprover::new([Decision::Deny { feedback: Some("not now".into()) }]);
    let store = Arc::new(MemoryStore::default());
    let env = Env {
        approver: Arc::new(approver),
        store: store.clone(),
        payloads: Payloads::Shown,
        ..Env::default()
    };
    let live = SpanCollector::new();
    let id = async {
        let run = Run::start(agent, "look", env).await.unwrap();
        let id = run.id().clone();
        let ending = run.drive().await.unwrap();
        assert!(matches!(ending, Ending::Finished(_)), "{ending:?}");
        id
    }
    .with_subscriber(live.subscriber())
    .await;
    let sandboxed = live.named("sandbox");
    assert_eq!(sandboxed.len(), 3, "{}", live.tree());
    let all = live.spans();
    assert!(sandboxed.iter().all(|span| all[span.parent.unwrap()].name == "tool_wrapped"), "{}", live.tree());

    let events = store.load(&id).await.unwrap();
    let told = SpanCollector::new();
    tracing::subscriber::with_default(told.subscriber(), || {
        telemetry::retell(&events, Payloads::Shown, &Redactor::default(), |_| {});
    });
    assert!(told.spans().iter().all(|span| span.finished), "{}", told.tree());
    let (live, told) = (lines(&live), lines(&told));
    assert_eq!(live, told);
    assert!(
        live.iter().any(|line| line.contains("result.ok=false") && line.contains("llm child/model")),
        "{live:#?}"
    );
}
