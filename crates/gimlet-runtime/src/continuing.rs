//! What a run's log says about going on with it: how it began, where it was, what it asked, and what it may spend.

use anyhow::Context;
use gimlet::approval::{ApprovalRequest, Decision};
use gimlet::event::{ActionFormat, Event, EventKind, FinishState, Started, Suspension};
use gimlet::limits::Limits;
use gimlet::state::{State, Stop};
use gimlet::store::Store;
use gimlet_config::UsageError;
use gimlet_config::options::{Action, Choice, ExecutorChoice, Options};
use jiff::Timestamp;

/// Has a run taken up go on in the way it began: what earlier code did, its replay must be able to do again.
pub(crate) fn as_begun(options: &mut Options, started: &Started) -> Result<(), UsageError> {
    let began = &started.agent;
    if let Some(asked) = options.agent.as_ref().filter(|asked| *asked != began) {
        return Err(UsageError::new(format!(
            "the run is the agent `{began}`'s; it cannot go on as `{asked}`"
        ))
        .hint(format!("leave out `--agent {asked}`, or begin a new run with it")));
    }
    options.agent = Some(began.clone());
    if options.api_base.is_none() {
        options.api_base.clone_from(&started.api_base);
    }
    let began = Action::from(started.action);
    if let Some(asked) = options.action.filter(|asked| *asked != began) {
        let (asked, began) = (asked.name(), began.name());
        return Err(UsageError::new(format!("the run acts by {began}; it cannot go on by {asked}"))
            .hint(format!("leave out `--action {asked}`, or begin a new run with it")));
    }
    options.action = Some(began);
    if gimlet_memory::tools::NAMES.iter().all(|name| started.tools.iter().any(|tool| tool == name)) {
        options.memory = Some(true);
    }
    let began = match started.executor["kind"].as_str() {
        Some(gimlet_sandbox::docker::KIND) => ExecutorChoice::Docker,
        Some(gimlet_sandbox::jail::KIND) => ExecutorChoice::Venv,
        Some(_) | None => ExecutorChoice::Python,
    };
    match options.executor {
        Some(asked) if asked != began && started.action == ActionFormat::Code => {
            let (asked, began) = (asked.name(), began.name());
            Err(UsageError::new(format!("the run's code ran in `{began}`; it cannot go on in `{asked}`"))
                .hint(format!("leave out `--executor {asked}`, or begin a new run with it")))
        }
        Some(_) | None => {
            options.executor = Some(began);
            Ok(())
        }
    }
}

/// Whether a run has come to an answer, so that there is nothing to carry on.
pub fn is_answered(events: &[Event]) -> bool {
    match State::fold(events, &Default::default()).stop {
        Some(Stop::Finished(finished)) => finished.state == FinishState::Answered,
        Some(Stop::Suspended(_) | Stop::Failed(_)) | None => false,
    }
}

/// The question a run stopped at.
pub fn open_question(events: &[Event]) -> Option<&ApprovalRequest> {
    let stopped = events.iter().rev().find_map(|event| match &event.kind {
        EventKind::RunSuspended { reason } => Some(!matches!(reason, Suspension::Diverged { .. })),
        EventKind::RunResumed { .. } | EventKind::RunFinished(_) | EventKind::RunFailed { .. } => Some(false),
        _ => None,
    })?;
    let (at, request) = events.iter().enumerate().rev().find_map(|(at, event)| match &event.kind {
        EventKind::ApprovalRequested(request) => Some((at, request)),
        _ => None,
    })?;
    let decided = events[at..].iter().any(|event| match &event.kind {
        // Whoever quits at a question has not answered it.
        EventKind::ApprovalDecided { id, decision } => *id == request.id && *decision != Decision::Abort,
        _ => false,
    });
    (stopped && !decided).then_some(request)
}

/// Adds to a run's log what happened to it between its steps. `events` are all of the run so far.
pub(crate) async fn append(
    store: &dyn Store,
    events: &[Event],
    kinds: impl IntoIterator<Item = EventKind>,
) -> anyhow::Result<()> {
    let last = events.last().context("the run has no beginning")?;
    for (seq, kind) in (last.seq + 1..).zip(kinds) {
        let (run, path) = (last.run.clone(), Default::default());
        store.append(&Event { run, seq, time: Timestamp::now(), path, kind }).await?;
    }
    Ok(())
}

/// The limits of one more task, on top of what the run has spent.
pub(crate) fn further(events: &[Event], state: &State, limits: Limits) -> Limits {
    let agents = events.iter().filter(|event| matches!(event.kind, EventKind::AgentStarted(_))).count();
    Limits {
        max_agents: limits.max_agents.saturating_add(u32::try_from(agents).unwrap_or(u32::MAX)),
        max_steps: state.step.saturating_add(limits.max_steps),
        step_budget: Some(state.steps_together().saturating_add(limits.steps_together())),
        max_seconds: limits.max_seconds.map(|seconds| seconds + state.seconds(Timestamp::now())),
        max_tokens: limits.max_tokens.map(|tokens| tokens.saturating_add(state.usage.total())),
        ..limits
    }
}

/// Where the run was at work last.
pub(crate) fn last_root<'a>(events: &'a [Event], first: &'a str) -> &'a str {
    events
        .iter()
        .rev()
        .find_map(|event| match &event.kind {
            EventKind::RunResumed { root, .. } => Some(root.as_str()),
            _ => None,
        })
        .unwrap_or(first)
}
