//! A trace backend on a free port: takes OTLP over HTTP in protobuf, keeps every span it is sent, and can be as
//! unpleasant as a real one. It lives on a thread of its own, so that tests of the binary need no runtime.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::{Span, status::StatusCode as SpanStatus};
use prost::Message;
use serde_json::{Map, Value};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// How a collector behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collecting {
    /// It keeps what it is sent.
    Keeps,
    /// It answers with this status and keeps nothing.
    Answers(u16),
    /// It reads the request and never answers.
    Hangs,
}

/// A running collector. It ends when this is dropped.
#[derive(Debug)]
pub struct OtlpCollector {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    /// Dropping it ends the thread and every connection.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Seen {
    requests: Vec<OtlpRequest>,
    spans: Vec<ExportedSpan>,
}

/// A request as it arrived, without its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtlpRequest {
    /// Its path.
    pub path: String,
    /// Its headers, by lower-case name.
    pub headers: Vec<(String, String)>,
}

/// A span as it arrived.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportedSpan {
    /// The trace, in hex.
    pub trace: String,
    /// Its id, in hex.
    pub id: String,
    /// The span it belongs to, in hex.
    pub parent: Option<String>,
    /// Its name.
    pub name: String,
    /// Nanoseconds of Unix time at which it began and ended.
    pub time: (u64, u64),
    /// Its attributes.
    pub attributes: Map<String, Value>,
    /// How it ended.
    pub status: ExportedStatus,
    /// Attributes of the program that sent it.
    pub resource: Map<String, Value>,
}

/// How a span ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExportedStatus {
    /// Nothing is said.
    Unset,
    /// Well.
    Ok,
    /// Not well, and why.
    Error(String),
}

impl ExportedSpan {
    /// An attribute as text: a string as it is, anything else as JSON; empty when there is none.
    pub fn text(&self, key: &str) -> String {
        match self.attributes.get(key) {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        }
    }
}

impl OtlpCollector {
    /// A collector that keeps what it is sent.
    pub fn start() -> Self {
        Self::that(Collecting::Keeps)
    }

    /// A collector of some behaviour.
    pub fn that(behaves: Collecting) -> Self {
        let seen = Arc::<Mutex<Seen>>::default();
        let (stop, stopped) = oneshot::channel();
        let started = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| {
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let kept = seen.clone();
            let thread = std::thread::Builder::new().name("otlp-collector".into()).spawn(move || {
                runtime.block_on(serve(listener, behaves, kept, stopped));
            })?;
            Ok((address, thread))
        });
        match started {
            Ok((address, thread)) => OtlpCollector { address, seen, stop: Some(stop), thread: Some(thread) },
            Err(error) => crate::fixture_failed("start a trace collector", &error),
        }
    }

    /// Where spans go: `http://127.0.0.1:PORT/v1/traces`.
    pub fn endpoint(&self) -> String {
        format!("{}/v1/traces", self.base())
    }

    /// Its address without a path, as `OTEL_EXPORTER_OTLP_ENDPOINT` has it.
    pub fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request so far, answered or not.
    pub fn requests(&self) -> Vec<OtlpRequest> {
        lock(&self.seen).requests.clone()
    }

    /// Every span so far, by the time it began; what began together, by who holds whom.
    pub fn spans(&self) -> Vec<ExportedSpan> {
        let mut spans = lock(&self.seen).spans.clone();
        spans.sort_by_key(|span| (span.time.0, u64::MAX - span.time.1));
        spans
    }

    /// The spans of a name.
    pub fn named(&self, name: &str) -> Vec<ExportedSpan> {
        self.spans().into_iter().filter(|span| span.name == name).collect()
    }

    /// The only span of a name; panics when there is none or more than one.
    #[track_caller]
    pub fn only(&self, name: &str) -> ExportedSpan {
        let mut found = self.named(name);
        assert!(found.len() == 1, "{} spans are named {name}:\n{}", found.len(), self.tree());
        found.remove(0)
    }

    /// All spans as an indented tree of names, kinds and errors, one a line; what names a parent that never came says
    /// so.
    pub fn tree(&self) -> String {
        let spans = self.spans();
        let mut text = String::new();
        let known = |id: &String| spans.iter().any(|span| span.id == *id);
        for root in spans.iter().filter(|span| span.parent.as_ref().is_none_or(|parent| !known(parent))) {
            write_branch(&spans, root, 0, &mut text);
        }
        text
    }

    /// Forgets what came so far.
    pub fn clear(&self) {
        *lock(&self.seen) = Seen::default();
    }
}

impl Drop for OtlpCollector {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // It ends by the dropped sender; a panic in it was already printed.
            let _ended = thread.join();
        }
    }
}

