//! A run's events as HTML. An event becomes changes of the page: something new at the end of its agent's list, or something
//! in the place of a part that is there already. A page is made by the same functions from all events at once, so a stream
//! can go on after any of them.

use std::collections::{BTreeMap, HashMap, HashSet};

use gimlet::approval::Decision;
use gimlet::cell::CellEnd;
use gimlet::digest::digest;
use gimlet::event::{AgentPath, Event, EventKind, ModelMessage, Started, Suspension, ToolFinished};
use maud::{Markup, PreEscaped, html};

use crate::colour::{self, Language};
use crate::notes;
use crate::page::questions;
use crate::prose::prose;
use crate::text::{block, line, seconds};
use crate::value::{brief, value};

/// What later events say about earlier ones, for a page that shows all of them at once.
#[derive(Default)]
pub(crate) struct Known<'a> {
    finished: HashMap<String, &'a ToolFinished>,
    decided: HashMap<&'a str, &'a Decision>,
    said: HashMap<String, &'a ModelMessage>,
    /// Text and thinking of a reply that is being written.
    saying: HashMap<String, (String, String)>,
    /// Steps whose beginning was shown already; one that a crash cut short begins twice.
    begun: HashSet<String>,
}

impl<'a> Known<'a> {
    pub(crate) fn of(events: &'a [Event]) -> Known<'a> {
        let mut known = Known::default();
        for event in events {
            match &event.kind {
                EventKind::ToolFinished(done) => {
                    known.finished.insert(key(&event.path, &done.id), done);
                }
                EventKind::ApprovalDecided { id, decision } => {
                    known.decided.insert(id, decision);
                }
                EventKind::ModelMessage(message) => {
                    known.said.insert(step_key(&event.path, message.step), message);
                }
                EventKind::StepStarted { step } => {
                    known.saying.remove(&step_key(&event.path, *step));
                }
                EventKind::ModelDelta { step, text, thinking } => {
                    let saying = known.saying.entry(step_key(&event.path, *step)).or_default();
                    saying.0.push_str(text);
                    saying.1.push_str(thinking);
                }
                _ => {}
            }
        }
        known
    }
}

/// Names an element of an agent; what a model wrote as an id never stands in an attribute as it is.
fn key(path: &AgentPath, id: &str) -> String {
    digest(format!("{}\n{id}", path.as_str()).as_bytes())[..12].to_owned()
}

fn step_key(path: &AgentPath, step: u32) -> String {
    key(path, &format!("step {step}"))
}

/// The list that the events of an agent are added to.
fn list_of(path: &AgentPath) -> String {
    if path.is_root() { "items".into() } else { format!("a-{}", key(path, "")) }
}

/// The list that an event is added to: a sub-agent begins in the list of its caller.
fn list_for(event: &Event) -> String {
    match (&event.kind, event.path.parent()) {
        (EventKind::AgentStarted(_), Some(caller)) => list_of(&caller),
        _ => list_of(&event.path),
    }
}

/// A change of the page.
pub(crate) fn partial(target: &str, swap: &str, body: &Markup) -> String {
    html! { template hx type="partial" hx-target={ "#" (target) } hx-swap=(swap) { (body) } }.into_string()
}

/// What some events change on the page, for a stream. Whatever begins among them is sent as it stands after the last of
/// them: a browser looks for the places of all changes before it makes the first one.
pub(crate) fn changes(events: &[Event]) -> String {
    let mut known = Known::of(events);
    let begun = Begun::of(events);
    let mut out = String::new();
    for (list, items) in lists(events, &mut known) {
        out.push_str(&partial(&list, "beforeend", &PreEscaped(items)));
    }
    let mut pieces: Vec<(String, String, String)> = Vec::new();
    for event in events {
        match &event.kind {
            EventKind::ModelDelta { step, text, thinking } => {
                let key = step_key(&event.path, *step);
                match pieces.last_mut() {
                    _ if begun.keys.contains(&key) || known.said.contains_key(&key) => {}
                    Some((of, said, thought)) if *of == key => {
                        said.push_str(text);
                        thought.push_str(thinking);
                    }
                    _ => pieces.push((key, text.clone(), thinking.clone())),
                }
            }
            EventKind::ModelMessage(message) => {
                let key = step_key(&event.path, message.step);
                if !begun.keys.contains(&key) {
                    out.push_str(&partial(&format!("said-{key}"), "outerHTML", &said(&key, message)));
                }
            }
            EventKind::ToolFinished(done) => {
                let key = key(&event.path, &done.id);
                if !begun.keys.contains(&key) {
                    out.push_str(&partial(&format!("st-{key}"), "outerHTML", &call_state(&key, Some(done))));
                    out.push_str(&partial(
                        &format!("r-{key}"),
                        "outerHTML",
                        &result(event, &key, Some(done)),
                    ));
                }
            }
            EventKind::ApprovalDecided { id, decision } if !begun.keys.contains(id) => {
                let target = questions::element(id);
                out.push_str(&partial(&target, "outerHTML", &questions::answered(id, decision)));
            }
            _ => {}
        }
        if let Some(told) = announced(event) {
            out.push_str(&partial("announce", "innerHTML", &html! { (told) }));
        }
    }
    for (key, text, thinking) in pieces {
        if !thinking.is_empty() {
            out.push_str(&partial(&format!("k-{key}"), "beforeend", &html! { (block(&thinking)) }));
        }
        if !text.is_empty() {
            out.push_str(&partial(&format!("t-{key}"), "beforeend", &html! { (block(&text)) }));
        }
    }
    out
}

/// Steps, calls and questions that begin among some events.
struct Begun {
    keys: HashSet<String>,
}

impl Begun {
    fn of(events: &[Event]) -> Begun {
        let keys = events.iter().filter_map(|event| match &event.kind {
            EventKind::StepStarted { step } => Some(step_key(&event.path, *step)),
            EventKind::ToolRequested { call } => Some(key(&event.path, &call.id)),
            EventKind::ApprovalRequested(request) => Some(request.id.clone()),
            _ => None,
        });
        Begun { keys: keys.collect() }
    }
}

/// What a screen reader says: questions and endings, and nothing else.
fn announced(event: &Event) -> Option<&'static str> {
    match &event.kind {
        EventKind::ApprovalRequested(_) => Some("The run asks you something."),
        EventKind::RunFinished(_) if event.path.is_root() => Some("The run has answered."),
        EventKind::RunFailed { .. } => Some("The run has failed."),
        EventKind::RunSuspended { reason: Suspension::Interrupted } => Some("The run was stopped."),
        _ => None,
    }
}

