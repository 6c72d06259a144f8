//! A session: one conversation, which is one durable run that goes on from task to task. The model still knows what was
//! said, its requests only ever grow, and between turns the session keeps the journal, the interpreter and the servers.
//! A single task is a conversation of one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context;
use gimlet::approval::{ApprovalRequest, Decision};
use gimlet::event::{ActionFormat, Event, EventKind, Suspension};
use gimlet::feed::{After, Events};
use gimlet::guard::password_in_url;
use gimlet::ids::RunId;
use gimlet::parse::words_before_action;
use gimlet::run::Handle;
use gimlet::state::{State, Stop};
use gimlet::store::{Repair, StoreError};
use gimlet::tool::ToolSpec;
use gimlet::{Agent, Ending, Env, Run};
use gimlet_config::options::{ApproveMode, Options};
use gimlet_config::{Settings, UsageError};
use tokio::sync::OwnedMutexGuard;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::Dispatch;
use tracing::instrument::WithSubscriber;

use crate::approver::{Attendance, SessionApprover};
use crate::continuing::{append, as_begun, further, last_root, open_question};
use crate::extras::{Extras, Reserved};
use crate::mode::PlanPolicy;
use crate::notice::Notice;
use crate::project::Project;
use crate::runtime::Runtime;
use crate::team::{self, Duty, Ready, Team};
use crate::text::clip;
use crate::undo::Undone;
use crate::{context, fork, models, patches, trace, undo};

/// What an open question is answered with when the person says something else instead.
const SOMETHING_ELSE: &str = "The person did not answer and said something else instead; read it.";

/// What the model is told when the person stopped it and then says something else.
const INTERRUPTED: &str = "I interrupted you before you were done; what you were doing was not finished.";

/// What the model is told when plan mode begins or ends in the middle of a conversation.
const PLAN_BEGINS: &str = "Plan mode is on: look and say what you would do; nothing may be changed or run.";
const PLAN_ENDS: &str = "Plan mode is over: changes and commands are possible again.";

/// Most characters of its unfinished words that the model reads again.
const UNFINISHED_CHARS: usize = 1000;

/// What a session is to work on next.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A task: the first one, or the next one of the same conversation.
    Task(String),
    /// What is left of the run, with an answer to the question it stopped at if there is one.
    Resume(Option<Decision>),
}

/// One conversation. Clones are the same session.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

struct Inner {
    runtime: Runtime,
    options: Options,
    settings: Settings,
    project: Project,
    team: Team,
    action: ActionFormat,
    /// Changes to what code may import.
    imports: Vec<String>,
    /// The id that the run is to have.
    reserved: Option<RunId>,
    approver: Arc<SessionApprover>,
    /// Held by the turn that is under way.
    work: Arc<tokio::sync::Mutex<Work>>,
    live: Mutex<Live>,
}

/// Whether a session has a run already.
enum Begun {
    /// It has this one.
    Run(RunId),
    /// It has none; its first task may have an id to go by.
    Not(Option<RunId>),
}

/// What a turn needs to itself.
struct Work {
    agent: Arc<Agent>,
    /// Whether the agent was made for plan mode, with the tools that only look.
    is_planning: bool,
    /// The last turn of the run, with its journal and its interpreter.
    last: Option<Run>,
}

/// What can be looked at while a turn is under way.
struct Live {
    /// The model's id.
    model: String,
    /// What the model can be asked for by again: the name it has in the configuration, or its id.
    asked_as: String,
    /// The agent, for those who look at it.
    agent: Arc<Agent>,
    /// None before the first task.
    run: Option<RunId>,
    /// Speaks to the run, once a turn has begun in this process.
    handle: Option<Handle>,
    /// Stops the turn that is under way.
    cancel: CancellationToken,
}

/// A turn that is under way.
pub struct Turn {
    run: RunId,
    after: After,
    session: Session,
    work: JoinHandle<Result<Ending, gimlet::run::RunError>>,
}

impl Turn {
    /// The run.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// The events of this turn, from its first one.
    pub fn events(&self) -> anyhow::Result<Events> {
        self.session.events(self.after)
    }

    /// Waits until the run ends, stops or breaks.
    pub async fn ended(self) -> anyhow::Result<Ending> {
        Ok(self.work.await.context("the turn was not finished")??)
    }
}

