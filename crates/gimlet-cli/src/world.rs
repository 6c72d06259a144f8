//! Puts a run's world together from what was said on the command line: folder, tools, policies, model, store, approver.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::approval::Approver;
use gimlet::cell::Executor;
use gimlet::effect::{Effect, Policy, PolicyError, Verdict};
use gimlet::event::{ActionFormat, Event};
use gimlet::guard::Redactor;
use gimlet::ids::RunId;
use gimlet::journal::Observer;
use gimlet::limits::Limits;
use gimlet::store::{BlobId, Store, StoreError};
use gimlet::tool::Tool;
use gimlet::{Agent, Env};
use gimlet_policy::{CommandPolicy, Jail};
use gimlet_python::{Program, PythonConfig, PythonExecutor};
use gimlet_store::FileStore;
use gimlet_tools::command::{Environment, HostRunner};
use gimlet_tools::patch::{PatchEntry, Patches, ScratchValidator};
use gimlet_tools::read_file::Page;
use gimlet_tools::{Kit, Root, Rules};
use tokio_util::sync::CancellationToken;

use crate::args::{RootArgs, RunOptions};
use crate::exit::UsageError;
use crate::home;
use crate::models::Found;
use crate::patches::PatchFile;

/// The folder an agent works in, and the tools bound to it.
pub(crate) struct Place {
    path: PathBuf,
    kit: Kit,
    patches: Arc<PatchFile>,
}

impl Place {
    /// The folder named on the command line.
    pub(crate) fn open(args: &RootArgs) -> anyhow::Result<Place> {
        let path = args.root.canonicalize().map_err(|error| {
            UsageError::new(format!("cannot work in {}: {error}", args.root.display()))
                .hint("name a folder with --root")
        })?;
        Place::at(&path)
    }

    /// A folder.
    pub(crate) fn at(path: &Path) -> anyhow::Result<Place> {
        let hidden: Vec<PathBuf> = home::path().into_iter().collect();
        let root = Root::with_rules(path, &Rules::default(), &hidden)
            .map_err(|error| UsageError::new(error.to_string()))?;
        let environment = Environment::allowed(std::env::vars_os());
        let patches = Arc::new(PatchFile::default());
        let kit = Kit {
            root,
            environment: environment.clone(),
            page: Page::default(),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            patches: Patches::with_log(patches.clone()),
            validator: Arc::new(ScratchValidator { environment }),
            runner: Arc::new(HostRunner),
        };
        Ok(Place { path: path.to_owned(), kit, patches })
    }

    /// The built-in tools.
    pub(crate) fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut tools = self.kit.reading();
        tools.extend(self.kit.changing());
        tools
    }

    /// What may be done here: every change asks, and commands are judged by what they would do.
    fn policies(&self) -> Vec<Arc<dyn Policy>> {
        vec![
            Arc::new(AskBeforeEdit),
            Arc::new(CommandPolicy {
                policy: gimlet_policy::Policy::builtin(),
                context: self.command_context(Jail::Absent),
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
/// own, which knows what they do.
struct AskBeforeEdit;

impl Policy for AskBeforeEdit {
    fn judge(&self, effect: &Effect) -> Result<Verdict, PolicyError> {
        match effect {
            Effect::Run { .. } => Ok(Verdict::Allow),
            Effect::Read { .. }
            | Effect::Write { .. }
            | Effect::Network { .. }
            | Effect::Delegate { .. }
            | Effect::Opaque { .. } => gimlet::effect::AskBeforeChange.judge(effect),
        }
    }
}

/// The agent that does the work.
pub(crate) fn agent(
    place: &Place,
    found: Found,
    options: &RunOptions,
    limits: Limits,
) -> anyhow::Result<Arc<Agent>> {
    let action = options.action.map_or(found.action, ActionFormat::from);
    let mut builder =
        Agent::builder(found.model).tools(place.tools()).action(action).dialect(found.dialect).limits(limits);
    if action == ActionFormat::Code {
        builder = builder.executor(python(gimlet_python::Limits::default(), &[])?);
    }
    builder.build().map_err(|error| UsageError::new(error.to_string()).into())
}

/// The hidden subcommand that is the sandbox's worker.
pub(crate) const WORKER: &str = "__python-worker";

/// The Python sandbox: this same program as a jailed worker.
pub(crate) fn python(limits: gimlet_python::Limits, imports: &[String]) -> anyhow::Result<Arc<dyn Executor>> {
    let path = std::env::current_exe().context("cannot find this program's own file")?;
    let mut config = PythonConfig::new(Program { path, args: vec![WORKER.into()] });
    for name in imports {
        match name.strip_prefix('-') {
            Some(name) => config.imports.retain(|known| known != name),
            None => config.imports.push(name.clone()),
        }
    }
    config.limits = limits;
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

/// The limits of a run: what was said, else what `base` holds.
pub(crate) fn limits(options: &RunOptions, base: Limits) -> Limits {
    Limits {
        max_steps: options.max_steps.unwrap_or(base.max_steps),
        max_seconds: options.timeout.or(base.max_seconds),
        max_tokens: options.token_budget.or(base.max_tokens),
        ..base
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
        redactor: Arc::new(Redactor::new(secrets())),
        root: place.path.display().to_string(),
        version: env!("CARGO_PKG_VERSION").into(),
        cancel,
        ..Env::default()
    }
}

/// Values of this process that no result may show: variables whose name says that they are secret.
fn secrets() -> impl Iterator<Item = String> {
    const MARKS: &[&str] = &["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"];
    std::env::vars_os().filter_map(|(name, value)| {
        let name = name.to_string_lossy().to_uppercase();
        MARKS.iter().any(|mark| name.contains(mark)).then(|| value.to_string_lossy().into_owned())
    })
}

/// Ends when the person presses Ctrl-C or the system asks the program to stop; a second time ends the program at once.
#[cfg(unix)]
pub(crate) fn interruptible() -> anyhow::Result<CancellationToken> {
    use tokio::signal::unix::{SignalKind, signal};
    // Listening begins here, not when the task is first polled.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    tokio::spawn(async move {
        for last in [false, true] {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if last {
                std::process::exit(130);
            }
            stop.cancel();
        }
    });
    Ok(cancel)
}

/// Ends when the person presses Ctrl-C; a second time ends the program at once.
#[cfg(not(unix))]
pub(crate) fn interruptible() -> anyhow::Result<CancellationToken> {
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    tokio::spawn(async move {
        for last in [false, true] {
            if tokio::signal::ctrl_c().await.is_err() || last {
                std::process::exit(130);
            }
            stop.cancel();
        }
    });
    Ok(cancel)
}

/// The task, read from standard input when it is `-`.
pub(crate) fn task(task: Option<String>) -> anyhow::Result<String> {
    let text = match task {
        Some(task) if task == "-" => {
            std::io::read_to_string(std::io::stdin()).context("cannot read the task")?
        }
        Some(task) => task,
        None => {
            return Err(UsageError::new("no task is given")
                .hint("gimlet \"explain what this project does\"")
                .into());
        }
    };
    if text.trim().is_empty() {
        return Err(UsageError::new("the task is empty").into());
    }
    Ok(text)
}
