//! One door to the network: requests with limits on connecting, on silence and on the whole, and nothing implicit.
//!
//! Redirects are never followed, so a key goes only where it was meant to go. Proxies come in as values and are not
//! used for this machine itself.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fmt, io};

use gimlet::model::ModelError;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, RequestBuilder, Response, Url, redirect};
use secrecy::{ExposeSecret, SecretString};

/// How long to wait for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection.
    pub connect: Duration,
    /// For the next byte: before the first one a model may be reading a long prompt.
    pub idle: Duration,
    /// For the whole reply.
    pub overall: Duration,
    /// For a server that says it is loading the model.
    pub loading: Duration,
    /// Between two questions whether the model is loaded.
    pub poll: Duration,
}

impl Timeouts {
    /// For a model on this machine, which may be slow.
    pub const LOCAL: Timeouts = Timeouts {
        connect: Duration::from_secs(5),
        idle: Duration::from_secs(600),
        overall: Duration::from_secs(3600),
        loading: Duration::from_secs(300),
        poll: Duration::from_secs(1),
    };
    /// For a model of a provider.
    pub const HOSTED: Timeouts = Timeouts {
        connect: Duration::from_secs(10),
        idle: Duration::from_secs(120),
        overall: Duration::from_secs(1800),
        loading: Duration::from_secs(60),
        poll: Duration::from_secs(2),
    };
}

/// An address, ready for requests.
#[derive(Clone)]
pub struct Transport {
    client: Client,
    /// Where it goes, without credentials.
    host: String,
    timeouts: Timeouts,
    headers: HeaderMap,
    key: Option<SecretString>,
    /// Whether a connection may have been kept.
    answered: Arc<AtomicBool>,
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport")
            .field("host", &self.host)
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}

/// How a key is shown to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyHeader {
    /// `authorization: Bearer …`
    Bearer,
    /// `x-api-key: …`
    ApiKey,
}

/// Why an address cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The key has characters that cannot be sent.
    #[error("the key for {host} has characters that no header may hold")]
    BadKey {
        /// Whose key.
        host: String,
    },
    /// The client cannot be made.
    #[error("cannot prepare connections to {host}: {source}")]
    Client {
        /// For whom.
        host: String,
        /// What went wrong.
        source: reqwest::Error,
    },
    /// The proxy's address makes no sense.
    #[error("the proxy for {host} is not an address: {source}")]
    Proxy {
        /// For whom.
        host: String,
        /// What is wrong with it.
        source: reqwest::Error,
    },
}

/// An answer whose body is still to come.
pub(crate) struct Answer {
    pub(crate) response: Response,
}

impl Transport {
    /// Requests to the host of `base`, with the key if there is one, through the proxy unless the host is this machine.
    pub fn new(
        base: &Url,
        timeouts: Timeouts,
        key: Option<(KeyHeader, SecretString)>,
        proxy: Option<&str>,
    ) -> Result<Self, TransportError> {
        let host = display_host(base);
        let mut builder = Client::builder()
            .redirect(redirect::Policy::none())
            .connect_timeout(timeouts.connect)
            .user_agent(concat!("gimlet/", env!("CARGO_PKG_VERSION")))
            .tcp_nodelay(true)
            .no_proxy();
        if let Some(proxy) = proxy
            && !is_loopback(base)
        {
            let proxy = reqwest::Proxy::all(proxy)
                .map_err(|source| TransportError::Proxy { host: host.clone(), source })?;
            builder = builder.proxy(proxy);
        }
        if base.scheme() == "http" {
            // Reading the system's certificates takes milliseconds that a local server does not need.
            builder = builder.tls_certs_only([]);
        }
        let mut headers = HeaderMap::new();
        let key = match key {
            None => None,
            Some((header, key)) => {
                let (name, text) = match header {
                    KeyHeader::Bearer => ("authorization", format!("Bearer {}", key.expose_secret())),
                    KeyHeader::ApiKey => ("x-api-key", key.expose_secret().to_owned()),
                };
                let mut value = HeaderValue::try_from(text)
                    .map_err(|_invalid| TransportError::BadKey { host: host.clone() })?;
                value.set_sensitive(true);
                headers.insert(HeaderName::from_static(name), value);
                Some(key)
            }
        };
        let client =
            builder.build().map_err(|source| TransportError::Client { host: host.clone(), source })?;
        Ok(Transport { client, host, timeouts, headers, key, answered: Arc::default() })
    }

