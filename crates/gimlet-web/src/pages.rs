//! The page. It works without scripts but for what is live; forms are plain forms.

use std::collections::HashMap;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Form, Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use futures_util::StreamExt;
use gimlet::event::{Event, EventKind};
use maud::{DOCTYPE, Markup, html};
use serde::Deserialize;
use serde_json::Value;

use crate::api::{self, From, Order, Task, named};
use crate::desk::Answer;
use crate::problem::Problem;
use crate::server::App;
use crate::story::{self, block, line};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const ABOUT: [(&str, &[&str]); 6] = [
    ("models", &["models", "list"]),
    ("agents", &["agents", "list", "--json"]),
    ("servers", &["mcp", "list", "--json"]),
    ("memory", &["memory", "list", "--json"]),
    ("settings", &["config", "show", "--json"]),
    ("doctor", &["doctor", "--json"]),
];
/// Most events that a page begins with.
const MOST_EVENTS: usize = 3000;
/// How long pieces of a reply are gathered before they are sent.
const GATHER: Duration = Duration::from_millis(40);

/// A problem as a page, or as a line where a part of the page asked.
pub(crate) struct Shown(Problem, bool);

impl IntoResponse for Shown {
    fn into_response(self) -> Response {
        let Shown(problem, is_part) = self;
        let said = html! { p.bad role="alert" { (block(&problem.detail)) } @if let Some(hint) = &problem.hint { p.dim { (line(hint)) } } };
        let body = if is_part {
            Html(said.into_string())
        } else {
            page("Error", &html! { h1 { (problem.status) } (said) })
        };
        (problem.status, body).into_response()
    }
}

fn is_part(headers: &HeaderMap) -> bool {
    headers.contains_key("hx-request")
}

/// A whole page.
pub(crate) fn page(title: &str, body: &Markup) -> Html<String> {
    let asset = |name: &str| format!("/static/{name}?v={VERSION}");
    let config = "includeIndicatorCSS:false, history:false";
    Html(html! { (DOCTYPE) html lang="en" {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="htmx-config" content=(config);
            meta name="color-scheme" content="light dark";
            title { (line(title)) " · gimlet" }
            link rel="stylesheet" href=(asset("style.css"));
            link rel="icon" href="data:,";
            script src=(asset("htmx.js")) defer {}
            script src=(asset("sse.js")) defer {}
            script src=(asset("app.js")) defer {}
        }
        body {
            header { nav aria-label="Pages" {
                a.brand href="/" { "gimlet" }
                a href="/" { "Runs" }
                a href="/new" { "New task" }
                a href="/approvals" { "Questions" span id="bell" hx-get="/bell" hx-trigger="load, every 2s" {} }
                @for (name, _) in ABOUT { a href={ "/about/" (name) } { (name) } }
            } }
            main { (body) }
            div id="toast" aria-live="polite" {}
            dialog id="keys" { h2 { "Keys" } dl {
                dt { kbd { "g" } } dd { "Runs" } dt { kbd { "n" } } dd { "New task" } dt { kbd { "a" } } dd { "Questions" }
                dt { kbd { "d" } } dd { "Diff: unified or side by side" } dt { kbd { "?" } } dd { "These keys" }
            } form method="dialog" { button { "Close" } } }
        }
    } }.into_string())
}

pub(crate) fn log_in() -> Markup {
    html! { h1 { "Log in" } p { "Open the login link that " code { "gimlet serve" } " printed. Each link is good for one login; start the server again for another." } }
}

pub(crate) fn logged_in() -> Markup {
    html! { h1 { "You are logged in" } p { a href="/" autofocus { "Go to the runs" } } }
}

#[derive(Deserialize, Default, Clone)]
#[serde(default)]
pub(crate) struct Wanted {
    q: String,
    state: String,
}

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Query(wanted): Query<Wanted>,
) -> Result<Response, Shown> {
    let rows = rows(&app, &wanted).await?;
    Ok(page("Runs", &html! {
        h1 { "Runs" }
        form.filter role="search" action="/" hx-get="/table" hx-target="#runs" hx-trigger="input delay:200ms, submit" {
            input type="search" name="q" value=(wanted.q) placeholder="Search tasks, folders, models" aria-label="Search";
            select name="state" aria-label="State" {
                @for state in ["", "running", "suspended", "interrupted", "answered", "limited", "failed", "crashed"] {
                    option value=(state) selected[state == wanted.state] { (if state.is_empty() { "every state" } else { state }) }
                }
            }
        }
        div id="runs" { (rows) }
    }).into_response())
}

pub(crate) async fn table(
    State(app): State<Arc<App>>,
    Query(wanted): Query<Wanted>,
) -> Result<Response, Shown> {
    Ok(Html(rows(&app, &wanted).await?.into_string()).into_response())
}

