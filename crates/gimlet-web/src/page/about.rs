//! What the program's own listings say, so that the page and the terminal never differ.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::{Shown, page};
use crate::problem::Problem;
use crate::server::App;
use crate::task::project;
use crate::text::{block, line};
use crate::value::value;

/// How long a listing may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A listing.
pub(crate) struct About {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    words: &'static [&'static str],
    /// What it is, and what to do where it is empty.
    about: &'static str,
    /// The fields that matter, in order; none for all.
    columns: &'static [&'static str],
}

/// All of them.
pub(crate) const PAGES: [About; 6] = [
    About {
        name: "models",
        title: "Models",
        words: &["models", "list"],
        about: "Models of the configured server, and which one a run would take.",
        columns: &[],
    },
    About {
        name: "agents",
        title: "Agents",
        words: &["agents", "list", "--json"],
        about: "Agents that the configuration defines. A table [agents.NAME] in gimlet.toml defines one.",
        columns: &[],
    },
    About {
        name: "servers",
        title: "MCP servers",
        words: &["mcp", "list", "--json"],
        about: "MCP servers and the tools they offer. A table [mcp.NAME] in gimlet.toml names one.",
        columns: &[],
    },
    About {
        name: "memory",
        title: "Memory",
        words: &["memory", "list", "--json"],
        about: "What agents remember of this project. `gimlet --memory` lets them remember.",
        columns: &[],
    },
    About {
        name: "settings",
        title: "Settings",
        words: &["config", "show", "--json"],
        about: "The settings in force, and where each comes from.",
        columns: &["key", "value", "source", "file", "line"],
    },
    About {
        name: "doctor",
        title: "Doctor",
        words: &["doctor", "--json"],
        about: "What a run needs on this machine.",
        columns: &["check", "health", "found", "fix"],
    },
];

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Of {
    project: String,
}

fn find(name: &str) -> Result<&'static About, Problem> {
    PAGES.iter().find(|about| about.name == name).ok_or_else(|| Problem::not_found("there is no such page"))
}

/// The page, at once; the listing follows when it is there.
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    Query(of): Query<Of>,
) -> Result<Response, Shown> {
    let about = find(&name).map_err(Shown::page)?;
    let folder = project(&of.project, &app.projects).map_err(Shown::page)?.display().to_string();
    Ok(page(about.title, &html! {
        h1 { (about.title) }
        p.dim { (about.about) }
        @if app.projects.len() > 1 {
            form.filter action={ "/about/" (about.name) } {
                select name="project" aria-label="Project" {
                    @for project in &app.projects {
                        @let name = project.display().to_string();
                        option selected[name == folder] { (line(&name)) }
                    }
                }
                button { "Show" }
            }
        }
        form id="of" hidden { input name="project" value=(folder); }
        div hx-get={ "/about/" (about.name) "/listing" } hx-include="#of" hx-trigger="load" hx-swap="outerHTML" {
            p.dim { "Asking " code { "gimlet " (about.words.join(" ")) } " …" }
        }
    }).into_response())
}

pub(crate) async fn listing(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    Query(of): Query<Of>,
) -> Result<Html<String>, Shown> {
    let part = |problem| Shown { problem, part: true };
    let about = find(&name).map_err(part)?;
    let folder = project(&of.project, &app.projects).map_err(part)?;
    let text = ask(&app, about.words, folder).await.map_err(part)?;
    let shown = match serde_json::from_str::<Value>(&text) {
        Ok(listed) => table(about, &listed),
        Err(_) => html! { pre.out { (block(text.trim_end())) } },
    };
    let told = format!("gimlet {}", about.words.join(" "));
    Ok(Html(html! { (shown) p.dim { "As " code { (told) } " says in " (line(&folder.display().to_string())) "." } }.into_string()))
}

async fn ask(app: &App, words: &[&str], folder: &std::path::Path) -> Result<String, Problem> {
    let home = app.desk.runtime().process().need_home()?.path();
    let mut command = tokio::process::Command::new(&app.program);
    command
        .args(words)
        .current_dir(folder)
        .env("GIMLET_HOME", home)
        .env("NO_COLOR", "1")
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true);
    let broken = |detail: String| Problem::new(StatusCode::BAD_GATEWAY, detail);
    let said = tokio::time::timeout(PATIENCE, command.output()).await;
    let said = said.map_err(|_| broken("the listing took too long".into()))?;
    let said = said.map_err(|error| broken(format!("the listing cannot be made: {error}")))?;
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    let told = String::from_utf8_lossy(&said.stderr).into_owned();
    Ok(match text.trim().is_empty() {
        true => told,
        false if serde_json::from_str::<Value>(&text).is_ok() => text,
        false => format!("{text}\n{told}"),
    })
}

/// A list of objects as a table; everything else by its fields.
fn table(about: &About, listed: &Value) -> Markup {
    match listed {
        Value::Array(rows) if rows.is_empty() => {
            html! { div.empty { p { strong { "None yet." } } p { (about.about) } } }
        }
        Value::Array(rows) if about.columns.first().is_some_and(|first| !rows[0][*first].is_null()) => {
            html! {
                div.scroll tabindex="0" role="region" aria-label=(about.title) { table.grid {
                    thead { tr { @for column in about.columns { th scope="col" { (column) } } } }
                    tbody { @for row in rows {
                        tr data-health=[row["health"].as_str()] {
                            @for column in about.columns { td { (cell(&row[*column])) } }
                        }
                    } }
                } }
            }
        }
        Value::Array(rows) => html! { ul.values { @for row in rows { li { (value(row)) } } } },
        Value::Object(fields) => html! {
            dl.fields {
                @for (name, field) in fields.iter().filter(|(_, field)| !field.is_array()) {
                    div { dt { (line(name)) } dd { (value(field)) } }
                }
            }
            @for (name, field) in fields.iter().filter(|(_, field)| field.is_array()) { h2 { (line(name)) } (table(about, field)) }
        },
        other => value(other),
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => line(text),
        other => line(&other.to_string()),
    }
}
