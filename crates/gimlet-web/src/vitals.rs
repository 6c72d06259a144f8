//! What a run has spent and where its time went: a fold over its events, and how it is shown beside them.

use std::collections::VecDeque;
use std::sync::OnceLock;

use gimlet::event::{Event, EventKind, FinishState, Suspension};
use gimlet::message::Usage;
use gimlet::store::RunStatus;
use gimlet_runtime::parts::models::providers::{Cost, Providers};
use jiff::Timestamp;
use maud::{Markup, html};

use crate::text::{count, line, seconds};

/// Most bars of a timeline; the newest are kept.
const MOST_BARS: usize = 400;
/// Width of the timeline's drawing.
const WIDTH: f64 = 1000.0;

/// Who was at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lane {
    Model,
    Tool,
    Person,
}

#[derive(Debug, Clone)]
struct Bar {
    lane: Lane,
    from: f64,
    to: f64,
    name: String,
}

/// What is known of a run's spending.
#[derive(Debug, Clone, Default)]
pub(crate) struct Vitals {
    pub(crate) model: String,
    pub(crate) agent: String,
    pub(crate) root: String,
    pub(crate) task: String,
    /// Where the run stands, as its log alone tells it.
    pub(crate) status: Option<RunStatus>,
    pub(crate) steps: u32,
    pub(crate) usage: Usage,
    pub(crate) answer: Option<String>,
    dollars: f64,
    /// Whether some of it has a price that is not known.
    is_price_missing: bool,
    has_price: bool,
    /// Tokens of the main agent's last request and reply.
    context: u64,
    window: Option<u32>,
    plan: Vec<String>,
    bars: VecDeque<Bar>,
    /// Seconds of work so far.
    clock: f64,
    last: Option<Timestamp>,
    asked: Option<f64>,
}

impl Vitals {
    /// The vitals of all these events.
    pub(crate) fn of<'a>(events: impl IntoIterator<Item = &'a Event>) -> Vitals {
        let mut vitals = Vitals::default();
        events.into_iter().for_each(|event| vitals.take(event));
        vitals
    }

    /// The seconds of work.
    pub(crate) fn seconds(&self) -> f64 {
        self.clock
    }

    /// Adds an event.
    pub(crate) fn take(&mut self, event: &Event) {
        // While a run is at rest its clock is, too.
        if self.status.is_none()
            && let Some(last) = self.last
        {
            self.clock += event.time.duration_since(last).as_secs_f64().max(0.0);
        }
        self.last = Some(event.time);
        match &event.kind {
            EventKind::RunStarted(started) => {
                self.model.clone_from(&started.model);
                self.agent.clone_from(&started.agent);
                self.root.clone_from(&started.root);
                self.task.clone_from(&started.task);
                self.window = facts(&started.model).1;
            }
            EventKind::RunResumed { root, .. } => {
                self.root.clone_from(root);
                self.status = None;
            }
            EventKind::UserMessage { .. } => self.status = None,
            EventKind::StepStarted { step } if event.path.is_root() => self.steps = self.steps.max(*step),
            EventKind::ModelMessage(message) => {
                self.spend(&message.model.clone(), message.usage);
                // A server that does not count says nothing about the window.
                if event.path.is_root() && message.usage.total() > 0 {
                    self.context = message.usage.total();
                }
                self.bar(Lane::Model, message.seconds, &format!("step {}", message.step));
            }
            EventKind::Plan(plan) => {
                self.spend(&self.model.clone(), plan.usage);
                if event.path.is_root() {
                    self.plan.clone_from(&plan.steps);
                }
            }
            EventKind::ContextCompacted(compacted) => self.spend(&self.model.clone(), compacted.usage),
            EventKind::ContextPruned(pruned) if event.path.is_root() => {
                self.window = Some(pruned.window).filter(|window| *window > 0).or(self.window);
                self.context = pruned.after;
            }
            EventKind::ToolFinished(done) => self.bar(Lane::Tool, done.seconds, &done.tool),
            EventKind::CellFinished { seconds, cell, .. } => {
                self.bar(Lane::Tool, *seconds, &format!("cell {cell}"));
            }
            EventKind::ApprovalRequested(_) => self.asked = Some(self.clock),
            EventKind::ApprovalDecided { .. } => {
                if let Some(from) = self.asked.take() {
                    self.bar(Lane::Person, self.clock - from, "waiting for you");
                }
            }
            EventKind::RunSuspended { reason } => self.status = Some(suspended(reason)),
            EventKind::RunFinished(done) => {
                self.answer = Some(done.answer.clone());
                self.status = Some(match done.state {
                    FinishState::Answered => RunStatus::Answered,
                    FinishState::MaxSteps
                    | FinishState::Timeout
                    | FinishState::TokenBudget
                    | FinishState::StepBudget
                    | FinishState::Repeating => RunStatus::Limited,
                    FinishState::Failed => RunStatus::Failed,
                });
            }
            EventKind::RunFailed { .. } => self.status = Some(RunStatus::Failed),
            _ => {}
        }
    }

    fn spend(&mut self, model: &str, usage: Usage) {
        self.usage += usage;
        // A reply names its model without the provider; the run names both.
        let named = if model.contains('/') || model.is_empty() { model } else { &self.model };
        match facts(if named.is_empty() { &self.model } else { named }).0 {
            Cost::Free => {}
            Cost::Known(price) => {
                self.has_price = true;
                self.dollars += price.of(&usage);
            }
            Cost::Unknown => self.is_price_missing = true,
        }
    }

    fn bar(&mut self, lane: Lane, seconds: f64, name: &str) {
        if self.bars.len() == MOST_BARS {
            self.bars.pop_front();
        }
        let mut from = (self.clock - seconds.max(0.0)).max(0.0);
        // A call that had to be asked for works from the answer on.
        if lane == Lane::Tool
            && let Some(answer) = self.bars.iter().rev().find(|bar| bar.lane == Lane::Person)
        {
            from = from.max(answer.to);
        }
        self.bars.push_back(Bar { lane, from, to: self.clock, name: name.chars().take(60).collect() });
    }

    /// What the run cost, in words.
    pub(crate) fn money(&self) -> String {
        match (self.has_price, self.is_price_missing) {
            (true, false) => format!("${:.4}", self.dollars),
            (true, true) => format!("${:.4} and more", self.dollars),
            (false, true) => "price not known".into(),
            (false, false) => "free".into(),
        }
    }

    /// All of it, as a part of the page that a stream can replace.
    pub(crate) fn shown(&self) -> Markup {
        html! {
            section.vitals id="vitals" aria-label="What the run has spent" {
                dl.facts {
                    div { dt { "Steps" } dd { (self.steps) } }
                    div { dt { "Tokens" } dd { (count(self.usage.input)) " in, " (count(self.usage.output)) " out" } }
                    div { dt { "Cost" } dd { (self.money()) } }
                    div { dt { "Time" } dd { (seconds(self.clock)) } }
                    div { dt { "Context" } dd { (self.context()) } }
                }
                (self.timeline())
                @if !self.plan.is_empty() {
                    details.plan open { summary { "Plan" } ol { @for step in &self.plan { li { (line(step)) } } } }
                }
            }
        }
    }

    fn context(&self) -> Markup {
        match self.window {
            Some(window) if window > 0 => {
                let share = self.context * 100 / u64::from(window);
                html! {
                    meter min="0" max=(window) high=(window / 5 * 4) value=(self.context.min(window.into())) title={ (self.context) " of " (window) " tokens" } {}
                    " " (share) " % of " (count(window.into()))
                }
            }
            Some(_) | None if self.context == 0 => html! { span.dim { "not known" } },
            Some(_) | None => html! { (count(self.context)) " tokens" },
        }
    }

    /// One bar for each reply, call and answer, below each other by who was at work.
    fn timeline(&self) -> Markup {
        let (Some(first), true) = (self.bars.front(), self.clock > 0.0) else { return html! {} };
        let begin = first.from.min(self.clock);
        let scale = WIDTH / (self.clock - begin).max(0.001);
        let sum =
            |lane| self.bars.iter().filter(|bar| bar.lane == lane).map(|bar| bar.to - bar.from).sum::<f64>();
        let told = format!(
            "model {}, tools {}, waiting for you {}",
            seconds(sum(Lane::Model)),
            seconds(sum(Lane::Tool)),
            seconds(sum(Lane::Person))
        );
        html! {
            figure.timeline {
                svg viewBox="0 0 1000 42" preserveAspectRatio="none" role="img" aria-label={ "Timeline: " (told) } {
                    @for bar in &self.bars {
                        @let (class, y) = match bar.lane {
                            Lane::Model => ("model", 0),
                            Lane::Tool => ("tool", 15),
                            Lane::Person => ("person", 30),
                        };
                        rect class=(class) x=(format!("{:.1}", (bar.from - begin) * scale)) y=(y)
                            width=(format!("{:.1}", ((bar.to - bar.from) * scale).max(2.0))) height="11" rx="2" {
                            title { (line(&bar.name)) " · " (seconds(bar.to - bar.from)) }
                        }
                    }
                }
                figcaption {
                    span.key.model { "model " (seconds(sum(Lane::Model))) }
                    span.key.tool { "tools " (seconds(sum(Lane::Tool))) }
                    span.key.person { "waiting for you " (seconds(sum(Lane::Person))) }
                }
            }
        }
    }
}