/// Some events as a page shows them. Events of a sub-agent are put into its own list.
pub(crate) fn items(events: &[Event], known: &mut Known<'_>) -> Markup {
    PreEscaped(lists(events, known).remove("items").unwrap_or_default())
}

/// What some events add to each list that is not itself begun by one of them.
fn lists(events: &[Event], known: &mut Known<'_>) -> BTreeMap<String, String> {
    let mut lists: BTreeMap<String, String> = BTreeMap::new();
    let mut agents: Vec<&AgentPath> = Vec::new();
    for event in events {
        if matches!(event.kind, EventKind::AgentStarted(_)) {
            agents.push(&event.path);
        }
        if let Some(item) = item(event, known) {
            lists.entry(list_for(event)).or_default().push_str(&item.0);
        }
    }
    // The innermost first: each list goes into its place in the one above it.
    agents.sort_by_key(|path| std::cmp::Reverse(path.depth()));
    for path in agents {
        let empty = list(path, "").into_string();
        let Some(inner) = lists.remove(&list_of(path)) else { continue };
        let above = lists.entry(list_of(&path.parent().unwrap_or_default())).or_default();
        *above = above.replacen(&empty, &list(path, &inner).into_string(), 1);
    }
    lists
}

/// A sub-agent's list. `inner` is markup.
fn list(path: &AgentPath, inner: &str) -> Markup {
    html! { ol.items id=(list_of(path)) { (PreEscaped(inner)) } }
}

/// What an event adds at the end of its agent's list; none for one that is not shown by itself.
fn item(event: &Event, known: &mut Known<'_>) -> Option<Markup> {
    let path = &event.path;
    let body = match &event.kind {
        EventKind::RunStarted(started) => html! { div.said.person { (prose(&started.task)) } },
        EventKind::UserMessage { text } => html! { div.said.person { (prose(text)) } },
        EventKind::StepStarted { step } => {
            let key = step_key(path, *step);
            if !known.begun.insert(key.clone()) {
                return None;
            }
            return Some(html! { li.step id={ "s-" (key) } { (step_body(event, *step, &key, known)) } });
        }
        EventKind::ToolRequested { call } => {
            let key = key(path, &call.id);
            let done = known.finished.get(&key).copied();
            html! {
                details.call {
                    summary {
                        (call_state(&key, done)) " " code { (line(&call.tool)) } " "
                        span.dim { (brief(&call.args)) }
                    }
                    h4 { "Arguments" }
                    (value(&call.args))
                    (result(event, &key, done))
                }
            }
        }
        EventKind::CellStarted { cell, code } => html! {
            p.who { "Cell " (cell + 1) }
            pre.code { code { (colour::block(&block(code), Some(Language::Python))) } }
        },
        EventKind::CellOutput { text, .. } => html! { pre.out { (block(text)) } },
        EventKind::CellFinished { end, observation, seconds: took, .. } => html! {
            @match end {
                CellEnd::Raised { traceback, .. } => { pre.out.bad { (block(traceback)) } }
                CellEnd::Limited { message } | CellEnd::Crashed { message } => { p.warn { (line(message)) } }
                CellEnd::Done { .. } | CellEnd::Answer { .. } => {}
            }
            details { summary.dim { "What the model reads · " (seconds(*took)) } pre { (block(observation)) } }
        },
        EventKind::ApprovalRequested(request) => match known.decided.get(request.id.as_str()) {
            Some(decision) => questions::answered(&request.id, decision),
            None => questions::question(request),
        },
        EventKind::AgentStarted(started) => return Some(agent(event, started)),
        EventKind::AgentFinished(done) => html! {
            p.who { "Answer of " (line(path.agents().last().unwrap_or("the sub-agent"))) }
            div.said { (prose(&done.answer)) }
        },
        EventKind::RunFinished(done) => html! {
            div.answer { (prose(&done.answer)) }
            p.dim {
                (done.steps) @if done.steps == 1 { " step · " } @else { " steps · " }
                (done.usage.total()) " tokens · " (seconds(done.seconds))
                @if !done.work.files_changed.is_empty() {
                    " · changed " (line(&done.work.files_changed.iter().cloned().collect::<Vec<_>>().join(", ")))
                }
            }
            @for note in &done.notes { p.warn { (line(note)) } }
        },
        EventKind::RunFailed { error } => html! {
            div.broken { p.bad { (line(&error.message)) } @if let Some(hint) = &error.hint { p.dim { (line(hint)) } } }
        },
        EventKind::Feedback { text, .. } => html! {
            details { summary.dim { "A note of the program to the model" } pre { (block(text)) } }
        },
        _ => html! { p class=(notes::class(event)) { (notes::note(event)?) } },
    };
    Some(html! { li id={ "e" (event.seq) } { (body) } })
}

