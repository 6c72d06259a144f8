//! Results of `gimlet eval`, found in the served projects, as plots that are drawn here.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::{Shown, page};
use crate::server::App;
use crate::text::{clip, line};

/// Where `gimlet eval` keeps results unless it is told otherwise.
const FOLDER: &str = "gimlet-eval";
/// Most reports of a page, and most bytes of one.
const MOST_REPORTS: usize = 20;
const MOST_BYTES: u64 = 20 << 20;

/// As much of a report as is shown. Fields of later versions do no harm.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Report {
    suite: String,
    about: String,
    contenders: Vec<Value>,
    tasks: Vec<Task>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Task {
    id: String,
    cells: Vec<Cell>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Cell {
    passed: u64,
    tries: u64,
}

pub(crate) async fn show(State(app): State<Arc<App>>) -> Result<Response, Shown> {
    let projects = app.projects.clone();
    let found = tokio::task::spawn_blocking(move || reports(&projects)).await;
    let found = found.map_err(|error| Shown::page(anyhow::Error::from(error)))?;
    Ok(page("Evaluations", &html! {
        h1 { "Evaluations" }
        @if found.is_empty() {
            div.empty {
                p { strong { "No results are here yet." } }
                p { "Results that " code { "gimlet eval" } " keeps in " code { (FOLDER) "/" } " of a served project are drawn here." }
                pre { "gimlet eval eval/basic -m ollama_chat/qwen2.5-coder:14b" }
            }
        }
        @for (path, report) in &found { (drawn(path, report)) }
    }).into_response())
}

fn reports(projects: &[PathBuf]) -> Vec<(PathBuf, Report)> {
    let folders =
        projects.iter().filter_map(|project| std::fs::read_dir(project.join(FOLDER)).ok()).flatten();
    let mut paths: Vec<PathBuf> =
        folders.filter_map(Result::ok).map(|entry| entry.path().join("report.json")).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let is_small = std::fs::metadata(&path).is_ok_and(|data| data.is_file() && data.len() <= MOST_BYTES);
        let text = is_small.then(|| std::fs::read(&path).ok()).flatten()?;
        Some((path, serde_json::from_slice(&text).ok()?))
    };
    paths.into_iter().filter_map(read).take(MOST_REPORTS).collect()
}

/// The name of a contender: its model without the provider, and how it acts.
fn name(row: &Value) -> String {
    let text = |key: &str| row[key].as_str().map(|text| text.rsplit('/').next().unwrap_or(text).to_owned());
    let parts: Vec<String> = ["agent", "model", "action"]
        .iter()
        .filter_map(|key| text(key))
        .filter(|text| !text.is_empty())
        .collect();
    clip(&parts.join(", "), 60)
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_default()
}

fn bound(row: &Value, key: &str) -> f64 {
    row["interval"][key].as_f64().unwrap_or_default()
}

fn drawn(path: &Path, report: &Report) -> Markup {
    let names: Vec<String> = report.contenders.iter().map(name).collect();
    let height = 34 * report.contenders.len() + 22;
    html! {
        section.card.plot {
            h2 { (line(&report.suite)) }
            p.dim { (line(&report.about)) " · " code { (line(&path.display().to_string())) } }
            svg viewBox={ "0 0 720 " (height) } role="img" aria-label="Share of tries that passed, with the interval of 95 %" {
                @for share in [0, 25, 50, 75, 100] {
                    @let x = 240 + share * 42 / 10;
                    line.grid x1=(x) x2=(x) y1="0" y2=(height - 20) {}
                    text.axis x=(x) y=(height - 6) text-anchor="middle" { (share) " %" }
                }
                @for (at, row) in report.contenders.iter().enumerate() {
                    @let y = at * 34 + 6;
                    @let x = |share: f64| format!("{:.1}", 240.0 + share.clamp(0.0, 1.0) * 420.0);
                    @let rate = number(row, "rate");
                    text.name x="232" y=(y + 16) text-anchor="end" { (names[at]) }
                    rect.bar x="240" y=(y) height="22" rx="3" width=(format!("{:.1}", rate.clamp(0.0, 1.0) * 420.0)) {
                        title { (number(row, "passed")) " of " (number(row, "tries")) " tries" }
                    }
                    line.interval x1=(x(bound(row, "low"))) x2=(x(bound(row, "high"))) y1=(y + 11) y2=(y + 11) {}
                    text.value x="668" y=(y + 16) { (format!("{:.0} %", rate * 100.0)) }
                }
            }
            details { summary { (report.tasks.len()) " tasks" }
                div.scroll tabindex="0" role="region" aria-label="Tasks" { table.grid {
                    thead { tr { th scope="col" { "Task" } @for name in &names { th scope="col" { (name) } } } }
                    tbody { @for task in &report.tasks { tr {
                        th scope="row" { (line(&task.id)) }
                        @for cell in &task.cells {
                            @let class = if cell.tries == 0 { "dim" } else if cell.passed == cell.tries { "good" } else if cell.passed == 0 { "bad" } else { "warn" };
                            td class=(class) { (cell.passed) " of " (cell.tries) }
                        }
                    } } }
                } }
            }
        }
    }
}
