//! The agent's side of the protocol: one function per method. Every request is a task of its own, so nothing that waits
//! for the client keeps the client's next message waiting.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gimlet::event::{Event, EventKind};
use gimlet::ids::{Ids, RandomIds, RunId};
use gimlet::store::StoreError;
use gimlet_runtime::{Extras, Options, Runtime};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

use crate::buffers::EditorBuffers;
use crate::cells::Cells;
use crate::chat::Chat;
use crate::follow::{View, Wanted};
use crate::params::{
    Begin, ClientCapabilities, Initialize, List, Meta, Named, Prompt, SetMode, SetOption, read,
};
use crate::wire::{Incoming, Peer, RpcError};
use crate::{commands, program, settings, updates};

/// The protocol version this speaks.
const VERSION: u64 = 1;
/// Sessions of one page of a list.
const PAGE: usize = 50;
/// How many runs are looked at for a list.
const RUNS: usize = 1000;
/// How long turns may take to stop when the client is gone.
const FAREWELL: Duration = Duration::from_secs(10);

/// Serves one client.
pub(crate) struct Server {
    runtime: Runtime,
    options: Options,
    peer: Peer,
    client: Mutex<ClientCapabilities>,
    chats: Mutex<BTreeMap<String, Arc<Chat>>>,
    cells: Cells,
}

/// What is done once an answer is on its way.
enum After {
    Nothing,
    /// Commands are announced: a client drops what it hears of a session before it knows the session's id.
    Announce(Arc<Chat>),
    /// The same, and a question that was left open is asked again.
    AskAgain(Arc<Chat>),
}

type Answer = Result<(Value, After), RpcError>;

impl Server {
    pub(crate) fn new(runtime: Runtime, options: Options, peer: Peer) -> Arc<Server> {
        Arc::new(Server {
            runtime,
            options,
            peer,
            client: Mutex::default(),
            chats: Mutex::default(),
            cells: Cells::default(),
        })
    }

