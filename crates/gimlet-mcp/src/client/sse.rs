//! The older way of MCP over HTTP: one long event stream that names a place to post to. Servers that were never moved
//! to streamable HTTP still speak it.

use std::sync::{Arc, OnceLock};

use futures_util::{Stream, StreamExt, TryStreamExt};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use reqwest::{Client, Url};
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use sse_stream::SseStream;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::bounded::{LARGEST, too_large};

/// Why it does not work.
#[derive(Debug, thiserror::Error)]
pub(super) enum SseError {
    #[error(transparent)]
    Http(#[from] reqwest::Error),
    #[error("{0}")]
    Protocol(String),
    #[error("{}", too_large())]
    TooLarge,
}

/// A connection.
pub(super) struct SseTransport {
    client: Client,
    headers: HeaderMap,
    endpoint: Arc<Url>,
    messages: mpsc::Receiver<ServerJsonRpcMessage>,
    /// Reads the stream; ends with the transport.
    reader: AbortHandle,
}

impl Drop for SseTransport {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl SseTransport {
    /// Opens the stream and waits until the server has said where to post to. `verdict` is told why this side ends the
    /// stream, if it does.
    pub(super) async fn connect(
        client: Client,
        url: Url,
        headers: HeaderMap,
        verdict: Arc<OnceLock<String>>,
    ) -> Result<Self, SseError> {
        let request = client.get(url.clone()).headers(headers.clone()).header(ACCEPT, "text/event-stream");
        let response = request.send().await?.error_for_status()?;
        let kind =
            response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !kind.starts_with("text/event-stream") {
            return Err(SseError::Protocol(format!("{url} is no event stream (it is `{kind}`)")));
        }
        let mut events = Box::pin(SseStream::from_bytes_stream(bounded(response.bytes_stream())));
        let endpoint = loop {
            match events.next().await {
                Some(Ok(event)) if event.event.as_deref() == Some("endpoint") => {
                    break endpoint(&url, event.data.unwrap_or_default().trim())?;
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(SseError::Protocol(error.to_string())),
                None => return Err(SseError::Protocol("the stream ended before it began".into())),
            }
        };
        let (sender, messages) = mpsc::channel(16);
        let reader = tokio::spawn(async move {
            while let Some(event) = events.next().await {
                let event = match event {
                    Ok(event) => event,
                    Err(error) => {
                        if is_too_large(&error) {
                            let _ = verdict.set(too_large());
                        }
                        break;
                    }
                };
                if event.event.is_some_and(|kind| kind != "message") {
                    continue;
                }
                // What is no message is skipped, as on every other transport.
                let Ok(message) = serde_json::from_str(&event.data.unwrap_or_default()) else { continue };
                if sender.send(message).await.is_err() {
                    break;
                }
            }
        });
        let reader = reader.abort_handle();
        Ok(SseTransport { client, headers, endpoint: Arc::new(endpoint), messages, reader })
    }
}

/// The place to post to: on the same server, whatever the server says.
fn endpoint(base: &Url, named: &str) -> Result<Url, SseError> {
    let endpoint = base.join(named).map_err(|error| SseError::Protocol(format!("`{named}`: {error}")))?;
    if endpoint.origin() != base.origin() {
        return Err(SseError::Protocol(format!("it wants messages to go to another server, {endpoint}")));
    }
    Ok(endpoint)
}

/// Ends a stream in which an event never ends.
pub(super) fn bounded<B: AsRef<[u8]>>(
    bytes: impl Stream<Item = reqwest::Result<B>>,
) -> impl Stream<Item = Result<B, SseError>> {
    let mut event = EventLength::default();
    bytes.map_err(SseError::from).and_then(move |chunk| {
        let fits = event.grow(chunk.as_ref()) <= LARGEST;
        std::future::ready(if fits { Ok(chunk) } else { Err(SseError::TooLarge) })
    })
}

/// Whether a stream was ended for an event that never ends.
pub(super) fn is_too_large(error: &sse_stream::Error) -> bool {
    match error {
        sse_stream::Error::Body(error) => matches!(error.downcast_ref(), Some(SseError::TooLarge)),
        _ => false,
    }
}

/// How long the event is that a stream is in the middle of. An empty line ends it.
#[derive(Default)]
struct EventLength {
    event: usize,
    line: usize,
}

impl EventLength {
    fn grow(&mut self, chunk: &[u8]) -> usize {
        for byte in chunk {
            match byte {
                b'\r' => {}
                b'\n' if self.line == 0 => self.event = 0,
                b'\n' => self.line = 0,
                _ => {
                    self.line += 1;
                    self.event += 1;
                }
            }
        }
        self.event
    }
}

impl Transport<RoleClient> for SseTransport {
    type Error = SseError;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), SseError>> + Send + 'static {
        let request =
            self.client.post(self.endpoint.as_ref().clone()).headers(self.headers.clone()).json(&message);
        async move {
            request.send().await?.error_for_status()?;
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.messages.recv().await
    }

    async fn close(&mut self) -> Result<(), SseError> {
        self.messages.close();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_line_ends_an_event_however_it_is_cut() {
        let mut event = EventLength::default();
        assert_eq!(event.grow(b"data: 1\r"), 7);
        assert_eq!(event.grow(b"\ndata: 2\r\n\r"), 14);
        assert_eq!(event.grow(b"\n"), 0);
        assert_eq!(event.grow(b"a\n\nbc"), 2);
    }

    #[test]
    fn messages_stay_on_the_server() {
        let base: Url = "http://127.0.0.1:8000/sse".parse().unwrap();
        assert_eq!(
            endpoint(&base, "/messages?id=1").unwrap().as_str(),
            "http://127.0.0.1:8000/messages?id=1"
        );
        assert!(endpoint(&base, "http://evil.example/messages").is_err());
        assert!(endpoint(&base, "http://127.0.0.1:9000/messages").is_err());
    }
}
