//! The page of a run: everything that happened, and what happens while it is looked at.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Form, Path, Query, State};
use axum::http::{HeaderMap, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use futures_util::{FutureExt, StreamExt};
use gimlet::event::{Event, EventKind};
use gimlet::ids::RunId;
use gimlet::store::RunStatus;
use gimlet_runtime::options::{ApproveMode, Choice};
use maud::{Markup, html};
use serde::Deserialize;

use super::{Shown, go_to, is_part, page};
use crate::api::{self, From, Order, named};
use crate::problem::Problem;
use crate::server::App;
use crate::story::{self, Known};
use crate::text::{line, title};
use crate::vitals::{Vitals, mark, word};

/// Most steps that a page begins with; earlier ones are loaded when somebody wants them.
const MOST_STEPS: usize = 60;
/// How long pieces of a reply are gathered before they are sent.
const GATHER: Duration = Duration::from_millis(40);
/// The longest pause of a replay.
const PAUSE: Duration = Duration::from_millis(700);

/// How a run is looked at.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Look {
    /// Whether it is shown again from its beginning.
    replay: bool,
    /// Only what was before this step's place in the log.
    before: u64,
}

async fn events_of(app: &App, run: &str) -> Result<(RunId, Vec<Event>), Problem> {
    let id = named(run)?;
    let events = app.desk.runtime().store().load(&id).await?;
    Ok((id, events))
}

/// Where the last so many steps of the main agent begin, as a position.
fn last_steps(events: &[Event]) -> usize {
    let is_step =
        |event: &&Event| event.path.is_root() && matches!(event.kind, EventKind::StepStarted { .. });
    let steps: Vec<u64> = events.iter().filter(is_step).map(|event| event.seq).collect();
    match steps.len().checked_sub(MOST_STEPS) {
        Some(first) if first > 0 => events.iter().position(|event| event.seq == steps[first]).unwrap_or(0),
        Some(_) | None => 0,
    }
}

/// Events of a page and, above them, the way to earlier ones.
fn shown(run: &RunId, events: &[Event], known: &mut Known<'_>) -> Markup {
    let from = last_steps(events);
    let before = events.get(from).map_or(0, |event| event.seq);
    let address = format!("/runs/{run}/earlier?before={before}");
    html! {
        @if from > 0 {
            li.earlier { button type="button" hx-get=(address) hx-target="closest li" hx-swap="outerHTML" { "Show earlier steps" } }
        }
        (story::items(&events[from..], known))
    }
}

/// Earlier steps, in the place of the button that asked for them.
pub(crate) async fn earlier(
    State(app): State<Arc<App>>,
    Path(run): Path<String>,
    Query(look): Query<Look>,
) -> Result<Html<String>, Shown> {
    let (id, events) = events_of(&app, &run).await.map_err(|problem| Shown { problem, part: true })?;
    let until = events.iter().position(|event| event.seq >= look.before).unwrap_or(0);
    Ok(Html(shown(&id, &events[..until], &mut Known::of(&events)).into_string()))
}

pub(crate) async fn run(
    State(app): State<Arc<App>>,
    Path(run): Path<String>,
    Query(look): Query<Look>,
) -> Result<Response, Shown> {
    let (id, events) = events_of(&app, &run).await.map_err(Shown::page)?;
    let last = if look.replay { 0 } else { events.last().map_or(0, |event| event.seq) };
    let vitals = if look.replay { Vitals::default() } else { Vitals::of(&events) };
    let told = Vitals::of(events.first());
    let items = if look.replay {
        html! {}
    } else {
        shown(&id, &events, &mut Known::of(&events))
    };
    let controls =
        if look.replay { replaying(&id) } else { controls(&app, &id).await.map_err(Shown::page)? };
    let replay = if look.replay { "&replay=true" } else { "" };
    let origin = events.first().and_then(|event| match &event.kind {
        EventKind::RunStarted(started) => started.origin.clone(),
        _ => None,
    });
    let say = format!("/runs/{id}/messages");
    Ok(page(&title(&told.task, 60), &html! {
        div.run-head {
            h1 { (title(&told.task, 160)) }
            (controls)
            p.dim {
                (line(&told.root)) " · " (line(&told.model)) " · " code { (id) }
                @if let Some(origin) = origin {
                    " · forked from " a href={ "/runs/" (origin) } { (origin) } " · "
                    a href={ "/compare?run=" (origin) "&run=" (id) } { "compare" }
                }
            }
        }
        div.run {
            div.story {
                div role="log" aria-live="off" aria-label="What the run does" { ol.items id="items" { (items) } }
                div hx-sse:connect={ "/runs/" (id) "/stream?after=" (last) (replay) } hx-swap="none"
                    hx-config="sse.pauseOnBackground:false, sse.reconnectDelay:300, sse.reconnectMaxDelay:2000" {}
                @if !look.replay {
                    form.composer method="post" action=(say) hx-post=(say) hx-target="#toast" {
                        textarea name="text" rows="1" required aria-label="Say something to the run" placeholder="Say something to the run" autocomplete="off" {}
                        button { "Send" }
                    }
                }
            }
            aside aria-label="Figures" { (vitals.shown()) }
        }
    }).into_response())
}

