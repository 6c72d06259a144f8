//! A project opened for work, and what its sessions share.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use gimlet::ids::RunId;
use gimlet::store::{Backend, Catalog, FindError, Inbox, Store};
use gimlet::tool::Tool;
use gimlet_config::options::Options;
use gimlet_config::{Process, Settings, UsageError};
use gimlet_mcp::{Reaper, Servers};
use gimlet_store::FileStore;
use tokio::sync::Mutex;
use tracing::dispatcher::{self, Dispatch};

use crate::approver::Attendance;
use crate::extras::Extras;
use crate::isolation::{self, Containers};
use crate::mcp::{self, ServerSpeech};
use crate::notice::{Notice, Notify, silent};
use crate::session::Session;

/// What a runtime is opened with.
#[derive(Clone)]
pub struct Config {
    /// What the process was started with: variables, working directory, data directory.
    pub process: Arc<Process>,
    /// Where runs, questions and long texts are kept; none for files in the data directory.
    pub backend: Option<Backend>,
    /// The project's folder. A run that is taken up goes on where it was, whatever this says.
    pub root: Option<PathBuf>,
    /// Takes what is worth telling beside events.
    pub notify: Notify,
    /// Where what MCP servers say goes.
    pub speech: ServerSpeech,
    /// Hears the spans and the diagnostics of this runtime's sessions; none for whoever hears those of the program.
    pub subscriber: Option<Dispatch>,
    /// Is told the settings of a session before anything is started for it.
    pub on_settings: Option<OnSettings>,
}

/// Takes the settings of a session. An error keeps the session from beginning.
pub type OnSettings = Arc<dyn Fn(&Settings, &Options) -> anyhow::Result<()> + Send + Sync>;

impl Config {
    /// A project's folder, in the surroundings of this process.
    pub fn load(root: impl AsRef<Path>) -> anyhow::Result<Config> {
        Ok(Config { root: Some(root.as_ref().to_owned()), ..Config::of_process()? })
    }

    /// The folder this process was started in.
    pub fn of_process() -> anyhow::Result<Config> {
        let process = Arc::new(Process::current()?);
        Ok(Config {
            process,
            backend: None,
            root: None,
            notify: silent(),
            speech: ServerSpeech::default(),
            subscriber: None,
            on_settings: None,
        })
    }
}

/// A project opened for work. Clones are the same runtime. Nothing of it is shared with another one.
#[derive(Clone)]
pub struct Runtime {
    shared: Arc<Shared>,
}

/// What names MCP servers: a project's folder, files beside its configuration, and tables of the starting program.
type NamedBy = (PathBuf, Vec<PathBuf>, Option<String>);

struct Shared {
    config: Config,
    backend: Backend,
    /// MCP servers, by the folder and the files that name them; ended by [`Runtime::close`].
    servers: Mutex<BTreeMap<NamedBy, Arc<Servers>>>,
    /// Knows every server process, for the moment when there is no time left.
    reaper: Reaper,
    /// Containers of all sessions; ended by [`Runtime::close`].
    containers: Containers,
}

impl Runtime {
    /// Opens a project. Nothing is started yet.
    pub fn open(config: Config) -> anyhow::Result<Runtime> {
        let backend = match &config.backend {
            Some(backend) => backend.clone(),
            None => in_files(&config.process)?,
        };
        let shared = Shared {
            backend,
            servers: Mutex::default(),
            reaper: Reaper::default(),
            containers: Containers::default(),
            config,
        };
        Ok(Runtime { shared: Arc::new(shared) })
    }

    /// Begins a conversation, or goes on with the one that the session's name stands for. Questions suspend it.
    pub async fn begin(&self, options: Options) -> anyhow::Result<Session> {
        self.begin_attended(options, Attendance::Nobody).await
    }

    /// The same where questions can be answered.
    pub async fn begin_attended(&self, options: Options, attendance: Attendance) -> anyhow::Result<Session> {
        Session::begin(self.clone(), options, attendance, Extras::default()).await
    }

    /// Begins a new conversation, whatever the session's name stands for so far.
    pub async fn begin_anew(&self, options: Options, attendance: Attendance) -> anyhow::Result<Session> {
        Session::fresh(self.clone(), options, attendance, Extras::default()).await
    }

    /// Begins a new conversation with what the embedding program brings.
    pub async fn begin_with(
        &self,
        options: Options,
        attendance: Attendance,
        extras: Extras,
    ) -> anyhow::Result<Session> {
        Session::fresh(self.clone(), options, attendance, extras).await
    }

    /// Takes up a run. Questions suspend it.
    pub async fn reopen(&self, run: &RunId, options: Options) -> anyhow::Result<Session> {
        self.reopen_attended(run, options, Attendance::Nobody).await
    }

    /// The same where questions can be answered.
    pub async fn reopen_attended(
        &self,
        run: &RunId,
        options: Options,
        attendance: Attendance,
    ) -> anyhow::Result<Session> {
        Session::take_up(self.clone(), run.clone(), options, attendance, Extras::default()).await
    }