impl Session {
    /// A new one, or the one that the session's name stands for.
    pub(crate) async fn begin(
        runtime: Runtime,
        options: Options,
        attendance: Attendance,
        extras: Extras,
    ) -> anyhow::Result<Session> {
        let named = match &options.session {
            Some(name) => runtime.catalog().named(name).await?,
            None => None,
        };
        if let Some(id) = named {
            match runtime.store().lease(&id).await {
                Ok(_) => return Session::take_up(runtime, id, options, attendance, extras).await,
                // It was removed since.
                Err(StoreError::NoSuchRun(_)) => {}
                Err(other) => return Err(other.into()),
            }
        }
        Session::fresh(runtime, options, attendance, extras).await
    }

    pub(crate) async fn fresh(
        runtime: Runtime,
        options: Options,
        attendance: Attendance,
        extras: Extras,
    ) -> anyhow::Result<Session> {
        let settings = runtime.settings(&options)?;
        runtime.tell_settings(&settings, &options)?;
        let foreign = runtime.server_tools(&settings, &options.mcp_files).await?;
        let project =
            Project::open(&settings, runtime.containers())?.with_foreign(foreign).with_extras(&extras);
        for warning in &project.knowledge().warnings {
            runtime.notify(Notice::Warning(warning.clone()));
        }
        if let Some(off) = project.knowledge().off() {
            runtime.notify(Notice::Detail(off));
        }
        let ready = team::fresh(&project, &settings, &options).await?;
        if let Some(why) = &ready.why {
            runtime.notify(Notice::Detail(format!("using {}: {why}", ready.model)));
        }
        if let Some(window) = &ready.window {
            runtime.notify(Notice::Detail(window.clone()));
        }
        Ok(Session::new(runtime, options, settings, project, ready, Begun::Not(extras.id), attendance))
    }

    pub(crate) async fn take_up(
        runtime: Runtime,
        id: RunId,
        mut options: Options,
        attendance: Attendance,
        extras: Extras,
    ) -> anyhow::Result<Session> {
        let store = runtime.store().clone();
        // Taking the run's lock also mends what a crash left behind.
        let opened = store.open(&id).await?;
        if let Repair::TornLine { bytes } = opened.repair {
            runtime.notify(Notice::Note(format!(
                "the log ended in the middle of a line; {bytes} bytes were dropped"
            )));
        }
        let events = store.load(&id).await?;
        let state = State::fold(&events, &Default::default());
        let started = state.started.as_ref().with_context(|| format!("run {id} has no beginning"))?;
        // The conversation goes on in the way it began, and where it was.
        as_begun(&mut options, started)?;
        options.plan.get_or_insert(state.planning);
        options.root.get_or_insert_with(|| last_root(&events, &started.root).into());
        let settings = runtime.settings(&options)?;
        runtime.tell_settings(&settings, &options)?;
        let foreign = runtime.server_tools(&settings, &options.mcp_files).await?;
        let project =
            Project::open(&settings, runtime.containers())?.with_foreign(foreign).with_extras(&extras);
        let ready =
            team::as_before(&project, &settings, &options, &state, started, runtime.notifier()).await?;
        let earlier = patches::entries(store.as_ref(), &id).await;
        project.take_up_patches(earlier.with_context(|| format!("cannot read the patches of run {id}"))?);
        project.keep_patches_for(&store, &id);
        Ok(Session::new(runtime, options, settings, project, ready, Begun::Run(id), attendance))
    }

    fn new(
        runtime: Runtime,
        options: Options,
        settings: Settings,
        project: Project,
        ready: Ready,
        begun: Begun,
        attendance: Attendance,
    ) -> Session {
        let (run, reserved) = match begun {
            Begun::Run(run) => (Some(run), None),
            Begun::Not(reserved) => (None, reserved),
        };
        let Ready { team, agent, action, imports, model, asked_as, why: _, window: _ } = ready;
        let approver = SessionApprover::new(
            runtime.inbox().clone(),
            settings.approve.value,
            options.session.clone(),
            attendance,
            project.bounded(),
            runtime.notifier().clone(),
        );
        let is_planning = settings.approve.value == ApproveMode::Plan;
        let work = Work { agent: agent.clone(), is_planning, last: None };
        let cancel = CancellationToken::new();
        let inner = Inner {
            runtime,
            options,
            settings,
            project,
            team,
            action,
            imports,
            reserved,
            approver: Arc::new(approver),
            work: Arc::new(tokio::sync::Mutex::new(work)),
            live: Mutex::new(Live { model, asked_as, agent, run, handle: None, cancel }),
        };
        Session { inner: Arc::new(inner) }
    }

