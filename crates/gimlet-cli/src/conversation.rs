//! A conversation: one durable run that goes on from task to task, so that the model still knows what was said, its
//! requests only ever grow, and variables of its code live on. A single task is a conversation of one.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use gimlet::approval::{ApprovalRequest, Decision};
use gimlet::event::{ActionFormat, Event, EventKind, FinishState, Started, Suspension};
use gimlet::ids::RunId;
use gimlet::limits::Limits;
use gimlet::state::{State, Stop};
use gimlet::store::Store;
use gimlet::{Agent, Env, Run};
use gimlet_store::{FileStore, Repair};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::approver::CliApprover;
use crate::args::{Action, ExecutorChoice, RootArgs, RunOptions, WorkOptions};
use crate::config::Settings;
use crate::exit::UsageError;
use crate::front::Front;
use crate::models;
use crate::patches::PatchFile;
use crate::served::Manner;
use crate::show::note;
use crate::style::DIM;
use crate::team::{self, Duty, Ready, Team};
use crate::world::{self, Place};
use crate::{home, mcp, trace};

/// What an open question is answered with when the person says something else instead.
const SOMETHING_ELSE: &str = "The person did not answer and said something else instead; read it.";

/// What the model is told when the person stopped it and then says something else.
const INTERRUPTED: &str = "I interrupted you before you were done; what you were doing was not finished.";

/// A conversation and all it needs.
pub(crate) struct Conversation {
    pub(crate) options: RunOptions,
    pub(crate) settings: Settings,
    pub(crate) store: Arc<FileStore>,
    pub(crate) place: Place,
    team: Team,
    pub(crate) agent: Arc<Agent>,
    pub(crate) action: ActionFormat,
    /// Changes to what code may import.
    imports: Vec<String>,
    /// The model's id.
    pub(crate) model: String,
    /// What the model can be asked for by again: the name it has in the configuration, or its id.
    pub(crate) asked_as: String,
    /// None before the first task.
    run: Option<RunId>,
}

impl Conversation {
    /// A new one, or the one that the session's name stands for.
    pub(crate) async fn begin(options: RunOptions) -> anyhow::Result<Self> {
        let store = Arc::new(home::store()?);
        if let Some(id) = options.session.as_deref().map(known_session).transpose()?.flatten()
            && store.log_path(&id).exists()
        {
            return Conversation::take_up(store, id, options).await;
        }
        Conversation::fresh(options).await
    }

    /// A new one.
    pub(crate) async fn fresh(options: RunOptions) -> anyhow::Result<Self> {
        let store = Arc::new(home::store()?);
        let settings = Settings::load(&options)?;
        trace::begin(&settings, &options.trace, options.told())?;
        let mut place = Place::open(&settings)?;
        place.connect(&settings, &options.work.mcp, mcp::loudness(&options)).await?;
        let ready = team::fresh(&place, &settings, &options.work).await?;
        if let Some(why) = ready.why.as_ref().filter(|_| !options.json && !options.quiet) {
            writeln!(crate::out::stderr(), "{DIM}using {}: {why}{DIM:#}", ready.model)?;
        }
        Ok(Conversation::new(options, settings, store, place, ready, None))
    }

    /// The one that a run is.
    pub(crate) async fn open(run: &str, options: RunOptions) -> anyhow::Result<Self> {
        let store = Arc::new(home::store()?);
        let id = store
            .resolve_in(run, &options.work.root.canonical())
            // A run of this folder may go on in another one.
            .or_else(|_| store.resolve_in(run, &RootArgs { root: None }.canonical()))
            .map_err(|error| UsageError::new(error.to_string()).hint("see `gimlet runs`"))?;
        Conversation::take_up(store, id, options).await
    }

