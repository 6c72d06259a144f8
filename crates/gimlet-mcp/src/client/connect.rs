//! From a configuration to a connection: a process or an address, the newest protocol both sides know, and an error
//! that holds what the server wrote when it does not work.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};
use rmcp::RoleClient;
use rmcp::model::{ProtocolVersion, SubscriptionFilter};
use rmcp::service::{
    ClientCacheConfig, ClientInitializeError, ClientLifecycleMode, ClientServiceExt, Peer, RunningService,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use tokio::task::AbortHandle;

use super::bounded::{Bounded, LARGEST};
use super::http::BoundedHttp;
use super::hub::{Handler, Hub};
use super::sse::SseTransport;
use crate::config::{HttpWire, Launch, Protocol, ServerConfig};
use crate::error::McpError;
use crate::process::{LastWords, Process, Program, Reaper, Starter};

/// Where what servers say while they work is shown.
#[derive(Clone)]
pub enum Voice {
    /// As warnings among the run's events.
    Events,
    /// By a function, as it comes.
    Direct(Arc<dyn Fn(&str) + Send + Sync>),
}

/// What servers are started with.
#[derive(Clone)]
pub struct Ground {
    /// Variables every process sees; what a server's configuration names comes on top.
    pub environment: BTreeMap<OsString, OsString>,
    /// Where processes run unless their configuration says otherwise.
    pub cwd: PathBuf,
    /// Knows the processes that are alive.
    pub reaper: Reaper,
    /// Decides how processes are started; without it they are started as their configuration says.
    pub starter: Option<Arc<dyn Starter>>,
    /// Where what they say is shown.
    pub voice: Voice,
}

/// A server that answers.
pub(super) struct Connection {
    /// Ends the connection when dropped.
    service: RunningService<RoleClient, Handler>,
    /// Killed when dropped; none for a server somebody else runs.
    pub(super) process: Option<Process>,
    pub(super) words: LastWords,
    /// Why our side ended the connection, if it did.
    pub(super) verdict: Arc<OnceLock<String>>,
    /// Follows the news of a server that sends them only when asked; ends with the connection.
    news: Option<AbortHandle>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(news) = self.news.take() {
            news.abort();
        }
    }
}

impl Connection {
    pub(super) fn peer(&self) -> &Peer<RoleClient> {
        self.service.peer()
    }

    /// Says goodbye and waits until nothing is left.
    pub(super) async fn close(mut self) {
        // Closing the service closes a process's input, which is how it learns that it is over.
        let _ = self.service.close_with_timeout(std::time::Duration::from_secs(2)).await;
        if let Some(process) = self.process.take() {
            process.close().await;
        }
    }

    /// Connects, within the time the configuration gives.
    pub(super) async fn open(
        config: &ServerConfig,
        ground: &Ground,
        hub: &Arc<Hub>,
    ) -> Result<Connection, McpError> {
        let words = LastWords::default();
        let verdict = Arc::new(OnceLock::new());
        let opening = Opening { config, ground, hub, words: words.clone(), verdict };
        match tokio::time::timeout(config.connect_timeout, opening.run()).await {
            Ok(opened) => opened,
            Err(_) => Err(McpError::NotReady {
                server: config.name.clone(),
                seconds: config.connect_timeout.as_secs(),
                stderr: words.text(),
            }),
        }
    }
}

/// A connection that is being made.
struct Opening<'a> {
    config: &'a ServerConfig,
    ground: &'a Ground,
    hub: &'a Arc<Hub>,
    words: LastWords,
    verdict: Arc<OnceLock<String>>,
}