async fn rows(app: &App, wanted: &Wanted) -> Result<Markup, Shown> {
    let runs = app.desk.runs().await.map_err(|problem| Shown(problem, false))?;
    let word = wanted.q.to_lowercase();
    let runs: Vec<Value> = runs
        .into_iter()
        .map(|run| serde_json::json!(run))
        .filter(|run| wanted.state.is_empty() || run["status"] == wanted.state.as_str())
        .filter(|run| {
            ["task", "root", "model", "id"].iter().any(|key| text(run, key).to_lowercase().contains(&word))
        })
        .take(200)
        .collect();
    Ok(html! {
        @if runs.is_empty() { p.empty { "No run is here yet. " a href="/new" { "Start a task" } ", or run " code { "gimlet \"explain this project\"" } " in a terminal: it appears here." } }
        @else { ul.runs { @for run in &runs { li {
            a href={ "/runs/" (text(run, "id")) } { (line(&text(run, "task"))) }
            span.state class=(text(run, "status")) { (text(run, "status")) }
            span.dim { (line(&text(run, "root"))) " · " (line(&text(run, "model"))) " · " (run["steps"]) " steps · " (run["tokens"]) " tokens" }
        } } } }
    })
}

fn text(run: &Value, key: &str) -> String {
    run[key].as_str().unwrap_or_default().to_owned()
}

pub(crate) async fn bell(State(app): State<Arc<App>>) -> Html<String> {
    let waiting = app.desk.questions().await.map_or(0, |questions| questions.len());
    Html(html! { @if waiting > 0 { span.badge data-waiting=(waiting) { (waiting) } } }.into_string())
}

pub(crate) async fn new_task(State(app): State<Arc<App>>) -> Html<String> {
    page(
        "New task",
        &html! {
            h1 { "New task" }
            form.task method="post" action="/start" hx-post="/start" hx-target="#toast" {
                label { "Task" textarea name="task" rows="6" required autofocus placeholder="Which test fails, and why? Drop or paste files here." {} }
                label { "Project" select name="project" { @for project in &app.projects { option { (project.display().to_string()) } } } }
                details { summary { "Model, action and limits" }
                    label { "Model" input name="model" placeholder="as configured"; }
                    label { "Action" select name="action" { option value="" { "as the model likes it" } option { "tools" } option { "code" } option { "guided" } } }
                    label { "Agent" input name="agent" placeholder="none"; }
                    label { "Maximum steps" input name="max_steps" type="number" min="1" placeholder="25"; }
                }
                button.primary { "Start" }
            }
        },
    )
}

#[derive(Deserialize)]
pub(crate) struct Filled {
    task: String,
    #[serde(default)]
    project: String,
    #[serde(default)]
    model: String,
    #[serde(default)]
    action: String,
    #[serde(default)]
    agent: String,
    #[serde(default)]
    max_steps: String,
}

pub(crate) async fn start(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    Form(filled): Form<Filled>,
) -> Result<Response, Shown> {
    let part = is_part(&headers);
    let Filled { task, project, model, action, agent, max_steps } = filled;
    let max_steps = max_steps.trim().parse().ok();
    let task = Task { task, project, model, action, agent, max_steps, ..Task::default() };
    let options = task.options(&app.projects).map_err(|problem| Shown(problem, part))?;
    let run = app.desk.start(options, task.task).await.map_err(|problem| Shown(problem, part))?;
    Ok(go_to(&format!("/runs/{run}"), part))
}

fn go_to(address: &str, part: bool) -> Response {
    match HeaderValue::from_str(address) {
        Ok(value) if part => ([("hx-redirect", value)], "").into_response(),
        _ => Redirect::to(address).into_response(),
    }
}

pub(crate) async fn approvals(State(app): State<Arc<App>>) -> Result<Response, Shown> {
    let questions = app.desk.questions().await.map_err(|problem| Shown(problem, false))?;
    Ok(page("Questions", &html! {
        h1 { "Questions" }
        @if questions.is_empty() { p.empty { "Nothing waits for you. When a run wants to change a file or run a command, it asks here." } }
        @for question in &questions { p { a href={ "/runs/" (question.run) } { "run " (question.run) } } (story::question(&question.request)) }
    }).into_response())
}

#[derive(Deserialize)]
pub(crate) struct Filled2 {
    binding: String,
    decision: String,
    #[serde(default)]
    feedback: Option<String>,
    #[serde(default)]
    patch: Option<String>,
}

