//! The HTTP interface for programs: `/api/v1/…`.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use futures_util::StreamExt;
use gimlet::digest::digest;
use gimlet::ids::RunId;
use gimlet::store::BlobId;
use gimlet_runtime::Input;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::desk::Answer;
use crate::keys::Turn;
use crate::page::list::Wanted;
use crate::problem::Problem;
use crate::server::App;
use crate::task::{Task, mode};

/// Runs of a list, unless more are asked for.
const SOME_RUNS: usize = 100;
/// Most events of one page.
const MOST_EVENTS: usize = 1000;
/// How often a silent stream says that it is alive.
pub(crate) const ALIVE: Duration = Duration::from_secs(15);
/// What can be done to a run.
const ACTIONS: [&str; 6] = ["messages", "resume", "cancel", "fork", "undo", "mode"];

/// A route of the interface: its path, the methods it knows, and who answers.
pub(crate) type Route = (String, &'static [&'static str], MethodRouter<Arc<App>>);

/// All routes. `/openapi.json` describes each of them; a test compares the two.
pub(crate) fn routes() -> Vec<Route> {
    let mut routes: Vec<Route> = vec![
        ("/api/v1/runs".into(), &["get", "post"], get(list).post(start)),
        ("/api/v1/runs/{run}".into(), &["get"], get(show)),
        ("/api/v1/runs/{run}/events".into(), &["get"], get(events)),
        ("/api/v1/approvals".into(), &["get"], get(approvals)),
        ("/api/v1/approvals/{id}/decision".into(), &["post"], post(decide)),
        ("/api/v1/blobs/{sha}".into(), &["get"], get(blob)),
        ("/openapi.json".into(), &["get"], get(openapi)),
    ];
    routes.extend(ACTIONS.map(|action| -> Route {
        let handler = move |app: State<Arc<App>>, run: Path<String>, body: Bytes| act(app, run, action, body);
        (format!("/api/v1/runs/{{run}}/{action}"), &["post"], post(handler))
    }));
    routes
}

/// A body as JSON.
fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(body)
        .map_err(|error| Problem::new(StatusCode::BAD_REQUEST, format!("the body cannot be read: {error}")))
}

async fn list(State(app): State<Arc<App>>, Query(wanted): Query<Wanted>) -> Result<Json<Value>, Problem> {
    let limit = wanted.limit.unwrap_or(SOME_RUNS);
    let runs = app.desk.find(&Wanted { limit: Some(limit), ..wanted }).await?;
    Ok(Json(json!({ "runs": runs })))
}

async fn start(State(app): State<Arc<App>>, headers: HeaderMap, body: Bytes) -> Result<Response, Problem> {
    let task: Task = read(&body)?;
    let key = headers.get("idempotency-key").and_then(|value| value.to_str().ok());
    let created = |run: &RunId| (StatusCode::CREATED, Json(json!({ "run": run }))).into_response();
    let Some(key) = key else { return Ok(created(&app.start(&task).await?)) };
    match app.keys.turn(key, digest(&body))? {
        Turn::Again(run) => Ok((StatusCode::OK, Json(json!({ "run": run }))).into_response()),
        Turn::First(claim) => {
            let run = app.start(&task).await?;
            claim.done(run.clone());
            Ok(created(&run))
        }
    }
}

/// The run of a path.
pub(crate) fn named(run: &str) -> Result<RunId, Problem> {
    run.parse().map_err(|_| Problem::not_found("there is no such run"))
}

async fn show(State(app): State<Arc<App>>, Path(run): Path<String>) -> Result<Json<Value>, Problem> {
    let run = named(&run)?;
    let mut shown = json!(app.desk.summary(&run).await?);
    let asked: Vec<_> =
        app.desk.questions().await?.into_iter().filter(|question| question.run == run).collect();
    shown["questions"] = json!(asked);
    shown["at_work_here"] = json!(app.desk.is_here(&run));
    Ok(Json(shown))
}

/// Which events are wanted.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct From {
    /// Those after this number.
    pub(crate) after: u64,
    /// Most of them.
    limit: Option<usize>,
}

/// Where a stream goes on: after the last event that the client has.
pub(crate) fn resume_at(headers: &HeaderMap, after: u64) -> u64 {
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok()?.parse().ok());
    last.unwrap_or(after)
}

