//! What a run is given from outside ([`Env`]), and what its parts share ([`Services`]).

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::History;
use crate::agent::Agent;
use crate::approval::{Approver, Asking, DenyAll};
use crate::command::Confinement;
use crate::effect::{AskBeforeChange, Policy};
use crate::event::{AgentPath, Event, EventKind, Suspension, ToolFinished};
use crate::guard::{Outcome, Pass, Redactor, Repeats, Truncation, Turn};
use crate::hook::{Flow, Hook, HookError};
use crate::ids::{Clock, Ids, RandomIds, RunId, SystemClock};
use crate::journal::{Journal, Observer};
use crate::message::ToolCall;
use crate::state::{CallStatus, State};
use crate::store::{MemoryStore, Store};
use crate::telemetry::{Payload, Payloads};
use crate::tool::ToolFailure;
use crate::toolbox::Toolbox;

/// What a run is given from outside. Nothing here is looked up by the library itself.
#[derive(Clone)]
pub struct Env {
    /// Where events and long texts go.
    pub store: Arc<dyn Store>,
    /// Who is asked.
    pub approver: Arc<dyn Approver>,
    /// What is allowed; verdicts combine by `max`.
    pub policies: Vec<Arc<dyn Policy>>,
    /// Who watches.
    pub observers: Vec<Arc<dyn Observer>>,
    /// What must not be shown.
    pub redactor: Arc<Redactor>,
    /// How much of a result a model sees.
    pub truncation: Truncation,
    /// What spans carry.
    pub payloads: Payloads,
    /// What a person should know of the run's surroundings, for the beginning of its log.
    pub warnings: Vec<String>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Names for runs.
    pub ids: Arc<dyn Ids>,
    /// The folder the agent works in, as people write it. Approvals are bound to it.
    pub root: String,
    /// Whether commands are confined. An approval of a command that is confined does not hold where none is.
    pub confinement: Confinement,
    /// Version of the program, for the log.
    pub version: String,
    /// Name of the session a new run belongs to.
    pub session: Option<String>,
    /// Address of the model server, where the person who begins a new run names one.
    pub api_base: Option<String>,
    /// Stops the run.
    pub cancel: CancellationToken,
}

impl Default for Env {
    /// Keeps nothing, asks nobody, allows only looking.
    fn default() -> Self {
        Env {
            store: Arc::new(MemoryStore::default()),
            approver: Arc::new(DenyAll),
            policies: vec![Arc::new(AskBeforeChange)],
            observers: Vec::new(),
            redactor: Arc::default(),
            truncation: Truncation::default(),
            payloads: Payloads::default(),
            warnings: Vec::new(),
            clock: Arc::new(SystemClock::default()),
            ids: Arc::new(RandomIds),
            root: ".".into(),
            confinement: Confinement::None,
            version: env!("CARGO_PKG_VERSION").into(),
            session: None,
            api_base: None,
            cancel: CancellationToken::new(),
        }
    }
}

/// What the parts of one agent's run share. Lives as long as the longest of them.
pub struct Services {
    pub(crate) journal: Arc<Journal>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) approver: Arc<dyn Approver>,
    /// Who answers this agent's questions: at least as strict as for those that called it.
    pub(crate) asking: Asking,
    pub(crate) policies: Vec<Arc<dyn Policy>>,
    pub(crate) hooks: Vec<Arc<dyn Hook>>,
    pub(crate) toolbox: Arc<Toolbox>,
    pub(crate) redactor: Arc<Redactor>,
    pub(crate) truncation: Truncation,
    payloads: Payloads,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) root: String,
    pub(crate) confinement: Confinement,
    pub(crate) version: String,
    /// Ends this agent and those it called, and nothing above it.
    pub(crate) cancel: CancellationToken,
    /// Loop detection of this agent alone.
    pub(crate) repeats: Mutex<Repeats>,
    /// What the log held when this process took the run up.
    pub(crate) history: History,
}

impl Services {
    /// For a run's main agent.
    pub(crate) fn of_run(agent: &Agent, env: Env, run: RunId, history: Vec<Event>) -> Arc<Self> {
        let observers = env.observers.clone();
        let journal = Journal::open(run, env.store.clone(), env.clock.clone(), observers, &history);
        Services::of_turn(agent, env, journal, history)
    }

    /// The same with a journal that is open already. Its observers stay those it began with.
    pub(crate) fn of_turn(agent: &Agent, env: Env, journal: Arc<Journal>, history: Vec<Event>) -> Arc<Self> {
        let mut policies = env.policies;
        policies.extend(agent.policies.iter().cloned());
        Arc::new(Services {
            repeats: Mutex::new(journal.with_state(|state| Repeats::after(&state.history))),
            journal,
            store: env.store,
            approver: env.approver,
            asking: agent.asking,
            policies,
            hooks: agent.hooks.clone(),
            toolbox: agent.toolbox.clone(),
            redactor: env.redactor,
            truncation: env.truncation,
            payloads: env.payloads,
            clock: env.clock,
            root: env.root,
            confinement: env.confinement,
            version: env.version,
            cancel: env.cancel.child_token(),
            history: Arc::new(history),
        })
    }

