//! Names of spans and their attributes, in one place, OpenInference's, OpenTelemetry's and our own. The core speaks to
//! `tracing`; who listens is the binary's choice.
//!
//! Attributes carry sizes and hashes; what was said goes along only where [`Payloads`] says so, cut and redacted.

mod payload;
mod retell;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tracing::field::Empty;
use tracing::{Instrument, Span, info_span};

use crate::approval::{ApprovalRequest, Decision};
use crate::cell::CellEnd;
use crate::context::Compacted;
use crate::digest::{digest, digest_json};
use crate::effect::Effect;
use crate::event::{ActionFormat, Failure, FinishState, Finished, ModelMessage, Started};
use crate::guided::Stage;
use crate::message::{Message, ToolCall};
use crate::plan::Plan;
use crate::state::State;
use crate::tool::{ToolError, ToolFailure};

pub(crate) use payload::Payload;
pub use payload::Payloads;
pub use retell::retell;

/// The target of all spans of this crate.
pub const TARGET: &str = "gimlet";

/// Where in a run an agent's span belongs.
pub(crate) struct Place<'a> {
    pub run: &'a str,
    pub path: &'a str,
    /// How often the run was taken up again before this.
    pub resumes: usize,
}

/// A whole run, or a sub-agent's part of one.
pub(crate) fn agent_span(place: &Place<'_>, started: &Started, payload: &Payload<'_>) -> Span {
    // A sub-agent belongs to the session of whoever called it.
    let session = place.path.is_empty().then(|| started.session.as_deref().unwrap_or(place.run));
    let span = info_span!(
        target: TARGET,
        "agent.run",
        openinference.span.kind = "AGENT",
        gen_ai.operation.name = "invoke_agent",
        gen_ai.agent.name = %started.agent,
        session.id = session,
        run.id = place.run,
        run.resumes = place.resumes,
        agent.name = %started.agent,
        agent.path = place.path,
        agent.model = %started.model,
        agent.action = word(&started.action),
        agent.max_steps = started.limits.max_steps,
        agent.tools_count = started.tools.len(),
        agent.task.hash = &digest(started.task.as_bytes())[..8],
        agent.task.size = started.task.len(),
        agent.steps = Empty,
        agent.state = Empty,
        // Not `llm.token_count`: backends sum those over a trace, and every request already carries its own.
        agent.token_count.prompt = Empty,
        agent.token_count.completion = Empty,
        output.chars = Empty,
        result.ok = Empty,
        result.error_type = Empty,
        input.value = Empty,
        output.value = Empty,
    );
    payload.record(&span, "input.value", || started.task.clone());
    span
}

pub(crate) fn record_finished(span: &Span, finished: &Finished, payload: &Payload<'_>) {
    span.record("agent.steps", finished.steps);
    span.record("agent.state", word(&finished.state));
    span.record("agent.token_count.prompt", finished.usage.input);
    span.record("agent.token_count.completion", finished.usage.output);
    span.record("output.chars", finished.answer.chars().count());
    record_result(span, (finished.state != FinishState::Answered).then(|| word(&finished.state)));
    payload.record(span, "output.value", || finished.answer.clone());
}

pub(crate) fn record_failed(span: &Span, failure: &Failure) {
    span.record("agent.state", "failed");
    record_result(span, Some(&failure.error));
}

pub(crate) fn record_suspended(span: &Span) {
    span.record("agent.state", "suspended");
}

/// Says how something ended: well, or by which error.
fn record_result<E: AsRef<str>>(span: &Span, error: Option<E>) {
    span.record("result.ok", error.is_none());
    if let Some(error) = error {
        span.record("result.error_type", error.as_ref());
    }
}

/// One step.
pub(crate) fn step_span(step: u32) -> Span {
    info_span!(target: TARGET, "step", otel.name = %format_args!("step {step}"), openinference.span.kind = "CHAIN", step)
}

