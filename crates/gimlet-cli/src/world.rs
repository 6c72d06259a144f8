//! Puts a run's world together from what was said on the command line: folder, tools, policies, model, store, approver.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::Env;
use gimlet::agent::ContextFor;
use gimlet::approval::Approver;
use gimlet::constrain::Constrain;
use gimlet::effect::{Effect, Policy, PolicyError, Verdict};
use gimlet::event::{ActionFormat, Event};
use gimlet::guard::Redactor;
use gimlet::guided::Guide;
use gimlet::ids::RunId;
use gimlet::journal::Observer;
use gimlet::store::{BlobId, Store, StoreError};
use gimlet::tool::Tool;
use gimlet_policy::{CommandPolicy, Jail};
use gimlet_python::{Program, PythonConfig, PythonExecutor, Warmth};
use gimlet_store::FileStore;
use gimlet_tools::gate::Gate;
use gimlet_tools::patch::{PatchEntry, Patches};
use gimlet_tools::{Kit, Root, Rules};
use tokio_util::sync::CancellationToken;

use crate::args::McpArgs;
use crate::config::{self, Bounds, Settings};
use crate::exit::UsageError;
use crate::instructions::{self, Instructions};
use crate::isolation::{self, Isolation};
use crate::mcp::{self, Loudness};
use crate::patches::PatchFile;
use crate::project_guide::ProjectGuide;
use crate::served::Manner;
use crate::{home, keys, lookup, memory, overview, rules};

/// A folder as tools see it: without secrets, those that the policy adds included, and without Gimlet's own home.
pub(crate) fn root(path: &Path, policy: &gimlet_policy::Policy) -> anyhow::Result<Root> {
    let hidden: Vec<PathBuf> = home::path().into_iter().collect();
    let rules = Rules { sensitive: policy.added_secrets().to_vec(), ..Rules::default() };
    Root::with_rules(path, &rules, &hidden).map_err(|error| UsageError::new(error.to_string()).into())
}

/// The folder an agent works in, and the tools bound to it.
pub(crate) struct Place {
    path: PathBuf,
    kit: Kit,
    patches: Arc<PatchFile>,
    isolation: Isolation,
    bounds: Bounds,
    policy: gimlet_policy::Policy,
    gate_enabled: bool,
    /// What is remembered of the project, if the agent may use it.
    memory: Option<gimlet_memory::Kit>,
    /// Tools of MCP servers.
    foreign: Vec<Arc<dyn Tool>>,
}

impl Place {
    /// The folder the settings name, with the limits they set.
    pub(crate) fn open(settings: &Settings) -> anyhow::Result<Place> {
        let isolation = Isolation::new(&settings.root, settings)?;
        let place = Place::at(&settings.root, settings.bounds(), isolation)?;
        Ok(Place { gate_enabled: settings.gate_enabled.value, memory: memory::enabled(settings)?, ..place })
    }

    /// The same folder for a look at tools and rules: nothing is run, so nobody asks the machine for a jail.
    pub(crate) fn to_look_at(settings: &Settings) -> anyhow::Result<Place> {
        let place = Place::at(
            &settings.root,
            settings.bounds(),
            Isolation::none(&settings.root, "nothing is run here"),
        )?;
        Ok(Place { memory: memory::to_look_at(settings)?, ..place })
    }

    /// A folder, what holds for tools and code there, and what stands around them.
    pub(crate) fn at(path: &Path, bounds: Bounds, isolation: Isolation) -> anyhow::Result<Place> {
        let policy = rules::policy(path)?;
        let root = root(path, &policy)?;
        let patches = Arc::new(PatchFile::default());
        let kit = Kit {
            root,
            environment: isolation::environment(),
            page: bounds.page,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            patches: Patches::with_log(patches.clone()),
            validator: isolation.validator.clone(),
            runner: isolation.runner.clone(),
            permissions: isolation.permissions,
        };
        let foreign = Vec::new();
        Ok(Place {
            path: path.to_owned(),
            kit,
            patches,
            isolation,
            policy,
            gate_enabled: true,
            memory: None,
            bounds,
            foreign,
        })
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What the tools work with.
    pub(crate) fn kit(&self) -> &Kit {
        &self.kit
    }

    /// Starts the MCP servers of the configuration; their tools follow the built-in ones.
    pub(crate) async fn connect(
        &mut self,
        settings: &Settings,
        mcp: &McpArgs,
        loudness: Loudness,
    ) -> anyhow::Result<()> {
        self.foreign = mcp::start(settings, &mcp.files, loudness).await?;
        Ok(())
    }

    /// With the tools of servers that run already.
    pub(crate) fn with_foreign(self, foreign: Vec<Arc<dyn Tool>>) -> Place {
        Place { foreign, ..self }
    }

    /// All tools: the built-in ones, those of the memory, then those of MCP servers.
    pub(crate) fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut tools = self.kit.reading();
        tools.extend(self.kit.changing());
        tools.extend(self.memory.iter().flat_map(gimlet_memory::Kit::tools));
        tools.extend(self.foreign.iter().cloned());
        tools
    }

