//! `gimlet mcp`: the servers there are and how they do, and Gimlet's own tools as a server.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::approval::{ApprovalRequest, Approver, Decision, Scope};
use gimlet::ids::RunId;
use gimlet::journal::Observer;
use gimlet::state::State;
use gimlet::store::Store;
use gimlet::tool::Tool;
use gimlet::{Agent, Run};
use gimlet_mcp::server::{Offer, Report, Task, Tasks, serve};
use gimlet_mcp::{Health, HealthRow};
use gimlet_models::{Script, ScriptedModel};
use gimlet_store::{Approvals, ApprovalsError, FileStore};
use jiff::Timestamp;
use serde_json::json;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::approver::stricter;
use crate::args::{ApproveMode, JsonArgs, McpArgs, McpCommand, McpServeArgs, RootArgs, WorkOptions};
use crate::config::{Settings, shown};
use crate::conversation;
use crate::diagnostics;
use crate::exit::ExitStatus;
use crate::home;
use crate::mcp::{self, Inert, Loudness};
use crate::patches::PatchFile;
use crate::style::{DIM, ERROR, GOOD, NAME, WARNING};
use crate::team;
use crate::world::{self, Place};

/// Lists servers, or is one.
pub(crate) async fn mcp(
    command: Option<McpCommand>,
    root: &RootArgs,
    mcp: &McpArgs,
) -> anyhow::Result<ExitStatus> {
    match command {
        None => list(root, mcp, JsonArgs { json: false }).await,
        Some(McpCommand::List(json)) => list(root, mcp, json).await,
        Some(McpCommand::Serve(args)) => offer(*args).await,
    }
}

async fn list(root: &RootArgs, mcp: &McpArgs, json: JsonArgs) -> anyhow::Result<ExitStatus> {
    let settings = Settings::load(root)?;
    diagnostics::start(&settings);
    // A Ctrl-C while servers are being looked at ends them, too.
    let stop = world::interruptible()?;
    let named = mcp::named(&settings, &mcp.files)?;
    for warning in &named.warnings {
        writeln!(crate::out::stderr(), "{WARNING}warning:{WARNING:#} {warning}")?;
    }
    let rows = tokio::select! {
        rows = mcp::health(&settings, named.servers.clone()) => rows,
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
                    "  {server}, protocol {protocol}, {} tools: {}",
                    tools.len(),
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
    for Inert { name, file } in inert {
        let file = shown(file);
        writeln!(stdout, "{NAME}{name}{NAME:#}  {WARNING}off{WARNING:#}  {file} is not trusted")?;
        writeln!(stdout, "  hint: read it, then run: gimlet trust {file}")?;
    }
    Ok(())
}

async fn offer(args: McpServeArgs) -> anyhow::Result<ExitStatus> {
    let options = args.options;
    let settings = Settings::load(&options)?;
    diagnostics::start(&settings);
    let stop = world::interruptible()?;
    let place = Place::open(&settings)?;
    let mut looking = place.reading();
    let mut tools = place.tools();
    if let Some(memory) = place.memory() {
        // The names under which other programs look for a memory.
        looking.extend(memory.reading_for_clients());
        tools.extend(memory.reading_for_clients().into_iter().chain(memory.writing_for_clients()));
    }
    let reading: BTreeSet<String> = looking.iter().map(|tool| tool.spec().name.clone()).collect();
    let tools = if args.read_only { looking } else { tools };
    // A toolbox belongs to an agent; this one never speaks.
    let agent =
        Agent::builder(Arc::new(ScriptedModel::new("none", Script::default()))).tools(tools).build()?;
    let session = format!("mcp-{}", std::process::id());
    let approvals = home::approvals()?;
    let standing: Arc<dyn Approver> =
        Arc::new(Standing { approvals: approvals.clone(), session: session.clone(), mode: options.approve });
    let waiting: Arc<dyn Approver> = Arc::new(Waiting { approvals, session });
    let env = world::env(&place, world::blobs_only()?, standing.clone(), Vec::new(), stop.clone());
    let tasks: Option<Arc<dyn Tasks>> =
        (!args.read_only).then(|| Arc::new(Worker { options, foreign: OnceCell::new() }) as Arc<dyn Tasks>);
    serve(Offer { agent, reading, env, standing, waiting, tasks }, stop).await?;
    Ok(ExitStatus::Success)
}

/// Earlier decisions, and the mode the server was started with.
struct Standing {
    approvals: Approvals,
    session: String,
    mode: ApproveMode,
}

impl Standing {
    fn known(&self, request: &ApprovalRequest) -> Result<Decision, ApprovalsError> {
        if self.approvals.granted(&request.binding, &self.session)?.is_some() {
            return Ok(Decision::Approve { scope: Scope::Session });
        }
        if let Some(decision) = self.approvals.decision(&request.id, &request.binding)? {
            return Ok(decision);
        }
        Ok(match stricter(self.mode, request.asking) {
            ApproveMode::Ask => Decision::Defer,
            ApproveMode::Never => Decision::Deny { feedback: None },
            ApproveMode::All => Decision::Approve { scope: Scope::Once },
        })
    }
}

impl Approver for Standing {
    fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, Decision> {
        // What cannot be read grants nothing.
        async move { self.known(&request).unwrap_or(Decision::Deny { feedback: None }) }.boxed()
    }
}

/// Leaves questions for `gimlet approve`.
struct Waiting {
    approvals: Approvals,
    session: String,
}

impl Approver for Waiting {
    fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, Decision> {
        async move {
            match self.approvals.ask(&request, &self.session, Timestamp::now()) {
                Ok(()) => Decision::Defer,
                Err(_) => Decision::Deny { feedback: None },
            }
        }
        .boxed()
    }
}

/// Works on whole tasks as `gimlet run` does.
struct Worker {
    options: WorkOptions,
    /// Tools of the configured MCP servers, which are started with the first task and serve all of them.
    foreign: OnceCell<Vec<Arc<dyn Tool>>>,
}

impl Tasks for Worker {
    fn work(
        &self,
        task: Task,
        approver: Arc<dyn Approver>,
        observer: Arc<dyn Observer>,
        stop: CancellationToken,
    ) -> BoxFuture<'_, Result<Report, String>> {
        async move {
            let run = self.run(task, approver, observer, stop).await.map_err(|error| format!("{error:#}"))?;
            let id = run.id().to_string();
            let ending = run.drive().await.map_err(|error| error.to_string())?;
            Ok(Report { run: id, ending })
        }
        .boxed()
    }
}

