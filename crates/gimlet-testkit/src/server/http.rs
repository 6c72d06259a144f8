//! Connections and routes: from bytes to a checked request, from a scripted reply to bytes.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use gimlet_models::script::{Fault, ScriptReply, Turn};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::body::{Body, Delivery, whole};
use super::flush::{Counted, Flushes};
use super::history::Compaction;
use super::record::Recorded;
use super::rules::{self, Rule, Violation};
use super::{Shared, Strictness, Windows};
use crate::wire::{self, Answer, Chat, Outgoing, Streaming, Wire};

/// Longest request body: far above any real one, below what a runaway client could fill memory with.
const MOST_BYTES: usize = 256 << 20;

/// Accepts until the sender of `stopped` is dropped; the connections end with it.
pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>, mut stopped: oneshot::Receiver<()>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = &mut stopped => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else {
                    tokio::task::yield_now().await;
                    continue;
                };
                // Small pieces are the point of this server; only latency is lost where this cannot be set.
                let _set = stream.set_nodelay(true);
                let shared = shared.clone();
                let flushes = Arc::<Flushes>::default();
                let socket = Counted { socket: stream, flushes: flushes.clone() };
                let service = service_fn(move |request| {
                    let (shared, flushes) = (shared.clone(), flushes.clone());
                    async move { Ok::<_, Infallible>(answer(&shared, request, flushes).await) }
                });
                let connection = http1::Builder::new().serve_connection(TokioIo::new(socket), service);
                connections.spawn(async move {
                    // It fails by design when a script breaks it, and otherwise when a client goes away.
                    let _ended = connection.await;
                });
            }
        }
    }
}

async fn answer(shared: &Shared, request: Request<Incoming>, flushes: Arc<Flushes>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let (method, path) = (head.method, head.uri.path().to_owned());
    shared.journal().visits.push(format!("{method} {path}"));
    let body = match Limited::new(body, MOST_BYTES).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return plain(StatusCode::BAD_REQUEST, &json!({ "error": error.to_string() })),
    };
    let names = || match shared.manners.models.as_slice() {
        [] => vec!["scripted:latest".to_owned()],
        names => names.to_vec(),
    };
    match (method, path.as_str(), Wire::of_path(&path)) {
        (Method::POST, _, Some(wire)) => chat(shared, wire, &path, &head.headers, body, flushes).await,
        (Method::GET, "/api/version", _) => plain(StatusCode::OK, &wire::version()),
        (Method::GET, "/api/tags", _) => plain(StatusCode::OK, &wire::tags(&names())),
        (Method::POST, "/api/show", _) => show(shared, &body),
        (Method::GET, "/api/ps", _) => {
            plain(StatusCode::OK, &wire::running(&names(), shared.manners.windows))
        }
        (Method::GET, "/api/v0/models", _) if matches!(shared.manners.windows, Windows::Studio { .. }) => {
            plain(StatusCode::OK, &wire::studio(&names(), shared.manners.windows, shared.manners.context.0))
        }
        (Method::POST, "/api/embed" | "/v1/embeddings", _) => embeddings(shared, &path, &body),
        (Method::GET, "/v1/models", _) => plain(StatusCode::OK, &wire::models(&names())),
        (_, "/api/version" | "/api/tags" | "/api/show" | "/v1/models", _) | (_, _, Some(_)) => {
            plain(StatusCode::METHOD_NOT_ALLOWED, &json!({ "error": "method not allowed" }))
        }
        (_, _, None) => plain(StatusCode::NOT_FOUND, &json!({ "error": format!("there is no {path} here") })),
    }
}

fn show(shared: &Shared, body: &Bytes) -> Response<Body> {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    match body.get("model").and_then(Value::as_str) {
        None => plain(StatusCode::BAD_REQUEST, &json!({ "error": "model is required" })),
        Some(model) if has(shared, model) => {
            plain(StatusCode::OK, &wire::show(shared.manners.context.0, shared.manners.windows))
        }
        Some(model) => {
            plain(StatusCode::NOT_FOUND, &json!({ "error": format!("model '{model}' not found") }))
        }
    }
}