    /// The built-in tools that only look, and those of the memory.
    pub(crate) fn reading(&self) -> Vec<Arc<dyn Tool>> {
        let mut tools = self.kit.reading();
        tools.extend(self.memory.iter().flat_map(gimlet_memory::Kit::reading));
        tools
    }

    /// What is remembered of the project, if the agent may use it.
    pub(crate) fn memory(&self) -> Option<&gimlet_memory::Kit> {
        self.memory.as_ref()
    }

    /// The rules for commands in force here.
    pub(crate) fn policy(&self) -> &gimlet_policy::Policy {
        &self.policy
    }

    /// The patches of the run.
    pub(crate) fn patches(&self) -> &Patches {
        &self.kit.patches
    }

    /// Where files are read and written.
    pub(crate) fn root(&self) -> &Root {
        &self.kit.root
    }

    /// The gate before the answer to a task that asks for a change, unless it is switched off. A command that would be
    /// allowed in a jail looks or tests; any other may be the change.
    pub(crate) fn gate(&self) -> Option<Gate> {
        let (policy, context) = (self.policy.clone(), self.command_context(Jail::Active));
        self.gate_enabled.then(|| Gate {
            looks_only: Arc::new(move |command| policy.check(command, &context).verdict == Verdict::Allow),
        })
    }

    /// What may be done here: every change asks, and commands are judged by what they would do.
    fn policies(&self) -> Vec<Arc<dyn Policy>> {
        vec![
            Arc::new(AskBeforeEdit { unconfined: self.isolation.unconfined.clone() }),
            Arc::new(CommandPolicy {
                policy: self.policy.clone(),
                context: self.command_context(self.isolation.jail()),
            }),
        ]
    }

    /// What commands are judged against here.
    pub(crate) fn command_context(&self, jail: Jail) -> gimlet_policy::Context {
        gimlet_policy::Context {
            home: std::env::var_os("HOME").map(PathBuf::from),
            gimlet_home: home::path().ok(),
            ..gimlet_policy::Context::new(&self.path, jail)
        }
    }

    /// What the project's file for agents says.
    pub(crate) fn instructions(&self) -> Result<Option<Instructions>, String> {
        instructions::of_project(&self.kit.root, &redactor())
    }

    /// What guided work knows of this folder.
    pub(crate) fn guide(&self, settings: &Settings) -> Arc<dyn Guide> {
        let told = settings.instructions.value.then(|| self.instructions().ok().flatten()).flatten();
        let notes = told.map(|instructions| instructions.text).unwrap_or_default();
        Arc::new(ProjectGuide { root: self.kit.root.clone(), notes })
    }

    /// What code may use here.
    pub(crate) fn python_limits(&self) -> gimlet_python::Limits {
        gimlet_python::Limits { wall: self.bounds.computation, ..gimlet_python::Limits::default() }
    }

    /// Keeps patches beside a run's log from here on.
    pub(crate) fn keep_patches_in(&self, folder: &Path) {
        self.patches.keep_in(folder);
    }

    /// Takes up the patches of an earlier process.
    pub(crate) fn take_up_patches(&self, entries: impl IntoIterator<Item = PatchEntry>) {
        self.kit.patches.rebuild(entries);
    }
}

/// Asks before files change, other machines are talked to, or something opaque happens. Commands have a policy of their
/// own, which knows what they do; here every one of them is asked about when nothing confines them.
struct AskBeforeEdit {
    unconfined: Option<String>,
}

impl Policy for AskBeforeEdit {
    fn judge(&self, effect: &Effect) -> Result<Verdict, PolicyError> {
        match effect {
            Effect::Run { .. } => Ok(self.unconfined.clone().map_or(Verdict::Allow, Verdict::Ask)),
            Effect::Read { .. }
            | Effect::Write { .. }
            | Effect::Network { .. }
            | Effect::Delegate { .. }
            | Effect::Remember { .. }
            | Effect::Opaque { .. } => gimlet::effect::AskBeforeChange.judge(effect),
        }
    }
}

/// What the model reads of the project before its task: what it tells agents, and for a small model that calls tools the
/// names of its files and the lines that its task is about. Only a new run needs it: a resumed one has it in its log.
pub(crate) fn context(place: &Place, settings: &Settings, manner: &Manner) -> ContextFor {
    let told = match settings.instructions.value.then(|| place.instructions()) {
        Some(Ok(found)) => found.map(|instructions| instructions.text),
        Some(Err(reason)) => {
            tracing::warn!("{reason}");
            None
        }
        None => None,
    };
    let is_small = match manner.constrain {
        Constrain::Always => true,
        Constrain::AfterFailures | Constrain::Never => false,
    };
    // One that writes code copies the names into its program, instead of asking for what is there.
    let files = match manner.action {
        ActionFormat::Tools | ActionFormat::Guided if is_small => overview::of_project(place.root()),
        ActionFormat::Tools | ActionFormat::Code | ActionFormat::Guided => None,
    };
    let (root, redactor) = (place.root().clone(), redactor());
    Arc::new(move |task| {
        let lines = is_small.then(|| lookup::of_task(&root, task, &redactor)).flatten();
        [told.clone(), files.clone(), lines].into_iter().flatten().collect::<Vec<_>>().join("\n\n")
    })
}

