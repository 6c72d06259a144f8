//! Opens the spans of a run again from its log, by the same functions that opened them when it happened. So a run made
//! while nobody listened has the same trace as one that was watched: names, kinds, attributes and order.
//!
//! What the log does not hold is not told: operations inside a tool, such as `sandbox.*` and `mcp.*`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tracing::Span;

use super::{CallEnd, Payload, Payloads, Place};
use crate::approval::Decision;
use crate::event::{
    ActionFormat, AgentPath, Event, EventKind, Failure, FinishState, Finished, ModelMessage, Purpose,
    RequestedCall, Suspension, ToolFinished,
};
use crate::guard::Redactor;
use crate::message::{Message, ToolCall};
use crate::plan;
use crate::state::{Phase, State};
use crate::tool::{ToolFailure, code};

/// How a run that a tool broke is logged.
const TOOL_FATAL: &str = "TOOL_FATAL";

/// Opens and closes the spans of a run as its events tell. `at` is told the time before each change, for the listener
/// to use instead of the clock.
pub fn retell(events: &[Event], payloads: Payloads, redactor: &Redactor, mut at: impl FnMut(Timestamp)) {
    let mut tale = Tale { payload: Payload { payloads, redactor }, resumes: 0, agents: BTreeMap::new() };
    let mut last = None;
    for event in events {
        if let (EventKind::RunResumed { .. }, Some(last)) = (&event.kind, last) {
            // A process that died said nothing: what it had open ended with its last word.
            at(last);
            tale.close_all();
        }
        at(event.time);
        tale.tell(event);
        last = Some(event.time);
    }
    tale.close_all();
}

struct Tale<'a> {
    payload: Payload<'a>,
    resumes: usize,
    agents: BTreeMap<AgentPath, Teller>,
}

/// One agent's open spans, and what is needed to open more.
#[derive(Default)]
struct Teller {
    state: State,
    span: Option<Span>,
    step: Option<Span>,
    /// A plan being made, or old steps being summed up.
    aside: Option<Span>,
    llm: Option<Span>,
    cell: Option<Span>,
    calls: HashMap<String, Call>,
}

struct Call {
    requested: RequestedCall,
    span: Option<Span>,
    approvals: HashMap<String, Span>,
    verdict: Option<&'static str>,
}

