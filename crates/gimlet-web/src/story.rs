//! A run's events as HTML. Each event is shown by itself, so a page can begin anywhere and a stream only adds to it.
//! Everything that comes from a model, a file or a person is text.

use gimlet::approval::{ApprovalRequest, Decision};
use gimlet::effect::Effect;
use gimlet::event::{Event, EventKind, ModelMessage};
use gimlet::text::Printable;
use maud::{Markup, html};
use serde_json::Value;

use crate::diff::diff;

/// Text of several lines.
pub(crate) fn block(text: &str) -> String {
    Printable::block(text).into_string()
}

/// Text of one line.
pub(crate) fn line(text: &str) -> String {
    Printable::line(text).into_string()
}

/// What an event adds to the page; none for one that is not shown by itself.
pub(crate) fn item(event: &Event) -> Option<Markup> {
    let body = match &event.kind {
        EventKind::RunStarted(started) | EventKind::AgentStarted(started) => html! {
            p.who { (line(&started.agent)) " · " (line(&started.model)) }
            pre.said { (block(&started.task)) }
        },
        EventKind::RunResumed { .. } => html! { p.dim { "carried on" } },
        EventKind::ModelMessage(message) => reply(event, message),
        EventKind::UserMessage { text } => html! { p.who { "you" } pre.said { (block(text)) } },
        EventKind::Feedback { text, .. } => {
            html! { details { summary.dim { "the program to the model" } pre { (block(text)) } } }
        }
        EventKind::ToolRequested { call } => html! {
            details.call { summary { code { (line(&call.tool)) } " " span.dim { (brief(&call.args)) } } pre { (pretty(&call.args)) } }
        },
        EventKind::ToolFinished(done) => html! {
            details.call {
                summary {
                    @if done.ok { span.good { "✓ " } } @else { span.bad { "✗ " } }
                    code { (line(&done.tool)) } span.dim { (format!(" {:.1} s", done.seconds)) }
                }
                pre { (pretty(&done.result)) }
                @for stored in &done.stored {
                    a href={ "/api/v1/blobs/" (stored.to_string().trim_start_matches("blob:")) } { "all of it" }
                }
            }
            @if let Some(patch) = done.result["patch_id"].as_str().filter(|_| done.ok && done.result["ok"] == true) {
                form.inline method="post" action={ "/runs/" (event.run) "/undo" } hx-post={ "/runs/" (event.run) "/undo" } hx-target="#toast" {
                    input type="hidden" name="patch" value=(patch);
                    button { "Undo this patch" }
                }
            }
        },
        EventKind::CellStarted { code, .. } => html! { p.who { "code" } pre.code { (block(code)) } },
        EventKind::CellOutput { text, .. } => html! { pre.out { (block(text)) } },
        EventKind::CellFinished { observation, .. } => {
            html! { details { summary.dim { "what the model reads" } pre { (block(observation)) } } }
        }
        EventKind::ApprovalRequested(request) => question(request),
        EventKind::Plan(plan) => {
            html! { p.who { "plan" } ol { @for step in &plan.steps { li { (line(step)) } } } }
        }
        EventKind::AgentFinished(done) => {
            html! { p.who { "sub-agent answered" } pre.said { (block(&done.answer)) } }
        }
        EventKind::ContextPruned(pruned) => {
            html! { p.dim { "compacted: " (pruned.before) " → " (pruned.after) " tokens" } }
        }
        EventKind::ContextCompacted(_) => html! { p.dim { "old steps were summarised" } },
        EventKind::ActionChanged(change) => html! { p.dim { (line(&change.reason)) } },
        EventKind::Warning { message } => html! { p.warn { (line(message)) } },
        EventKind::RunSuspended { .. } => html! { p.warn { "The run stopped and can be carried on." } },
        EventKind::RunFinished(done) => html! {
            p.who { "answer" }
            pre.answer { (block(&done.answer)) }
            p.dim { (done.steps) " steps · " (done.usage.total()) " tokens · " (format!("{:.1} s", done.seconds)) }
            @for note in &done.notes { p.warn { (line(note)) } }
        },
        EventKind::RunFailed { error } => html! {
            p.bad { (line(&error.message)) }
            @if let Some(hint) = &error.hint { p.dim { (line(hint)) } }
        },
        EventKind::StepStarted { .. }
        | EventKind::ModelDelta { .. }
        | EventKind::ToolStarted { .. }
        | EventKind::ApprovalDecided { .. }
        | EventKind::ModelAsked { .. }
        | EventKind::PlanRequested
        | EventKind::GuidedAimed(_)
        | EventKind::GuidedFound(_)
        | EventKind::GuidedLocated(_)
        | EventKind::GuidedEdited(_)
        | EventKind::GuidedChecked(_)
        | EventKind::Unknown => return None,
    };
    let depth = event.path.depth().min(3);
    Some(html! { li id={ "e" (event.seq) } class={ "depth-" (depth) } { (body) } })
}