/// What a model costs and how long its window is, by the built-in list of providers.
fn facts(model: &str) -> (Cost, Option<u32>) {
    static PROVIDERS: OnceLock<Providers> = OnceLock::new();
    // The built-in list is read by tests; without it no price is known.
    let providers = PROVIDERS.get_or_init(|| Providers::built_in().unwrap_or_default());
    let Some((prefix, name)) = model.split_once('/') else { return (Cost::Free, None) };
    if prefix == "scripted" {
        return (Cost::Free, None);
    }
    match providers.find(prefix) {
        Some(provider) => {
            let window = provider.facts(name).and_then(|facts| facts.context);
            (provider.cost(name, provider.place), window)
        }
        None => (Cost::Unknown, None),
    }
}

fn suspended(reason: &Suspension) -> RunStatus {
    match reason {
        Suspension::Approval { approval } => RunStatus::Suspended { approval: approval.clone() },
        Suspension::Interrupted => RunStatus::Interrupted,
        Suspension::Diverged { .. } => RunStatus::Diverged,
    }
}

/// The word for where a run stands, which is also its class in the style sheet.
pub(crate) fn word(status: &RunStatus) -> &'static str {
    match status {
        RunStatus::Running => "running",
        RunStatus::Suspended { .. } => "suspended",
        RunStatus::Interrupted => "interrupted",
        RunStatus::Diverged => "diverged",
        RunStatus::Answered => "answered",
        RunStatus::Limited => "limited",
        RunStatus::Failed => "failed",
        RunStatus::Crashed => "crashed",
    }
}

/// Every word for where a run stands.
pub(crate) const WORDS: [&str; 8] =
    ["running", "suspended", "interrupted", "diverged", "answered", "limited", "failed", "crashed"];

/// Where a run stands, as a mark.
pub(crate) fn mark(word: &str) -> Markup {
    html! { span class={ "state " (word) } { (word) } }
}
