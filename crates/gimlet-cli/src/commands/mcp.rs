//! `gimlet mcp`: the servers there are and how they do, and Gimlet's own tools as a server.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::Agent;
use gimlet::approval::{ApprovalRequest, Approver, Decision, Scope};
use gimlet::event::EventKind;
use gimlet::ids::RunId;
use gimlet::journal::Observer;
use gimlet::store::{Inbox, InboxError};
use gimlet_runtime::mcp::{self, Inert};
use gimlet_runtime::options::ApproveMode;
use gimlet_runtime::parts::mcp::server::{Offer, Report, Task, Tasks, serve};
use gimlet_runtime::parts::mcp::{Health, HealthRow, Reaper};
use gimlet_runtime::parts::models::{Script, ScriptedModel};
use gimlet_runtime::{
    Attendance, BlobsOnly, Bounded, Input, Options, PlanPolicy, Project, Runtime, decided_by,
};
use jiff::Timestamp;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::args::{JsonArgs, McpArgs, McpCommand, McpServeArgs, RootArgs};
use crate::exit::{ExitStatus, UsageError};
use crate::show::counted;
use crate::style::{DIM, ERROR, GOOD, NAME, WARNING};
use crate::{app, diagnostics, interrupt};

/// Lists servers, or is one.
pub(crate) async fn mcp(
    command: Option<McpCommand>,
    root: &RootArgs,
    mcp: &McpArgs,
    json: JsonArgs,
) -> anyhow::Result<ExitStatus> {
    match command {
        None => list(root, mcp, json).await,
        Some(McpCommand::List(json)) => list(root, mcp, json).await,
        Some(McpCommand::Serve(args)) => offer(*args).await,
    }
}

async fn list(root: &RootArgs, mcp: &McpArgs, json: JsonArgs) -> anyhow::Result<ExitStatus> {
    let settings = app::settings(root)?;
    diagnostics::start(&settings);
    // A Ctrl-C while servers are being looked at ends them, too.
    let stop = interrupt::interruptible()?;
    let named = mcp::named(&settings, &mcp.files)?;
    for warning in &named.warnings {
        writeln!(crate::out::stderr(), "{WARNING}warning:{WARNING:#} {warning}")?;
    }
    let reaper = Reaper::default();
    let rows = tokio::select! {
        rows = mcp::health(&settings, &named, &reaper) => rows?,
        () = stop.cancelled() => return Ok(ExitStatus::Interrupted),
    };
    let well = rows.iter().all(|row| matches!(row.health, Health::Up { .. }));
    if json.json {
        crate::out::json(&json!({ "servers": rows, "untrusted": named.inert }))?;
    } else if rows.is_empty() && named.inert.is_empty() {
        writeln!(crate::out::stderr(), "no MCP server is configured")?;
        writeln!(
            crate::out::stderr(),
            "hint: add [mcp.NAME] to your configuration, or name a file with --mcp"
        )?;
    } else {
        print(&rows, &named.inert)?;
    }
    Ok(if well { ExitStatus::Success } else { ExitStatus::Failure })
}

fn print(rows: &[HealthRow], inert: &[Inert]) -> anyhow::Result<()> {
    let mut stdout = crate::out::stdout();
    for HealthRow { name, launch, health } in rows {
        match health {
            Health::Up { server, protocol, tools, notes } => {
                writeln!(stdout, "{NAME}{name}{NAME:#}  {GOOD}up{GOOD:#}  {DIM}{launch}{DIM:#}")?;
                writeln!(
                    stdout,
                    "  {server}, protocol {protocol}, {}: {}",
                    counted(tools.len() as u64, "tool"),
                    tools.join(", ")
                )?;
                for note in notes {
                    writeln!(stdout, "  {WARNING}note:{WARNING:#} {note}")?;
                }
            }
            Health::Down { error, hint } => {
                writeln!(stdout, "{NAME}{name}{NAME:#}  {ERROR}down{ERROR:#}  {DIM}{launch}{DIM:#}")?;
                writeln!(stdout, "  {}", error.replace('\n', "\n  "))?;
                writeln!(stdout, "  hint: {hint}")?;
            }
        }
    }
    for server in inert {
        let name = &server.name;
        writeln!(stdout, "{NAME}{name}{NAME:#}  {WARNING}off{WARNING:#}  {}", server.why())?;
        writeln!(stdout, "  hint: {}", server.hint())?;
    }
    Ok(())
}