/// What an agent is at work on: a step, or a stage of guided work.
pub(crate) fn work_span(state: &State) -> Span {
    let name = match (state.action, state.guided.stage) {
        (ActionFormat::Tools | ActionFormat::Code, _) => return step_span(state.step),
        (ActionFormat::Guided, Stage::Aim | Stage::HandOver) => "guided.aim",
        (ActionFormat::Guided, Stage::Locate | Stage::Pick) => "guided.locate",
        (ActionFormat::Guided, Stage::Edit | Stage::Write) => "guided.edit",
        (ActionFormat::Guided, Stage::Check | Stage::Judge) => "guided.check",
        (ActionFormat::Guided, Stage::Restore) => "guided.restore",
        (ActionFormat::Guided, Stage::Tell) => "guided.tell",
    };
    let (step, attempt) = (state.step, state.guided.replies + 1);
    info_span!(target: TARGET, "guided", otel.name = name, openinference.span.kind = "CHAIN", step, attempt)
}

/// The question for what a task wants, beside the steps.
pub(crate) fn aim_span(step: u32) -> Span {
    info_span!(target: TARGET, "guided", otel.name = "guided.aim", openinference.span.kind = "CHAIN", step)
}

/// A plan being made; the request for it lies inside.
pub(crate) fn plan_span(step: u32) -> Span {
    info_span!(
        target: TARGET,
        "plan",
        openinference.span.kind = "CHAIN",
        step,
        plan.known = Empty,
        plan.to_find = Empty,
        plan.steps = Empty,
        output.chars = Empty,
        result.ok = Empty,
        result.error_type = Empty,
        output.value = Empty,
    )
}

pub(crate) fn record_plan(span: &Span, plan: &Plan, payload: &Payload<'_>) {
    span.record("plan.known", plan.known.len());
    span.record("plan.to_find", plan.to_find.len());
    span.record("plan.steps", plan.steps.len());
    span.record("output.chars", plan.text.chars().count());
    record_result(span, plan.failure.as_ref().map(|failure| &failure.error));
    payload.record(span, "output.value", || plan.text.clone());
}

/// Old steps being summed up; the request for it lies inside.
pub(crate) fn compact_span() -> Span {
    info_span!(
        target: TARGET,
        "context.compact",
        openinference.span.kind = "CHAIN",
        context.before = Empty,
        context.after = Empty,
        context.window = Empty,
        context.by = Empty,
        output.chars = Empty,
        result.ok = Empty,
        result.error_type = Empty,
        output.value = Empty,
    )
}

pub(crate) fn record_compacted(span: &Span, compacted: &Compacted, payload: &Payload<'_>) {
    span.record("context.before", compacted.before);
    span.record("context.after", compacted.after);
    span.record("context.window", compacted.window);
    span.record("context.by", word(&compacted.by));
    span.record("output.chars", compacted.text.chars().count());
    record_result(span, compacted.failure.as_ref().map(|failure| &failure.error));
    payload.record(span, "output.value", || compacted.text.clone());
}

/// One request to a model.
pub(crate) fn llm_span(model: &str, messages: &[Arc<Message>], payload: &Payload<'_>) -> Span {
    let provider = model.split_once('/').map_or("unknown", |(provider, _)| provider);
    let span = info_span!(
        target: TARGET,
        "llm",
        otel.name = %format_args!("llm {model}"),
        otel.kind = "client",
        openinference.span.kind = "LLM",
        llm.model_name = model,
        llm.provider = provider,
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = provider,
        gen_ai.request.model = model,
        llm.messages = messages.len(),
        llm.token_count.prompt = Empty,
        llm.token_count.completion = Empty,
        llm.token_count.total = Empty,
        llm.token_count.prompt_details.cache_read = Empty,
        llm.token_count.completion_details.reasoning = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        llm.finish_reason = Empty,
        llm.tool_calls = Empty,
        llm.unusable = Empty,
        output.chars = Empty,
        result.ok = Empty,
        result.error_type = Empty,
        input.value = Empty,
        output.value = Empty,
        llm.input_messages = Empty,
        llm.output_messages = Empty,
    );
    payload.record(&span, "input.value", || payload::last_words(messages));
    payload.record_messages(&span, "llm.input_messages", || payload::conversation(messages));
    span
}

