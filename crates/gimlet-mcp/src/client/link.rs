//! One server for the length of a program: a keeper task owns the connection, mends it when it breaks, reads the tools
//! again when they change, and closes it at the end. Calls borrow the line; they never hold up each other.

use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gimlet::tool::{ToolCx, ToolError};
use rmcp::RoleClient;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientRequest, RequestId, RequestMetaObject,
    ServerPeerInfo, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::code;
use super::connect::{Connection, Ground, Voice};
use super::content::clip;
use super::http::TOO_LARGE;
use super::hub::Hub;
use super::listing::Listing;
use crate::config::ServerConfig;
use crate::error::McpError;

/// A call that shows progress may take so many times as long as one that does not.
pub(super) const PROGRESS_FACTOR: u32 = 10;

/// Tries to reconnect for one call, and the pause before the second; each later one is longer.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(250);

/// Longest rest after failing to reconnect.
const LONGEST_REST: Duration = Duration::from_secs(60);

/// A server as everything else sees it. Dropping the last one closes the server.
pub(super) struct Link {
    pub(super) config: ServerConfig,
    hub: Arc<Hub>,
    asks: mpsc::Sender<Ask>,
    shared: Arc<Shared>,
    voice: Voice,
    /// Stops the keeper, also while it reconnects.
    stop: CancellationToken,
}

/// What the keeper tells everybody.
struct Shared {
    listing: Mutex<Arc<Listing>>,
    info: Mutex<Option<Arc<ServerPeerInfo>>>,
}

impl Shared {
    fn tell(&self, listing: Listing, peer: &Peer<RoleClient>) {
        *self.listing.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(listing);
        *self.info.lock().unwrap_or_else(PoisonError::into_inner) = peer.peer_info();
    }
}

/// What the keeper is asked.
enum Ask {
    /// A line that works, if need be a new one.
    Line(oneshot::Sender<Result<Line, McpError>>),
    /// Why this line broke.
    Why(u64, oneshot::Sender<String>),
    /// Close everything.
    Close(oneshot::Sender<()>),
}

/// A connection to call over.
struct Line {
    peer: Peer<RoleClient>,
    /// Counts the connections of this server.
    number: u64,
    stderr: crate::process::LastWords,
}

impl Link {
    /// Connects and reads the tools.
    pub(super) async fn open(config: ServerConfig, ground: &Ground) -> Result<Link, McpError> {
        let hub = Arc::new(Hub::default());
        let (connection, listing) = connect(&config, ground, &hub).await?;
        let missing: Vec<String> =
            config.required.iter().filter(|tool| listing.find(tool).is_none()).cloned().collect();
        if !missing.is_empty() {
            let error =
                McpError::MissingTools { server: config.name.clone(), missing, offered: listing.names() };
            connection.close().await;
            return Err(error);
        }
        let shared = Arc::new(Shared {
            listing: Mutex::new(Arc::new(listing)),
            info: Mutex::new(connection.peer().peer_info()),
        });
        let (asks, inbox) = mpsc::channel(16);
        let stop = CancellationToken::new();
        let keeper = Keeper {
            config: config.clone(),
            ground: ground.clone(),
            hub: hub.clone(),
            shared: shared.clone(),
            stop: stop.clone(),
            connection: Some(connection),
            number: 1,
            rest: Rest::default(),
        };
        tokio::spawn(keeper.keep(inbox));
        Ok(Link { config, hub, asks, shared, voice: ground.voice.clone(), stop })
    }

