//! A model server that plays a script and checks every request it gets.
//!
//! It speaks Ollama, OpenAI (both its protocols) and Anthropic at one address; a request that breaks a [`Rule`] is answered with 400 and
//! kept, so that a test can ask at its end whether anything went wrong.

mod body;
mod flush;
mod history;
mod http;
pub mod record;
pub mod rules;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gimlet_models::Script;
use gimlet_models::script::Player;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use record::{Journal, Recorded};
use rules::{Rule, Violation};

/// A running server. It ends when this is dropped.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// Dropping it ends the task, and with it every connection.
    stop: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<()>>,
}

/// How a server is to be.
pub struct ModelServerBuilder {
    script: Script,
    port: u16,
    manners: Manners,
    observer: Option<Observer>,
    embed: Option<Embed>,
}

/// Makes the vector of a text.
pub(crate) type Embed = Box<dyn Fn(&str) -> Vec<f32> + Send + Sync>;

/// Told of each model call once it has been checked.
pub(crate) type Observer = Box<dyn Fn(&Recorded) + Send + Sync>;

/// What the connections of a server share.
pub(crate) struct Shared {
    pub(crate) player: Player,
    pub(crate) manners: Manners,
    pub(crate) observer: Option<Observer>,
    pub(crate) embed: Option<Embed>,
    journal: Mutex<Journal>,
}

/// How a server judges and what it pretends to have.
#[derive(Debug, Clone, Default)]
pub(crate) struct Manners {
    pub(crate) strictness: Strictness,
    /// Rules that are not checked.
    pub(crate) allowed: Vec<Rule>,
    /// The models it has; when empty, whatever it is asked for.
    pub(crate) models: Vec<String>,
    pub(crate) context: Context,
    pub(crate) windows: Windows,
}

/// What a server tells about the windows of its models, beside their maximum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Windows {
    /// The model's file sets the maximum.
    #[default]
    Set,
    /// Nothing.
    Untold,
    /// Ollama runs the model with so many tokens.
    Running(u32),
    /// LM Studio has it loaded with so many.
    Studio {
        /// How many tokens.
        loaded: u32,
    },
}

/// What happens to a request that breaks a rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// It is refused.
    #[default]
    Refuse,
    /// It is kept as broken, and answered.
    Keep,
}

/// The context length that models are said to have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context(pub(crate) u64);

impl Default for Context {
    fn default() -> Self {
        Context(32_768)
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("manners", &self.manners).finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ModelServer {
    /// Starts a strict server on a free port of this machine.
    pub async fn start(script: Script) -> ModelServer {
        match Self::builder(script).start().await {
            Ok(server) => server,
            Err(error) => crate::fixture_failed("start a model server", &error),
        }
    }

    /// A server that is to be different from the usual one.
    pub fn builder(script: Script) -> ModelServerBuilder {
        ModelServerBuilder { script, port: 0, manners: Manners::default(), observer: None, embed: None }
    }

    /// Its address, such as `http://127.0.0.1:40123`, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every model call of a conversation so far, broken ones too.
    pub fn requests(&self) -> Vec<Recorded> {
        let journal = self.shared.journal();
        journal.requests.iter().filter(|request| !request.asks_aim).cloned().collect()
    }

    /// The questions for what a task wants, which stand beside the conversations.
    pub fn aims(&self) -> Vec<Recorded> {
        let journal = self.shared.journal();
        journal.requests.iter().filter(|request| request.asks_aim).cloned().collect()
    }

    /// The model calls of the conversations whose first user message holds a text.
    pub fn conversation(&self, task: &str) -> Vec<Recorded> {
        let journal = self.shared.journal();
        journal.requests.iter().filter(|request| request.task.contains(task)).cloned().collect()
    }

    /// Every request of any kind so far, as `METHOD path`.
    pub fn visits(&self) -> Vec<String> {
        self.shared.journal().visits.clone()
    }

    /// Every rule broken so far.
    pub fn violations(&self) -> Vec<Violation> {
        self.shared.journal().requests.iter().flat_map(|request| request.violations.clone()).collect()
    }

    /// Panics, with the list, when a rule was broken.
    #[track_caller]
    pub fn assert_no_violations(&self) {
        let found: Vec<String> = self.violations().iter().map(ToString::to_string).collect();
        assert!(found.is_empty(), "the protocol was broken:\n{}", found.join("\n"));
    }

    /// Lets the next request of the conversations whose first user message holds a text begin anew, as the header
    /// `x-gimlet-compacted: 1` does.
    pub fn announce_compaction(&self, task: impl Into<String>) {
        self.shared.journal().compacted.push(task.into());
    }

    /// Ends it now: open connections break and nobody listens any more. What it saw can still be asked.
    pub async fn stop(&mut self) {
        self.stop.take();
        if let Some(task) = self.task.take() {
            // It ends by the dropped sender and does nothing afterwards that could fail.
            let _ended = task.await;
        }
    }
}

impl ModelServerBuilder {
    /// Listens on this port instead of a free one.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Answers requests that break a rule too, once they are kept.
    #[must_use]
    pub fn lenient(mut self) -> Self {
        self.manners.strictness = Strictness::Keep;
        self
    }

    /// Does not check a rule.
    #[must_use]
    pub fn allow(mut self, rule: Rule) -> Self {
        self.manners.allowed.push(rule);
        self
    }

    /// Has only these models; others are not found. May be said several times.
    #[must_use]
    pub fn models<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.manners.models.extend(names.into_iter().map(Into::into));
        self
    }

    /// What it tells about the windows of its models.
    #[must_use]
    pub fn windows(mut self, windows: Windows) -> Self {
        self.manners.windows = windows;
        self
    }

    /// Says that its models have this context length.
    #[must_use]
    pub fn context(mut self, tokens: u64) -> Self {
        self.manners.context = Context(tokens);
        self
    }

    /// Makes vectors, by this rule.
    #[must_use]
    pub fn embeddings(mut self, embed: impl Fn(&str) -> Vec<f32> + Send + Sync + 'static) -> Self {
        self.embed = Some(Box::new(embed));
        self
    }

    /// Tells someone of each model call, once it has been checked.
    #[must_use]
    pub fn on_request(mut self, observer: impl Fn(&Recorded) + Send + Sync + 'static) -> Self {
        self.observer = Some(Box::new(observer));
        self
    }

    /// Starts it.
    pub async fn start(self) -> io::Result<ModelServer> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            player: Player::new(self.script),
            manners: self.manners,
            observer: self.observer,
            embed: self.embed,
            journal: Mutex::default(),
        });
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(http::serve(listener, shared.clone(), stopped));
        Ok(ModelServer { address, shared, stop: Some(stop), task: Some(task) })
    }
}
