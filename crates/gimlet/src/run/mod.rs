//! A run: an agent at work on a task. The loop asks [`next_action`] what to do, performs it, and records what happened;
//! it holds nothing that is not in the log, so another process can take over at any event.

mod act;
mod aim;
mod aside;
mod conclude;
mod execute;
mod fallback;
mod guided;
mod plan;
mod room;
mod sample;
mod services;
mod understand;

use std::sync::Arc;
use std::time::Duration;

use tracing::{Instrument, Span};

use crate::action::{Action, next_action};
use crate::agent::Agent;
use crate::cell::Session;
use crate::event::{Event, EventKind, Failure, FeedbackReason, FinishState, Finished, Started, Suspension};
use crate::feed::{After, Events};
use crate::guided::Step;
use crate::hook::Flow;
use crate::ids::RunId;
use crate::limits::Limits;
use crate::prompt::system_prompt;
use crate::state::{State, Stop};
use crate::store::StoreError;
use crate::telemetry::{self, Place};

pub use services::{Env, Invocation, Services, invoke};

/// An agent at work.
pub struct Run {
    pub(crate) agent: Arc<Agent>,
    pub(crate) services: Arc<Services>,
    /// The interpreter, once code has run in this process; dropped with the run, rebuilt by replay.
    session: Option<Box<dyn Session>>,
    /// Span of the whole run; ends with it.
    span: Span,
    /// Span of the current step, once something happened in it; ends with it.
    step: Option<Span>,
    /// The step whose end hooks have not been told of.
    open_step: Option<u32>,
}

/// How a run ended, for now or for good.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// It is over.
    Finished(Finished),
    /// It can go on later.
    Suspended(Suspension),
    /// It broke; it can be tried again.
    Failed(Failure),
}

/// Why a run could not be worked on at all.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The log cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The prompt cannot be written.
    #[error("the prompt cannot be rendered: {0}")]
    Prompt(#[from] minijinja::Error),
    /// The log holds no beginning.
    #[error("run `{0}` has no beginning")]
    Empty(RunId),
    /// The run is over.
    #[error("run `{0}` is finished; there is nothing to resume")]
    Over(RunId),
    /// The run ended at a limit, and has no more of it now than it had then.
    #[error("run `{0}` is at its limit; there is nothing to resume before that is raised")]
    AtLimit(RunId, Box<Finished>),
}

/// What a step of the loop came to.
pub(crate) enum Next {
    /// Go on.
    Go,
    /// Stop.
    End(Ending),
}

/// Speaks to a run while it works. Cheap to clone; outlives the run harmlessly.
#[derive(Clone)]
pub struct Handle {
    services: Arc<Services>,
}

impl Handle {
    /// Adds something for the model to read at its next turn.
    pub async fn say(&self, text: impl Into<String>) -> Result<(), StoreError> {
        self.services.forget_repeats();
        self.services.journal.append(EventKind::UserMessage { text: text.into() }).await
    }

    /// Asks for a plan, or a new one, before the next step.
    pub async fn replan(&self) -> Result<(), StoreError> {
        self.services.journal.append(EventKind::PlanRequested).await
    }

    /// The run's events from some point on.
    pub fn events(&self, after: After) -> Events {
        self.services.journal.events(after)
    }

    /// Writes into the log what happened to the run between its steps.
    pub async fn record(&self, kind: EventKind) -> Result<(), StoreError> {
        self.services.journal.append(kind).await
    }

    /// Stops the run at once; it can be resumed.
    pub fn cancel(&self) {
        self.services.cancel.cancel();
    }
}

impl Run {
    /// Begins a run.
    pub async fn start(agent: Arc<Agent>, task: &str, mut env: Env) -> Result<Run, RunError> {
        let warnings = std::mem::take(&mut env.warnings);
        let id = env.ids.run(env.clock.now());
        let started = beginning(&agent, task, &env.root, &env.version, agent.limits.clone())?;
        let started = Started { session: env.session.clone(), api_base: env.api_base.clone(), ..started };
        let services = Services::of_run(&agent, env, id, Vec::new());
        services.journal.append(EventKind::RunStarted(started)).await?;
        for warning in warnings {
            services.warn(warning).await;
        }
        Ok(Run::new(agent, services))
    }

    /// Takes up a run that stopped. `limits` replaces the run's own, to let it go further.
    pub async fn resume(
        agent: Arc<Agent>,
        id: &RunId,
        env: Env,
        limits: Option<Limits>,
    ) -> Result<Run, RunError> {
        Run::resume_after(None, agent, id, env, limits).await
    }