fn replaying(run: &RunId) -> Markup {
    html! {
        div.controls id="controls" {
            span.state { "replay" }
            a.button href={ "/runs/" (run) } { "To the run itself" }
            button id="split" type="button" { "Side by side" }
        }
    }
}

/// Where a run stands and what can be done to it now.
async fn controls(app: &App, run: &RunId) -> Result<Markup, Problem> {
    let status = app.desk.summary(run).await?.status;
    let mode = app.desk.mode(run);
    let button = |action: &str, word: &str, class: &str| {
        let to = format!("/runs/{run}/{action}");
        html! { form.inline method="post" action=(to) hx-post=(to) hx-target="#toast" { button class=(class) data-do=(action) { (word) } } }
    };
    let to_mode = format!("/runs/{run}/mode");
    Ok(html! {
        div.controls id="controls" hx-get={ "/runs/" (run) "/controls" } hx-trigger="refresh" hx-swap="outerHTML" {
            (mark(word(&status)))
            @match status {
                RunStatus::Running if mode.is_some() => (button("cancel", "Stop", "")),
                RunStatus::Running => { span.dim { "at work in another process" } }
                RunStatus::Suspended { .. } | RunStatus::Interrupted | RunStatus::Diverged | RunStatus::Crashed
                | RunStatus::Limited => (button("resume", "Resume", "primary")),
                RunStatus::Answered | RunStatus::Failed => {}
            }
            @if let Some(mode) = mode {
                form.inline method="post" action=(to_mode) hx-post=(to_mode) hx-target="#toast" hx-trigger="change" {
                    select name="approve" aria-label="When it needs an approval" {
                        @for (value, name, about) in ApproveMode::ALL { option value=(name) title=(about) selected[*value == mode] { "approve: " (name) } }
                    }
                }
            }
            a.button href={ "/runs/" (run) "?replay=true" } { "Replay" }
            button id="split" type="button" { "Side by side" }
        }
    })
}

pub(crate) async fn controls_of(
    State(app): State<Arc<App>>,
    Path(run): Path<String>,
) -> Result<Html<String>, Shown> {
    let part = |problem| Shown { problem, part: true };
    let id = named(&run).map_err(part)?;
    Ok(Html(controls(&app, &id).await.map_err(part)?.into_string()))
}

/// Does something to a run.
pub(crate) async fn act(
    State(app): State<Arc<App>>,
    Path((run, action)): Path<(String, String)>,
    headers: HeaderMap,
    Form(order): Form<Order>,
) -> Result<Response, Shown> {
    let (part, shown) = (is_part(&headers), Shown::to(&headers));
    let id = named(&run).map_err(shown)?;
    let done = api::perform(&app, &id, &action, order).await.map_err(shown)?;
    if let Some(other) = done["run"].as_str().filter(|other| *other != run) {
        return Ok(go_to(&format!("/runs/{other}"), part));
    }
    if !part {
        return Ok(Redirect::to(&format!("/runs/{run}")).into_response());
    }
    let patches = done["patches"].as_array().into_iter().flatten();
    let undone = html! {
        @for patch in patches {
            @match patch["error"].as_str() {
                Some(error) => { p.bad { "Not undone: " (line(error)) } }
                None => { p.good { "Undone: " (line(patch["intent"].as_str().unwrap_or_default())) } }
            }
        }
    };
    let said = match action.as_str() {
        "messages" => html! { p.good { "Said." } },
        "cancel" => html! { p.good { "Stopping." } },
        "resume" => html! { p.good { "Carried on." } },
        "undo" => undone,
        _ => html! { p.good { "Done." } },
    };
    Ok(Html(said.into_string()).into_response())
}