    async fn take_up(store: Arc<FileStore>, id: RunId, mut options: RunOptions) -> anyhow::Result<Self> {
        // Taking the run's lock also mends what a crash left behind.
        let opened = store.open_run(&id).await?;
        if let Repair::TornLine { bytes } = opened.repair {
            note(&format!("the log ended in the middle of a line; {bytes} bytes were dropped"))?;
        }
        let events = store.load(&id).await?;
        let state = State::fold(&events, &Default::default());
        let started = state.started.as_ref().with_context(|| format!("run {id} has no beginning"))?;
        // The conversation goes on in the way it began, and where it was.
        as_begun(&mut options.work, started)?;
        options.work.plan.get_or_insert(state.planning);
        options.work.root.root.get_or_insert_with(|| last_root(&events, &started.root).into());
        let settings = Settings::load(&options)?;
        trace::begin(&settings, &options.trace, options.told())?;
        let mut place = Place::open(&settings)?;
        place.connect(&settings, &options.work.mcp, mcp::loudness(&options)).await?;
        let ready = team::as_before(&place, &settings, &options.work, &state, started).await?;
        let folder = run_folder(&store, &id);
        place.take_up_patches(
            PatchFile::entries(&folder).with_context(|| format!("cannot read the patches of run {id}"))?,
        );
        place.keep_patches_in(&folder);
        Ok(Conversation::new(options, settings, store, place, ready, Some(id)))
    }

    fn new(
        options: RunOptions,
        settings: Settings,
        store: Arc<FileStore>,
        place: Place,
        ready: Ready,
        run: Option<RunId>,
    ) -> Self {
        let Ready { team, agent, action, imports, model, asked_as, why: _ } = ready;
        Conversation { options, settings, store, place, team, agent, action, imports, model, asked_as, run }
    }

    /// The run, once there is one.
    pub(crate) fn id(&self) -> Option<&RunId> {
        self.run.as_ref()
    }

    /// The command that carries a run on. A server that only the command line has named must be named again.
    pub(crate) fn resume(&self, id: &str) -> String {
        match &self.options.work.model.server.api_base {
            Some(address) => format!("gimlet resume {id} --api-base {address}"),
            None => format!("gimlet resume {id}"),
        }
    }

    /// Everything that happened so far.
    pub(crate) async fn events(&self) -> anyhow::Result<Vec<Event>> {
        match &self.run {
            Some(id) => Ok(self.store.load(id).await?),
            None => Ok(Vec::new()),
        }
    }

    /// Another model for what comes next.
    pub(crate) async fn change_model(&mut self, id: &str) -> anyhow::Result<()> {
        let mut found = models::find(id, &self.settings).await?;
        if let Some(started) = State::fold(&self.events().await?, &Default::default()).started {
            found.manner.dialect = started.dialect;
        }
        self.options.work.action = Some(self.action.into());
        found.model.id().clone_into(&mut self.model);
        self.asked_as = found.reference();
        let limits = self.team.limits(&self.options.work, &self.settings);
        let context = match self.run {
            // A run has it in its log.
            Some(_) => world::no_context(),
            None => {
                let manner = Manner { action: self.action, ..found.manner };
                world::context(&self.place, &self.settings, &manner)
            }
        };
        let duty = Duty { imports: &self.imports, limits, context };
        self.agent = self.team.assemble(&self.place, &self.settings, &self.options.work, found, duty).await?;
        Ok(())
    }

    /// Begins a task: the first one, or the next one of the same run.
    pub(crate) async fn say(
        &mut self,
        text: &str,
        front: &mut Front,
        cancel: CancellationToken,
    ) -> anyhow::Result<Run> {
        let Some(id) = self.run.clone() else {
            let env = self.env(front, cancel, None)?;
            let run = Run::start(self.agent.clone(), text, env).await?;
            self.place.keep_patches_in(&run_folder(&self.store, run.id()));
            if let Some(name) = &self.options.session {
                remember_session(name, run.id())?;
            }
            self.run = Some(run.id().clone());
            return Ok(run);
        };
        let events = self.events().await?;
        let state = State::fold(&events, &Default::default());
        let limits = further(&events, &state, self.team.limits(&self.options.work, &self.settings));
        let ready = open_question(&events)
            .map(|question| (question.id.clone(), Decision::Deny { feedback: Some(SOMETHING_ELSE.into()) }));
        let env = self.env(front, cancel, ready)?;
        let text = match state.stop {
            Some(Stop::Suspended(Suspension::Interrupted)) => format!("{INTERRUPTED}\n\n{text}"),
            Some(_) | None => text.to_owned(),
        };
        Ok(Run::converse(self.agent.clone(), &id, &text, env, Some(limits)).await?)
    }

