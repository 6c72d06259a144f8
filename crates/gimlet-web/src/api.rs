//! The HTTP interface for programs: `/api/v1/…`.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use gimlet::digest::digest;
use gimlet::ids::RunId;
use gimlet::store::BlobId;
use gimlet_runtime::options::{Action, ApproveMode, Choice};
use gimlet_runtime::{Input, Options};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::desk::Answer;
use crate::problem::Problem;
use crate::server::App;

/// Most keys of requests that are remembered, so that a repeated one starts nothing twice.
const MOST_KEYS: usize = 1000;
/// Most events of one page.
const MOST_EVENTS: usize = 1000;
/// How often a silent stream says that it is alive.
pub(crate) const ALIVE: Duration = Duration::from_secs(15);

/// By key: the hash of what was asked for, and the run that it became.
static KEYS: Mutex<Option<HashMap<String, (String, RunId)>>> = Mutex::new(None);

#[derive(Deserialize)]
pub(crate) struct Wanted {
    #[serde(default)]
    q: String,
    #[serde(default)]
    state: String,
    #[serde(default)]
    limit: Option<usize>,
}

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Query(wanted): Query<Wanted>,
) -> Result<Json<Value>, Problem> {
    let runs = app.desk.runs().await?.into_iter().map(|run| json!(run));
    let fits = |run: &Value| {
        (wanted.state.is_empty() || run["status"] == wanted.state.as_str())
            && run["task"].as_str().unwrap_or_default().contains(&wanted.q)
    };
    let runs: Vec<Value> = runs.filter(fits).take(wanted.limit.unwrap_or(100)).collect();
    Ok(Json(json!({ "runs": runs })))
}

/// A task as pages and programs send it.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Task {
    pub(crate) task: String,
    pub(crate) project: String,
    pub(crate) model: String,
    pub(crate) action: String,
    pub(crate) agent: String,
    pub(crate) approve: String,
    pub(crate) max_steps: Option<u32>,
    pub(crate) timeout: Option<f64>,
    pub(crate) token_budget: Option<u64>,
}

impl Task {
    /// The same as a run's options. Only the folders that are served can be worked in.
    pub(crate) fn options(&self, projects: &[PathBuf]) -> Result<Options, Problem> {
        let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let root = match given(&self.project) {
            None => projects.first(),
            Some(path) => projects.iter().find(|known| known.as_path() == std::path::Path::new(&path)),
        };
        let root = root.ok_or_else(|| Problem::unusable("this server does not serve that project"))?;
        let no = |what: &str, text: &str| Problem::unusable(format!("`{text}` is no {what}"));
        let action = match given(&self.action) {
            None => None,
            Some(name) => Some(Action::named(&name).ok_or_else(|| no("action", &name))?),
        };
        let approve = match given(&self.approve) {
            None => ApproveMode::default(),
            Some(name) => ApproveMode::named(&name).ok_or_else(|| no("way to approve", &name))?,
        };
        Ok(Options {
            root: Some(root.clone()),
            model: given(&self.model),
            agent: given(&self.agent),
            action,
            approve,
            max_steps: self.max_steps,
            timeout: self.timeout,
            token_budget: self.token_budget,
            ..Options::default()
        })
    }
}

pub(crate) async fn start(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let task: Task = serde_json::from_slice(&body).map_err(|error| {
        Problem::new(StatusCode::BAD_REQUEST, format!("the body cannot be read: {error}"))
    })?;
    let key = headers.get("idempotency-key").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let asked = digest(&body);
    if let Some((known, run)) = key.as_ref().and_then(|key| known_key(key)) {
        if known != asked {
            return Err(Problem::unusable("the Idempotency-Key was used for another request"));
        }
        return Ok((StatusCode::OK, Json(json!({ "run": run }))).into_response());
    }
    let run = app.desk.start(task.options(&app.projects)?, task.task.clone()).await?;
    if let Some(key) = key {
        keep_key(key, asked, run.clone());
    }
    Ok((StatusCode::CREATED, Json(json!({ "run": run }))).into_response())
}

fn known_key(key: &str) -> Option<(String, RunId)> {
    KEYS.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.get(key).cloned()
}

fn keep_key(key: String, asked: String, run: RunId) {
    let mut keys = KEYS.lock().unwrap_or_else(PoisonError::into_inner);
    let keys = keys.get_or_insert_default();
    if keys.len() >= MOST_KEYS {
        keys.clear();
    }
    keys.insert(key, (asked, run));
}

/// The run of a path.
pub(crate) fn named(run: &str) -> Result<RunId, Problem> {
    run.parse().map_err(|_| Problem::not_found("there is no such run"))
}

pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Path(run): Path<String>,
) -> Result<Json<Value>, Problem> {
    let run = named(&run)?;
    let mut shown = json!(app.desk.summary(&run).await?);
    let asked: Vec<_> =
        app.desk.questions().await?.into_iter().filter(|question| question.run == run).collect();
    shown["questions"] = json!(asked);
    shown["at_work_here"] = json!(app.desk.is_here(&run));
    Ok(Json(shown))
}

#[derive(Deserialize)]
pub(crate) struct From {
    #[serde(default)]
    pub(crate) after: u64,
    #[serde(default)]
    limit: Option<usize>,
}

/// Where a stream goes on: after the last event that the client has.
pub(crate) fn resume_at(headers: &HeaderMap, after: u64) -> u64 {
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok()?.parse().ok());
    last.unwrap_or(after)
}

pub(crate) async fn events(
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
    let full = |_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too many watch already");
    app.watchers.clone().try_acquire_owned().map_err(full)
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Order {
    pub(crate) text: String,
    pub(crate) at: Option<u32>,
    pub(crate) message: Option<String>,
    pub(crate) patch: Option<String>,
}

pub(crate) async fn act(
    State(app): State<Arc<App>>,
    Path((run, action)): Path<(String, String)>,
    body: Bytes,
) -> Result<Json<Value>, Problem> {
    let order = if body.is_empty() { Ok(Order::default()) } else { serde_json::from_slice(&body) };
    let order = order.map_err(|error| {
        Problem::new(StatusCode::BAD_REQUEST, format!("the body cannot be read: {error}"))
    })?;
    perform(&app, &named(&run)?, &action, order).await.map(Json)
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
        _ => return Err(Problem::not_found("there is no such action")),
    }
    Ok(json!({ "run": run }))
}

pub(crate) async fn approvals(State(app): State<Arc<App>>) -> Result<Json<Value>, Problem> {
    Ok(Json(json!({ "approvals": app.desk.questions().await? })))
}

pub(crate) async fn decide(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, Problem> {
    let answer: Answer = serde_json::from_slice(&body).map_err(|error| {
        Problem::new(StatusCode::BAD_REQUEST, format!("the body cannot be read: {error}"))
    })?;
    app.desk.decide(&id, answer).await?;
    Ok(Json(json!({ "approval": id })))
}

pub(crate) async fn blob(State(app): State<Arc<App>>, Path(sha): Path<String>) -> Result<Response, Problem> {
    let id: BlobId = sha.parse().map_err(|_| Problem::not_found("there is no such blob"))?;
    let bytes = app.desk.runtime().store().get(&id).await?;
    Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], bytes).into_response())
}

pub(crate) async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], include_str!("openapi.json")).into_response()
}
