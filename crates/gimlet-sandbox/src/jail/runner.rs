//! Rewrites a command so that it starts inside the jail, and passes it on to whoever starts processes.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::command::{
    Command, CommandRunner, Confinement, End, Environment, Finished, GitFolder, Invocation, Permissions,
    Profile,
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::blame::{self, Scene};
use super::detect::Found;
use super::helper::{self, Watched};
use super::order::{self, Errand, Limits, Order, Purpose};
use super::places;

/// How often, and how long in between, protected files are looked at after a command before they count as changed.
const SETTLE_TRIES: u32 = 20;
const SETTLE_PAUSE: Duration = Duration::from_millis(50);

/// How to start the helper.
#[derive(Debug, Clone)]
pub struct Program {
    /// The program, by its absolute path.
    pub path: PathBuf,
    /// Its arguments, such as the hidden subcommand.
    pub args: Vec<OsString>,
}

/// What all commands of a jail have in common.
#[derive(Debug, Clone)]
pub struct JailConfig {
    /// How to start the helper.
    pub helper: Program,
    /// What enforces it.
    pub found: Found,
    /// The person's home, which is hidden.
    pub home: Option<PathBuf>,
    /// Folders that nothing may reach, wherever they are.
    pub hidden: Vec<PathBuf>,
    /// Patterns of secret files beyond the shipped list.
    pub secrets: Vec<String>,
    /// Patterns of files that are no secrets, whatever the shipped list says.
    pub public: Vec<String>,
    /// A folder for what the project's tools want to keep between commands; made when it is needed.
    pub cache: Option<PathBuf>,
    /// What a command may use.
    pub limits: Limits,
}

/// Runs commands in a jail; those that were granted everything, outside of it.
pub struct JailedRunner {
    config: JailConfig,
    inner: Arc<dyn CommandRunner>,
    name: String,
    /// Whether what killed helpers have left was looked for; once is enough.
    swept: AtomicBool,
    /// What a command changed and nothing could restore. No command runs until it is as it was.
    unclean: Mutex<Option<Watched>>,
}

impl JailedRunner {
    /// A runner that starts the jail by `inner`.
    pub fn new(config: JailConfig, inner: Arc<dyn CommandRunner>) -> Self {
        let name = config.found.mechanism.name().to_owned();
        JailedRunner { config, inner, name, swept: AtomicBool::new(false), unclean: Mutex::new(None) }
    }

    /// The jail of a command.
    fn order(&self, command: &Command) -> Order {
        let config = &self.config;
        let mut read =
            places::toolchain(&command.environment, config.home.as_deref(), &command.root, &config.hidden);
        let mut write = Vec::new();
        match command.permissions.git {
            GitFolder::ReadOnly => read.extend(places::git_folders(&command.root)),
            GitFolder::Writable => {
                write.extend(places::git_folders(&command.root));
                read.extend(config.home.iter().map(|home| home.join(".gitconfig")));
            }
        }
        Order {
            version: order::VERSION.to_owned(),
            parent: std::process::id(),
            purpose: Purpose::Command,
            mechanism: config.found.mechanism.clone(),
            root: command.root.clone(),
            cwd: command.cwd.clone(),
            home: config.home.clone(),
            hidden: config.hidden.clone(),
            secrets: config.secrets.clone(),
            public: config.public.clone(),
            read,
            write,
            unset: unset(command),
            permissions: command.permissions,
            limits: config.limits,
            cache: config.cache.clone().filter(|cache| std::fs::create_dir_all(cache).is_ok()),
        }
    }

    /// The command that builds the jail and then becomes the given one.
    fn jailed(&self, command: &Command, order: &Order, word: &str) -> io::Result<Command> {
        let helper = &self.config.helper;
        let mut words = vec![helper.path.clone().into_os_string()];
        words.extend(helper.args.iter().cloned());
        let errand = Errand { outside: self.config.found.outside, order: order.clone() };
        words.push(serde_json::to_string(&errand)?.into());
        words.push("--".into());
        words.extend(command.invocation.argv());
        let environment = match &order.cache {
            Some(cache) => caches(command.environment.clone(), cache),
            None => command.environment.clone(),
        };
        let environment = environment.with(helper::WORD, word);
        Ok(Command { invocation: Invocation::Direct(words), environment, ..command.clone() })
    }

