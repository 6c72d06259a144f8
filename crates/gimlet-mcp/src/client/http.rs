//! Streamable HTTP with a bound on every answer. The library bounds the events of a stream; a plain JSON body it would
//! read to the end, however far that is. An answer that is too large becomes an error of its own request, so the
//! connection and everything else on it go on.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use reqwest::header::{
    ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use reqwest::{Client, Response, StatusCode};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::common::http_header::{EVENT_STREAM_MIME_TYPE, HEADER_SESSION_ID, JSON_MIME_TYPE};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};

use super::bounded::{LARGEST, too_large};
use super::sse;

/// Marks the error that stands for an answer of more than [`LARGEST`] bytes.
pub(super) const TOO_LARGE: ErrorCode = ErrorCode(-32_099);

type Failure = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// A client that reads no more than it can keep.
#[derive(Debug, Clone)]
pub(super) struct BoundedHttp(pub(super) Client);

impl StreamableHttpClient for BoundedHttp {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let mut all: HeaderMap = headers.into_iter().collect();
        all.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
        let mut post = self.0.post(uri.as_ref()).headers(all).json(&message);
        if let Some(token) = token {
            post = post.bearer_auth(token);
        }
        if let Some(session) = &session {
            post = post.header(HEADER_SESSION_ID, session.as_ref());
        }
        let response = post.send().await?;
        Posted { message, in_session: session.is_some() }.answered(response).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), Failure> {
        self.0.delete_session(uri, session, token, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Events, Failure> {
        self.0.get_stream_with_max_sse_event_size(uri, session, last_event, token, headers, LARGEST).await
    }
}

/// A message that was sent.
struct Posted {
    message: ClientJsonRpcMessage,
    in_session: bool,
}

impl Posted {
    async fn answered(&self, response: Response) -> Result<StreamableHttpPostResponse, Failure> {
        let status = response.status();
        let header = |name: &str| {
            response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
        };
        if let (StatusCode::UNAUTHORIZED, Some(challenge)) = (status, header(WWW_AUTHENTICATE.as_str())) {
            return Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)));
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && self.in_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let session = header(HEADER_SESSION_ID);
        let kind = header(CONTENT_TYPE.as_str());
        let is = |known: &str| kind.as_deref().is_some_and(|kind| kind.starts_with(known));
        if status.is_success() && is(EVENT_STREAM_MIME_TYPE) {
            return Ok(StreamableHttpPostResponse::Sse(self.events(response), session));
        }
        let retry_after = header(RETRY_AFTER.as_str());
        let Some(body) = body(response).await? else {
            return match self.request() {
                Some(id) => Ok(StreamableHttpPostResponse::Json(refusal(id), None)),
                None => Ok(StreamableHttpPostResponse::Accepted),
            };
        };
        if !status.is_success() {
            return self.failed(status, &body, retry_after);
        }
        match (serde_json::from_slice::<ServerJsonRpcMessage>(&body), self.request()) {
            (Ok(answer), _) if is(JSON_MIME_TYPE) => Ok(StreamableHttpPostResponse::Json(answer, session)),
            // Nobody waits for an answer to anything but a request.
            (_, None) => Ok(StreamableHttpPostResponse::Accepted),
            (_, Some(_)) if !is(JSON_MIME_TYPE) => Err(StreamableHttpError::UnexpectedContentType(kind)),
            (Err(error), Some(_)) => Err(unexpected(format!("its answer is no message: {error}"))),
            (Ok(_), Some(_)) => Err(StreamableHttpError::UnexpectedContentType(kind)),
        }
    }

    /// The request that waits for an answer, if the message is one.
    fn request(&self) -> Option<RequestId> {
        match &self.message {
            ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        }
    }

    fn events(&self, response: Response) -> Events {
        let request = self.request();
        let event = move |event: Result<Sse, SseError>| match (&request, event) {
            (Some(id), Err(error)) if sse::is_too_large(&error) => {
                let data = serde_json::to_string(&refusal(id.clone())).unwrap_or_default();
                Ok(Sse::default().data(data))
            }
            (_, other) => other,
        };
        SseStream::from_bytes_stream(sse::bounded(response.bytes_stream())).map(event).boxed()
    }

    /// What a status of failure means: the error the body holds, or the status itself.
    fn failed(
        &self,
        status: StatusCode,
        body: &[u8],
        retry_after: Option<String>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let said = match serde_json::from_slice(body) {
            Ok(ServerJsonRpcMessage::Error(error)) => Some(error),
            Ok(_) | Err(_) => None,
        };
        let words = String::from_utf8_lossy(&body[..body.len().min(256)]).into_owned();
        let closed = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if let ClientJsonRpcMessage::Request(request) = &self.message
            && let ClientRequest::DiscoverRequest(_) = request.request
            && status.is_client_error()
            && !(closed || self.in_session)
        {
            // A server of the older revision, which is asked in its own way next; it may have left out whose answer
            // this is.
            let error = said.map_or_else(
                || ErrorData::invalid_request(format!("HTTP {status}: {words}"), None),
                |said| said.error,
            );
            let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
            return Ok(StreamableHttpPostResponse::Json(answer, None));
        }
        match said {
            Some(said) if !closed => {
                Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(said), None))
            }
            _ if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() => {
                Err(HttpStatusError::new(status.as_u16(), retry_after).into())
            }
            _ => Err(unexpected(format!("HTTP {status}: {words}"))),
        }
    }
}

/// The whole body, unless it is too large.
async fn body(mut response: Response) -> Result<Option<Vec<u8>>, Failure> {
    let most = u64::try_from(LARGEST).unwrap_or(u64::MAX);
    if response.content_length().is_some_and(|length| length > most) {
        return Ok(None);
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > LARGEST {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

/// The answer that takes the place of one that is too large.
fn refusal(request: RequestId) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::error(ErrorData::new(TOO_LARGE, too_large(), None), Some(request))
}

fn unexpected(what: String) -> Failure {
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(what))
}
