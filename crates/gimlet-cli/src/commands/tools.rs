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
use gimlet_models::{Script, ScriptedModel};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::approver::CliApprover;
use crate::args::{ApproveMode, JsonArgs, McpArgs, RootArgs, ToolsCommand, TraceArgs};
use crate::config::{Flags, Settings};
use crate::diagnostics;
use crate::exit::{ExitStatus, UsageError};
use crate::mcp::Loudness;
use crate::style::{DIM, NAME};
use crate::trace::{self, Told};
use crate::world::{self, Place};
use crate::{front, home};

/// Lists, shows or calls tools.
pub(crate) async fn tools(
    command: Option<ToolsCommand>,
    root: &RootArgs,
    mcp: &McpArgs,
) -> anyhow::Result<ExitStatus> {
    let mut flags = Flags::from(root);
    if let Some(ToolsCommand::Call { sandbox, .. }) = &command {
        flags.sandbox = sandbox.clone();
    }
    let settings = Settings::load(flags)?;
    let mut place = match command {
        Some(ToolsCommand::Call { .. }) => {
            trace::begin(&settings, &TraceArgs::default(), Told::WhenNamed)?;
            Place::open(&settings)?
        }
        Some(ToolsCommand::List(_) | ToolsCommand::Show { .. }) | None => {
            diagnostics::start(&settings);
            Place::to_look_at(&settings)?
        }
    };
    place.connect(&settings, mcp, Loudness::Shown).await?;
    let tools = place.tools();
    match command.unwrap_or(ToolsCommand::List(JsonArgs { json: false })) {
        ToolsCommand::List(JsonArgs { json }) => {
            list(&tools.iter().map(|tool| tool.spec()).collect::<Vec<_>>(), json)
        }
        ToolsCommand::Show { name } => show(&tools.iter().map(|tool| tool.spec()).collect::<Vec<_>>(), &name),
        ToolsCommand::Call { name, args, approve, sandbox: _ } => call(&place, name, &args, approve).await,
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

async fn call(place: &Place, name: String, args: &str, approve: ApproveMode) -> anyhow::Result<ExitStatus> {
    let args: Value = serde_json::from_str(args).map_err(|error| {
        UsageError::new(format!("the arguments are not JSON: {error}"))
            .hint("gimlet tools call read_file '{\"path\": \"README.md\"}'")
    })?;
    // A toolbox belongs to an agent; this one never speaks.
    let model = Arc::new(ScriptedModel::new("none", Script::default()));
    let agent = Agent::builder(model).tools(place.tools()).build()?;
    let approver = CliApprover::new(home::approvals()?, approve, None, front::clerk());
    let env =
        world::env(place, world::blobs_only()?, Arc::new(approver), Vec::new(), world::interruptible()?);
    let ids = Arc::new(SameCall::new(&json!([env.root, name, args]))?);
    let env = Env { ids, ..env };
    let result = match invoke(&agent, env, ToolCall { id: "call_1".into(), name: name.clone(), args }).await {
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
