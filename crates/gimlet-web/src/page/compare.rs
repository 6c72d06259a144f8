//! Two runs side by side: what each spent, answered and did, and where they part.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use gimlet::event::{Event, EventKind};
use gimlet::ids::RunId;
use maud::{Markup, html};
use similar::{ChangeTag, TextDiff};

use super::{Shown, page};
use crate::api::named;
use crate::problem::Problem;
use crate::prose::prose;
use crate::server::App;
use crate::text::{clip, count, seconds, title};
use crate::value::brief;
use crate::vitals::{Vitals, mark, word};

struct Side {
    id: RunId,
    vitals: Vitals,
    deeds: Vec<String>,
}

pub(crate) async fn compare(
    State(app): State<Arc<App>>,
    RawQuery(query): RawQuery,
) -> Result<Response, Shown> {
    let query = query.unwrap_or_default();
    let runs: Vec<&str> = query.split('&').filter_map(|pair| pair.strip_prefix("run=")).collect();
    let [one, other] = runs[..] else {
        return Err(Shown::page(Problem::unusable("tick exactly two runs in the list to compare them")));
    };
    let one = side(&app, one).await.map_err(Shown::page)?;
    let other = side(&app, other).await.map_err(Shown::page)?;
    let rows = rows(&one.deeds, &other.deeds);
    let same = rows.iter().take_while(|(tag, _)| *tag == ChangeTag::Equal).count();
    Ok(page(
        "Compare",
        &html! {
            h1 { "Compare two runs" }
            div.pair { (head(&one)) (head(&other)) }
            h2 { "What they did" }
            p.dim { @if same == 0 { "They part at once." } @else { "They are the same up to line " (same) "." } }
            table.steps { tbody {
                @for (tag, text) in &rows {
                    @match tag {
                        ChangeTag::Equal => { tr { td { (text) } td { (text) } } }
                        ChangeTag::Delete => { tr { td.del { (text) } td {} } }
                        ChangeTag::Insert => { tr { td {} td.add { (text) } } }
                    }
                }
            } }
            h2 { "What they answered" }
            div.pair { (answer(&one)) (answer(&other)) }
        },
    )
    .into_response())
}

async fn side(app: &App, run: &str) -> Result<Side, Problem> {
    let id = named(run)?;
    let events = app.desk.runtime().store().load(&id).await?;
    Ok(Side { vitals: Vitals::of(&events), deeds: events.iter().filter_map(deed).collect(), id })
}

/// What a run did, in a line for each call and each cell.
fn deed(event: &Event) -> Option<String> {
    let depth = "· ".repeat(event.path.depth());
    Some(match &event.kind {
        EventKind::ToolRequested { call } => format!("{depth}{} {}", clip(&call.tool, 60), brief(&call.args)),
        EventKind::CellStarted { code, .. } => format!("{depth}code: {}", clip(code, 110)),
        EventKind::UserMessage { text } => format!("you: {}", clip(text, 110)),
        EventKind::RunFinished(_) => "answered".into(),
        EventKind::RunFailed { error } => format!("failed: {}", clip(&error.message, 110)),
        _ => return None,
    })
}

fn rows(one: &[String], other: &[String]) -> Vec<(ChangeTag, String)> {
    let one: Vec<&str> = one.iter().map(String::as_str).collect();
    let other: Vec<&str> = other.iter().map(String::as_str).collect();
    let diff = TextDiff::from_slices(&one, &other);
    diff.iter_all_changes().map(|change| (change.tag(), change.value().to_owned())).collect()
}

fn head(side: &Side) -> Markup {
    let Vitals { task, model, status, steps, usage, .. } = &side.vitals;
    html! {
        section.card {
            p { a href={ "/runs/" (side.id) } { (title(task, 120)) } " " @if let Some(status) = status { (mark(word(status))) } }
            dl.facts {
                div { dt { "Model" } dd { (clip(model, 60)) } }
                div { dt { "Steps" } dd { (steps) } }
                div { dt { "Tokens" } dd { (count(usage.input)) " in, " (count(usage.output)) " out" } }
                div { dt { "Cost" } dd { (side.vitals.money()) } }
                div { dt { "Time" } dd { (seconds(side.vitals.seconds())) } }
            }
        }
    }
}

fn answer(side: &Side) -> Markup {
    html! {
        section.card {
            @match &side.vitals.answer { Some(answer) => (prose(answer)), None => { p.dim { "No answer." } } }
        }
    }
}