fn write_branch(spans: &[ExportedSpan], span: &ExportedSpan, depth: usize, text: &mut String) {
    let orphan = if depth == 0 && span.parent.is_some() { " (orphan)" } else { "" };
    let error = match &span.status {
        ExportedStatus::Error(why) => format!(" !{why}"),
        ExportedStatus::Ok | ExportedStatus::Unset => String::new(),
    };
    let kind = span.text("openinference.span.kind");
    // Writing to a string cannot fail.
    let _written = writeln!(text, "{:indent$}{} [{kind}]{error}{orphan}", "", span.name, indent = depth * 2);
    for child in spans.iter().filter(|child| child.parent.as_ref() == Some(&span.id)) {
        write_branch(spans, child, depth + 1, text);
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(
    listener: std::net::TcpListener,
    behaves: Collecting,
    seen: Arc<Mutex<Seen>>,
    mut stopped: oneshot::Receiver<()>,
) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => crate::fixture_failed("listen for spans", &error),
    };
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = &mut stopped => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                let seen = seen.clone();
                let service = service_fn(move |request| {
                    let seen = seen.clone();
                    async move { Ok::<_, Infallible>(answer(request, behaves, &seen).await) }
                });
                connections.spawn(async move {
                    // It fails when a client goes away, which is the client's business.
                    let _ended = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        }
    }
}

async fn answer(
    request: Request<Incoming>,
    behaves: Collecting,
    seen: &Mutex<Seen>,
) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let headers =
        head.headers.iter().map(|(name, value)| (name.to_string(), text(value.as_bytes()))).collect();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    lock(seen).requests.push(OtlpRequest { path: head.uri.path().to_owned(), headers });
    match behaves {
        Collecting::Hangs => std::future::pending().await,
        Collecting::Answers(status) => {
            respond(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), Bytes::new())
        }
        Collecting::Keeps if head.uri.path() != "/v1/traces" => respond(StatusCode::NOT_FOUND, Bytes::new()),
        Collecting::Keeps => match ExportTraceServiceRequest::decode(body) {
            Ok(export) => {
                keep(&export, &mut lock(seen).spans);
                respond(StatusCode::OK, ExportTraceServiceResponse::default().encode_to_vec().into())
            }
            Err(error) => respond(StatusCode::BAD_REQUEST, error.to_string().into()),
        },
    }
}

fn respond(status: StatusCode, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    if let Ok(value) = "application/x-protobuf".parse() {
        response.headers_mut().insert(CONTENT_TYPE, value);
    }
    response
}

fn keep(export: &ExportTraceServiceRequest, spans: &mut Vec<ExportedSpan>) {
    for group in &export.resource_spans {
        let resource = group.resource.as_ref().map(|resource| map(&resource.attributes)).unwrap_or_default();
        for span in group.scope_spans.iter().flat_map(|scope| &scope.spans) {
            spans.push(read(span, resource.clone()));
        }
    }
}

fn read(span: &Span, resource: Map<String, Value>) -> ExportedSpan {
    let status = match &span.status {
        Some(status) if status.code == SpanStatus::Error as i32 => {
            ExportedStatus::Error(status.message.clone())
        }
        Some(status) if status.code == SpanStatus::Ok as i32 => ExportedStatus::Ok,
        Some(_) | None => ExportedStatus::Unset,
    };
    ExportedSpan {
        trace: hex(&span.trace_id),
        id: hex(&span.span_id),
        parent: Some(hex(&span.parent_span_id)).filter(|id| !id.is_empty()),
        name: span.name.clone(),
        time: (span.start_time_unix_nano, span.end_time_unix_nano),
        attributes: map(&span.attributes),
        status,
        resource,
    }
}

fn map(attributes: &[KeyValue]) -> Map<String, Value> {
    attributes.iter().map(|pair| (pair.key.clone(), json(pair.value.as_ref()))).collect()
}

fn json(value: Option<&AnyValue>) -> Value {
    match value.and_then(|value| value.value.as_ref()) {
        None => Value::Null,
        Some(any_value::Value::StringValue(text)) => text.clone().into(),
        Some(any_value::Value::BoolValue(value)) => (*value).into(),
        Some(any_value::Value::IntValue(value)) => (*value).into(),
        Some(any_value::Value::DoubleValue(value)) => (*value).into(),
        Some(any_value::Value::ArrayValue(list)) => list.values.iter().map(|item| json(Some(item))).collect(),
        Some(any_value::Value::KvlistValue(list)) => Value::Object(map(&list.values)),
        Some(any_value::Value::BytesValue(bytes)) => hex(bytes).into(),
        Some(any_value::Value::StringValueStrindex(index)) => (*index).into(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