    /// Adds a header to every request.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        self
    }

    /// Where requests go, without credentials.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// How long it waits for what.
    pub fn timeouts(&self) -> &Timeouts {
        &self.timeouts
    }

    /// Hides the key in a text that the server may have echoed.
    pub(crate) fn redact(&self, text: String) -> String {
        match &self.key {
            Some(key) if key.expose_secret().len() >= 8 => text.replace(key.expose_secret(), "[key]"),
            Some(_) | None => text,
        }
    }

    /// Sends a request and waits for the head of the answer.
    pub(crate) async fn send(
        &self,
        method: Method,
        url: &Url,
        body: Option<Vec<u8>>,
    ) -> Result<Answer, ModelError> {
        let mut request = self.client.request(method, url.clone()).headers(self.headers.clone());
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body);
        }
        let limit = self.timeouts.connect.saturating_add(self.timeouts.idle).min(self.timeouts.overall);
        match tokio::time::timeout(limit, self.dispatch(request)).await {
            Ok(Ok(response)) => {
                self.answered.store(true, Ordering::Relaxed);
                Ok(Answer { response })
            }
            Ok(Err(error)) => Err(self.broken(&error)),
            Err(_elapsed) => Err(ModelError::Timeout { host: self.host.clone(), after: limit }),
        }
    }

    /// Sends a request; once more if a kept connection turns out to be closed. Some servers, llama.cpp's among them, close one
    /// after a stream without saying so, and a request that is quick meets it half closed.
    async fn dispatch(&self, request: RequestBuilder) -> reqwest::Result<Response> {
        let kept = self.answered.load(Ordering::Relaxed);
        let again = if kept { request.try_clone() } else { None };
        match (request.send().await, again) {
            (Err(error), Some(again)) if is_hung_up(&error) => again.send().await,
            (result, _) => result,
        }
    }

    /// What a broken connection means.
    fn broken(&self, error: &reqwest::Error) -> ModelError {
        if error.is_timeout() {
            return ModelError::Timeout { host: self.host.clone(), after: self.timeouts.connect };
        }
        ModelError::Connect { host: self.host.clone(), reason: root_cause(error) }
    }
}

impl Answer {
    pub(crate) fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name).and_then(|value| value.to_str().ok())
    }

    /// The next bytes of the body, or its end. A body that breaks off ends in `Cut`.
    pub(crate) async fn chunk(
        &mut self,
        transport: &Transport,
    ) -> Result<Option<impl AsRef<[u8]> + use<>>, ModelError> {
        let idle = transport.timeouts.idle;
        match tokio::time::timeout(idle, self.response.chunk()).await {
            Ok(Ok(chunk)) => Ok(chunk),
            Ok(Err(_broken)) => Err(ModelError::Cut),
            Err(_elapsed) => Err(ModelError::Timeout { host: transport.host.clone(), after: idle }),
        }
    }

    /// The body, or as much of it as fits and comes in time; what was read before a break counts.
    pub(crate) async fn read(&mut self, transport: &Transport, limit: usize) -> Vec<u8> {
        let mut body = Vec::new();
        let reading = async {
            while body.len() < limit
                && let Ok(Some(bytes)) = self.chunk(transport).await
            {
                let bytes = bytes.as_ref();
                body.extend_from_slice(&bytes[..bytes.len().min(limit - body.len())]);
            }
        };
        let _late = tokio::time::timeout(transport.timeouts.idle, reading).await;
        body
    }
}

/// Host and port, without credentials or path.
fn display_host(url: &Url) -> String {
    let host = url.host_str().unwrap_or("?");
    match url.port() {
        Some(port) => format!("{}://{host}:{port}", url.scheme()),
        None => format!("{}://{host}", url.scheme()),
    }
}

/// Whether an address is this machine.
pub fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.eq_ignore_ascii_case("localhost")
        || bare.to_ascii_lowercase().ends_with(".localhost")
        || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// The innermost reason: "connection refused" rather than "error sending request".
/// How a connection ends that the other side has closed.
const HUNG_UP: [io::ErrorKind; 2] = [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe];

/// Whether the other side closed the connection instead of answering.
fn is_hung_up(error: &reqwest::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_incomplete_message)
            || error.downcast_ref::<io::Error>().is_some_and(|error| HUNG_UP.contains(&error.kind()))
        {
            return true;
        }
        cause = error.source();
    }
    false
}

fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