    /// The same, with what an earlier turn of the run in this process has kept.
    pub async fn resume_after(
        earlier: Option<Run>,
        agent: Arc<Agent>,
        id: &RunId,
        env: Env,
        limits: Option<Limits>,
    ) -> Result<Run, RunError> {
        let events = env.store.load(id).await?;
        let state = State::fold(&events, &Default::default());
        if let Some(Stop::Finished(finished)) = &state.stop {
            if finished.state == FinishState::Answered {
                return Err(RunError::Over(id.clone()));
            }
            if state.has_reached(finished.state, limits.as_ref().unwrap_or(&state.limits)) {
                return Err(RunError::AtLimit(id.clone(), finished.clone()));
            }
        }
        Run::take_up(earlier, agent, id, env, limits, events, &state).await
    }

    /// Goes on with a conversation: takes up a run, answered or not, and says something new in it.
    pub async fn converse(
        agent: Arc<Agent>,
        id: &RunId,
        text: &str,
        env: Env,
        limits: Option<Limits>,
    ) -> Result<Run, RunError> {
        Run::converse_after(None, agent, id, text, env, limits).await
    }

    /// The same, with what an earlier turn of the run in this process has kept: its journal, and its interpreter, so that
    /// no cell of code runs twice.
    pub async fn converse_after(
        earlier: Option<Run>,
        agent: Arc<Agent>,
        id: &RunId,
        text: &str,
        env: Env,
        limits: Option<Limits>,
    ) -> Result<Run, RunError> {
        let events = env.store.load(id).await?;
        let state = State::fold(&events, &Default::default());
        let run = Run::take_up(earlier, agent, id, env, limits, events, &state).await?;
        run.handle().say(text).await?;
        Ok(run)
    }

    async fn take_up(
        earlier: Option<Run>,
        agent: Arc<Agent>,
        id: &RunId,
        env: Env,
        limits: Option<Limits>,
        events: Vec<Event>,
        state: &State,
    ) -> Result<Run, RunError> {
        let Some(started) = &state.started else { return Err(RunError::Empty(id.clone())) };
        let resumed = EventKind::RunResumed {
            version: env.version.clone(),
            root: env.root.clone(),
            limits: limits.unwrap_or_else(|| state.limits.clone()),
            plan: agent.plan,
        };
        let mut warnings = Vec::new();
        if started.root != env.root {
            warnings.push(format!("the run began in {} and goes on in {}", started.root, env.root));
        }
        if started.version != env.version {
            warnings.push(format!(
                "the run began with version {} and goes on with {}",
                started.version, env.version
            ));
        }
        if started.tools_digest != agent.toolbox.digest() {
            warnings.push("the tools are not the same as when the run began".to_owned());
        }
        // A conversation is taken up with every task; what its log says already is not said again.
        warnings.retain(|warning| {
            !events
                .iter()
                .any(|event| matches!(&event.kind, EventKind::Warning { message } if message == warning))
        });
        let (journal, session) = match earlier {
            Some(run) => (Some(run.services.journal.clone()), run.session),
            None => (None, None),
        };
        let services = match journal {
            Some(journal) => Services::of_turn(&agent, env, journal, events),
            None => Services::of_run(&agent, env, id.clone(), events),
        };
        services.journal.append(resumed).await?;
        for warning in warnings {
            services.warn(warning).await;
        }
        Ok(Run { session, ..Run::new(agent, services) })
    }

    /// A sub-agent's part of a run; `services` are its own.
    pub(crate) async fn nested(
        agent: Arc<Agent>,
        services: Arc<Services>,
        task: &str,
        limits: Limits,
    ) -> Result<Run, RunError> {
        if services.journal.with_state(|state| state.started.is_none()) {
            let started = beginning(&agent, task, &services.root, &services.version, limits)?;
            services.journal.append(EventKind::AgentStarted(started)).await?;
        }
        Ok(Run::new(agent, services))
    }

    /// Makes room in the conversation of a run that rests: old observations give way, and old steps to a summary.
    /// `earlier` is what a turn in this process has kept. Returns the run, and whether anything gave way.
    pub async fn make_room_after(
        earlier: Option<Run>,
        agent: Arc<Agent>,
        id: &RunId,
        env: Env,
    ) -> Result<(Run, bool), RunError> {
        let events = env.store.load(id).await?;
        if events.is_empty() {
            return Err(RunError::Empty(id.clone()));
        }
        let (services, session) = match earlier {
            Some(run) => (Services::of_turn(&agent, env, run.services.journal.clone(), events), run.session),
            None => (Services::of_run(&agent, env, id.clone(), events), None),
        };
        let run = Run { session, ..Run::new(agent, services) };
        let span = run.span.clone();
        let made = run.clear_out().instrument(span).await?;
        Ok((run, made))
    }