    /// Carries on where the run stopped, with an answer to the question it stopped at if there is one.
    pub(crate) async fn carry_on(
        &mut self,
        decision: Option<Decision>,
        front: &mut Front,
        cancel: CancellationToken,
    ) -> anyhow::Result<Run> {
        let id = self.run.clone().context("there is nothing to carry on")?;
        let events = self.events().await?;
        let state = State::fold(&events, &Default::default());
        let limits = team::said_limits(&self.options.work, state.limits);
        let ready = decision.and_then(|decision| Some((open_question(&events)?.id.clone(), decision)));
        let env = self.env(front, cancel, ready)?;
        Ok(Run::resume(self.agent.clone(), &id, env, Some(limits)).await?)
    }

    /// Makes room in the conversation. Returns whether anything gave way.
    pub(crate) async fn make_room(&mut self, front: &mut Front) -> anyhow::Result<bool> {
        let id = self.run.clone().context("there is nothing to make room in")?;
        let env = self.env(front, CancellationToken::new(), None)?;
        Ok(Run::make_room_in(self.agent.clone(), &id, env).await?)
    }

    fn env(
        &self,
        front: &mut Front,
        cancel: CancellationToken,
        ready: Option<(String, Decision)>,
    ) -> anyhow::Result<Env> {
        let mut approver = CliApprover::new(
            home::approvals()?,
            self.options.work.approve,
            self.options.session.clone(),
            front.person(),
        );
        if let Some((id, decision)) = ready {
            approver = approver.ready(id, decision);
        }
        let observers = vec![front.observer(self.action)];
        let env = world::env(&self.place, self.store.clone(), Arc::new(approver), observers, cancel);
        let session = self.options.session.clone();
        Ok(Env { payloads: trace::payloads(&self.options.trace)?, session, ..env })
    }
}

/// Has a run taken up go on in the way it began: what earlier code did, its replay must be able to do again.
pub(crate) fn as_begun(options: &mut WorkOptions, started: &Started) -> Result<(), UsageError> {
    let began = &started.agent;
    if let Some(asked) = options.agent.as_ref().filter(|asked| *asked != began) {
        return Err(UsageError::new(format!(
            "the run is the agent `{began}`'s; it cannot go on as `{asked}`"
        ))
        .hint(format!("leave out `--agent {asked}`, or begin a new run with it")));
    }
    options.agent = Some(began.clone());
    let began = Action::from(started.action);
    if let Some(asked) = options.action.filter(|asked| *asked != began) {
        let (asked, began) = (asked.name(), began.name());
        return Err(UsageError::new(format!("the run acts by {began}; it cannot go on by {asked}"))
            .hint(format!("leave out `--action {asked}`, or begin a new run with it")));
    }
    options.action = Some(began);
    options.memory |=
        gimlet_memory::tools::NAMES.iter().all(|name| started.tools.iter().any(|tool| tool == name));
    let began = ExecutorChoice::recorded(&started.executor);
    match options.executor {
        Some(asked) if asked != began && started.action == ActionFormat::Code => {
            let (asked, began) = (asked.name(), began.name());
            Err(UsageError::new(format!("the run's code ran in `{began}`; it cannot go on in `{asked}`"))
                .hint(format!("leave out `--executor {asked}`, or begin a new run with it")))
        }
        Some(_) | None => {
            options.executor = Some(began);
            Ok(())
        }
    }
}