pub(crate) async fn decide(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Form(filled): Form<Filled2>,
) -> Result<Response, Shown> {
    let part = is_part(&headers);
    let (decision, scope) = match filled.decision.split_once(':') {
        Some((decision, scope)) => (decision.to_owned(), Some(scope.to_owned())),
        None => (filled.decision, None),
    };
    let answer =
        Answer { binding: filled.binding, decision, scope, feedback: filled.feedback, patch: filled.patch };
    app.desk.decide(&id, answer).await.map_err(|problem| Shown(problem, part))?;
    Ok(if part {
        Html("<p class=\"good\">answered</p>").into_response()
    } else {
        Redirect::to("/approvals").into_response()
    })
}

pub(crate) async fn act(
    State(app): State<Arc<App>>,
    Path((run, action)): Path<(String, String)>,
    headers: HeaderMap,
    Form(order): Form<Order>,
) -> Result<Response, Shown> {
    let part = is_part(&headers);
    let shown = |problem| Shown(problem, part);
    let id = named(&run).map_err(shown)?;
    let done = api::perform(&app, &id, &action, order).await.map_err(shown)?;
    match done["run"].as_str().filter(|other| *other != run) {
        Some(other) => Ok(go_to(&format!("/runs/{other}"), part)),
        None if part => Ok(Html("<p class=\"good\">done</p>").into_response()),
        None => Ok(Redirect::to(&format!("/runs/{run}")).into_response()),
    }
}

pub(crate) async fn run(State(app): State<Arc<App>>, Path(run): Path<String>) -> Result<Response, Shown> {
    let shown = |problem| Shown(problem, false);
    let id = named(&run).map_err(shown)?;
    let events = app.desk.runtime().store().load(&id).await.map_err(|error| Shown(error.into(), false))?;
    let last = events.last().map_or(0, |event| event.seq);
    let task = events.iter().find_map(|event| match &event.kind {
        EventKind::RunStarted(started) => Some((started.task.clone(), started.root.clone())),
        _ => None,
    });
    let (task, root) = task.unwrap_or_default();
    let decided: HashMap<&str, Markup> = events.iter().filter_map(decided).collect();
    let skipped = events.len().saturating_sub(MOST_EVENTS);
    let state = events.iter().rev().find_map(state).unwrap_or("running");
    let button = |action: &str, word: &str| {
        let to = format!("/runs/{run}/{action}");
        html! { form.inline method="post" action=(to) hx-post=(to) hx-target="#toast" { button { (word) } } }
    };
    Ok(page(&task.chars().take(60).collect::<String>(), &html! {
        h1 { (line(&task.chars().take(200).collect::<String>())) }
        p.dim { span.state class=(state) id="state" { (state) } " " (line(&root)) " · " code { (run) } }
        div.actions { (button("cancel", "Stop")) (button("resume", "Resume")) button id="split" type="button" { "Side by side" } }
        @if skipped > 0 { p.dim { (skipped) " earlier events are in the log: " code { "gimlet runs show " (run) } } }
        ol.items id="items" role="log" aria-live="off" {
            @for event in &events[skipped..] {
                @match &event.kind {
                    EventKind::ApprovalRequested(request) if decided.contains_key(request.id.as_str()) => { li { (decided[request.id.as_str()]) } }
                    _ => { @if let Some(item) = story::item(event) { (item) } }
                }
            }
        }
        pre.said id="live" aria-hidden="true" {}
        div hx-sse:connect={ "/runs/" (run) "/stream?after=" (last) } hx-swap="none" hx-config="sse.pauseOnBackground:false, sse.reconnectMaxDelay:2000" {}
        form.composer method="post" action={ "/runs/" (run) "/messages" } hx-post={ "/runs/" (run) "/messages" } hx-target="#toast" {
            input name="text" aria-label="Say something to the run" placeholder="Say something to the run" autocomplete="off";
            button { "Send" }
        }
    }).into_response())
}

fn decided(event: &Event) -> Option<(&str, Markup)> {
    match &event.kind {
        EventKind::ApprovalDecided { id, decision } => Some((id, story::answered(id, decision))),
        _ => None,
    }
}

fn state(event: &Event) -> Option<&'static str> {
    match &event.kind {
        EventKind::RunStarted(_) | EventKind::RunResumed { .. } | EventKind::UserMessage { .. } => {
            Some("running")
        }
        EventKind::RunSuspended { .. } => Some("suspended"),
        EventKind::RunFinished(_) => Some("answered"),
        EventKind::RunFailed { .. } => Some("failed"),
        _ => None,
    }
}