pub(crate) fn record_reply(span: &Span, message: &ModelMessage, payload: &Payload<'_>) {
    let usage = &message.usage;
    span.record("llm.token_count.prompt", usage.input);
    span.record("llm.token_count.completion", usage.output);
    span.record("llm.token_count.total", usage.total());
    span.record("llm.token_count.prompt_details.cache_read", usage.cached);
    span.record("llm.token_count.completion_details.reasoning", usage.reasoning);
    span.record("gen_ai.usage.input_tokens", usage.input);
    span.record("gen_ai.usage.output_tokens", usage.output);
    span.record("llm.finish_reason", word(&message.finish));
    span.record("llm.tool_calls", message.tool_calls.len());
    span.record("llm.unusable", message.problem.is_some());
    span.record("output.chars", message.text.chars().count());
    record_result(span, None::<&str>);
    payload.record(span, "output.value", || payload::reply_text(message));
    payload.record_messages(span, "llm.output_messages", || payload::reply(message));
}

pub(crate) fn record_model_error(span: &Span, code: &str) {
    record_result(span, Some(code));
}

/// One tool call through the guard.
pub(crate) fn tool_span(call: &ToolCall, payload: &Payload<'_>) -> Span {
    let span = info_span!(
        target: TARGET,
        "tool_wrapped",
        otel.name = %format_args!("tool_wrapped.{}", call.name),
        openinference.span.kind = "TOOL",
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = %call.name,
        gen_ai.tool.call.id = %call.id,
        tool.name = %call.name,
        tool.call.id = %call.id,
        tool.args.hash = &digest_json(&call.args)[..8],
        tool.args.size = call.args.to_string().len(),
        policy.verdict = Empty,
        policy.suggested_next_tool = Empty,
        result.ok = Empty,
        result.error_type = Empty,
        result.suspended = Empty,
        output.chars = Empty,
        output.lines = Empty,
        output.items = Empty,
        output.truncated = Empty,
        duration_ms = Empty,
        tool.parameters = Empty,
        input.value = Empty,
        output.value = Empty,
    );
    payload.record(&span, "tool.parameters", || call.args.to_string());
    payload.record(&span, "input.value", || call.args.to_string());
    span
}