/// Whether a run has come to an answer, so that there is nothing to carry on.
pub(crate) fn is_answered(events: &[Event]) -> bool {
    match State::fold(events, &Default::default()).stop {
        Some(Stop::Finished(finished)) => finished.state == FinishState::Answered,
        Some(Stop::Suspended(_) | Stop::Failed(_)) | None => false,
    }
}

/// The question a run stopped at.
pub(crate) fn open_question(events: &[Event]) -> Option<&ApprovalRequest> {
    let stopped = events.iter().rev().find_map(|event| match &event.kind {
        EventKind::RunSuspended { reason } => Some(!matches!(reason, Suspension::Diverged { .. })),
        EventKind::RunResumed { .. } | EventKind::RunFinished(_) | EventKind::RunFailed { .. } => Some(false),
        _ => None,
    })?;
    let (at, request) = events.iter().enumerate().rev().find_map(|(at, event)| match &event.kind {
        EventKind::ApprovalRequested(request) => Some((at, request)),
        _ => None,
    })?;
    let decided = events[at..].iter().any(|event| match &event.kind {
        // Whoever quits at a question has not answered it.
        EventKind::ApprovalDecided { id, decision } => *id == request.id && *decision != Decision::Abort,
        _ => false,
    });
    (stopped && !decided).then_some(request)
}

/// Adds to a run's log what happened to it between its steps. `events` are all of the run so far.
pub(crate) async fn append(
    store: &FileStore,
    events: &[Event],
    kinds: impl IntoIterator<Item = EventKind>,
) -> anyhow::Result<()> {
    let last = events.last().context("the run has no beginning")?;
    for (seq, kind) in (last.seq + 1..).zip(kinds) {
        let (run, path) = (last.run.clone(), Default::default());
        store.append(&Event { run, seq, time: Timestamp::now(), path, kind }).await?;
    }
    Ok(())
}

/// The limits of one more task, on top of what the run has spent.
fn further(events: &[Event], state: &State, limits: Limits) -> Limits {
    let agents = events.iter().filter(|event| matches!(event.kind, EventKind::AgentStarted(_))).count();
    Limits {
        max_agents: limits.max_agents.saturating_add(u32::try_from(agents).unwrap_or(u32::MAX)),
        max_steps: state.step.saturating_add(limits.max_steps),
        step_budget: Some(state.steps_together().saturating_add(limits.steps_together())),
        max_seconds: limits.max_seconds.map(|seconds| seconds + state.seconds(Timestamp::now())),
        max_tokens: limits.max_tokens.map(|tokens| tokens.saturating_add(state.usage.total())),
        ..limits
    }
}

/// Where the run was at work last.
fn last_root<'a>(events: &'a [Event], first: &'a str) -> &'a str {
    events
        .iter()
        .rev()
        .find_map(|event| match &event.kind {
            EventKind::RunResumed { root, .. } => Some(root.as_str()),
            _ => None,
        })
        .unwrap_or(first)
}

/// Where a run's files are.
pub(crate) fn run_folder(store: &FileStore, id: &RunId) -> PathBuf {
    let log = store.log_path(id);
    log.parent().map(Path::to_owned).unwrap_or(log)
}

fn session_file(name: &str) -> anyhow::Result<PathBuf> {
    Ok(home::path()?.join("sessions").join(name))
}

/// The run that a session's name stands for.
fn known_session(name: &str) -> anyhow::Result<Option<RunId>> {
    let path = session_file(name)?;
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(text.trim().parse().ok()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Lets a session's name stand for a run.
pub(crate) fn remember_session(name: &str, run: &RunId) -> anyhow::Result<()> {
    let path = session_file(name)?;
    let folder = path.parent().unwrap_or(&path);
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&path, format!("{run}\n")))
        .with_context(|| format!("cannot write {}", path.display()))
}