    /// Serves until the client closes its end, or until `stop`.
    pub(crate) async fn serve(
        self: Arc<Self>,
        mut incoming: UnboundedReceiver<Incoming>,
        stop: CancellationToken,
    ) {
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                message = incoming.recv() => match message {
                    Some(message) => self.take(message),
                    None => break,
                },
            }
        }
        self.end().await;
    }

    fn take(self: &Arc<Self>, message: Incoming) {
        match message {
            Incoming::Notification { method, params } => {
                if method == "session/cancel"
                    && let Ok(Named { session_id }) = read(params)
                    && let Ok(chat) = self.chat(&session_id)
                {
                    chat.cancel();
                }
            }
            Incoming::Request { id, method, params } => {
                if matches!(method.as_str(), "session/prompt" | "_gimlet/resume") {
                    // A cancellation that follows at once must find what it cancels.
                    let chat = params["sessionId"].as_str().and_then(|id| self.chat(id).ok());
                    if let Some(chat) = chat {
                        chat.expect_prompt();
                    }
                }
                let server = self.clone();
                tokio::spawn(async move {
                    match server.handle(&method, params).await {
                        Ok((answer, after)) => {
                            server.peer.answer(&id, Ok(answer));
                            server.after(after).await;
                        }
                        Err(error) => server.peer.answer(&id, Err(error)),
                    }
                });
            }
        }
    }

    async fn handle(self: &Arc<Self>, method: &str, params: Value) -> Answer {
        let plain = |answer: Result<Value, RpcError>| answer.map(|answer| (answer, After::Nothing));
        match method {
            "initialize" => plain(self.initialize(params)),
            "authenticate" => Ok((json!({}), After::Nothing)),
            "session/new" => self.new_session(read(params)?).await,
            "session/load" => self.take_up(read(params)?, Replay::Whole).await,
            "session/resume" => self.take_up(read(params)?, Replay::Nothing).await,
            "session/list" => plain(self.list(&read(params)?).await),
            "session/close" => plain(self.close(&read(params)?).await),
            "session/prompt" => {
                let prompt: Prompt = read(params)?;
                let chat = self.chat(&prompt.session_id)?;
                let answer = chat.prompt(prompt.task()?).await;
                self.release(chat).await;
                plain(answer)
            }
            "_gimlet/resume" => {
                let Named { session_id } = read(params)?;
                let chat = self.chat(&session_id)?;
                let answer = chat.resume().await;
                self.release(chat).await;
                plain(answer)
            }
            "session/set_mode" => {
                let SetMode { session_id, mode_id } = read(params)?;
                let chat = self.chat(&session_id)?;
                settings::set_mode(&chat, &mode_id)?;
                plain(Ok(json!({})))
            }
            "session/set_config_option" => {
                let SetOption { session_id, config_id, value } = read(params)?;
                let chat = self.chat(&session_id)?;
                settings::set(&chat, &config_id, &value).await?;
                plain(Ok(json!({ "configOptions": settings::options(&chat.session()) })))
            }
            "_gimlet/python/open" => plain(self.cells.open(params).await),
            "_gimlet/python/run" => plain(self.cells.run(&self.peer, params).await),
            "_gimlet/python/close" => plain(self.cells.close(params).await),
            _ => Err(RpcError::new(RpcError::NO_METHOD, format!("there is no method `{method}`"))),
        }
    }

    async fn after(&self, after: After) {
        let (chat, asks) = match after {
            After::Nothing => return,
            After::Announce(chat) => (chat, false),
            After::AskAgain(chat) => (chat, true),
        };
        if chat.view.wanted == Wanted::Updates {
            chat.view.update(commands::announced());
        }
        if asks && let Err(error) = chat.ask_again().await {
            chat.view.update(updates::chunk("agent_message_chunk", &format!("{error:#}")));
        }
    }

    fn initialize(&self, params: Value) -> Result<Value, RpcError> {
        let asked = params["protocolVersion"].as_u64().unwrap_or(VERSION);
        let Initialize { client_capabilities } = read(params)?;
        *lock(&self.client) = client_capabilities;
        Ok(json!({
            "protocolVersion": asked.clamp(1, VERSION),
            "agentInfo": { "name": "gimlet", "title": "Gimlet", "version": env!("CARGO_PKG_VERSION") },
            "agentCapabilities": {
                "loadSession": true,
                "promptCapabilities": { "image": false, "audio": false, "embeddedContext": true },
                "mcpCapabilities": { "http": true, "sse": true },
                "sessionCapabilities": { "list": {}, "resume": {}, "close": {} },
            },
            "authMethods": [],
        }))
    }

    async fn new_session(&self, begin: Begin) -> Answer {
        let options = begin.options(&self.options)?;
        let id = RandomIds.run(Timestamp::now());
        let (view, extras) = self.surroundings(&id, &begin);
        let chat =
            Chat::begin(self.runtime.clone(), view, options, Extras { id: Some(id.clone()), ..extras })
                .await?;
        let chat = Arc::new(chat);
        lock(&self.chats).insert(id.to_string(), chat.clone());
        let mut answer = state(&chat);
        answer["sessionId"] = json!(id);
        Ok((answer, After::Announce(chat)))
    }

    /// Takes up a session: one of this client, or any run of the same folder.
    async fn take_up(&self, begin: Begin, replay: Replay) -> Answer {
        let id = begin.session_id.clone().ok_or_else(|| RpcError::params("sessionId is missing"))?;
        // Whatever has the run's lock gives it back first.
        let known = lock(&self.chats).remove(&id);
        if let Some(known) = known {
            if known.session().id().is_none() || known.session().is_working() {
                let busy = known.session().is_working();
                lock(&self.chats).insert(id, known.clone());
                return match busy {
                    true => Err(RpcError::params("the session is at work; cancel it, or wait for it")),
                    false => Ok((state(&known), After::Announce(known))),
                };
            }
            known.rest().await;
        }
        let run: RunId = id.parse().map_err(|_| unknown(&id))?;
        let events = self.runtime.store().load(&run).await.map_err(|error| match error {
            StoreError::NoSuchRun(_) => unknown(&id),
            other => anyhow::Error::from(other).into(),
        })?;
        let options = begin.options(&self.options)?;
        if !begin.anywhere() {
            same_folder(&events, &begin.cwd)?;
        }
        let (view, extras) = self.surroundings(&run, &begin);
        let chat = Chat::reopen(self.runtime.clone(), view, &run, options, extras).await?;
        let chat = Arc::new(chat);
        lock(&self.chats).insert(id, chat.clone());
        match replay {
            Replay::Whole => chat.view.replay(&chat.session(), &events),
            Replay::Nothing => {}
        }
        let after = match chat.view.wanted {
            Wanted::Updates => After::AskAgain(chat.clone()),
            // A program says when it is ready for questions: `_gimlet/resume`.
            Wanted::Events => After::Nothing,
        };
        Ok((state(&chat), after))
    }

    /// How a session is shown, and what the client brings to it.
    fn surroundings(&self, id: &RunId, begin: &Begin) -> (View, Extras) {
        let nothing = Meta::default();
        let wishes = &begin.meta.as_ref().unwrap_or(&nothing).gimlet;
        let wanted = if wishes.events { Wanted::Events } else { Wanted::Updates };
        let view = View::new(self.peer.clone(), id.to_string(), wanted);
        let can = lock(&self.client).fs;
        let extras = Extras {
            id: None,
            tools: program::tools(&self.peer, id.as_str(), wishes),
            checks: program::checks(&self.peer, id.as_str(), wishes),
            buffers: EditorBuffers::new(&self.peer, id.as_str(), can).map(|buffers| Arc::new(buffers) as _),
        };
        (view, extras)
    }

    async fn list(&self, list: &List) -> Result<Value, RpcError> {
        let skip: usize = match &list.cursor {
            Some(cursor) => {
                cursor.parse().map_err(|_| RpcError::params("the cursor is not one of this list"))?
            }
            None => 0,
        };
        let folder = list.cwd.as_ref().map(|cwd| cwd.canonicalize().unwrap_or_else(|_| cwd.clone()));
        let runs = self.runtime.catalog().list(RUNS).await.map_err(anyhow::Error::from)?;
        let mut here = runs
            .into_iter()
            .filter(|run| folder.as_ref().is_none_or(|folder| Path::new(&run.root) == folder))
            .skip(skip);
        let sessions: Vec<Value> = here
            .by_ref()
            .take(PAGE)
            .map(|run| {
                json!({
                    "sessionId": run.id,
                    "cwd": run.root,
                    "title": updates::session_title(&run.task),
                    "updatedAt": run.updated.to_string(),
                })
            })
            .collect();
        let mut answer = json!({ "sessions": sessions });
        if here.next().is_some() {
            answer["nextCursor"] = json!((skip + PAGE).to_string());
        }
        Ok(answer)
    }

    async fn close(&self, named: &Named) -> Result<Value, RpcError> {
        let chat = lock(&self.chats).remove(&named.session_id).ok_or_else(|| unknown(&named.session_id))?;
        chat.cancel();
        chat.rest().await;
        let session = chat.session();
        let same = |other: &Arc<Chat>| {
            let other = other.session();
            other.settings().root == session.settings().root
                && other.options().given == session.options().given
        };
        if !lock(&self.chats).values().any(same) {
            self.runtime.end_servers(session.settings(), &session.options().mcp_files).await?;
        }
        Ok(json!({}))
    }

    /// A program's session ends with its turn, so that any other process can take the run up. Its servers stay.
    async fn release(&self, chat: Arc<Chat>) {
        if chat.view.wanted == Wanted::Events {
            lock(&self.chats).remove(&chat.view.id);
            chat.rest().await;
        }
    }

    fn chat(&self, id: &str) -> Result<Arc<Chat>, RpcError> {
        lock(&self.chats).get(id).cloned().ok_or_else(|| unknown(id))
    }

    /// The client is gone: what is under way stops, and a question that waits is left for whoever comes next.
    async fn end(&self) {
        let chats = std::mem::take(&mut *lock(&self.chats));
        for chat in chats.values() {
            if self.peer.closed().is_cancelled() && chat.is_asking() {
                continue;
            }
            chat.cancel();
        }
        let all = futures_util::future::join_all(chats.values().map(|chat| chat.rest()));
        // What does not stop in time is cut off; its log says how far it came.
        let _ = tokio::time::timeout(FAREWELL, all).await;
        self.peer.finish();
    }
}

/// What of a log the client is told when a session is taken up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Replay {
    Whole,
    Nothing,
}

fn state(chat: &Chat) -> Value {
    let session = chat.session();
    json!({ "modes": settings::modes(&session), "configOptions": settings::options(&session) })
}

/// A session goes on in the folder it was in.
fn same_folder(events: &[Event], cwd: &Path) -> Result<(), RpcError> {
    let root = events.iter().rev().find_map(|event| match &event.kind {
        EventKind::RunResumed { root, .. } => Some(root),
        EventKind::RunStarted(started) => Some(&started.root),
        _ => None,
    });
    let here = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
    match root {
        Some(root) if Path::new(root) != here => {
            Err(RpcError::params(format!("this session belongs to another folder: {root}")))
        }
        Some(_) | None => Ok(()),
    }
}

fn unknown(id: &str) -> RpcError {
    RpcError::new(RpcError::NOT_FOUND, format!("there is no session `{id}`"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