/// What a call came to, as far as a span tells it.
pub(crate) enum CallEnd<'a> {
    /// The tool did its job.
    Done { value: &'a Value, truncated: bool },
    /// It did not.
    Failed(&'a ToolFailure),
    /// It stays open; the run goes on later.
    Suspended,
    /// It broke the run.
    Fatal,
}

pub(crate) fn record_call(
    span: &Span,
    end: &CallEnd<'_>,
    verdict: Option<&str>,
    took: Duration,
    payload: &Payload<'_>,
) {
    if span.is_disabled() {
        return;
    }
    if !matches!(end, CallEnd::Suspended) {
        span.record("duration_ms", took.as_secs_f64() * 1000.0);
    }
    if let Some(verdict) = verdict {
        span.record("policy.verdict", verdict);
    }
    match end {
        CallEnd::Done { value, truncated } => {
            let text = crate::state::result_text(value);
            record_result(span, None::<&str>);
            span.record("output.chars", text.chars().count());
            span.record("output.lines", text.lines().count());
            span.record("output.items", items(value));
            span.record("output.truncated", truncated);
            payload.record(span, "output.value", || text);
        }
        CallEnd::Failed(failure) => {
            record_result(span, Some(&failure.error));
            if let Some(hint) = &failure.recovery_suggestion {
                span.record("policy.suggested_next_tool", hint.tool_call.name.as_str());
            }
            payload.record(span, "output.value", || failure.to_string());
        }
        CallEnd::Suspended => {
            span.record("result.suspended", true);
        }
        CallEnd::Fatal => record_result(span, Some("FATAL")),
    }
}

fn items(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.len(),
        Value::Object(map) => {
            map.values().filter_map(Value::as_array).map(Vec::len).max().unwrap_or(map.len())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

/// A person being asked.
pub(crate) fn approval_span(request: &ApprovalRequest, payload: &Payload<'_>) -> Span {
    let span = info_span!(
        target: TARGET,
        "approval.wait",
        openinference.span.kind = "GUARDRAIL",
        approval.request_id = %request.id,
        approval.kind = %request.tool,
        approval.requested_by = %if request.asker.is_empty() { "main" } else { &request.asker },
        approval.effects = request.effects.len(),
        approval.granted = Empty,
        approval.decision = Empty,
        approval.file = Empty,
        approval.feedback = Empty,
        input.value = Empty,
    );
    payload.record(&span, "input.value", || request.reason.clone());
    if let Some(file) = first_file(&request.effects) {
        payload.record(&span, "approval.file", || file);
    }
    span
}

fn first_file(effects: &[Effect]) -> Option<String> {
    effects.iter().find_map(|effect| match effect {
        Effect::Write { path, .. } | Effect::Read { path } => Some(path.display().to_string()),
        Effect::Run { .. }
        | Effect::Network { .. }
        | Effect::Delegate { .. }
        | Effect::Remember { .. }
        | Effect::Opaque { .. } => None,
    })
}

pub(crate) fn record_decision(span: &Span, decision: &Decision, payload: &Payload<'_>) {
    let (granted, word) = match decision {
        Decision::Approve { .. } => (true, "approve"),
        Decision::Edit { .. } => (true, "edit"),
        Decision::Deny { .. } => (false, "deny"),
        Decision::Defer => (false, "defer"),
        Decision::Abort => (false, "abort"),
    };
    span.record("approval.granted", granted);
    span.record("approval.decision", word);
    if let Decision::Deny { feedback: Some(feedback) } = decision {
        payload.record(span, "approval.feedback", || feedback.chars().take(200).collect());
    }
}

/// A cell of code.
pub(crate) fn cell_span(cell: u32, code: &str, payload: &Payload<'_>) -> Span {
    let span = info_span!(
        target: TARGET,
        "python.cell",
        openinference.span.kind = "CHAIN",
        cell,
        code.hash = &digest(code.as_bytes())[..8],
        code.chars = code.chars().count(),
        code.lines = code.lines().count(),
        output.chars = Empty,
        output.truncated = Empty,
        result.ok = Empty,
        result.error_type = Empty,
        input.value = Empty,
        output.value = Empty,
    );
    payload.record(&span, "input.value", || code.to_owned());
    span
}

pub(crate) fn record_cell(
    span: &Span,
    end: &CellEnd,
    observation: &str,
    truncated: bool,
    payload: &Payload<'_>,
) {
    record_result(
        span,
        match end {
            CellEnd::Done { .. } | CellEnd::Answer { .. } => None,
            CellEnd::Raised { kind, .. } => Some(kind.as_str()),
            CellEnd::Limited { .. } => Some("LIMITED"),
            CellEnd::Crashed { .. } => Some("CRASHED"),
        },
    );
    span.record("output.chars", observation.chars().count());
    span.record("output.truncated", truncated);
    payload.record(span, "output.value", || observation.to_owned());
}

/// Does something in a sandbox inside the span `sandbox.<operation>`. `size` says how many bytes it works on,
/// `isolation` of the result which kind of sandbox it really was, and `error_type` names an error by a word.
pub async fn sandboxed<T, E>(
    operation: &str,
    size: usize,
    isolation: impl FnOnce(&Result<T, E>) -> String,
    error_type: impl FnOnce(&E) -> &'static str,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let span = info_span!(
        target: TARGET,
        "sandbox",
        otel.name = %format_args!("sandbox.{operation}"),
        openinference.span.kind = "CHAIN",
        sandbox.r#type = Empty,
        sandbox.size = size,
        result.ok = Empty,
        result.error_type = Empty,
    );
    let result = work.instrument(span.clone()).await;
    span.record("sandbox.type", isolation(&result));
    record_result(&span, result.as_ref().err().map(error_type));
    result
}

/// Asks an MCP server something inside the span `mcp.<operation>`.
pub async fn with_mcp<T>(
    operation: &str,
    server: &str,
    work: impl Future<Output = Result<T, ToolError>>,
) -> Result<T, ToolError> {
    let span = info_span!(
        target: TARGET,
        "mcp",
        otel.name = %format_args!("mcp.{operation}"),
        otel.kind = "client",
        openinference.span.kind = "CHAIN",
        mcp.server = server,
        result.ok = Empty,
        result.error_type = Empty,
    );
    let result = work.instrument(span.clone()).await;
    match &result {
        Ok(_) => record_result(&span, None::<&str>),
        Err(ToolError::Failed(failure)) => record_result(&span, Some(&failure.error)),
        Err(ToolError::Fatal(_)) => record_result(&span, Some("FATAL")),
        Err(ToolError::Suspended(_)) => {}
    }
    result
}

/// The word by which the log writes a variant.
fn word(variant: &impl Serialize) -> String {
    serde_json::to_value(variant).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