impl Tale<'_> {
    fn tell(&mut self, event: &Event) {
        let path = &event.path;
        let payload = self.payload;
        let was_sampling = self.agents.get(path).is_some_and(|agent| agent.state.phase == Phase::Sampling);
        self.agents.entry(path.clone()).or_default().state.apply(event);
        match &event.kind {
            EventKind::RunStarted(_) | EventKind::AgentStarted(_) => {
                self.agent(event);
            }
            EventKind::RunResumed { .. } => {
                self.resumes += 1;
                self.agent(event);
            }
            EventKind::StepStarted { .. } => {
                let agent = self.agent(event);
                agent.llm = None;
                if agent.state.action != ActionFormat::Guided {
                    agent.step = None;
                    agent.llm(payload);
                }
            }
            EventKind::ModelDelta { .. } => {
                self.agent(event).llm(payload);
            }
            EventKind::ModelMessage(message) => {
                let agent = self.agent(event);
                super::record_reply(&agent.llm(payload), message, &payload);
                agent.llm = None;
            }
            EventKind::ModelAsked { purpose, text } => self.agent(event).ask(*purpose, text, payload),
            EventKind::Plan(plan) => {
                let agent = self.agent(event);
                if let Some(span) = agent.aside.take() {
                    super::record_plan(&span, plan, &payload);
                }
                agent.answer(plan.failure.as_ref(), &plan.message(), payload);
            }
            EventKind::ContextCompacted(compacted) => {
                let agent = self.agent(event);
                if let Some(span) = agent.aside.take() {
                    super::record_compacted(&span, compacted, &payload);
                }
                agent.answer(compacted.failure.as_ref(), &compacted.message(), payload);
            }
            EventKind::GuidedAimed(aimed) => {
                let agent = self.agent(event);
                if let Some(asked) = &aimed.asked {
                    agent.answer(asked.failure.as_ref(), &asked.message(), payload);
                    agent.aside = None;
                }
            }
            EventKind::ToolRequested { call } => {
                let agent = self.agent(event);
                let known =
                    Call { requested: call.clone(), span: None, approvals: HashMap::new(), verdict: None };
                agent.calls.insert(call.id.clone(), known);
                agent.call(&call.id, payload);
            }
            EventKind::ToolStarted { id, .. } => {
                let agent = self.agent(event);
                agent.call(id, payload);
                if let Some(call) = agent.calls.get_mut(id) {
                    call.verdict.get_or_insert("allow");
                }
            }
            EventKind::ToolFinished(finished) => self.agent(event).finish_call(finished, payload),
            EventKind::CellStarted { .. } | EventKind::CellOutput { .. } => {
                self.agent(event).cell(payload);
            }
            EventKind::CellFinished { end, observation, truncated, .. } => {
                let agent = self.agent(event);
                super::record_cell(&agent.cell(payload), end, observation, *truncated, &payload);
                agent.cell = None;
            }
            EventKind::ApprovalRequested(request) => {
                let agent = self.agent(event);
                let parent = agent.call(&request.call, payload);
                if let Some(call) = agent.calls.get_mut(&request.call) {
                    call.verdict = Some("require_approval");
                    let asked = parent.in_scope(|| super::approval_span(request, &payload));
                    call.approvals.insert(request.id.clone(), asked);
                }
            }
            EventKind::ApprovalDecided { id, decision } => {
                let agent = self.agent(event);
                for call in agent.calls.values_mut() {
                    if let Some(asked) = call.approvals.remove(id) {
                        super::record_decision(&asked, decision, &payload);
                    }
                }
            }
            EventKind::AgentFinished(finished) => {
                let agent = self.agent(event);
                match finished.state {
                    FinishState::Failed => agent.fail(&failure_of(finished), was_sampling, payload),
                    FinishState::Answered
                    | FinishState::MaxSteps
                    | FinishState::Timeout
                    | FinishState::TokenBudget
                    | FinishState::StepBudget
                    | FinishState::Repeating => agent.finish(finished, payload),
                }
            }
            EventKind::RunFinished(finished) => {
                self.close_below(path);
                self.agent(event).finish(finished, payload);
            }
            EventKind::RunFailed { error } => {
                self.close_below(path);
                self.agent(event).fail(error, was_sampling, payload);
            }
            EventKind::RunSuspended { reason } => {
                for agent in self.agents.values() {
                    agent.suspend(reason, payload);
                }
                self.close_all();
            }
            // What follows belongs to the next stage.
            EventKind::GuidedFound(_) | EventKind::GuidedLocated(_) | EventKind::GuidedChecked(_) => {
                self.agent(event).step = None
            }
            EventKind::GuidedEdited(_)
            | EventKind::Feedback { .. }
            | EventKind::UserMessage { .. }
            | EventKind::PlanRequested
            | EventKind::ContextPruned(_)
            | EventKind::ActionChanged(_)
            | EventKind::Warning { .. }
            | EventKind::Unknown => {}
        }
    }

    /// The agent of an event, its span open.
    fn agent(&mut self, event: &Event) -> &mut Teller {
        let parent = event.path.parent().map(|above| self.caller(&above, event));
        let (resumes, payload) = (self.resumes, self.payload);
        let agent = self.agents.entry(event.path.clone()).or_default();
        if agent.span.is_none()
            && let Some(started) = &agent.state.started
        {
            let place = Place { run: event.run.as_str(), path: event.path.as_str(), resumes };
            agent.span = Some(
                parent.unwrap_or_else(Span::none).in_scope(|| super::agent_span(&place, started, &payload)),
            );
        }
        agent
    }

    /// The span of the call by which an agent was called.
    fn caller(&mut self, above: &AgentPath, event: &Event) -> Span {
        let call = event.path.as_str().rsplit_once(':').map_or("", |(_, call)| call).to_owned();
        let payload = self.payload;
        let parent = Event { path: above.clone(), kind: EventKind::Unknown, ..event.clone() };
        self.agent(&parent).call(&call, payload)
    }

    fn close_below(&mut self, path: &AgentPath) {
        let payload = self.payload;
        for (_, agent) in self.agents.iter_mut().rev().filter(|(below, _)| *below != path) {
            agent.close(&CallEnd::Suspended, payload);
        }
    }

    /// Closes what is open, the innermost first.
    fn close_all(&mut self) {
        let payload = self.payload;
        for agent in self.agents.values_mut().rev() {
            agent.close(&CallEnd::Suspended, payload);
        }
    }
}

impl Teller {
    fn step(&mut self) -> Span {
        let agent = self.span.clone().unwrap_or_else(Span::none);
        let state = &self.state;
        self.step.get_or_insert_with(|| agent.in_scope(|| super::work_span(state))).clone()
    }

    fn llm(&mut self, payload: Payload<'_>) -> Span {
        let step = self.step();
        let model = self.state.started.as_ref().map_or("", |started| started.model.as_str());
        let messages = &self.state.messages;
        self.llm.get_or_insert_with(|| step.in_scope(|| super::llm_span(model, messages, &payload))).clone()
    }

    /// The messages of the question for what the task wants.
    fn aim(&self) -> Vec<Arc<Message>> {
        crate::guided::ask::aim(&self.state.task).0.into_iter().map(Arc::new).collect()
    }

