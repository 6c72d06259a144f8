//! Names of spans and their attributes, in one place. The core speaks to `tracing`; who listens is the binary's choice.
//!
//! Attributes carry sizes and hashes, never payloads.

use std::time::Duration;

use serde_json::Value;
use tracing::field::{Empty, debug, display};
use tracing::{Span, info_span};

use crate::approval::{ApprovalRequest, Decision};
use crate::cell::CellEnd;
use crate::digest::digest_json;
use crate::effect::Verdict;
use crate::event::{Finished, Started};
use crate::guard::Outcome;
use crate::message::{ToolCall, Usage};

/// The target of all spans of this crate.
pub const TARGET: &str = "gimlet";

/// A whole run, or a sub-agent's part of one.
pub(crate) fn agent_span(run: &str, path: &str, started: &Started) -> Span {
    info_span!(
        target: TARGET,
        "agent.run",
        openinference.span.kind = "AGENT",
        session.id = run,
        agent.name = %started.agent,
        agent.path = path,
        agent.model = %started.model,
        agent.max_steps = started.limits.max_steps,
        agent.tools_count = started.tools.len(),
        agent.steps = Empty,
        agent.state = Empty,
        llm.token_count.prompt = Empty,
        llm.token_count.completion = Empty,
    )
}

pub(crate) fn record_finished(span: &Span, finished: &Finished) {
    span.record("agent.steps", finished.steps);
    span.record("agent.state", debug(finished.state));
    record_usage(span, &finished.usage);
}

fn record_usage(span: &Span, usage: &Usage) {
    span.record("llm.token_count.prompt", usage.input);
    span.record("llm.token_count.completion", usage.output);
}

/// One step.
pub(crate) fn step_span(step: u32) -> Span {
    info_span!(target: TARGET, "step", otel.name = %format_args!("step {step}"), openinference.span.kind = "CHAIN", step)
}

/// One request to a model.
pub(crate) fn llm_span(model: &str, messages: usize) -> Span {
    info_span!(
        target: TARGET,
        "llm",
        otel.name = %format_args!("llm {model}"),
        openinference.span.kind = "LLM",
        llm.model_name = model,
        llm.messages = messages,
        llm.token_count.prompt = Empty,
        llm.token_count.completion = Empty,
        llm.token_count.prompt_details.cache_read = Empty,
        result.ok = Empty,
        result.error_type = Empty,
    )
}

pub(crate) fn record_reply(span: &Span, usage: &Usage) {
    record_usage(span, usage);
    span.record("llm.token_count.prompt_details.cache_read", usage.cached);
    span.record("result.ok", true);
}

pub(crate) fn record_model_error(span: &Span, code: &str) {
    span.record("result.ok", false);
    span.record("result.error_type", code);
}

/// One tool call through the guard.
pub(crate) fn tool_span(call: &ToolCall) -> Span {
    info_span!(
        target: TARGET,
        "tool_wrapped",
        otel.name = %format_args!("tool_wrapped.{}", call.name),
        openinference.span.kind = "TOOL",
        tool.name = %call.name,
        tool.call.id = %call.id,
        tool.args.hash = &digest_json(&call.args)[..8],
        tool.args.size = call.args.to_string().len(),
        policy.verdict = Empty,
        policy.suggested_next_tool = Empty,
        result.ok = Empty,
        result.error_type = Empty,
        output.chars = Empty,
        output.lines = Empty,
        output.items = Empty,
        output.truncated = Empty,
        duration_ms = Empty,
    )
}

pub(crate) fn record_outcome(span: &Span, outcome: &Outcome, verdict: Option<&Verdict>, took: Duration) {
    if span.is_disabled() {
        return;
    }
    span.record("duration_ms", took.as_secs_f64() * 1000.0);
    if let Some(verdict) = verdict {
        span.record("policy.verdict", verdict.word());
    }
    span.record("result.ok", matches!(outcome, Outcome::Done(_)));
    match outcome {
        Outcome::Done(done) => {
            let text = crate::state::result_text(&done.value);
            span.record("output.chars", text.chars().count());
            span.record("output.lines", text.lines().count());
            span.record("output.items", items(&done.value));
            span.record("output.truncated", done.truncated);
        }
        Outcome::Failed(failure) => {
            span.record("result.error_type", failure.error.as_str());
            if let Some(hint) = &failure.recovery_suggestion {
                span.record("policy.suggested_next_tool", hint.tool_call.name.as_str());
            }
        }
        Outcome::Suspended(_) => {
            span.record("result.error_type", "SUSPENDED");
        }
        Outcome::Fatal(_) => {
            span.record("result.error_type", "FATAL");
        }
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
pub(crate) fn approval_span(request: &ApprovalRequest) -> Span {
    info_span!(
        target: TARGET,
        "approval.wait",
        approval.request_id = %request.id,
        approval.kind = %request.tool,
        approval.requested_by = %request.asker,
        approval.granted = Empty,
        approval.decision = Empty,
    )
}

pub(crate) fn record_decision(span: &Span, decision: &Decision) {
    let (granted, word) = match decision {
        Decision::Approve { .. } => (true, "approve"),
        Decision::Deny { .. } => (false, "deny"),
        Decision::Defer => (false, "defer"),
        Decision::Abort => (false, "abort"),
    };
    span.record("approval.granted", granted);
    span.record("approval.decision", word);
}

/// A cell of code.
pub(crate) fn cell_span(cell: u32, code: &str) -> Span {
    info_span!(
        target: TARGET,
        "python.cell",
        openinference.span.kind = "CHAIN",
        cell,
        code.chars = code.chars().count(),
        code.lines = code.lines().count(),
        result.ok = Empty,
        result.error_type = Empty,
    )
}

pub(crate) fn record_cell(span: &Span, end: &CellEnd) {
    let error = match end {
        CellEnd::Done { .. } | CellEnd::Answer { .. } => None,
        CellEnd::Raised { kind, .. } => Some(kind.as_str()),
        CellEnd::Limited { .. } => Some("LIMITED"),
        CellEnd::Crashed { .. } => Some("CRASHED"),
    };
    span.record("result.ok", error.is_none());
    if let Some(error) = error {
        span.record("result.error_type", display(error));
    }
}