    /// The same with what the embedding program brings.
    pub async fn reopen_with(
        &self,
        run: &RunId,
        options: Options,
        attendance: Attendance,
        extras: Extras,
    ) -> anyhow::Result<Session> {
        Session::take_up(self.clone(), run.clone(), options, attendance, extras).await
    }

    /// Ends everything that was started: servers and containers. Sessions that are at work are not waited for.
    pub async fn close(&self) {
        let open = std::mem::take(&mut *self.shared.servers.lock().await);
        for servers in open.into_values() {
            servers.close().await;
        }
        for left in isolation::end_containers(&self.shared.containers).await {
            self.notify(Notice::Warning(left));
        }
    }

    /// Kills server processes at once, for a program that ends without waiting.
    pub fn kill_servers(&self) {
        self.shared.reaper.kill_all();
    }

    /// The run that a person means by its id, a part of it, or `last`, which is the newest of the working directory.
    pub async fn find(&self, run: &str) -> anyhow::Result<RunId> {
        self.find_in(self.process().here(), run).await
    }

    /// The same where `last` is the newest run of a certain folder.
    pub async fn find_in(&self, folder: &Path, run: &str) -> anyhow::Result<RunId> {
        let found = self.catalog().find(run, folder).await;
        let found = found.map_err(|error| match error {
            FindError::NoneHere => {
                UsageError::new(error.to_string()).hint("`gimlet runs --all` lists those of other folders")
            }
            FindError::NoRuns
            | FindError::NotFound(_)
            | FindError::Ambiguous { .. }
            | FindError::Store(_) => UsageError::new(error.to_string()).hint("see `gimlet runs`"),
        });
        Ok(found?)
    }

    /// The settings for these options.
    pub fn settings(&self, options: &Options) -> anyhow::Result<Settings> {
        let root = options.root.clone().or_else(|| self.shared.config.root.clone());
        Settings::load(&self.shared.config.process, &Options { root, ..options.clone() })
    }

    /// The tools of the MCP servers that the settings and these files name. They are started once and serve all sessions.
    pub async fn server_tools(
        &self,
        settings: &Settings,
        files: &[PathBuf],
    ) -> anyhow::Result<Vec<Arc<dyn Tool>>> {
        let mut servers = self.shared.servers.lock().await;
        let named = named_by(settings, files)?;
        if let Some(known) = servers.get(&named) {
            return Ok(known.tools());
        }
        let Config { notify, speech, .. } = &self.shared.config;
        let started = Arc::new(mcp::start(settings, files, &self.shared.reaper, notify, *speech).await?);
        let tools = started.tools();
        servers.insert(named, started);
        Ok(tools)
    }

    /// Ends the MCP servers that were started for these settings and files, when no session needs them any more.
    pub async fn end_servers(&self, settings: &Settings, files: &[PathBuf]) -> anyhow::Result<()> {
        let ended = self.shared.servers.lock().await.remove(&named_by(settings, files)?);
        if let Some(servers) = ended {
            servers.close().await;
        }
        Ok(())
    }

    pub(crate) fn tell_settings(&self, settings: &Settings, options: &Options) -> anyhow::Result<()> {
        match &self.shared.config.on_settings {
            Some(told) => told(settings, options),
            None => Ok(()),
        }
    }

    /// The logs of runs, and long texts.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.backend.store
    }

    /// Which runs there are.
    pub fn catalog(&self) -> &Arc<dyn Catalog> {
        &self.shared.backend.catalog
    }

    /// Questions and decisions outside of runs.
    pub fn inbox(&self) -> &Arc<dyn Inbox> {
        &self.shared.backend.inbox
    }

    /// What the process was started with.
    pub fn process(&self) -> &Arc<Process> {
        &self.shared.config.process
    }

    /// Knows every server process.
    pub fn reaper(&self) -> &Reaper {
        &self.shared.reaper
    }

    /// The containers that are started for this runtime.
    pub fn containers(&self) -> &Containers {
        &self.shared.containers
    }

    /// Hears the spans and the diagnostics of this runtime's sessions.
    pub(crate) fn subscriber(&self) -> Dispatch {
        self.shared.config.subscriber.clone().unwrap_or_else(|| dispatcher::get_default(Dispatch::clone))
    }

    /// Tells whoever opened this.
    pub fn notify(&self, notice: Notice) {
        (self.shared.config.notify)(notice);
    }

    pub(crate) fn notifier(&self) -> &Notify {
        &self.shared.config.notify
    }
}

/// The data directory as a backend.
fn in_files(process: &Process) -> anyhow::Result<Backend> {
    let home = process.need_home()?.path();
    let store = FileStore::open(home)
        .with_context(|| format!("cannot use {} (set GIMLET_HOME to another folder)", home.display()))?;
    Ok(Backend::of(Arc::new(store)))
}

fn named_by(settings: &Settings, files: &[PathBuf]) -> anyhow::Result<NamedBy> {
    let given = settings.given::<serde_json::Value>("mcp")?.map(|tables| tables.to_string());
    Ok((settings.root.clone(), files.to_vec(), given))
}