    fn new(agent: Arc<Agent>, services: Arc<Services>) -> Run {
        let journal = &services.journal;
        let span = journal.with_state(|state| match &state.started {
            Some(started) => {
                let resumes = usize::from(!services.history.is_empty())
                    + services
                        .history
                        .iter()
                        .filter(|event| matches!(event.kind, EventKind::RunResumed { .. }))
                        .count();
                let (run, path) = (journal.run().as_str(), journal.path().as_str());
                telemetry::agent_span(&Place { run, path, resumes }, started, &services.payload())
            }
            None => Span::none(),
        });
        Run { agent, services, session: None, step: None, span, open_step: None }
    }

    /// Its id.
    pub fn id(&self) -> &RunId {
        self.services.journal.run()
    }

    /// Something to speak to it with.
    pub fn handle(&self) -> Handle {
        Handle { services: self.services.clone() }
    }

    /// Works until it ends, stops or breaks.
    pub async fn drive(mut self) -> Result<Ending, RunError> {
        self.turn().await
    }

    /// The same for a run that is kept afterwards, so that its next turn finds its interpreter and its journal.
    pub async fn turn(&mut self) -> Result<Ending, RunError> {
        let span = self.span.clone();
        let ending = self.work().instrument(span.clone()).await?;
        match &ending {
            Ending::Finished(finished) => {
                telemetry::record_finished(&span, finished, &self.services.payload());
            }
            Ending::Suspended(_) => telemetry::record_suspended(&span),
            Ending::Failed(failure) => telemetry::record_failed(&span, failure),
        }
        Ok(ending)
    }

    async fn work(&mut self) -> Result<Ending, RunError> {
        let stop = self.services.cancel.clone();
        let deadline = self.time_left();
        let mut expired = false;
        let ending = {
            let work = self.until_end();
            tokio::pin!(work);
            tokio::select! {
                biased;
                ending = &mut work => ending?,
                () = tokio::time::sleep(deadline) => {
                    // Let the work wind down by itself, so that what was under way is recorded.
                    expired = true;
                    stop.cancel();
                    work.await?
                }
            }
        };
        let ending = match ending {
            Ending::Suspended(Suspension::Interrupted) if expired => {
                Ending::Finished(self.partial(FinishState::Timeout))
            }
            other => other,
        };
        self.record_ending(&ending).await?;
        Ok(ending)
    }

    async fn until_end(&mut self) -> Result<Ending, StoreError> {
        loop {
            let action = match self.services.journal.with_state(next_action) {
                // The last answer costs a step as well, and it is the caller's.
                asks @ (Action::Sample { .. }
                | Action::Plan
                | Action::Guided(Step::Ask(_))
                | Action::Tell { reason: FeedbackReason::LastAnswer, .. }) => {
                    self.services.journal.callers_spent().map_or(asks, Action::GiveUp)
                }
                action => action,
            };
            if self.services.cancel.is_cancelled() && !matches!(action, Action::Rest(_)) {
                return Ok(Ending::Suspended(Suspension::Interrupted));
            }
            if let Next::End(ending) = self.perform(action).await? {
                return Ok(ending);
            }
        }
    }

    async fn perform(&mut self, action: Action) -> Result<Next, StoreError> {
        match action {
            Action::Sample { step, begin } => {
                self.close_step().await;
                if begin {
                    if let Some(end) = self.make_room(0).await? {
                        return Ok(Next::End(end));
                    }
                    if let Flow::Refuse(reason) = self.services.before_step(step).await {
                        let message = format!("a hook refused step {step}: {reason}");
                        return Ok(fail("HOOK_REFUSED", message, None));
                    }
                    if let Some(spent) = self.services.journal.begin_step(step).await? {
                        return Ok(Next::End(Ending::Finished(self.partial(spent))));
                    }
                }
                self.open_step = Some(step);
                let span = self.step.insert(telemetry::step_span(step)).clone();
                self.sample(step).instrument(span).await
            }
            Action::Plan => {
                self.close_step().await;
                if let Some(end) = self.make_room(plan::QUESTION).await? {
                    return Ok(Next::End(end));
                }
                let step = self.services.journal.with_state(|state| state.step);
                let span = telemetry::plan_span(step);
                self.plan(step, &span).instrument(span.clone()).await
            }
            Action::Guided(step) => self.guide(step).await,
            Action::FallBack => self.fall_back().await,
            Action::CallsAsText => self.calls_as_text().await,
            Action::Tell { reason, text } => {
                self.services.journal.append(EventKind::Feedback { reason, text }).await?;
                Ok(Next::Go)
            }
            Action::Act(calls) => {
                let span = self.step_span();
                self.act(calls).instrument(span).await
            }
            Action::Execute { cell, code, begin } => {
                let span = self.step_span();
                self.execute(cell, &code, begin).instrument(span).await
            }
            Action::Conclude { answer, value } => {
                self.close_step().await;
                self.conclude(answer, value).await
            }
            Action::GiveUp(state) => Ok(Next::End(Ending::Finished(self.partial(state)))),
            Action::Rest(stop) => Ok(Next::End(match stop {
                Stop::Suspended(suspension) => Ending::Suspended(suspension),
                Stop::Finished(finished) => Ending::Finished(*finished),
                Stop::Failed(failure) => Ending::Failed(failure),
            })),
        }
    }

