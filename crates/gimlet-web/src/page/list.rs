//! The list of runs, with a search through tasks and answers.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::{Html, IntoResponse, Response};
use gimlet::store::RunSummary;
use jiff::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;

use super::{Shown, page};
use crate::server::App;
use crate::text::{ago, count, line, seconds, title};
use crate::vitals::{WORDS, mark, word};

/// Most rows of a list.
const MOST_ROWS: usize = 200;

/// Which runs are wanted.
#[derive(Deserialize, Default, Clone)]
#[serde(default)]
pub(crate) struct Wanted {
    /// Words of the task, the answer, the folder, the model or the id.
    pub(crate) q: String,
    /// Where they stand.
    pub(crate) state: String,
    /// Their folder.
    pub(crate) root: String,
    /// Most of them.
    pub(crate) limit: Option<usize>,
}

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Query(wanted): Query<Wanted>,
) -> Result<Response, Shown> {
    let runs = app.desk.find(&wanted).await.map_err(Shown::page)?;
    let all = app.desk.runs().await.map_err(Shown::page)?;
    let mut roots: Vec<&str> = all.iter().map(|run| run.root.as_str()).collect();
    roots.sort_unstable();
    roots.dedup();
    Ok(page("Runs", &html! {
        div.head { h1 { "Runs" } a.button.primary href="/new" { "New task" } }
        form.filter role="search" action="/" hx-get="/table" hx-target="#runs" hx-trigger="input delay:200ms, submit" {
            input type="search" name="q" value=(wanted.q) placeholder="Search tasks and answers" aria-label="Search tasks and answers";
            select name="state" aria-label="State" {
                option value="" { "Every state" }
                @for state in WORDS { option value=(state) selected[state == wanted.state] { (state) } }
            }
            select name="root" aria-label="Folder" {
                option value="" { "Every folder" }
                @for root in roots { option value=(root) selected[root == wanted.root] { (line(root)) } }
            }
        }
        form action="/compare" { div id="runs" { (rows(&runs)) } }
    }).into_response())
}

pub(crate) async fn table(
    State(app): State<Arc<App>>,
    Query(wanted): Query<Wanted>,
) -> Result<Response, Shown> {
    let runs = app.desk.find(&wanted).await.map_err(|problem| Shown { problem, part: true })?;
    Ok(Html(rows(&runs).into_string()).into_response())
}

fn rows(runs: &[RunSummary]) -> Markup {
    let now = Timestamp::now();
    html! {
        @if runs.is_empty() {
            div.empty {
                p { strong { "No run fits." } }
                p { a href="/new" { "Start a task here" } ", or in a terminal: it appears on this page while it works." }
                pre { "gimlet \"explain this project\"" }
            }
        } @else {
            ul.runs {
                @for run in runs.iter().take(MOST_ROWS) {
                    li {
                        input type="checkbox" name="run" value=(run.id) aria-label={ "Compare " (title(&run.task, 60)) };
                        div {
                            a href={ "/runs/" (run.id) } { (title(&run.task, 140)) }
                            p.dim {
                                (line(&run.root)) " · " (line(&run.model)) " · " (run.steps) " steps · "
                                (count(run.tokens)) " tokens · " (seconds(run.seconds))
                            }
                        }
                        div.right { (mark(word(&run.status))) span.dim { (ago(run.updated, now)) } }
                    }
                }
            }
            @if runs.len() > MOST_ROWS { p.dim { (runs.len() - MOST_ROWS) " older runs are not shown; search for them." } }
            p.dim { button { "Compare" } " the two runs that are ticked." }
        }
    }
}

/// How many questions wait.
pub(crate) async fn bell(State(app): State<Arc<App>>) -> Html<String> {
    let waiting = app.desk.waiting().await;
    Html(
        html! {
            @if waiting > 0 {
                span.badge data-waiting=(waiting) aria-label={ (waiting) " waiting" } { (waiting) }
            }
        }
        .into_string(),
    )
}