    /// Begins a turn. It works on its own from here on, whether or not anybody waits for it.
    pub async fn submit(&self, input: Input) -> anyhow::Result<Turn> {
        let subscriber = self.inner.runtime.subscriber();
        self.begin_turn(input, subscriber.clone()).with_subscriber(subscriber).await
    }

    async fn begin_turn(&self, input: Input, subscriber: Dispatch) -> anyhow::Result<Turn> {
        let mut work = self.take_work()?;
        self.inner.project.check_folder()?;
        let changed = self.follow_mode(&mut work).await?;
        let earlier = self.stored_events().await?;
        let after = earlier.last().map_or(After::Start, |event| After::Seq(event.seq));
        let cancel = CancellationToken::new();
        let mut run = match input {
            Input::Task(text) => {
                let text = changed.map_or_else(|| text.clone(), |note| format!("{note}\n\n{text}"));
                self.say_next(&mut work, &earlier, &text, cancel.clone()).await?
            }
            Input::Resume(decision) => self.carry_on(&mut work, &earlier, decision, cancel.clone()).await?,
        };
        let id = run.id().clone();
        {
            let mut live = self.live();
            live.run = Some(id.clone());
            live.handle = Some(run.handle());
            live.cancel = cancel;
        }
        let working = async move {
            let ending = run.turn().await;
            work.last = Some(run);
            ending
        };
        let working = tokio::spawn(working.with_subscriber(subscriber));
        Ok(Turn { run: id, after, session: self.clone(), work: working })
    }

    async fn say_next(
        &self,
        work: &mut Work,
        events: &[Event],
        text: &str,
        cancel: CancellationToken,
    ) -> anyhow::Result<Run> {
        let Inner { options, settings, project, team, runtime, .. } = &*self.inner;
        let Some(id) = self.id() else {
            let mut env = self.env(cancel, None)?;
            if let Some(id) = &self.inner.reserved {
                env.ids = Arc::new(Reserved(id.clone()));
            }
            let run = Run::start(work.agent.clone(), text, env).await?;
            project.keep_patches_for(runtime.store(), run.id());
            if let Some(name) = &options.session {
                runtime.catalog().name(name, run.id()).await?;
            }
            return Ok(run);
        };
        let state = State::fold(events, &Default::default());
        let limits = further(events, &state, team.limits(options, settings));
        let ready = open_question(events)
            .map(|question| (question.id.clone(), Decision::Deny { feedback: Some(SOMETHING_ELSE.into()) }));
        let text = match state.stop {
            Some(Stop::Suspended(Suspension::Interrupted)) => format!("{}\n\n{text}", interrupted(&state)),
            Some(_) | None => text.to_owned(),
        };
        let env = self.env(cancel, ready)?;
        let (last, agent) = (work.last.take(), work.agent.clone());
        Ok(Run::converse_after(last, agent, &id, &text, env, Some(limits)).await?)
    }

    async fn carry_on(
        &self,
        work: &mut Work,
        events: &[Event],
        decision: Option<Decision>,
        cancel: CancellationToken,
    ) -> anyhow::Result<Run> {
        let id = self.id().context("there is nothing to carry on")?;
        let state = State::fold(events, &Default::default());
        let limits = team::said_limits(&self.inner.options, state.limits);
        let ready = decision.and_then(|decision| Some((open_question(events)?.id.clone(), decision)));
        let env = self.env(cancel, ready)?;
        let (last, agent) = (work.last.take(), work.agent.clone());
        Ok(Run::resume_after(last, agent, &id, env, Some(limits)).await?)
    }

    fn env(&self, cancel: CancellationToken, ready: Option<(String, Decision)>) -> anyhow::Result<Env> {
        let Inner { runtime, options, project, approver, .. } = &*self.inner;
        approver.prepare(ready);
        let mut env = project.env(runtime.store().clone(), approver.clone(), cancel);
        let mode = approver.clone();
        env.policies.push(PlanPolicy::while_on(move || mode.mode() == ApproveMode::Plan));
        let payloads = trace::payloads(runtime.process(), options.trace)?;
        // A password in an address is not for the log.
        let api_base = options.api_base.clone().filter(|address| password_in_url(address).is_none());
        Ok(Env { payloads, session: options.session.clone(), api_base, ..env })
    }

