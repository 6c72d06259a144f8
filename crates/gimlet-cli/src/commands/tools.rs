//! `gimlet tools`: what the agent can do, and calling it by hand through the same guard.

use std::io::Write;
use std::sync::Arc;

use gimlet::digest::digest_json;
use gimlet::event::Suspension;
use gimlet::ids::{Ids, RunId};
use gimlet::message::ToolCall;
use gimlet::run::{Invocation, invoke};
use gimlet::signature::signature;
use gimlet::tool::{ToolFailure, ToolSpec};
use gimlet::{Agent, Env};
use gimlet_runtime::parts::models::{Script, ScriptedModel};
use jiff::Timestamp;
use serde_json::{Value, json};

use gimlet_runtime::options::ApproveMode;
use gimlet_runtime::{BlobsOnly, Options, PlanPolicy, Project, Runtime};

use crate::args::{JsonArgs, McpArgs, RootArgs, ToolsCommand};
use crate::exit::{ExitStatus, UsageError};
use crate::style::{DIM, NAME};
use crate::{app, diagnostics, front, interrupt};

/// Lists, shows or calls tools.
pub(crate) async fn tools(
    command: Option<ToolsCommand>,
    root: &RootArgs,
    mcp: &McpArgs,
    json: JsonArgs,
) -> anyhow::Result<ExitStatus> {
    let mut options = Options::from(root);
    if let Some(ToolsCommand::Call { sandbox, .. }) = &command {
        options.sandbox = sandbox.into();
    }
    let settings = app::settings(options)?;
    let project = match command {
        Some(ToolsCommand::Call { .. }) => {
            app::trace(&settings)?;
            Project::open(&settings, app::containers())?
        }
        Some(ToolsCommand::List(_) | ToolsCommand::Show { .. }) | None => {
            diagnostics::start(&settings);
            Project::to_look_at(&settings)?
        }
    };
    let runtime = app::plain()?;
    let foreign = interrupt::starting(runtime.server_tools(&settings, &mcp.files)).await?;
    let project = project.with_foreign(foreign);
    let tools = project.tools();
    match command.unwrap_or(ToolsCommand::List(json)) {
        ToolsCommand::List(JsonArgs { json }) => {
            list(&tools.iter().map(|tool| tool.spec()).collect::<Vec<_>>(), json)
        }
        ToolsCommand::Show { name } => show(&tools.iter().map(|tool| tool.spec()).collect::<Vec<_>>(), &name),
        ToolsCommand::Call { name, args, approve, sandbox: _ } => {
            call(&runtime, &project, name, &args, approve).await
        }
    }
}

fn list(specs: &[Arc<ToolSpec>], json: bool) -> anyhow::Result<ExitStatus> {
    let mut stdout = crate::out::stdout();
    if json {
        crate::out::json(&specs.iter().map(AsRef::as_ref).collect::<Vec<&ToolSpec>>())?;
        return Ok(ExitStatus::Success);
    }
    let width = specs.iter().map(|spec| spec.name.len()).max().unwrap_or(0);
    for spec in specs {
        let first = spec.description.lines().next().unwrap_or_default();
        writeln!(stdout, "{NAME}{:width$}{NAME:#}  {first}", spec.name)?;
    }
    Ok(ExitStatus::Success)
}

fn show(specs: &[Arc<ToolSpec>], name: &str) -> anyhow::Result<ExitStatus> {
    let Some(spec) = specs.iter().find(|spec| spec.name == name) else {
        return Err(UsageError::new(format!("there is no tool `{name}`")).hint("see `gimlet tools`").into());
    };
    let mut stdout = crate::out::stdout();
    writeln!(stdout, "{NAME}{}{NAME:#}\n{}\n", signature(spec), spec.description)?;
    let properties = spec.input["properties"].as_object().cloned().unwrap_or_default();
    for (name, schema) in properties {
        let about = schema["description"].as_str().unwrap_or_default();
        writeln!(stdout, "  {name}: {about}")?;
    }
    writeln!(stdout, "\n{DIM}{}{DIM:#}", serde_json::to_string_pretty(&spec.input)?)?;
    Ok(ExitStatus::Success)
}

async fn call(
    runtime: &Runtime,
    project: &Project,
    name: String,
    args: &str,
    approve: ApproveMode,
) -> anyhow::Result<ExitStatus> {
    let args: Value = serde_json::from_str(args).map_err(|error| {
        UsageError::new(format!("the arguments are not JSON: {error}"))
            .hint("gimlet tools call read_file '{\"path\": \"README.md\"}'")
    })?;
    // A toolbox belongs to an agent; this one never speaks.
    let model = Arc::new(ScriptedModel::new("none", Script::default()));
    let agent = Agent::builder(model).tools(project.tools()).build()?;
    let approver = Arc::new(front::clerk(runtime, project, approve));
    let store = Arc::new(BlobsOnly(runtime.store().clone()));
    let mut env = project.env(store, approver.clone(), interrupt::interruptible()?);
    env.policies.push(PlanPolicy::while_on(move || approve == ApproveMode::Plan));
    let ids = Arc::new(SameCall::new(&json!([env.root, name, args]))?);
    let env = Env { ids, ..env };
    let call = ToolCall { id: "call_1".into(), name: name.clone(), args };
    let result = match front::asking(&approver, invoke(&agent, env, call)).await {
        Invocation::Done(value) => value,
        Invocation::Failed(failure) => json!(failure),
        Invocation::Suspended(Suspension::Approval { approval }) => {
            let advice = format!("gimlet approve {approval}, then make the same call again");
            crate::out::json(&ToolFailure {
                tool: name,
                advice: Some(advice),
                ..ToolFailure::new(
                    "APPROVAL_REQUIRED",
                    format!("this needs an approval ({approval}), and nobody is here to ask"),
                )
            })?;
            return Ok(ExitStatus::Suspended);
        }
        Invocation::Suspended(other) => {
            json!(ToolFailure { tool: name, ..ToolFailure::new("CANCELLED", format!("{other:?}")) })
        }
        Invocation::Fatal(message) => return Err(anyhow::anyhow!(message)),
    };
    crate::out::json(&result)?;
    Ok(if result.get("error").is_some() { ExitStatus::Failure } else { ExitStatus::Success })
}

/// Names a call by what it is, so that the same call made again finds the answer to its question.
struct SameCall(RunId);

impl SameCall {
    fn new(call: &Value) -> anyhow::Result<Self> {
        let digest: String = digest_json(call).chars().take(16).collect();
        Ok(SameCall(format!("call-{digest}").parse()?))
    }
}

impl Ids for SameCall {
    fn run(&self, _now: Timestamp) -> RunId {
        self.0.clone()
    }
}