impl Worker {
    async fn run(
        &self,
        task: Task,
        approver: Arc<dyn Approver>,
        observer: Arc<dyn Observer>,
        stop: CancellationToken,
    ) -> anyhow::Result<Run> {
        let options = &self.options;
        let settings = Settings::load(options)?;
        let files = &options.mcp.files;
        let foreign = self.foreign.get_or_try_init(|| mcp::start(&settings, files, Loudness::Events)).await?;
        let place = Place::open(&settings)?.with_foreign(foreign.clone());
        let store = Arc::new(home::store()?);
        let env = world::env(&place, store.clone(), approver, vec![observer], stop);
        match task {
            Task::New(task) => {
                let ready = team::fresh(&place, &settings, options).await?;
                let run = Run::start(ready.agent, &task, env).await?;
                place.keep_patches_in(&folder(&store, run.id()));
                Ok(run)
            }
            Task::Resume(run) => {
                let id = store.resolve(&run)?;
                store.open_run(&id).await?;
                let state = State::fold(&store.load(&id).await?, &Default::default());
                let started = state.started.as_ref().with_context(|| format!("run {id} has no beginning"))?;
                // The conversation goes on in the way it began.
                let mut options = options.clone();
                conversation::as_begun(&mut options, started)?;
                // It asks the model it began with, whatever the server was started for.
                options.model.model = None;
                let ready = team::as_before(&place, &settings, &options, &state, started).await?;
                let folder = folder(&store, &id);
                place.take_up_patches(PatchFile::entries(&folder)?);
                place.keep_patches_in(&folder);
                Ok(Run::resume(ready.agent, &id, env, None).await?)
            }
        }
    }
}

fn folder(store: &FileStore, id: &RunId) -> PathBuf {
    let log = store.log_path(id);
    log.parent().map(Path::to_owned).unwrap_or(log)
}
