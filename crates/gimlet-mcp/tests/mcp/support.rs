//! The fixture server behind a real guard.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::approval::{ApprovalRequest, Approver, Decision, Scope};
use gimlet::event::{Event, EventKind};
use gimlet::journal::Observer;
use gimlet::message::ToolCall;
use gimlet::model::{Model, ModelError, ModelStream, Request};
use gimlet::run::{Invocation, invoke};
use gimlet::tool::Tool;
use gimlet::{Agent, Env};
use gimlet_mcp::config::{
    Author, Filter, Hints, Launch, Protocol, Remember, ServerConfig, Surroundings, read_toml, resolve,
};
use gimlet_mcp::{Ground, Reaper, Servers, Voice};
use serde_json::{Value, json};

/// The fixture, behaving in one way.
pub(crate) fn fixture(mode: &str) -> ServerConfig {
    ServerConfig {
        name: "fix".into(),
        launch: Launch::Stdio {
            command: env!("CARGO_BIN_EXE_gimlet-mcp-fixture").into(),
            args: vec![mode.into()],
            env: BTreeMap::new(),
            cwd: None,
        },
        required: Vec::new(),
        filter: Filter::default(),
        hints: Hints::Ignored,
        remember: Remember::Call,
        protocol: Protocol::Auto,
        jail: None,
        connect_timeout: Duration::from_secs(20),
        call_timeout: Duration::from_secs(20),
    }
}

/// A configuration in the words of a user.
pub(crate) fn configured(toml: &str) -> Vec<ServerConfig> {
    let around = Surroundings {
        author: Author::User,
        base: Path::new("."),
        variable: &|name| std::env::var(name).ok(),
    };
    resolve(&read_toml(toml).unwrap(), &around).unwrap().0
}

pub(crate) fn ground() -> Ground {
    let environment: BTreeMap<OsString, OsString> = std::env::vars_os()
        .filter(|(name, _)| ["PATH", "HOME", "LD_LIBRARY_PATH"].iter().any(|known| name == known))
        .collect();
    Ground {
        environment,
        cwd: PathBuf::from("."),
        reaper: Reaper::default(),
        starter: None,
        voice: Voice::Events,
    }
}

/// A model that is never asked.
pub(crate) struct Mute;

impl Model for Mute {
    fn id(&self) -> &str {
        "mute"
    }

    fn stream(&self, _request: Request) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        async { Err(ModelError::Script("mute".into())) }.boxed()
    }
}

/// Servers and an agent that has their tools.
pub(crate) struct World {
    pub(crate) servers: Servers,
    pub(crate) agent: Arc<Agent>,
    pub(crate) notices: Arc<Notices>,
    pub(crate) asked: Arc<Yes>,
}

impl World {
    pub(crate) async fn start(config: ServerConfig) -> World {
        World::with(vec![config], Vec::new()).await
    }

    pub(crate) async fn with(configs: Vec<ServerConfig>, own: Vec<Arc<dyn Tool>>) -> World {
        let servers = Servers::start(configs, &ground()).await.unwrap();
        let agent = Agent::builder(Arc::new(Mute)).tools(own).tools(servers.tools()).build().unwrap();
        World { servers, agent, notices: Arc::default(), asked: Arc::default() }
    }

    pub(crate) fn env(&self) -> Env {
        Env { approver: self.asked.clone(), observers: vec![self.notices.clone()], ..Env::default() }
    }

    pub(crate) async fn call(&self, tool: &str, args: Value) -> Value {
        self.call_in(self.env(), tool, args).await
    }

    pub(crate) async fn call_in(&self, env: Env, tool: &str, args: Value) -> Value {
        let call = ToolCall { id: "call_1".into(), name: tool.into(), args };
        match invoke(&self.agent, env, call).await {
            Invocation::Done(value) => value,
            Invocation::Failed(failure) => json!(failure),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn questions(&self) -> Vec<ApprovalRequest> {
        std::mem::take(&mut *self.asked.0.lock().unwrap())
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.agent.toolbox().specs().iter().map(|spec| spec.name.clone()).collect()
    }
}

/// Says yes and remembers what was asked.
#[derive(Default)]
pub(crate) struct Yes(Mutex<Vec<ApprovalRequest>>);

impl Approver for Yes {
    fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, Decision> {
        self.0.lock().unwrap().push(request);
        async { Decision::Approve { scope: Scope::Once } }.boxed()
    }
}

/// What a person was told.
#[derive(Default)]
pub(crate) struct Notices(Mutex<Vec<String>>);

impl Notices {
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Observer for Notices {
    fn observe(&self, event: &Event) {
        if let EventKind::Warning { message } = &event.kind {
            self.0.lock().unwrap().push(message.clone());
        }
    }
}

/// Processes of this test's server that are still there, found by a mark in their environment.
pub(crate) fn alive(mark: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse() else { continue };
        let marked = std::fs::read(entry.path().join("environ"))
            .is_ok_and(|environ| environ.windows(mark.len()).any(|part| part == mark.as_bytes()));
        let zombie =
            std::fs::read_to_string(entry.path().join("stat")).is_ok_and(|stat| stat.contains(") Z "));
        if marked && !zombie {
            found.push(pid);
        }
    }
    found
}

/// Waits until no process with the mark is there any more.
pub(crate) async fn gone(mark: &str) {
    until(mark, |alive| alive == 0).await;
}

/// Waits until a server with the mark and a child of it are there.
pub(crate) async fn grown(mark: &str) {
    until(mark, |alive| alive >= 2).await;
}

/// Waits for a number of processes with the mark.
async fn until(mark: &str, fits: impl Fn(usize) -> bool) {
    let waiting = async {
        while !fits(alive(mark).len()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting)
        .await
        .unwrap_or_else(|_| panic!("{:?}", alive(mark)));
}

/// A fixture whose processes can be found.
pub(crate) fn marked(mode: &str, mark: &str) -> ServerConfig {
    let mut config = fixture(mode);
    if let Launch::Stdio { env, .. } = &mut config.launch {
        env.insert("TEST_MARK".into(), mark.into());
    }
    config
}