    fn take_work(&self) -> Result<OwnedMutexGuard<Work>, UsageError> {
        self.inner
            .work
            .clone()
            .try_lock_owned()
            .map_err(|_| UsageError::new("the session is at work").hint("wait for it, or cancel it"))
    }

    /// Says something to the run that is at work; the model reads it at its next turn.
    pub async fn say(&self, text: &str) -> anyhow::Result<()> {
        Ok(self.handle()?.say(text).await?)
    }

    /// Asks for a plan, or a new one, before the next step.
    pub async fn replan(&self) -> anyhow::Result<()> {
        self.record(vec![EventKind::PlanRequested]).await
    }

    /// Stops the turn that is under way; it can be resumed.
    pub fn cancel(&self) {
        self.live().cancel.cancel();
    }

    /// Whether a turn is under way.
    pub fn is_working(&self) -> bool {
        self.inner.work.try_lock().is_err()
    }

    /// Waits until no turn is under way.
    pub async fn rest(&self) {
        drop(self.inner.work.lock().await);
    }

    /// The context window of the model in tokens, where that is known.
    pub fn window(&self) -> Option<u32> {
        self.live().agent.window()
    }

    /// Whether the turn was stopped.
    pub fn is_cancelled(&self) -> bool {
        self.live().cancel.is_cancelled()
    }

    /// What happens from here on when an approval is needed.
    pub fn set_approve(&self, mode: ApproveMode) {
        self.inner.approver.set_mode(mode);
    }

    /// What happens when an approval is needed.
    pub fn approve(&self) -> ApproveMode {
        self.inner.approver.mode()
    }

    /// The questions that wait for an answer while a turn is under way.
    pub fn pending(&self) -> Vec<ApprovalRequest> {
        self.inner.approver.pending()
    }

    /// Waits until a question waits, and returns the first one.
    pub async fn asked(&self) -> ApprovalRequest {
        self.inner.approver.asked().await
    }

    /// Waits until a question waits no more: it was answered, here or in another process, or its run stopped.
    pub async fn settled(&self, approval: &str) {
        self.inner.approver.settled(approval).await;
    }

    /// Answers a question. Says whether it waited.
    pub fn decide(&self, approval: &str, decision: Decision) -> bool {
        self.inner.approver.decide(approval, decision)
    }

    /// The run's events from some point on, stored and live ones. It ends when the session does.
    pub fn events(&self, after: After) -> anyhow::Result<Events> {
        let live = self.live();
        match (&live.handle, &live.run) {
            (Some(handle), _) => Ok(handle.events(after)),
            (None, Some(run)) => Ok(Events::stored(run.clone(), self.inner.runtime.store().clone(), after)),
            (None, None) => Err(UsageError::new("the session has no run yet").into()),
        }
    }

    /// Everything that happened so far.
    pub async fn stored_events(&self) -> anyhow::Result<Vec<Event>> {
        match self.id() {
            Some(id) => Ok(self.inner.runtime.store().load(&id).await?),
            None => Ok(Vec::new()),
        }
    }

    /// A new run that shares the steps of this one before a certain one.
    pub async fn fork(&self, step: u32, message: Option<String>) -> anyhow::Result<RunId> {
        let id = self.id().context("there is nothing to fork")?;
        Ok(fork::fork(self.inner.runtime.store(), &id, step, message).await?.id)
    }

    /// Takes patches of the run back: all, or the one that is named.
    pub async fn undo(&self, patch: Option<&str>) -> anyhow::Result<Undone> {
        let id = self.id().context("there is nothing to undo")?;
        let work = self.take_work()?;
        let Inner { runtime, project, .. } = &*self.inner;
        let outcomes = undo::take_back(runtime.store().as_ref(), &id, project, patch).await?;
        let (kinds, untold) = undo::record(&self.stored_events().await?, &outcomes);
        self.record(kinds).await?;
        drop(work);
        Ok(Undone { outcomes, untold })
    }

    /// Makes room in the conversation. Returns whether anything gave way.
    pub async fn make_room(&self) -> anyhow::Result<bool> {
        let id = self.id().context("there is nothing to make room in")?;
        let mut work = self.take_work()?;
        let cancel = CancellationToken::new();
        let env = self.env(cancel.clone(), None)?;
        let (last, agent) = (work.last.take(), work.agent.clone());
        let (run, made) = Run::make_room_after(last, agent, &id, env).await?;
        let mut live = self.live();
        live.handle = Some(run.handle());
        live.cancel = cancel;
        work.last = Some(run);
        Ok(made)
    }