async fn events(
    State(app): State<Arc<App>>,
    Path(run): Path<String>,
    Query(from): Query<From>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let run = named(&run)?;
    let store = app.desk.runtime().store();
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !accept.contains("text/event-stream") {
        let most = from.limit.unwrap_or(MOST_EVENTS).min(MOST_EVENTS);
        let lines = store.lines(&run, from.after, most).await?;
        let events: Vec<Value> =
            lines.iter().filter_map(|line| serde_json::from_str(&line.json).ok()).collect();
        let next = from.after + events.len() as u64;
        return Ok(Json(json!({ "events": events, "next": next })).into_response());
    }
    store.lease(&run).await?;
    let watch = store.follow(&run, resume_at(&headers, from.after));
    let permit = permit(&app)?;
    let stream = futures_util::stream::unfold((watch, permit), async |(mut watch, permit)| {
        let text = match tokio::time::timeout(ALIVE, watch.next()).await {
            Err(_) => ": alive\n\n".to_owned(),
            Ok(lines) => {
                let lines = lines?.ok()?;
                lines.iter().map(|line| format!("id: {}\ndata: {}\n\n", line.seq, line.json)).collect()
            }
        };
        Some((Ok::<_, std::convert::Infallible>(text), (watch, permit)))
    });
    Ok(([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(stream)).into_response())
}

/// A place among the watchers.
pub(crate) fn permit(app: &App) -> Result<tokio::sync::OwnedSemaphorePermit, Problem> {
    let full = |_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too many streams are open");
    app.watchers.clone().try_acquire_owned().map_err(full)
}

/// What an action is told.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Order {
    /// What to say.
    text: String,
    /// The step to fork before.
    at: Option<u32>,
    /// What to say in the fork.
    message: Option<String>,
    /// The patch to undo; all without one.
    patch: Option<String>,
    /// The approval mode to change to.
    approve: String,
}

async fn act(
    State(app): State<Arc<App>>,
    Path(run): Path<String>,
    action: &str,
    body: Bytes,
) -> Result<Json<Value>, Problem> {
    let order = if body.is_empty() { Order::default() } else { read(&body)? };
    perform(&app, &named(&run)?, action, order).await.map(Json)
}

/// Does something to a run, for programs and for the page.
pub(crate) async fn perform(app: &App, run: &RunId, action: &str, order: Order) -> Result<Value, Problem> {
    app.desk.runtime().store().lease(run).await?;
    match action {
        "messages" => app.desk.say(run, order.text).await?,
        "resume" => app.desk.resume(run, Input::Resume(None)).await?,
        "cancel" => app.desk.cancel(run)?,
        "fork" => {
            let at = order.at.ok_or_else(|| Problem::unusable("`at` names the step to fork before"))?;
            let message = order.message.filter(|text| !text.trim().is_empty());
            let forked = app.desk.runtime().fork(run, at, message).await?;
            return Ok(json!({ "run": forked.id, "has_changes": forked.has_changes }));
        }
        "undo" => {
            let undone = app.desk.runtime().undo(run, order.patch.as_deref()).await?;
            return Ok(json!({ "patches": undone }));
        }
        "mode" => app.desk.set_mode(run, mode(&order.approve)?)?,
        _ => return Err(Problem::not_found("there is no such action")),
    }
    Ok(json!({ "run": run }))
}

async fn approvals(State(app): State<Arc<App>>) -> Result<Json<Value>, Problem> {
    Ok(Json(json!({ "approvals": app.desk.questions().await? })))
}

async fn decide(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, Problem> {
    let answer: Answer = read(&body)?;
    let decision = app.desk.decide(&id, answer).await?;
    let mut given = json!(decision);
    given["approval"] = json!(id);
    Ok(Json(given))
}

async fn blob(State(app): State<Arc<App>>, Path(sha): Path<String>) -> Result<Response, Problem> {
    let id: BlobId = sha.parse().map_err(|_| Problem::not_found("there is no such blob"))?;
    let bytes = app.desk.runtime().store().get(&id).await?;
    Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], bytes).into_response())
}

async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], include_str!("openapi.json")).into_response()
}