    /// Opens the span of a question beside the steps, and of the request inside it.
    fn ask(&mut self, purpose: Purpose, question: &str, payload: Payload<'_>) {
        if self.state.action == ActionFormat::Guided {
            // Guided work asks inside of its stages.
            self.llm = None;
            let step = self.step();
            let model = self.state.started.as_ref().map_or("", |started| started.model.as_str());
            let messages = match purpose {
                Purpose::Aim => self.aim(),
                Purpose::Plan | Purpose::Summary | Purpose::Pick | Purpose::Edit => {
                    crate::guided::ask::conversation(
                        self.state.messages.first().map(AsRef::as_ref),
                        &self.state.guided.partial,
                        question,
                    )
                }
            };
            self.llm = Some(step.in_scope(|| super::llm_span(model, &messages, &payload)));
            return;
        }
        let agent = self.span.clone().unwrap_or_else(Span::none);
        (self.llm, self.step) = (None, None);
        let model = self.state.started.as_ref().map_or("", |started| started.model.as_str());
        let (aside, messages) = match purpose {
            Purpose::Plan => (
                agent.in_scope(|| super::plan_span(self.state.step)),
                plan::conversation(&self.state, question),
            ),
            Purpose::Aim => (agent.in_scope(|| super::aim_span(self.state.step)), self.aim()),
            Purpose::Summary | Purpose::Pick | Purpose::Edit => {
                (agent.in_scope(super::compact_span), crate::context::summary::conversation(question))
            }
        };
        self.llm = Some(aside.in_scope(|| super::llm_span(model, &messages, &payload)));
        self.aside = Some(aside);
    }

    /// Ends the request of such a question.
    fn answer(&mut self, failure: Option<&Failure>, reply: &ModelMessage, payload: Payload<'_>) {
        if let Some(span) = self.llm.take() {
            match failure {
                Some(failure) => super::record_model_error(&span, &failure.error),
                None => super::record_reply(&span, reply, &payload),
            }
        }
    }

    fn cell(&mut self, payload: Payload<'_>) -> Span {
        let step = self.step();
        let index = u32::try_from(self.state.cells.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let code = self.state.cells.last().map_or("", |cell| cell.code.as_str());
        self.cell.get_or_insert_with(|| step.in_scope(|| super::cell_span(index, code, &payload))).clone()
    }

    fn call(&mut self, id: &str, payload: Payload<'_>) -> Span {
        let inside_cell = self.calls.get(id).is_some_and(|call| call.requested.cell.is_some());
        let parent = if inside_cell { self.cell(payload) } else { self.step() };
        let Some(call) = self.calls.get_mut(id) else { return parent };
        let requested = &call.requested;
        let span = call.span.get_or_insert_with(|| {
            let call = ToolCall {
                id: requested.id.clone(),
                name: requested.tool.clone(),
                args: requested.args.clone(),
            };
            parent.in_scope(|| super::tool_span(&call, &payload))
        });
        span.clone()
    }

    fn finish_call(&mut self, finished: &ToolFinished, payload: Payload<'_>) {
        let span = self.call(&finished.id, payload);
        let failure: ToolFailure;
        let mut verdict = self.calls.get(&finished.id).and_then(|call| call.verdict);
        let end = if finished.ok {
            CallEnd::Done { value: &finished.result, truncated: finished.truncated }
        } else {
            failure = serde_json::from_value(finished.result.clone()).unwrap_or_default();
            if [code::DENIED, code::COMMAND_DENIED].contains(&failure.error.as_str()) {
                verdict = Some("deny");
            }
            CallEnd::Failed(&failure)
        };
        let took = Duration::try_from_secs_f64(finished.seconds).unwrap_or_default();
        super::record_call(&span, &end, verdict, took, &payload);
        self.calls.remove(&finished.id);
    }

    fn finish(&mut self, finished: &Finished, payload: Payload<'_>) {
        if let Some(span) = &self.span {
            super::record_finished(span, finished, &payload);
        }
        self.close(&CallEnd::Suspended, payload);
    }

    /// Stops for now. Whoever was asked and did not answer put it off.
    fn suspend(&self, reason: &Suspension, payload: Payload<'_>) {
        if let Some(span) = &self.span {
            super::record_suspended(span);
        }
        match reason {
            Suspension::Approval { .. } => {
                for asked in self.calls.values().flat_map(|call| call.approvals.values()) {
                    super::record_decision(asked, &Decision::Defer, &payload);
                }
            }
            Suspension::Interrupted | Suspension::Diverged { .. } => {}
        }
    }

    /// Ends with an error; a model that was asked and did not answer is what failed.
    fn fail(&mut self, failure: &Failure, was_sampling: bool, payload: Payload<'_>) {
        if was_sampling {
            super::record_model_error(&self.llm(payload), &failure.error);
        }
        if let Some(span) = &self.span {
            super::record_failed(span, failure);
        }
        let open_calls = if failure.error == TOOL_FATAL { CallEnd::Fatal } else { CallEnd::Suspended };
        self.close(&open_calls, payload);
    }

    /// Ends every span; calls that are open stay known, for a run that is taken up again.
    fn close(&mut self, open_calls: &CallEnd<'_>, payload: Payload<'_>) {
        for call in self.calls.values_mut() {
            call.approvals.clear();
            if let Some(span) = call.span.take() {
                super::record_call(&span, open_calls, call.verdict, Duration::ZERO, &payload);
            }
        }
        (self.llm, self.aside, self.cell, self.step, self.span) = (None, None, None, None, None);
    }
}

/// What broke a sub-agent; its answer says so as `CODE: message`.
fn failure_of(finished: &Finished) -> Failure {
    let (error, message) = finished.answer.split_once(": ").unwrap_or((&finished.answer, ""));
    Failure { error: error.to_owned(), message: message.to_owned(), hint: None }
}
