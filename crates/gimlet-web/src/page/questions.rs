//! Questions to a person: everything that must be seen to answer one, and the answers.

use std::sync::Arc;

use axum::extract::{Form, Path, State};
use axum::http::HeaderMap;
use axum::response::{Html, IntoResponse, Redirect, Response};
use gimlet::approval::{ApprovalRequest, Decision, Scope};
use gimlet::digest::digest;
use gimlet::effect::Effect;
use maud::{Markup, html};
use serde::Deserialize;

use super::{Shown, is_part, page};
use crate::desk::Answer;
use crate::diff::{diff, is_diff};
use crate::server::App;
use crate::text::{ago, block, line};
use crate::value::value;

/// Names the element of a question.
pub(crate) fn element(id: &str) -> String {
    format!("q-{}", &digest(id.as_bytes())[..12])
}

/// A question, with everything that a person must see to answer it.
pub(crate) fn question(request: &ApprovalRequest) -> Markup {
    let address = format!("/approvals/{}", request.id);
    let patch = request.preview.as_ref().filter(|_| request.editable);
    html! {
        section.question id=(element(&request.id)) aria-label="A question for you" {
            h3 { (title(request)) }
            p { (line(&request.reason)) }
            (what(request))
            form method="post" action=(address) hx-post=(address) hx-target="#toast" {
                input type="hidden" name="binding" value=(request.binding);
                div.choices {
                    button.primary name="decision" value="approve" { "Approve once" }
                    button name="decision" value="approve:session" title="The same again without a question, in this session" { "For the session" }
                    button name="decision" value="approve:always" title="The same again without a question, from now on" { "Always" }
                }
                div.choices {
                    input name="feedback" aria-label="What should it do instead?" placeholder="What should it do instead?" autocomplete="off";
                    button.danger name="decision" value="deny" { "Deny" }
                }
                @if let Some(patch) = patch {
                    details.edit {
                        summary { "Edit the patch first" }
                        p.dim { "What you write here is what is approved, and nothing else." }
                        textarea name="patch" rows="14" spellcheck="false" aria-label="The patch" { "\n" (patch) }
                        button name="decision" value="edit" { "Approve the edited patch" }
                    }
                }
            }
        }
    }
}

fn title(request: &ApprovalRequest) -> Markup {
    let asker = request.askers().last().map(line);
    let who = asker.unwrap_or_else(|| "it".into());
    let runs = request.effects.iter().any(|effect| matches!(effect, Effect::Run { .. }));
    let writes = request.effects.iter().any(|effect| matches!(effect, Effect::Write { .. }));
    html! {
        @match (runs, writes) {
            (true, _) => { "May " (who) " run this command?" }
            (false, true) => { "May " (who) " change these files?" }
            (false, false) => { "May " (who) " call " code { (line(&request.tool)) } "?" }
        }
    }
}

/// What would happen: the exact command and what the jail lets it do, or the diff, or the arguments.
fn what(request: &ApprovalRequest) -> Markup {
    let preview = request.preview.as_deref();
    html! {
        @if let Some(preview) = preview {
            @if is_diff(preview) { (diff(preview)) } @else { pre.command { (block(preview)) } }
        } @else {
            @for effect in &request.effects { @if let Effect::Run { command, .. } = effect { pre.command { (block(command)) } } }
        }
        (allowed(&request.effects))
        details { summary.dim { "Arguments of " code { (line(&request.tool)) } } (value(&request.args)) }
    }
}

/// What a command may do beyond what every command may.
fn allowed(effects: &[Effect]) -> Markup {
    if !effects.iter().any(|effect| matches!(effect, Effect::Run { .. })) {
        return html! {};
    }
    let beyond: Vec<String> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Network { host } if host == "any" => Some("use the network".into()),
            Effect::Network { host } => Some(format!("talk to {}", line(host))),
            Effect::Opaque { what } => Some(line(what)),
            Effect::Write { path, .. } => Some(format!("write {}", line(&path.display().to_string()))),
            Effect::Read { .. } | Effect::Run { .. } | Effect::Delegate { .. } | Effect::Remember { .. } => {
                None
            }
        })
        .collect();
    html! {
        @if beyond.is_empty() { p.dim { "It gets no permission beyond those of every command: no network, and only what the jail shows it." } }
        @else { p.warn { "It may also: " (beyond.join("; ")) "." } }
    }
}

/// What takes the place of a question that is answered.
pub(crate) fn answered(id: &str, decision: &Decision) -> Markup {
    let (class, word) = match decision {
        Decision::Approve { scope: Scope::Once } => ("good", "Approved.".to_owned()),
        Decision::Approve { scope: Scope::Session } => ("good", "Approved for the session.".to_owned()),
        Decision::Approve { scope: Scope::Always } => ("good", "Approved, from now on.".to_owned()),
        Decision::Edit { .. } => ("good", "Approved, with an edited patch.".to_owned()),
        Decision::Deny { feedback: Some(words) } => ("bad", format!("Denied: {}", line(words))),
        Decision::Deny { feedback: None } => ("bad", "Denied.".to_owned()),
        Decision::Defer | Decision::Abort => ("dim", "Not decided.".to_owned()),
    };
    html! {
        section.answered id=(element(id)) {
            p class=(class) { (word) }
            @if let Decision::Edit { patch } = decision { details { summary.dim { "The patch that was approved" } (diff(patch)) } }
        }
    }
}

pub(crate) async fn list(State(app): State<Arc<App>>) -> Result<Response, Shown> {
    let questions = app.desk.questions().await.map_err(Shown::page)?;
    let now = jiff::Timestamp::now();
    Ok(page("Questions", &html! {
        div.head { h1 { "Questions" } button id="notify" type="button" hidden { "Notify me of new ones" } }
        @if questions.is_empty() {
            div.empty {
                p { strong { "Nothing waits for you." } }
                p { "When a run wants to change a file or run a command that the policy does not allow by itself, it asks here, on its own page, and in the terminal it was started in. The first answer counts." }
            }
        }
        @for question in &questions {
            p.dim { a href={ "/runs/" (question.run) } { "Run " (question.run) } " · asked " (ago(question.asked, now)) }
            (self::question(&question.request))
        }
    }).into_response())
}

/// The form of a question.
#[derive(Deserialize)]
pub(crate) struct Filled {
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
    Form(filled): Form<Filled>,
) -> Result<Response, Shown> {
    let (decision, scope) = match filled.decision.split_once(':') {
        Some((decision, scope)) => (decision.to_owned(), Some(scope.to_owned())),
        None => (filled.decision, None),
    };
    let answer =
        Answer { binding: filled.binding, decision, scope, feedback: filled.feedback, patch: filled.patch };
    let decision = app.desk.decide(&id, answer).await.map_err(Shown::to(&headers))?;
    Ok(match is_part(&headers) {
        true => {
            let settled = crate::story::partial(&element(&id), "outerHTML", &answered(&id, &decision));
            Html(html! { p.good { "Your answer is given." } (maud::PreEscaped(settled)) }.into_string())
                .into_response()
        }
        false => Redirect::to("/approvals").into_response(),
    })
}