    /// The tools as of now.
    pub(super) fn listing(&self) -> Arc<Listing> {
        self.shared.listing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the server says about itself.
    pub(super) fn info(&self) -> Option<Arc<ServerPeerInfo>> {
        self.shared.info.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Closes the connection and waits until the process is gone.
    pub(super) async fn close(&self) {
        self.stop.cancel();
        let (reply, closed) = oneshot::channel();
        if self.asks.send(Ask::Close(reply)).await.is_ok() {
            let _ = closed.await;
        }
    }

    /// Makes a request. What the server says meanwhile is shown; dropping the future tells it to stop.
    pub(super) async fn request(
        &self,
        request: ClientRequest,
        cx: &ToolCx,
    ) -> Result<ServerResult, ToolError> {
        let line = self.line().await?;
        let modern = line.peer.peer_info().is_some_and(|info| !info.protocol_version.has_initialize());
        let mut options = PeerRequestOptions::with_timeout(self.config.call_timeout)
            .reset_timeout_on_progress()
            .with_max_total_timeout(self.config.call_timeout * PROGRESS_FACTOR);
        if modern {
            options = options.with_meta(logging());
        }
        let handle = match line.peer.send_request_with_option(request, options).await {
            Ok(handle) => handle,
            Err(error) => return Err(self.explain(&line, error, Sent::No).await),
        };
        let mut listening = self.hub.listen(handle.progress_token.clone());
        let mut open = OpenRequest { peer: line.peer.clone(), id: Some(handle.id.clone()) };
        let response = handle.await_response();
        tokio::pin!(response);
        let outcome = loop {
            tokio::select! {
                biased;
                Some(said) = listening.messages.recv() => {
                    let said = format!("{}: {said}", self.config.name);
                    match &self.voice {
                        Voice::Events => cx.notice(said).await,
                        Voice::Direct(show) => show(&said),
                    }
                }
                outcome = &mut response => break outcome,
            }
        };
        open.id = None;
        match outcome {
            Ok(result) => Ok(result),
            Err(error) => Err(self.explain(&line, error, Sent::Yes).await),
        }
    }

    async fn line(&self) -> Result<Line, ToolError> {
        let (reply, line) = oneshot::channel();
        let gone = || ToolError::failed(code::MCP_SERVER_GONE, "the MCP server has been closed");
        self.asks.send(Ask::Line(reply)).await.map_err(|_| gone())?;
        line.await.map_err(|_| gone())?.map_err(|error| {
            ToolError::failed(code::MCP_SERVER_GONE, error.to_string())
                .with("server", self.config.name.clone())
                .with("hint", "Go on without it, or try again later.")
        })
    }

    /// An error the model can work with.
    async fn explain(&self, line: &Line, error: ServiceError, sent: Sent) -> ToolError {
        let server = self.config.name.clone();
        match error {
            ServiceError::McpError(error) if error.code == TOO_LARGE => {
                let message = format!("MCP server `{server}` was not heard out because {}.", error.message);
                ToolError::failed(code::MCP_TOOL_FAILED, message)
                    .with("server", server)
                    .with("hint", "Ask for less at a time, or go on without it.")
            }
            ServiceError::McpError(error) => {
                let failed = ToolError::failed(code::MCP_TOOL_FAILED, clip(&error.message, 2000));
                let failed = match error.data {
                    Some(data) => failed.with("details", clip(&data.to_string(), 1000)),
                    None => failed,
                };
                failed.with("server", server)
            }
            ServiceError::Timeout { timeout } => {
                let message = format!(
                    "MCP server `{server}` did not answer within {} s. The call may have taken effect.",
                    timeout.as_secs_f32()
                );
                ToolError::failed(gimlet::tool::code::TOOL_TIMEOUT, message)
                    .with("server", server)
                    .with("stderr", clip(&line.stderr.text(), 1000))
                    .with("hint", "Ask for less at a time, or go on without it.")
            }
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
                let why = self.why(line.number).await;
                let effect = match sent {
                    Sent::Yes => " while it worked on this. The call may have taken effect.",
                    Sent::No => ". The call did not reach it.",
                };
                ToolError::failed(code::MCP_SERVER_DIED, format!("MCP server `{server}` {why}{effect}"))
                    .with("server", server)
                    .with("stderr", clip(&line.stderr.text(), 1000))
                    .with("hint", "The next call starts it again.")
            }
            other => {
                ToolError::failed(code::MCP_TOOL_FAILED, clip(&other.to_string(), 500)).with("server", server)
            }
        }
    }

    async fn why(&self, number: u64) -> String {
        let (reply, why) = oneshot::channel();
        let unknown = || "closed the connection".to_owned();
        match self.asks.send(Ask::Why(number, reply)).await {
            Ok(()) => why.await.unwrap_or_else(|_| unknown()),
            Err(_) => unknown(),
        }
    }
}

/// Whether a request left this program.
enum Sent {
    Yes,
    No,
}

/// Tells the server to stop when nobody waits for the answer any more.
struct OpenRequest {
    peer: Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current()) else { return };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let params = CancelledNotificationParam::new(Some(id), Some("the caller no longer waits".into()));
            let _ = peer.send_notification(CancelledNotification::new(params).into()).await;
        });
    }
}

/// Asks a server that logs only on demand to do so.
fn logging() -> RequestMetaObject {
    let mut meta = RequestMetaObject::new();
    #[expect(deprecated, reason = "servers still log")]
    meta.set_log_level(rmcp::model::LoggingLevel::Info);
    meta
}