    /// For a sub-agent: its own state and loop detection, policies at least as strict, everything else shared.
    pub(crate) fn of_child(&self, agent: &Agent, path: AgentPath) -> Arc<Self> {
        let mut state = State::fold(self.history.iter(), &path);
        state.take_up(self.clock.now());
        let mut policies = self.policies.clone();
        policies.extend(agent.policies.iter().cloned());
        Arc::new(Services {
            repeats: Mutex::new(Repeats::after(&state.history)),
            journal: self.journal.child(path, state),
            store: self.store.clone(),
            approver: self.approver.clone(),
            asking: self.asking.max(agent.asking),
            policies,
            hooks: agent.hooks.clone(),
            toolbox: agent.toolbox.clone(),
            redactor: self.redactor.clone(),
            truncation: self.truncation.clone(),
            payloads: self.payloads,
            clock: self.clock.clone(),
            root: self.root.clone(),
            confinement: self.confinement,
            version: self.version.clone(),
            cancel: self.cancel.child_token(),
            history: self.history.clone(),
        })
    }

    /// What spans may carry.
    pub(crate) fn payload(&self) -> Payload<'_> {
        Payload { payloads: self.payloads, redactor: &self.redactor }
    }

    pub(crate) fn has_tool(&self, name: &str) -> bool {
        self.toolbox.has(name)
    }

    /// Tells the person something that stops nothing. A log that cannot be written will say so at the next event
    /// that matters.
    pub(crate) async fn warn(&self, message: String) {
        let _ = self.journal.append(EventKind::Warning { message }).await;
    }

    pub(crate) fn forget_repeats(&self) {
        self.repeats.lock().unwrap_or_else(PoisonError::into_inner).forget();
    }

    pub(crate) async fn before_step(&self, step: u32) -> Flow {
        self.first_refusal(self.hooks.iter().map(|hook| (hook.name(), hook.before_step(step)))).await
    }

    pub(crate) async fn after_step(&self, step: u32) {
        for hook in &self.hooks {
            self.run_hook(hook.name(), hook.after_step(step)).await;
        }
    }

    pub(crate) async fn before_tool(&self, call: &ToolCall) -> Flow {
        self.first_refusal(self.hooks.iter().map(|hook| (hook.name(), hook.before_tool(call)))).await
    }

    pub(crate) async fn after_tool(&self, call: &ToolCall, finished: &ToolFinished) {
        for hook in &self.hooks {
            self.run_hook(hook.name(), hook.after_tool(call, finished)).await;
        }
    }

    /// Asks every hook, also after one refused; the first refusal counts.
    async fn first_refusal<'a>(
        &self,
        asked: impl Iterator<Item = (&'a str, BoxFuture<'a, Result<Flow, HookError>>)>,
    ) -> Flow {
        let mut answer = Flow::Continue;
        for (name, hook) in asked {
            if let Some(refusal @ Flow::Refuse(_)) = self.run_hook(name, hook).await
                && answer == Flow::Continue
            {
                answer = refusal;
            }
        }
        answer
    }

    /// Runs a hook; one that fails or panics is reported and otherwise ignored.
    async fn run_hook<T>(&self, name: &str, hook: BoxFuture<'_, Result<T, HookError>>) -> Option<T> {
        let problem = match AssertUnwindSafe(hook).catch_unwind().await {
            Ok(Ok(value)) => return Some(value),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it panicked".to_owned(),
        };
        self.warn(format!("the hook `{name}` failed: {problem}")).await;
        None
    }

    /// A call on its way to the toolbox.
    pub(crate) fn pass(
        self: &Arc<Self>,
        call: ToolCall,
        cell: Option<u32>,
        status: CallStatus,
        turn: Turn,
    ) -> Pass {
        Pass {
            call,
            cell,
            status,
            effects: Vec::new(),
            verdict: None,
            services: self.clone(),
            cancel: self.cancel.child_token(),
            turn,
        }
    }
}

/// What a single call outside of any run came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Invocation {
    /// The result as a model would see it.
    Done(Value),
    /// The failure as a model would see it.
    Failed(Box<ToolFailure>),
    /// A person must decide first.
    Suspended(Suspension),
    /// It broke.
    Fatal(String),
}

/// Makes one call through the full guard of an agent's toolbox, outside of any task.
pub async fn invoke(agent: &Agent, env: Env, call: ToolCall) -> Invocation {
    let run = env.ids.run(env.clock.now());
    let services = Services::of_run(agent, env, run, Vec::new());
    let pass = services.pass(call, None, CallStatus::New, Turn::default());
    match agent.toolbox.call(pass).await {
        Outcome::Done(done) => Invocation::Done(done.value),
        Outcome::Failed(failure) => Invocation::Failed(failure),
        Outcome::Suspended(suspension) => Invocation::Suspended(suspension),
        Outcome::Fatal(message) => Invocation::Fatal(message),
    }
}