    /// Removes what killed helpers have left, while the first command runs.
    fn sweep(&self, command: &Command) -> Option<JoinHandle<()>> {
        let named = command.environment.iter().find(|(name, _)| *name == "TMPDIR");
        let temporary = named.map_or_else(|| PathBuf::from("/tmp"), |(_, value)| PathBuf::from(value));
        let is_first = !self.swept.swap(true, Ordering::Relaxed);
        is_first.then(|| tokio::task::spawn_blocking(move || helper::sweep(&temporary)))
    }

    /// Refuses while something of the project is not as it must be.
    fn check_clean(&self) -> io::Result<()> {
        let mut unclean = self.unclean.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(watched) = unclean.take() {
            watched.restore();
            let left = watched.changed();
            if !left.is_empty() {
                *unclean = Some(watched);
                return Err(refusal(&left));
            }
        }
        Ok(())
    }

    /// Looks whether protected files are as they were. The helper restores them, unless it was killed.
    async fn settle(&self, watched: Watched) -> io::Result<()> {
        for _ in 0..SETTLE_TRIES {
            if watched.changed().is_empty() {
                return Ok(());
            }
            // A helper that was stopped may still be at it.
            tokio::time::sleep(SETTLE_PAUSE).await;
        }
        watched.restore();
        let left = watched.changed();
        if left.is_empty() {
            return Ok(());
        }
        *self.unclean.lock().unwrap_or_else(PoisonError::into_inner) = Some(watched);
        Err(refusal(&left))
    }

    /// What is said about a command's surroundings.
    fn isolation(&self, permissions: Permissions) -> String {
        let profile = match permissions.profile {
            Profile::ReadOnly => "read-only",
            Profile::WorkspaceWrite => "workspace-write",
            Profile::Unrestricted => "unrestricted",
        };
        let git = if permissions.git == GitFolder::Writable { ", .git writable" } else { "" };
        let network = match permissions.network {
            gimlet::command::Network::Blocked => "",
            gimlet::command::Network::Allowed => ", network",
        };
        format!("{} ({profile}{git}{network})", self.name)
    }
}

impl CommandRunner for JailedRunner {
    fn name(&self) -> &str {
        &self.name
    }

    fn confinement(&self) -> Confinement {
        Confinement::Jailed
    }

    fn run<'a>(
        &'a self,
        command: &'a Command,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, io::Result<Finished>> {
        async move {
            self.check_clean()?;
            if command.permissions.profile == Profile::Unrestricted {
                return self.inner.run(command, cancel).await;
            }
            let order = self.order(command);
            let word = word();
            let sweeping = self.sweep(command);
            let watched = Watched::before(&order)?;
            let finished = self.inner.run(&self.jailed(command, &order, &word)?, cancel).await;
            self.settle(watched).await?;
            let mut finished = finished?;
            if let Some(sweeping) = sweeping {
                // Whatever becomes of it, the command has run.
                let _ = sweeping.await;
            }
            if finished.end == End::Exited(i32::from(helper::BROKEN))
                && let Some(said) = finished.stderr.text().strip_prefix(helper::MARK)
                && let Some(why) = said.strip_prefix(&word)
            {
                return Err(io::Error::other(why.trim().to_owned()));
            }
            finished.isolation = self.isolation(command.permissions);
            let scene = Scene { order: &order, exists: &|path| path.exists() };
            finished.missing = blame::missing(&scene, &finished);
            Ok(finished)
        }
        .boxed()
    }
}

fn refusal(left: &[PathBuf]) -> io::Error {
    let names: Vec<String> = left.iter().map(|path| path.display().to_string()).collect();
    io::Error::other(format!(
        "a command changed files that no command may change, and they cannot be restored: {}. No command runs until they \
         are removed or as they were; do not use git in this project before that.",
        names.join(", ")
    ))
}

/// A word that no command can guess.
fn word() -> String {
    let random = || std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
    format!("{:016x}{:016x} ", random(), random())
}

/// Variables that name what a jailed command cannot use.
fn unset(command: &Command) -> Vec<String> {
    let outside = |name: &str| {
        command
            .environment
            .iter()
            .any(|(known, value)| known == name && !std::path::Path::new(value).starts_with(&command.root))
    };
    let mut names = vec!["XDG_RUNTIME_DIR".to_owned()];
    if outside("CARGO_TARGET_DIR") {
        names.push("CARGO_TARGET_DIR".to_owned());
    }
    names
}

/// Has tools that must write their caches write them where they can.
pub(crate) fn caches(environment: Environment, cache: &std::path::Path) -> Environment {
    environment
        .with("XDG_CACHE_HOME", cache)
        .with("GOCACHE", cache.join("go-build"))
        .with("PIP_CACHE_DIR", cache.join("pip"))
        .with("npm_config_cache", cache.join("npm"))
}