    /// The span of the current step; a run that was taken up in the middle of one opens it anew.
    fn step_span(&mut self) -> Span {
        let span = || self.services.journal.with_state(telemetry::work_span);
        self.step.get_or_insert_with(span).clone()
    }

    async fn close_step(&mut self) {
        self.step = None;
        if let Some(step) = self.open_step.take() {
            self.services.after_step(step).await;
        }
    }

    /// Writes how it ended. A sub-agent that waits for a person leaves its record open: the run as a whole stops.
    async fn record_ending(&self, ending: &Ending) -> Result<(), StoreError> {
        let journal = &self.services.journal;
        if journal.with_state(|state| state.stop.is_some()) {
            return Ok(());
        }
        let kind = match (ending, journal.path().is_root()) {
            (Ending::Finished(finished), true) => EventKind::RunFinished(finished.clone()),
            (Ending::Suspended(reason), true) => EventKind::RunSuspended { reason: reason.clone() },
            (Ending::Failed(error), true) => EventKind::RunFailed { error: error.clone() },
            (Ending::Finished(finished), false) => EventKind::AgentFinished(finished.clone()),
            (Ending::Suspended(_), false) => return Ok(()),
            (Ending::Failed(failure), false) => {
                let answer = format!("{}: {}", failure.error, failure.message);
                EventKind::AgentFinished(Finished { answer, ..self.partial(FinishState::Failed) })
            }
        };
        journal.append(kind).await
    }

    /// What there is to show when a limit ends the run.
    fn partial(&self, state: FinishState) -> Finished {
        let answer = self.services.journal.with_state(|now| now.last_words().to_owned());
        self.finished(answer, None, state, Vec::new())
    }

    fn finished(
        &self,
        answer: String,
        value: Option<serde_json::Value>,
        state: FinishState,
        notes: Vec<String>,
    ) -> Finished {
        let now = self.services.clock.now();
        self.services.journal.with_state(|at| Finished {
            answer,
            value,
            state,
            steps: at.step,
            steps_below: at.steps_below,
            usage: at.usage,
            seconds: at.seconds(now),
            notes,
            work: Box::new(at.work.clone()),
        })
    }

    fn time_left(&self) -> Duration {
        const FOREVER: Duration = Duration::from_secs(60 * 60 * 24 * 365);
        let now = self.services.clock.now();
        self.services.journal.with_state(|state| match state.limits.max_seconds {
            Some(most) => {
                Duration::try_from_secs_f64((most - state.seconds(now)).max(0.0)).unwrap_or(FOREVER)
            }
            None => FOREVER,
        })
    }
}

fn beginning(
    agent: &Agent,
    task: &str,
    root: &str,
    version: &str,
    limits: Limits,
) -> Result<Started, minijinja::Error> {
    let specs = agent.toolbox.specs();
    Ok(Started {
        task: task.to_owned(),
        agent: agent.name.clone(),
        model: agent.model.id().to_owned(),
        model_name: agent.model_name.clone(),
        action: agent.action,
        dialect: agent.dialect,
        root: root.to_owned(),
        limits,
        plan: agent.plan,
        system: system_prompt(agent.action, agent.dialect, specs, &agent.told(agent.action))?,
        context: (agent.context)(task),
        tools: specs.iter().map(|spec| spec.name.clone()).collect(),
        tools_digest: agent.toolbox.digest(),
        executor: agent.executor.as_ref().map(|executor| executor.settings()).unwrap_or_default(),
        version: version.to_owned(),
        origin: None,
        forked: None,
        session: None,
        api_base: None,
    })
}

fn fail(error: &str, message: String, hint: Option<&str>) -> Next {
    Next::End(failed(error, message, hint))
}

fn failed(error: &str, message: String, hint: Option<&str>) -> Ending {
    Ending::Failed(Failure { error: error.to_owned(), message, hint: hint.map(str::to_owned) })
}

/// The events of a run so far, for a sub-agent that may have been at work before.
pub(crate) type History = Arc<Vec<Event>>;