fn reply(event: &Event, message: &ModelMessage) -> Markup {
    html! {
        p.who {
            "step " (message.step) span.dim { " · " (message.usage.input) " in, " (message.usage.output) " out · " (format!("{:.1} s", message.seconds)) }
            @if event.path.is_root() {
                form.inline method="post" action={ "/runs/" (event.run) "/fork" } {
                    input type="hidden" name="at" value=(message.step);
                    button.quiet title="A new run that shares the steps before this one" { "Fork here" }
                }
            }
        }
        @for thought in &message.thinking {
            details { summary.dim { "thinking" } pre { (block(&thought.text)) } }
        }
        @if !message.text.trim().is_empty() { pre.said { (block(&message.text)) } }
        @if let Some(problem) = &message.problem { p.warn { (line(problem)) } }
    }
}

/// A question, with everything that a person must see to answer it.
pub(crate) fn question(request: &ApprovalRequest) -> Markup {
    let address = format!("/approvals/{}", request.id);
    html! {
        section.question id={ "q-" (request.id) } aria-label="A question for you" {
            h3 { "May it " code { (line(&request.tool)) } "?" }
            p { (line(&request.reason)) }
            @for effect in &request.effects { @if let Effect::Run { command, cwd } = effect {
                pre.command { (block(command)) } p.dim { "in " (line(&cwd.display().to_string())) "/" }
            } }
            @if let Some(preview) = &request.preview { (diff(preview)) } @else {
                details { summary.dim { "arguments" } pre { (pretty(&request.args)) } }
            }
            form method="post" action=(address) hx-post=(address) hx-target="#toast" {
                input type="hidden" name="binding" value=(request.binding);
                div.choices {
                    button.primary name="decision" value="approve" { "Approve once" }
                    button name="decision" value="approve:session" { "For the session" }
                    button name="decision" value="approve:always" { "Always" }
                }
                div.choices {
                    input name="feedback" aria-label="What should it do instead?" placeholder="What should it do instead?";
                    button.danger name="decision" value="deny" { "Deny" }
                }
                @if let Some(preview) = request.preview.as_ref().filter(|_| request.editable) {
                    details { summary { "Edit the patch" }
                        textarea name="patch" rows="12" spellcheck="false" aria-label="The patch" { "\n" (preview) }
                        button name="decision" value="edit" { "Approve the edited patch" }
                    }
                }
            }
        }
    }
}

/// What takes the place of a question that is answered.
pub(crate) fn answered(id: &str, decision: &Decision) -> Markup {
    let word = match decision {
        Decision::Approve { .. } => "approved".to_owned(),
        Decision::Edit { .. } => "approved with an edited patch".to_owned(),
        Decision::Deny { feedback } => format!("denied {}", line(feedback.as_deref().unwrap_or_default())),
        Decision::Defer | Decision::Abort => "not decided".to_owned(),
    };
    html! { section.answered id={ "q-" (id) } { p.dim { (word) } } }
}

fn brief(args: &Value) -> String {
    line(&args.to_string()).chars().take(100).collect()
}

fn pretty(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default().replace("\\n", "\n"),
    };
    block(&text)
}