impl Opening<'_> {
    async fn run(&self) -> Result<Connection, McpError> {
        let lifecycles = match self.config.protocol {
            // A server that stumbles over a question it does not know gets a second chance without it.
            Protocol::Auto => vec![automatic(), ClientLifecycleMode::Initialize],
            Protocol::Handshake => vec![ClientLifecycleMode::Initialize],
            Protocol::Discover => vec![ClientLifecycleMode::Discover { preferred_versions: newest() }],
        };
        let mut failure = None;
        for lifecycle in lifecycles {
            match self.attempt(lifecycle).await {
                Ok(connection) => return Ok(self.settle(connection).await),
                Err(error @ (McpError::Start { .. } | McpError::Unauthorized { .. })) => return Err(error),
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.unwrap_or_else(|| self.broken("there is no way to speak to it".into())))
    }

    async fn attempt(&self, lifecycle: ClientLifecycleMode) -> Result<Connection, McpError> {
        match &self.config.launch {
            Launch::Stdio { command, args, env, cwd } => {
                let mut environment = self.ground.environment.clone();
                environment.extend(env.iter().map(|(name, value)| (name.into(), value.into())));
                let program = Program {
                    command: command.into(),
                    args: args.iter().map(OsString::from).collect(),
                    cwd: cwd.as_deref().unwrap_or(&self.ground.cwd).to_owned(),
                    environment,
                };
                let program = self.prepare(program, command)?;
                let (mut process, stdout, stdin) =
                    Process::start(program, &self.ground.reaper, self.words.clone())
                        .map_err(|error| self.unstartable(command, &error))?;
                let stdout = Bounded::new(stdout, self.verdict.clone(), self.words.clone());
                let transport = AsyncRwTransport::new_client(stdout, stdin).with_max_line_length(LARGEST + 1);
                match self.handler().serve_with_lifecycle(transport, lifecycle).await {
                    Ok(service) => Ok(self.connection(service, Some(process))),
                    Err(error) => {
                        let ended =
                            tokio::time::timeout(std::time::Duration::from_millis(500), process.ended())
                                .await;
                        match ended {
                            Ok(Ok(status)) => Err(self.broken(format!("it ended with {status}"))),
                            _ => Err(self.broken(plain(&error))),
                        }
                    }
                }
            }
            Launch::Remote { url, headers, wire } => {
                let url = Url::parse(url).map_err(|error| self.broken(error.to_string()))?;
                let headers = self.headers(headers)?;
                match wire {
                    HttpWire::Streamable => self.streamable(url, headers, lifecycle).await,
                    HttpWire::Sse => self.sse(url, headers).await,
                    HttpWire::Detect => {
                        let last = lifecycle == ClientLifecycleMode::Initialize;
                        match self.streamable(url.clone(), headers.clone(), lifecycle).await {
                            Err(McpError::Broken { .. }) if last => self.sse(url, headers).await,
                            other => other,
                        }
                    }
                }
            }
        }
    }

    async fn streamable(
        &self,
        url: Url,
        headers: HeaderMap,
        lifecycle: ClientLifecycleMode,
    ) -> Result<Connection, McpError> {
        let headers: HashMap<HeaderName, HeaderValue> =
            headers.into_iter().filter_map(|(name, value)| Some((name?, value))).collect();
        let config = StreamableHttpClientTransportConfig::with_uri(url.as_str()).custom_headers(headers);
        let transport = StreamableHttpClientTransport::with_client(BoundedHttp(self.client()?), config);
        match self.handler().serve_with_lifecycle(transport, lifecycle).await {
            Ok(service) => Ok(self.connection(service, None)),
            Err(error) if error.is_authorization_required() => {
                Err(McpError::Unauthorized { server: self.config.name.clone() })
            }
            Err(error) => Err(self.broken(plain(&error))),
        }
    }

    /// The older way knows only the handshake.
    async fn sse(&self, url: Url, headers: HeaderMap) -> Result<Connection, McpError> {
        let transport = SseTransport::connect(self.client()?, url, headers, self.verdict.clone())
            .await
            .map_err(|error| self.broken(error.to_string()))?;
        match self.handler().serve_with_lifecycle(transport, ClientLifecycleMode::Initialize).await {
            Ok(service) => Ok(self.connection(service, None)),
            Err(error) => Err(self.broken(plain(&error))),
        }
    }

    /// What is really started.
    fn prepare(&self, program: Program, command: &str) -> Result<Program, McpError> {
        let Some(starter) = &self.ground.starter else { return Ok(program) };
        program.check().map_err(|error| self.unstartable(command, &error))?;
        let server = &self.config.name;
        starter.prepare(self.config, program).map_err(|why| McpError::Start {
            server: server.clone(),
            reason: why.reason,
            hint: why.hint,
        })
    }

    fn handler(&self) -> Handler {
        Handler { hub: self.hub.clone() }
    }

    fn connection(
        &self,
        service: RunningService<RoleClient, Handler>,
        process: Option<Process>,
    ) -> Connection {
        let (words, verdict) = (self.words.clone(), self.verdict.clone());
        Connection { service, process, words, verdict, news: None }
    }

    /// Asks for news where a server sends them only then.
    async fn settle(&self, mut connection: Connection) -> Connection {
        let peer = connection.peer().clone();
        // Lists are kept by us and read again when they change.
        peer.set_response_cache_config(ClientCacheConfig::disabled()).await;
        let wants = peer.peer_info().is_some_and(|info| {
            !info.protocol_version.has_initialize()
                && info.capabilities.tools.as_ref().and_then(|tools| tools.list_changed) == Some(true)
        });
        if wants {
            let hub = self.hub.clone();
            let follow = async move {
                let filter = SubscriptionFilter::builder().tools_list_changed().build();
                let Ok(mut news) = peer.listen(filter).await else { return };
                while let Ok(Some(_)) = news.next().await {
                    hub.tools_changed.notify_one();
                }
            };
            connection.news = Some(tokio::spawn(follow).abort_handle());
        }
        connection
    }

    fn headers(&self, given: &BTreeMap<String, String>) -> Result<HeaderMap, McpError> {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            let wrong = || self.broken(format!("`{name}` cannot be a header with this value"));
            let header: HeaderName = name.parse().map_err(|_| wrong())?;
            let mut value: HeaderValue = value.parse().map_err(|_| wrong())?;
            value.set_sensitive(true);
            headers.insert(header, value);
        }
        Ok(headers)
    }

    /// Follows redirects only where they stay on the server, so that no header goes elsewhere.
    fn client(&self) -> Result<Client, McpError> {
        let stay = reqwest::redirect::Policy::custom(|attempt| {
            let same =
                attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
            if same && attempt.previous().len() <= 5 { attempt.follow() } else { attempt.stop() }
        });
        Client::builder().redirect(stay).build().map_err(|error| self.broken(error.to_string()))
    }

    fn unstartable(&self, command: &str, error: &std::io::Error) -> McpError {
        let hint = if error.kind() == std::io::ErrorKind::NotFound {
            format!("install `{command}`, or name it with its full path")
        } else {
            format!("see that `{command}` can be run")
        };
        McpError::Start { server: self.config.name.clone(), reason: format!("`{command}`: {error}"), hint }
    }

    fn broken(&self, reason: String) -> McpError {
        let reason = self.verdict.get().cloned().unwrap_or(reason);
        McpError::Broken { server: self.config.name.clone(), reason, stderr: self.words.text() }
    }
}

fn newest() -> Vec<ProtocolVersion> {
    vec![ProtocolVersion::V_2026_07_28]
}

fn automatic() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: newest(),
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
}

/// What went wrong, without the types of the library in between.
fn plain(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => plain(fallback),
        ClientInitializeError::ConnectionClosed(_) => "it closed the connection".into(),
        ClientInitializeError::TransportError { error, .. } => {
            super::content::clip(&error.error.to_string(), 500)
        }
        ClientInitializeError::JsonRpcError(error) => super::content::clip(&error.message, 500),
        other => super::content::clip(&other.to_string(), 500),
    }
}