/// The stream of what changes on the page. Ids are the numbers of events, so that it goes on where it broke.
pub(crate) async fn stream(
    State(app): State<Arc<App>>,
    Path(run): Path<String>,
    Query(from): Query<From>,
    Query(look): Query<Look>,
    headers: HeaderMap,
) -> Result<Response, Shown> {
    let part = |problem| Shown { problem, part: true };
    let id = named(&run).map_err(part)?;
    let after = api::resume_at(&headers, from.after);
    let permit = api::permit(&app).map_err(part)?;
    if look.replay {
        let (_, events) = events_of(&app, &run).await.map_err(part)?;
        return Ok(event_stream(replay(events, after, permit)));
    }
    let store = app.desk.runtime().store();
    store.lease(&id).await.map_err(|error| part(error.into()))?;
    let watch = store.follow(&id, after);
    let watching = (watch, None, permit, app, id);
    let stream = futures_util::stream::unfold(watching, async |(mut watch, mut vitals, permit, app, id)| {
        let text = match tokio::time::timeout(api::ALIVE, watch.next()).await {
            Err(_) => ": alive\n\n".to_owned(),
            Ok(lines) => {
                let mut lines = lines?.ok()?;
                tokio::time::sleep(GATHER).await;
                if let Some(Some(Ok(more))) = watch.next().now_or_never() {
                    lines.extend(more);
                }
                let last = lines.last().map_or(0, |line| line.seq);
                let events: Vec<Event> =
                    lines.iter().filter_map(|line| serde_json::from_str(&line.json).ok()).collect();
                let mut text = story::changes(&events);
                if events.iter().any(|event| !matches!(event.kind, EventKind::ModelDelta { .. })) {
                    let known = vitals_at(&app, &id, vitals.take(), &events).await?;
                    text.push_str(&story::partial("vitals", "outerHTML", &known.shown()));
                    vitals = Some(known);
                }
                if events.iter().any(changes_state)
                    && let Ok(controls) = controls(&app, &id).await
                {
                    text.push_str(&story::partial("controls", "outerHTML", &controls));
                }
                message(last, &text)
            }
        };
        Some((Ok::<_, std::convert::Infallible>(text), (watch, vitals, permit, app, id)))
    });
    Ok(event_stream(stream))
}

/// The vitals after some events. A stream that begins reads what came before when it first needs it, not before it sends
/// anything: pieces of a reply need nothing.
async fn vitals_at(app: &App, run: &RunId, known: Option<Vitals>, events: &[Event]) -> Option<Vitals> {
    let Some(mut vitals) = known else {
        let last = events.last()?.seq;
        let all = app.desk.runtime().store().load(run).await.ok()?;
        return Some(Vitals::of(all.iter().take_while(|event| event.seq <= last)));
    };
    events.iter().for_each(|event| vitals.take(event));
    Some(vitals)
}

fn changes_state(event: &Event) -> bool {
    matches!(
        event.kind,
        EventKind::RunStarted(_)
            | EventKind::RunResumed { .. }
            | EventKind::UserMessage { .. }
            | EventKind::RunSuspended { .. }
            | EventKind::RunFinished(_)
            | EventKind::RunFailed { .. }
    )
}

/// The events of a run again, with the pauses they had, but no long ones.
fn replay(
    events: Vec<Event>,
    after: u64,
    permit: tokio::sync::OwnedSemaphorePermit,
) -> impl futures_util::Stream<Item = Result<String, std::convert::Infallible>> {
    let at = events.iter().position(|event| event.seq > after).unwrap_or(events.len());
    let vitals = Vitals::of(&events[..at]);
    futures_util::stream::unfold((events, at, vitals, permit), async |(events, at, mut vitals, permit)| {
        let Some(event) = events.get(at) else {
            // The stream stays open and silent: one that ends would be asked for again.
            tokio::time::sleep(api::ALIVE).await;
            return Some((Ok(": alive\n\n".to_owned()), (events, at, vitals, permit)));
        };
        let before = at.checked_sub(1).and_then(|at| events.get(at)).map_or(event.time, |before| before.time);
        let passed = Duration::try_from(event.time.duration_since(before)).unwrap_or_default();
        tokio::time::sleep(passed.min(PAUSE)).await;
        vitals.take(event);
        let mut text = story::changes(std::slice::from_ref(event));
        text.push_str(&story::partial("vitals", "outerHTML", &vitals.shown()));
        let text = message(event.seq, &text);
        Some((Ok(text), (events, at + 1, vitals, permit)))
    })
}

fn message(id: u64, html: &str) -> String {
    let data: String = html.split(['\n', '\r']).map(|line| format!("data: {line}\n")).collect();
    format!("id: {id}\n{data}\n")
}

fn event_stream(
    stream: impl futures_util::Stream<Item = Result<String, std::convert::Infallible>> + Send + 'static,
) -> Response {
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(stream)).into_response()
}