fn step_body(event: &Event, step: u32, key: &str, known: &Known<'_>) -> Markup {
    let to = format!("/runs/{}/fork", event.run);
    html! {
        div.head {
            h3 { "Step " (step) }
            @if event.path.is_root() {
                details.menu {
                    summary title="A new run that shares the steps before this one" { "Fork" }
                    form method="post" action=(to) hx-post=(to) hx-target="#toast" {
                        input type="hidden" name="at" value=(step);
                        label { "What should it do differently?" input name="message" autocomplete="off"; }
                        button { "Fork before step " (step) }
                    }
                }
            }
        }
        @match known.said.get(key) {
            Some(message) => (said(key, message)),
            None => {
                @let (text, thinking) = known.saying.get(key).map_or(("", ""), |(text, thought)| (text, thought));
                div id={ "said-" (key) } {
                    details.thinking { summary.dim { "Thinking" } pre id={ "k-" (key) } { (block(thinking)) } }
                    pre.said id={ "t-" (key) } { (block(text)) }
                }
            }
        }
    }
}

/// A whole reply, in the place of its pieces.
fn said(key: &str, message: &ModelMessage) -> Markup {
    html! {
        div id={ "said-" (key) } {
            @for thought in &message.thinking {
                details.thinking { summary.dim { "Thinking" } pre { (block(&thought.text)) } }
            }
            @if message.answer.is_none() && !message.text.trim().is_empty() { div.said { (prose(&message.text)) } }
            @if let Some(problem) = &message.problem { p.warn { (line(problem)) } }
            p.cost {
                @if message.usage.total() > 0 { (message.usage.input) " tokens read, " (message.usage.output) " written · " }
                (seconds(message.seconds))
            }
        }
    }
}

fn call_state(key: &str, done: Option<&ToolFinished>) -> Markup {
    let id = format!("st-{key}");
    match done {
        Some(done) if done.ok => html! { span.mark.good id=(id) title="done" { "✓" } },
        Some(_) => html! { span.mark.bad id=(id) title="failed" { "✗" } },
        None => html! { span.mark.busy id=(id) title="at work" { "●" } },
    }
}

fn result(event: &Event, key: &str, done: Option<&ToolFinished>) -> Markup {
    let Some(done) = done else { return html! { div id={ "r-" (key) } {} } };
    let undo = format!("/runs/{}/undo", event.run);
    let patch = done.result["patch_id"].as_str().filter(|_| done.ok && done.tool == "apply_patch");
    html! {
        div id={ "r-" (key) } {
            h4 { "Result · " (seconds(done.seconds)) }
            (value(&done.result))
            @for stored in &done.stored {
                p { a href={ "/api/v1/blobs/" (stored.hex()) } { "All of it" } }
            }
            @if let Some(patch) = patch {
                form.inline method="post" action=(undo) hx-post=(undo) hx-target="#toast" {
                    input type="hidden" name="patch" value=(patch);
                    button { "Undo this patch" }
                }
            }
        }
    }
}

/// A sub-agent, with a list of its own inside of its caller's.
fn agent(event: &Event, started: &Started) -> Markup {
    html! {
        li.agent id={ "e" (event.seq) } {
            details open {
                summary { strong { (line(&started.agent)) } span.dim { " · " (line(&started.model)) } }
                div.said.person { (prose(&started.task)) }
                (list(&event.path, ""))
            }
        }
    }
}