/// What some events add to the page, for a stream.
fn added(events: &[Event]) -> String {
    let mut new = html! {};
    let mut out = String::new();
    let mut text = String::new();
    for event in events {
        match &event.kind {
            EventKind::ModelDelta { text: piece, .. } => text.push_str(piece),
            EventKind::ModelMessage(_) => {
                text.clear();
                out.push_str(
                    &html! { template hx type="partial" hx-target="#live" hx-swap="innerHTML" {} }
                        .into_string(),
                );
            }
            _ => {}
        }
        if let Some((id, answered)) = decided(event) {
            let target = format!("#q-{id}");
            out.push_str(
                &html! { template hx type="partial" hx-target=(target) hx-swap="outerHTML" { (answered) } }
                    .into_string(),
            );
        }
        if let Some(state) = state(event) {
            out.push_str(&html! { template hx type="partial" hx-target="#state" hx-swap="outerHTML" { span.state class=(state) id="state" { (state) } } }.into_string());
        }
        if let Some(item) = story::item(event) {
            new = html! { (new) (item) };
        }
    }
    let new = new.into_string();
    let mut all = String::new();
    if !new.is_empty() {
        all.push_str("<template hx type=\"partial\" hx-target=\"#items\" hx-swap=\"beforeend\">");
        all.push_str(&new);
        all.push_str("</template>");
    }
    all.push_str(&out);
    if !text.is_empty() {
        all.push_str(
            &html! { template hx type="partial" hx-target="#live" hx-swap="beforeend" { (block(&text)) } }
                .into_string(),
        );
    }
    all
}

pub(crate) async fn stream(
    State(app): State<Arc<App>>,
    Path(run): Path<String>,
    Query(from): Query<From>,
    headers: HeaderMap,
) -> Result<Response, Shown> {
    let shown = |problem| Shown(problem, true);
    let id = named(&run).map_err(shown)?;
    let store = app.desk.runtime().store();
    store.lease(&id).await.map_err(|error| shown(error.into()))?;
    let watch = store.follow(&id, api::resume_at(&headers, from.after));
    let permit = api::permit(&app).map_err(shown)?;
    let stream = futures_util::stream::unfold((watch, permit), async |(mut watch, permit)| {
        let text = match tokio::time::timeout(api::ALIVE, watch.next()).await {
            Err(_) => ": alive\n\n".to_owned(),
            Ok(lines) => {
                let lines = lines?.ok()?;
                let last = lines.last().map_or(0, |line| line.seq);
                let events: Vec<Event> =
                    lines.iter().filter_map(|line| serde_json::from_str(&line.json).ok()).collect();
                tokio::time::sleep(GATHER).await;
                let data: String =
                    added(&events).split(['\n', '\r']).map(|line| format!("data: {line}\n")).collect();
                format!("id: {last}\n{data}\n")
            }
        };
        Some((Ok::<_, std::convert::Infallible>(text), (watch, permit)))
    });
    Ok(([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(stream)).into_response())
}

/// What a listing of the program says, so that the page and the terminal never differ.
pub(crate) async fn about(State(app): State<Arc<App>>, Path(what): Path<String>) -> Result<Response, Shown> {
    let found = ABOUT.iter().find(|(name, _)| *name == what);
    let (name, words) = found.ok_or_else(|| Shown(Problem::not_found("there is no such page"), false))?;
    let folder = app.projects.first().map_or(FilePath::new("."), |path| path.as_path());
    let mut command = tokio::process::Command::new(&app.program);
    command
        .args(*words)
        .current_dir(folder)
        .kill_on_drop(true)
        .stdin(std::process::Stdio::null())
        .env("NO_COLOR", "1");
    let said = tokio::time::timeout(Duration::from_secs(30), command.output()).await;
    let broken = |detail: String| Shown(Problem::new(StatusCode::BAD_GATEWAY, detail), false);
    let said =
        said.map_err(|_| broken("it took too long".into()))?.map_err(|error| broken(error.to_string()))?;
    let mut text = String::from_utf8_lossy(&said.stdout).into_owned();
    if text.trim().is_empty() {
        text = String::from_utf8_lossy(&said.stderr).into_owned();
    }
    let body = match serde_json::from_str::<Value>(&text) {
        Ok(value) => value_table(&value),
        Err(_) => html! { pre { (block(&text)) } },
    };
    Ok(page(name, &html! { h1 { (name) } p.dim { "what " code { "gimlet " (words.join(" ")) } " says in " (line(&folder.display().to_string())) } (body) }).into_response())
}

fn value_table(value: &Value) -> Markup {
    match value {
        Value::Array(rows) if rows.is_empty() => html! { p.empty { "none" } },
        Value::Array(rows) => html! { ul.values { @for row in rows { li { (value_table(row)) } } } },
        Value::Object(map) => {
            html! { dl { @for (key, value) in map { dt { (line(key)) } dd { (value_table(value)) } } } }
        }
        Value::String(text) => html! { span.value { (block(text)) } },
        Value::Null => html! { span.dim { "–" } },
        Value::Bool(_) | Value::Number(_) => html! { (value.to_string()) },
    }
}
