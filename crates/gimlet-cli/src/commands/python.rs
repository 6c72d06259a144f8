//! `gimlet python`: runs Python in the sandbox, like `python FILE`. Standard output is exactly what the code printed.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use gimlet::Agent;
use gimlet::cell::{CellEnd, CellEvent, Executor, SessionSpec, Stream};
use gimlet::message::ToolCall;
use gimlet::run::{Invocation, invoke};
use gimlet::tool::ToolFailure;
use gimlet_runtime::parts::models::{Script, ScriptedModel};
use gimlet_runtime::parts::python::{Limits, Warmth};
use jiff::Timestamp;
use serde_json::Value;

use gimlet_runtime::options::{ApproveMode, ExecutorChoice};
use gimlet_runtime::{BlobsOnly, Options, PlanPolicy, Project, Runtime, Settings, isolation, rules};

use crate::args::PythonArgs;
use crate::exit::{ExitStatus, UsageError};
use crate::{app, front, interrupt};

/// Runs code.
pub(crate) async fn python(args: PythonArgs) -> anyhow::Result<ExitStatus> {
    let code = code(&args)?;
    let limits = Limits {
        wall: Duration::try_from_secs_f64(args.timeout)
            .map_err(|error| UsageError::new(error.to_string()))?,
        memory: u64::from(args.memory) << 20,
        ..Limits::default()
    };
    let sandbox = (&args.sandbox).into();
    let settings = app::settings(Options { sandbox, ..Options::from(&args.root) })?;
    let executor: Arc<dyn Executor> = match args.executor.unwrap_or_default() {
        // One session needs no nest: it would load what the worker loads, only later.
        ExecutorChoice::Python => {
            gimlet_runtime::python(limits, &settings.imports(&args.imports.imports)?, Warmth::Cold)?
        }
        ExecutorChoice::Docker => {
            let process = settings.process();
            let policy = rules::policy(process, &settings.root)?;
            let root = gimlet_runtime::root(process, &settings.root, &policy)?;
            isolation::docker_executor(&settings, &root, &args.imports.imports, limits, app::containers())?
        }
        ExecutorChoice::Venv => isolation::venv_executor(&settings, &args.imports.imports, limits)?,
    };
    let toolbox = if args.tools { Some(Tools::new(&settings, args.approve)?) } else { None };
    let spec = SessionSpec {
        tools: toolbox.as_ref().map(|tools| tools.agent.toolbox().specs().clone()).unwrap_or_default(),
        seed: args.seed,
        epoch_ms: Timestamp::now().as_millisecond(),
    };
    let cancel = interrupt::interruptible()?;
    tokio::select! {
        biased;
        () = cancel.cancelled() => Ok(ExitStatus::Interrupted),
        status = run(executor.as_ref(), &spec, &code, toolbox.as_ref(), args.value) => status,
    }
}

fn code(args: &PythonArgs) -> anyhow::Result<String> {
    match (&args.code, &args.file) {
        (Some(code), _) => Ok(code.clone()),
        (None, Some(file)) if file.as_os_str() != "-" => std::fs::read_to_string(file)
            .map_err(|error| UsageError::new(format!("cannot read {}: {error}", file.display())).into()),
        (None, Some(_)) => std::io::read_to_string(std::io::stdin()).context("cannot read the code"),
        (None, None) => {
            Err(UsageError::new("no code is given").hint("gimlet python -c 'print(1 + 1)'").into())
        }
    }
}

async fn run(
    executor: &dyn Executor,
    spec: &SessionSpec,
    code: &str,
    tools: Option<&Tools>,
    value: bool,
) -> anyhow::Result<ExitStatus> {
    let mut session = executor.start(spec).await?;
    for weakness in session.weaknesses() {
        writeln!(crate::out::stderr(), "warning: {weakness}")?;
    }
    let mut cell = session.cell(code).await?;
    loop {
        match cell.next().await? {
            CellEvent::Printed { text, stream: Stream::Stdout } => {
                crate::out::data(text.as_bytes())?;
            }
            CellEvent::Printed { text, stream: Stream::Stderr } => crate::out::error_data(text.as_bytes())?,
            CellEvent::HostCall { id, tool, args } => {
                let result = match tools {
                    Some(tools) => tools.call(id, tool, args).await?,
                    None => Err(ToolFailure::new("UNKNOWN_TOOL", "no tools are offered; run with --tools")),
                };
                cell.resume(id, result).await?;
            }
            CellEvent::Ended(end) => return ended(end, value),
        }
    }
}

fn ended(end: CellEnd, show_value: bool) -> anyhow::Result<ExitStatus> {
    match end {
        CellEnd::Done { value } => {
            if let Some(value) = value.filter(|_| show_value) {
                crate::out::data(format!("{value}\n").as_bytes())?;
            }
            Ok(ExitStatus::Success)
        }
        CellEnd::Answer { value } => {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            crate::out::data(format!("{text}\n").as_bytes())?;
            Ok(ExitStatus::Success)
        }
        CellEnd::Raised { traceback, .. } => {
            writeln!(crate::out::stderr(), "{}", traceback.trim_end())?;
            Ok(ExitStatus::Failure)
        }
        CellEnd::Limited { message } => {
            writeln!(crate::out::stderr(), "{}", message.trim_end())?;
            Ok(ExitStatus::Limited)
        }
        CellEnd::Crashed { message } => {
            writeln!(crate::out::stderr(), "{}", message.trim_end())?;
            Ok(ExitStatus::Failure)
        }
    }
}

/// The built-in tools for code that is nobody's run.
struct Tools {
    runtime: Runtime,
    project: Project,
    agent: Arc<Agent>,
    mode: ApproveMode,
}

impl Tools {
    fn new(settings: &Settings, mode: ApproveMode) -> anyhow::Result<Self> {
        let project = Project::open(settings, app::containers())?;
        let model = Arc::new(ScriptedModel::new("none", Script::default()));
        let agent = Agent::builder(model).tools(project.tools()).build()?;
        Ok(Tools { runtime: app::plain()?, project, agent, mode })
    }

    async fn call(&self, id: u64, name: String, args: Value) -> anyhow::Result<Result<Value, ToolFailure>> {
        let approver = Arc::new(front::clerk(&self.runtime, &self.project, self.mode));
        let store = Arc::new(BlobsOnly(self.runtime.store().clone()));
        let mut env = self.project.env(store, approver.clone(), Default::default());
        let mode = self.mode;
        env.policies.push(PlanPolicy::while_on(move || mode == ApproveMode::Plan));
        let call = ToolCall { id: format!("call_{id}"), name, args };
        Ok(match front::asking(&approver, invoke(&self.agent, env, call)).await {
            Invocation::Done(value) => Ok(value),
            Invocation::Failed(failure) => Err(*failure),
            Invocation::Suspended(_) => Err(ToolFailure::new(
                "APPROVAL_REQUIRED",
                "this needs an approval, and nobody is here to ask",
            )),
            Invocation::Fatal(message) => anyhow::bail!(message),
        })
    }
}
