//! The form for a new task.

use std::sync::Arc;

use axum::extract::{Form, Query, State};
use axum::http::HeaderMap;
use axum::response::{Html, Response};
use gimlet_runtime::models;
use gimlet_runtime::options::{Action, ApproveMode, Choice};
use gimlet_runtime::parts::models::catalog::{Families, choose};
use gimlet_runtime::served::graded;
use gimlet_runtime::{Options, Settings};
use maud::{Markup, html};
use serde::Deserialize;

use super::{Shown, go_to, is_part, page};
use crate::problem::Problem;
use crate::server::App;
use crate::task::{Attachment, Task, project};
use crate::text::line;

pub(crate) async fn form(State(app): State<Arc<App>>) -> Html<String> {
    page(
        "New task",
        &html! {
            h1 { "New task" }
            form.task method="post" action="/start" hx-post="/start" hx-target="#toast" {
                label { "Task"
                    textarea name="task" rows="7" required autofocus placeholder="Which test fails, and why? Fix it and show that it passes." {}
                }
                textarea name="files" hidden {}
                ul.files id="files" aria-label="Attached files" {}
                p.dim { "Drop text files onto the task or paste them, or "
                    label.link { "choose them" input type="file" id="choose" multiple hidden; } "." }
                div.columns {
                    label { "Project" select name="project" id="project" {
                        @for project in &app.projects { option { (line(&project.display().to_string())) } }
                    } }
                    label { "When it needs an approval" select name="approve" {
                    option value="" { "As configured" }
                        @for (_, name, about) in ApproveMode::ALL { option value=(name) title=(about) { (name) } }
                    } }
                }
                details { summary { "Model, action and limits" }
                    div.columns id="choices" hx-get="/choices" hx-trigger="load, change from:#project" hx-include="#project" { (choices(&[], &[], None)) }
                    div.columns {
                        label { "Action" select name="action" {
                            option value="" { "As the model's profile says" }
                            @for (_, name, about) in Action::ALL { option value=(name) { (name) ": " (about) } }
                        } }
                        label { "Maximum steps" input name="max_steps" type="number" min="1" placeholder="as configured"; }
                        label { "Time limit in seconds" input name="timeout" type="number" min="1" placeholder="none"; }
                        label { "Maximum tokens of the run" input name="token_budget" type="number" min="1" placeholder="none"; }
                    }
                }
                button.primary { "Start" } span.dim { " Ctrl-Enter" }
            }
        },
    )
}

/// Models and agents to choose from, and what would be chosen.
fn choices(models: &[String], agents: &[String], told: Option<&str>) -> Markup {
    html! {
        label { "Model"
            input name="model" list="models" placeholder="as configured" autocomplete="off";
            datalist id="models" { @for model in models { option value=(line(model)) {} } }
            @if let Some(told) = told { small.dim { (line(told)) } }
        }
        label { "Agent" select name="agent" {
            option value="" { "None in particular" }
            @for agent in agents { option value=(agent) { (line(agent)) } }
        } }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Of {
    project: String,
}

/// The same for a project, as `gimlet models` would choose.
pub(crate) async fn choose_from(
    State(app): State<Arc<App>>,
    Query(of): Query<Of>,
    headers: HeaderMap,
) -> Result<Html<String>, Shown> {
    let shown = Shown::to(&headers);
    let root = project(&of.project, &app.projects).map_err(shown)?.clone();
    let options = Options { root: Some(root), ..Options::default() };
    let settings = app.desk.runtime().settings(&options).map_err(|error| shown(error.into()))?;
    let agents: Vec<String> =
        settings.agents().map(|known| known.defined.into_keys().collect()).unwrap_or_default();
    let (models, told) = installed(&settings).await;
    Ok(Html(choices(&models, &agents, Some(&told)).into_string()))
}

async fn installed(settings: &Settings) -> (Vec<String>, String) {
    let mut names: Vec<String> = settings
        .named_models()
        .map(|named| named.names().into_iter().map(str::to_owned).collect())
        .unwrap_or_default();
    let told = match (models::installed(settings).await, Families::built_in()) {
        (Ok((server, installed)), Ok(families)) => {
            names.extend(installed.iter().map(|model| model.name.clone()));
            let cards = models::scorecards(settings.process()).ok();
            let profile = |model: &_| graded(&families, cards.as_ref(), model);
            match choose(None, &installed, &families, profile, server.wire(), server.host()) {
                Ok(choice) => format!("{} would be chosen: {}", choice.model.name, choice.why),
                Err(error) => error.to_string(),
            }
        }
        (Err(error), _) => error.to_string(),
        (_, Err(error)) => error.to_string(),
    };
    (names, told)
}

/// The form as it was filled in. Fields that are left empty say nothing.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
pub(crate) struct Filled {
    task: String,
    project: String,
    model: String,
    action: String,
    agent: String,
    approve: String,
    max_steps: String,
    timeout: String,
    token_budget: String,
    /// Attachments as JSON.
    files: String,
}

impl Filled {
    fn task(self) -> Result<Task, Problem> {
        let number = |name: &str, text: &str| match text.trim() {
            "" => Ok(None),
            text => text
                .parse()
                .map(Some)
                .map_err(|_| Problem::unusable(format!("{name} must be a whole number"))),
        };
        let attachments: Vec<Attachment> = match self.files.trim() {
            "" => Vec::new(),
            json => serde_json::from_str(json)
                .map_err(|error| Problem::unusable(format!("the attached files cannot be read: {error}")))?,
        };
        let max_steps = number("the maximum of steps", &self.max_steps)?;
        let max_steps = max_steps.map(u32::try_from).transpose();
        Ok(Task {
            max_steps: max_steps.map_err(|_| Problem::unusable("the maximum of steps is too large"))?,
            timeout: number("the time limit", &self.timeout)?.map(|seconds: u64| seconds as f64),
            token_budget: number("the maximum of tokens", &self.token_budget)?,
            task: self.task,
            project: self.project,
            model: self.model,
            action: self.action,
            agent: self.agent,
            approve: self.approve,
            attachments,
        })
    }
}

pub(crate) async fn start(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    Form(filled): Form<Filled>,
) -> Result<Response, Shown> {
    let shown = Shown::to(&headers);
    let task = filled.task().map_err(shown)?;
    let run = app.start(&task).await.map_err(shown)?;
    Ok(go_to(&format!("/runs/{run}"), is_part(&headers)))
}