    /// Gives the agent the tools of the mode that is on now. Returns what the model of a conversation is told of it.
    async fn follow_mode(&self, work: &mut Work) -> anyhow::Result<Option<&'static str>> {
        let is_planning = self.approve() == ApproveMode::Plan;
        if work.is_planning == is_planning {
            return Ok(None);
        }
        self.rebuild(work, &self.model_name()).await?;
        Ok(self.id().map(|_| if is_planning { PLAN_BEGINS } else { PLAN_ENDS }))
    }

    /// Asks another model from the next turn on.
    pub async fn change_model(&self, name: &str) -> anyhow::Result<()> {
        let mut work = self.take_work()?;
        self.rebuild(&mut work, name).await
    }

    /// Makes the agent anew, on a model and for the present mode.
    async fn rebuild(&self, work: &mut Work, name: &str) -> anyhow::Result<()> {
        let Inner { options, settings, project, team, action, imports, .. } = &*self.inner;
        let mut found = models::find(name, settings).await?;
        if let Some(started) = State::fold(&self.stored_events().await?, &Default::default()).started {
            found.manner.dialect = started.dialect;
        }
        let approve = Some(self.approve());
        let options = Options { action: Some((*action).into()), approve, ..options.clone() };
        work.is_planning = approve == Some(ApproveMode::Plan);
        let (model, asked_as) = (found.model.id().to_owned(), found.reference());
        let context = match self.id() {
            // A run has it in its log.
            Some(_) => context::no_context(),
            None => team.context(project, settings, &options, &found, *action),
        };
        let duty = Duty { imports, limits: team.limits(&options, settings), context };
        work.agent = team.assemble(project, settings, &options, found, duty).await?;
        let mut live = self.live();
        (live.model, live.asked_as, live.agent) = (model, asked_as, work.agent.clone());
        Ok(())
    }

    /// Writes into the log what happened to the run between its steps.
    async fn record(&self, kinds: Vec<EventKind>) -> anyhow::Result<()> {
        let handle = self.live().handle.clone();
        match handle {
            Some(handle) => {
                for kind in kinds {
                    handle.record(kind).await?;
                }
                Ok(())
            }
            None => append(self.inner.runtime.store().as_ref(), &self.stored_events().await?, kinds).await,
        }
    }

    fn handle(&self) -> anyhow::Result<Handle> {
        self.live().handle.clone().context("the session has no run yet")
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        self.inner.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run, once there is one.
    pub fn id(&self) -> Option<RunId> {
        self.live().run.clone()
    }

    /// The model's id.
    pub fn model(&self) -> String {
        self.live().model.clone()
    }

    /// What the model can be asked for by again: the name it has in the configuration, or its id.
    pub fn model_name(&self) -> String {
        self.live().asked_as.clone()
    }

    /// The name of the agent that leads.
    pub fn agent_name(&self) -> String {
        self.live().agent.name().to_owned()
    }

    /// The tools of the agent that leads.
    pub fn tools(&self) -> Vec<Arc<ToolSpec>> {
        self.live().agent.toolbox().specs().to_vec()
    }

    /// How the agent acts.
    pub fn action(&self) -> ActionFormat {
        self.inner.action
    }

    /// What the session was begun with; one that was taken up has what its run began with.
    pub fn options(&self) -> &Options {
        &self.inner.options
    }

    /// The settings in force.
    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// The project it works in.
    pub fn project(&self) -> &Project {
        &self.inner.project
    }

    /// The runtime it belongs to.
    pub fn runtime(&self) -> &Runtime {
        &self.inner.runtime
    }
}

/// What the model is told of its interruption: that there was one, and what it had said until then.
fn interrupted(state: &State) -> String {
    let words = words_before_action(&state.unfinished, state.action).trim();
    match clip(words, UNFINISHED_CHARS) {
        none if none.is_empty() => INTERRUPTED.to_owned(),
        said => format!("{INTERRUPTED} You had said: {said}"),
    }
}

impl Drop for Inner {
    /// Another session, or another process, may take the run up from here on.
    fn drop(&mut self) {
        let live = self.live.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(run) = &live.run {
            self.runtime.store().close(run);
        }
    }
}