async fn offer(args: McpServeArgs) -> anyhow::Result<ExitStatus> {
    let options = args.options;
    let settings = app::settings(&options)?;
    diagnostics::start(&settings);
    let stop = interrupt::interruptible()?;
    let project = Project::open(&settings, app::containers())?;
    let mut looking = project.reading();
    let mut tools = project.tools();
    if let Some(memory) = project.memory() {
        // The names under which other programs look for a memory.
        looking.extend(memory.reading_for_clients());
        tools.extend(memory.reading_for_clients().into_iter().chain(memory.writing_for_clients()));
    }
    let reading: BTreeSet<String> = looking.iter().map(|tool| tool.spec().name.clone()).collect();
    let is_planning = settings.approve.value == ApproveMode::Plan;
    let tools = if args.read_only || is_planning { looking } else { tools };
    // A toolbox belongs to an agent; this one never speaks.
    let agent =
        Agent::builder(Arc::new(ScriptedModel::new("none", Script::default()))).tools(tools).build()?;
    let session = format!("mcp-{}", std::process::id());
    let runtime = app::serving()?;
    let inbox = runtime.inbox().clone();
    let standing: Arc<dyn Approver> = Arc::new(Standing {
        inbox: inbox.clone(),
        session: session.clone(),
        mode: settings.approve.value,
        bounded: project.bounded(),
    });
    let waiting: Arc<dyn Approver> = Arc::new(Waiting { inbox, session });
    let mut env = project.env(Arc::new(BlobsOnly(runtime.store().clone())), standing.clone(), stop.clone());
    env.policies.push(PlanPolicy::while_on(move || is_planning));
    let root = settings.root.clone();
    let options = Options { root: Some(root.clone()), ..Options::from(&options) };
    let tasks: Option<Arc<dyn Tasks>> =
        (!args.read_only).then(|| Arc::new(Worker { runtime, options, root }) as Arc<dyn Tasks>);
    serve(Offer { agent, reading, env, standing, waiting, tasks }, stop).await?;
    Ok(ExitStatus::Success)
}

/// Earlier decisions, and the mode the server was started with.
struct Standing {
    inbox: Arc<dyn Inbox>,
    session: String,
    mode: ApproveMode,
    bounded: Bounded,
}

impl Standing {
    async fn known(&self, request: &ApprovalRequest) -> Result<Decision, InboxError> {
        if self.inbox.granted(&request.binding, &self.session).await?.is_some() {
            return Ok(Decision::Approve { scope: Scope::Session });
        }
        if let Some(decision) = self.inbox.take(&request.id, &request.binding).await? {
            return Ok(decision);
        }
        Ok(decided_by(self.mode, request, &self.bounded).unwrap_or(Decision::Defer))
    }
}

impl Approver for Standing {
    fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, Decision> {
        // What cannot be read grants nothing.
        async move { self.known(&request).await.unwrap_or(Decision::Deny { feedback: None }) }.boxed()
    }
}

/// Leaves questions for `gimlet approve`.
struct Waiting {
    inbox: Arc<dyn Inbox>,
    session: String,
}

impl Approver for Waiting {
    fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, Decision> {
        async move {
            match self.inbox.ask(&request, &self.session, Timestamp::now()).await {
                Ok(()) => Decision::Defer,
                Err(_) => Decision::Deny { feedback: None },
            }
        }
        .boxed()
    }
}

/// Works on whole tasks as `gimlet run` does.
struct Worker {
    runtime: Runtime,
    /// Options of every task; the folder is the server's own.
    options: Options,
    root: PathBuf,
}

impl Tasks for Worker {
    fn work(
        &self,
        task: Task,
        approver: Arc<dyn Approver>,
        observer: Arc<dyn Observer>,
        stop: CancellationToken,
    ) -> BoxFuture<'_, Result<Report, String>> {
        async move { self.report(task, approver, observer, stop).await.map_err(|error| format!("{error:#}")) }
            .boxed()
    }
}

impl Worker {
    async fn report(
        &self,
        task: Task,
        approver: Arc<dyn Approver>,
        observer: Arc<dyn Observer>,
        stop: CancellationToken,
    ) -> anyhow::Result<Report> {
        let attendance = Attendance::Other(approver);
        let (session, input) = match task {
            Task::New(task) => {
                let session = self.runtime.begin_attended(self.options.clone(), attendance).await?;
                (session, Input::Task(task))
            }
            Task::Resume(run) => {
                let id = self.own(&run).await?;
                // It asks the model it began with, whatever the server was started for.
                let options = Options { model: None, ..self.options.clone() };
                (self.runtime.reopen_attended(&id, options, attendance).await?, Input::Resume(None))
            }
        };
        let turn = session.submit(input).await?;
        let (run, mut events) = (turn.run().to_string(), turn.events()?);
        let work = turn.ended();
        tokio::pin!(work);
        let ending = loop {
            tokio::select! {
                biased;
                Some(event) = events.next() => observer.observe(event?.as_ref()),
                ending = &mut work => break ending?,
                () = stop.cancelled(), if !session.is_cancelled() => session.cancel(),
            }
        };
        Ok(Report { run, ending })
    }

    /// A run of this folder. Clients get no hold of what was done in another one.
    async fn own(&self, run: &str) -> anyhow::Result<RunId> {
        let id = self.runtime.find_in(&self.root, run).await?;
        let events = self.runtime.store().load(&id).await?;
        let root = events.iter().rev().find_map(|event| match &event.kind {
            EventKind::RunResumed { root, .. } => Some(root.as_str()),
            EventKind::RunStarted(started) => Some(started.root.as_str()),
            _ => None,
        });
        match root {
            Some(root) if Path::new(root) == self.root => Ok(id),
            Some(_) | None => Err(UsageError::new(format!("run {id} belongs to another folder")).into()),
        }
    }
}