async fn connect(
    config: &ServerConfig,
    ground: &Ground,
    hub: &Arc<Hub>,
) -> Result<(Connection, Listing), McpError> {
    let connection = Connection::open(config, ground, hub).await?;
    let listing =
        tokio::time::timeout(config.connect_timeout, Listing::read(connection.peer(), config)).await;
    match listing {
        Ok(Ok(listing)) => Ok((connection, listing)),
        Ok(Err(error)) => Err(McpError::Broken {
            server: config.name.clone(),
            reason: match connection.verdict.get() {
                Some(verdict) => verdict.clone(),
                None => format!("it does not list its tools: {}", clip(&error.to_string(), 300)),
            },
            stderr: connection.words.text(),
        }),
        Err(_) => Err(McpError::NotReady {
            server: config.name.clone(),
            seconds: config.connect_timeout.as_secs(),
            stderr: connection.words.text(),
        }),
    }
}

/// Owns the connection.
struct Keeper {
    config: ServerConfig,
    ground: Ground,
    hub: Arc<Hub>,
    shared: Arc<Shared>,
    stop: CancellationToken,
    connection: Option<Connection>,
    /// Of the connection.
    number: u64,
    rest: Rest,
}

/// The time in which no new connection is tried, after some failed.
#[derive(Default)]
struct Rest {
    failures: u32,
    until: Option<Instant>,
    last: Option<McpError>,
}

impl Keeper {
    async fn keep(mut self, mut inbox: mpsc::Receiver<Ask>) {
        let hub = self.hub.clone();
        loop {
            let ask = tokio::select! {
                ask = inbox.recv() => ask,
                () = hub.tools_changed.notified() => {
                    self.list_again().await;
                    continue;
                }
            };
            match ask {
                Some(Ask::Line(reply)) => {
                    let line = self.line().await;
                    let _ = reply.send(line);
                }
                Some(Ask::Why(number, reply)) => {
                    let _ = reply.send(self.why(number).await);
                }
                Some(Ask::Close(reply)) => {
                    self.close().await;
                    let _ = reply.send(());
                    return;
                }
                None => return self.close().await,
            }
        }
    }

    async fn line(&mut self) -> Result<Line, McpError> {
        if self.connection.as_ref().is_none_or(|connection| connection.peer().is_transport_closed()) {
            self.reconnect().await?;
        }
        match &self.connection {
            Some(connection) => Ok(Line {
                peer: connection.peer().clone(),
                number: self.number,
                stderr: connection.words.clone(),
            }),
            None => Err(self.gone()),
        }
    }

    async fn reconnect(&mut self) -> Result<(), McpError> {
        if let (Some(until), Some(last)) = (self.rest.until, &self.rest.last)
            && Instant::now() < until
        {
            return Err(last.clone());
        }
        self.close().await;
        let mut failure = self.gone();
        for attempt in 0..TRIES {
            let pause = if attempt == 0 { Duration::ZERO } else { PAUSE * 4u32.pow(attempt - 1) };
            let connected = tokio::select! {
                biased;
                () = self.stop.cancelled() => return Err(failure),
                connected = async {
                    tokio::time::sleep(pause).await;
                    connect(&self.config, &self.ground, &self.hub).await
                } => connected,
            };
            match connected {
                Ok((connection, listing)) => {
                    self.shared.tell(listing, connection.peer());
                    self.connection = Some(connection);
                    self.number += 1;
                    self.rest = Rest::default();
                    return Ok(());
                }
                Err(error) => failure = error,
            }
        }
        self.rest.failures += 1;
        let rest = Duration::from_secs(1 << self.rest.failures.min(6)).min(LONGEST_REST);
        self.rest.until = Some(Instant::now() + rest);
        self.rest.last = Some(failure.clone());
        Err(failure)
    }

    /// How a line ended, in words that follow the server's name.
    async fn why(&mut self, number: u64) -> String {
        let Some(connection) = self.connection.as_mut().filter(|_| number == self.number) else {
            return "closed the connection".into();
        };
        if let Some(verdict) = connection.verdict.get() {
            return format!("was cut off because {verdict}");
        }
        let Some(process) = &mut connection.process else { return "closed the connection".into() };
        match tokio::time::timeout(Duration::from_secs(1), process.ended()).await {
            Ok(Ok(status)) => ended(status),
            _ => "closed the connection".into(),
        }
    }

    async fn list_again(&mut self) {
        let Some(connection) = &self.connection else { return };
        let read = Listing::read(connection.peer(), &self.config);
        if let Ok(Ok(listing)) = tokio::time::timeout(self.config.call_timeout, read).await {
            self.shared.tell(listing, connection.peer());
        }
    }

    async fn close(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.close().await;
        }
    }

    fn gone(&self) -> McpError {
        let reason = "its connection is closed".to_owned();
        McpError::Broken { server: self.config.name.clone(), reason, stderr: String::new() }
    }
}

fn ended(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with code {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "ended".into(),
    }
}