/// Vectors, by whatever rule the test gave; a server without one has no such endpoint.
fn embeddings(shared: &Shared, path: &str, body: &Bytes) -> Response<Body> {
    let Some(embed) = &shared.embed else {
        return plain(StatusCode::NOT_FOUND, &json!({ "error": format!("there is no {path} here") }));
    };
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let Some(texts) = body["input"].as_array() else {
        return plain(StatusCode::BAD_REQUEST, &json!({ "error": "input must be a list of texts" }));
    };
    let vectors = texts.iter().map(|text| embed(text.as_str().unwrap_or_default()));
    let answer = match path {
        "/api/embed" => json!({ "model": body["model"], "embeddings": vectors.collect::<Vec<_>>() }),
        _ => {
            // Last first: the order is the server's own choice.
            let mut data: Vec<Value> = vectors
                .enumerate()
                .map(|(index, vector)| json!({ "object": "embedding", "index": index, "embedding": vector }))
                .collect();
            data.reverse();
            json!({ "object": "list", "model": body["model"], "data": data })
        }
    };
    plain(StatusCode::OK, &answer)
}

/// Whether a model is there; `name` and `name:latest` are the same, as Ollama has it.
fn has(shared: &Shared, model: &str) -> bool {
    let bare = |name: &str| name.strip_suffix(":latest").unwrap_or(name).to_owned();
    let models = &shared.manners.models;
    models.is_empty() || models.iter().any(|name| bare(name) == bare(model))
}

async fn chat(
    shared: &Shared,
    wire: Wire,
    path: &str,
    headers: &HeaderMap,
    body: Bytes,
    flushes: Arc<Flushes>,
) -> Response<Body> {
    let parsed =
        serde_json::from_slice::<Value>(&body).map_err(|error| format!("the body is not JSON: {error}"));
    let unreadable = parsed.as_ref().err().cloned();
    let mut recorded = Recorded {
        wire,
        path: path.to_owned(),
        asks_aim: false,
        task: String::new(),
        body: parsed.unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&body).into_owned())),
        bytes: body.len(),
        at_us: now_us(),
        violations: Vec::new(),
        headers: headers
            .iter()
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
            .collect(),
    };
    let asks_nothing = recorded.body.get("messages").and_then(Value::as_array).is_some_and(Vec::is_empty);
    if wire == Wire::Ollama && asks_nothing {
        let model = recorded.body["model"].as_str().unwrap_or_default().to_owned();
        return respond(wire::loaded(&model), Streaming::Whole, &ScriptReply::default(), flushes);
    }
    let chat = judge(shared, unreadable, &mut recorded);
    let refused = recorded.violations.first().map(ToString::to_string);
    let reply = match (&chat, &refused) {
        (Some(chat), None) => Some(next_reply(shared, chat, &mut recorded)),
        (Some(chat), Some(_)) if shared.manners.strictness == Strictness::Keep => {
            Some(next_reply(shared, chat, &mut recorded))
        }
        (Some(_) | None, _) => None,
    };
    if let Some(observer) = &shared.observer {
        observer(&recorded);
    }
    shared.journal().requests.push(recorded);
    match (chat, reply) {
        (Some(chat), Some(Ok(reply))) => play(wire, &chat, &reply, flushes).await,
        (Some(_), Some(Err(Missing::Model(message)))) => {
            plain(StatusCode::NOT_FOUND, &wire.error(404, &message))
        }
        (Some(_), Some(Err(Missing::Reply(message)))) => {
            plain(StatusCode::BAD_REQUEST, &wire.error(400, &message))
        }
        (_, _) => plain(StatusCode::BAD_REQUEST, &wire.error(400, &refused.unwrap_or_default())),
    }
}

fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// Checks a request against every rule and remembers it; none when it cannot even be read.
fn judge(shared: &Shared, unreadable: Option<String>, recorded: &mut Recorded) -> Option<Chat> {
    let header = |name: &str| recorded.header(name).is_some();
    let read = unreadable.map_or_else(|| recorded.wire.read(&recorded.body, &header), Err);
    let chat = match read {
        Ok(chat) => chat,
        Err(detail) => {
            recorded.violations.push(Violation { rule: Rule::Shape, detail });
            return None;
        }
    };
    recorded.task = chat.task().to_owned();
    recorded.asks_aim = gimlet::guided::ask::is_aim(chat.system());
    let mut found = rules::check(&chat);
    if recorded.asks_aim {
        found.retain(|violation| !shared.manners.allowed.contains(&violation.rule));
        recorded.violations = found;
        return Some(chat);
    }
    let mut journal = shared.journal();
    let announced = journal.compacted.iter().position(|task| chat.task().contains(task.as_str()));
    let by_header = recorded.header("x-gimlet-compacted") == Some("1");
    let compaction =
        if announced.is_some() || by_header { Compaction::Announced } else { Compaction::NotAnnounced };
    let (place, between) = journal.history.check(&chat, compaction);
    found.extend(between);
    found.retain(|violation| !shared.manners.allowed.contains(&violation.rule));
    // A refused request never happened as far as the conversation goes: its sender mends and repeats it.
    if found.is_empty() || shared.manners.strictness == Strictness::Keep {
        journal.history.keep(&chat, place);
        if let Some(index) = announced {
            journal.compacted.remove(index);
        }
    }
    recorded.violations = found;
    Some(chat)
}

/// Why there is no reply to a proper request.
enum Missing {
    Model(String),
    Reply(String),
}

fn next_reply(shared: &Shared, chat: &Chat, recorded: &mut Recorded) -> Result<ScriptReply, Missing> {
    if !has(shared, &chat.model) {
        return Err(Missing::Model(format!("model '{}' not found", chat.model)));
    }
    let turn = Turn { system: chat.system(), task: chat.task(), last: chat.last(), replies: chat.replies() };
    shared.player.next(turn).map_err(|detail| {
        let violation = Violation { rule: Rule::Script, detail };
        let message = violation.to_string();
        recorded.violations.push(violation);
        Missing::Reply(message)
    })
}

/// Sends a reply, with what goes wrong with it.
async fn play(wire: Wire, chat: &Chat, reply: &ScriptReply, flushes: Arc<Flushes>) -> Response<Body> {
    match &reply.fault {
        Some(Fault::Hang) => std::future::pending().await,
        Some(Fault::Status { status, retry_after, body, content_type }) => {
            let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let text = body.clone().unwrap_or_else(|| {
                let message = format!("scripted: {}", status.canonical_reason().unwrap_or("error"));
                wire.error(status.as_u16(), &message).to_string()
            });
            let mut response =
                typed(status, content_type.as_deref().unwrap_or("application/json"), whole(text));
            if let Some(seconds) = retry_after {
                response.headers_mut().insert(RETRY_AFTER, (*seconds).into());
            }
            response
        }
        Some(Fault::Drop { .. } | Fault::Truncate { .. } | Fault::Garbage { .. }) | None => {
            let out = Outgoing { model: &chat.model, stream: chat.stream, reply, turn: chat.replies() };
            respond(wire.write(&out), chat.stream, reply, flushes)
        }
    }
}

fn respond(answer: Answer, stream: Streaming, reply: &ScriptReply, flushes: Arc<Flushes>) -> Response<Body> {
    let content_type = answer.content_type;
    let delivery = Delivery::new(answer, reply);
    let length = delivery.length;
    let mut response = typed(StatusCode::OK, content_type, delivery.body(flushes));
    if stream == Streaming::Whole {
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    response
}

fn plain(status: StatusCode, body: &Value) -> Response<Body> {
    typed(status, "application/json", whole(body.to_string()))
}

fn typed(status: StatusCode, content_type: &str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    if let Ok(value) = content_type.parse() {
        response.headers_mut().insert(CONTENT_TYPE, value);
    }
    response
}