/// For a run that has it in its log.
pub(crate) fn no_context() -> ContextFor {
    Arc::new(|_| String::new())
}

/// The hidden subcommand that is the sandbox's worker.
pub(crate) const WORKER: &str = "__python-worker";

/// The Python sandbox: this same program as a jailed worker.
pub(crate) fn python(
    limits: gimlet_python::Limits,
    imports: &[String],
    warmth: Warmth,
) -> anyhow::Result<Arc<PythonExecutor>> {
    let path = std::env::current_exe().context("cannot find this program's own file")?;
    let config = PythonConfig {
        limits,
        imports: gimlet_python::imports::changed(imports).map_err(|error| {
            UsageError::new(error.to_string()).hint("gimlet python --help shows --imports")
        })?,
        warmth,
        ..PythonConfig::new(Program { path, args: vec![WORKER.into()] })
    };
    Ok(Arc::new(PythonExecutor::new(config)))
}

/// A store that keeps long texts and no events, for calls that are nobody's run.
pub(crate) fn blobs_only() -> anyhow::Result<Arc<dyn Store>> {
    Ok(Arc::new(Blobs(home::store()?)))
}

struct Blobs(FileStore);

impl Store for Blobs {
    fn append(&self, _event: &Event) -> BoxFuture<'_, Result<(), StoreError>> {
        std::future::ready(Ok(())).boxed()
    }

    fn load(&self, run: &RunId) -> BoxFuture<'_, Result<Vec<Event>, StoreError>> {
        self.0.load(run)
    }

    fn put<'a>(&'a self, bytes: &'a [u8]) -> BoxFuture<'a, Result<BlobId, StoreError>> {
        self.0.put(bytes)
    }

    fn get<'a>(&'a self, blob: &'a BlobId) -> BoxFuture<'a, Result<Vec<u8>, StoreError>> {
        self.0.get(blob)
    }
}

/// The environment of a run.
pub(crate) fn env(
    place: &Place,
    store: Arc<dyn Store>,
    approver: Arc<dyn Approver>,
    observers: Vec<Arc<dyn Observer>>,
    cancel: CancellationToken,
) -> Env {
    Env {
        store,
        approver,
        policies: place.policies(),
        observers,
        redactor: Arc::new(redactor()),
        truncation: place.bounds.truncation.clone(),
        warnings: place.isolation.missing.clone().into_iter().collect(),
        root: place.path.display().to_string(),
        version: env!("CARGO_PKG_VERSION").into(),
        cancel,
        ..Env::default()
    }
}

/// Knows the secrets of this process.
pub(crate) fn redactor() -> Redactor {
    Redactor::new(secrets().chain(crate::trace::secrets()))
}

/// Values no result may show: the user's keys, and variables of this process whose name says that they are secret.
fn secrets() -> impl Iterator<Item = String> {
    const MARKS: &[&str] = &["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"];
    let variables = std::env::vars_os().filter_map(|(name, value)| {
        let name = name.to_string_lossy().to_uppercase();
        MARKS.iter().any(|mark| name.contains(mark)).then(|| value.to_string_lossy().into_owned())
    });
    variables.chain(config::secrets::of_file())
}

/// Ctrl-C, or the system asking the program to stop. Both are signals that would end the program at once; from when this
/// is made they do not.
pub(crate) struct Interrupts {
    #[cfg(unix)]
    signals: [tokio::signal::unix::Signal; 2],
}

impl Interrupts {
    #[cfg(unix)]
    pub(crate) fn listen() -> anyhow::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Interrupts { signals: [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?] })
    }

    #[cfg(not(unix))]
    pub(crate) fn listen() -> anyhow::Result<Self> {
        Ok(Interrupts {})
    }

    /// Waits for the next one.
    #[cfg(unix)]
    pub(crate) async fn next(&mut self) {
        let [interrupt, terminate] = &mut self.signals;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }

    /// Waits for the next one.
    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) {
        // Without signals there is nothing to wait for.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Ends when the person presses Ctrl-C or the system asks the program to stop; a second time ends the program at once.
pub(crate) fn interruptible() -> anyhow::Result<CancellationToken> {
    // Listening begins here, not when the task is first polled.
    let mut interrupts = Interrupts::listen()?;
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    tokio::spawn(async move {
        interrupts.next().await;
        stop.cancel();
        interrupts.next().await;
        keys::restore();
        mcp::reaper().kill_all();
        std::process::exit(130);
    });
    Ok(cancel)
}
