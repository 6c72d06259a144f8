//! What happened in a run beside replies and calls, in a line each.

use gimlet::event::{Event, EventKind, Suspension};
use gimlet::guided::{Aim, CheckOutcome, EditOutcome};

use crate::text::line;

/// The class of an event's note in the style sheet.
pub(crate) fn class(event: &Event) -> &'static str {
    match &event.kind {
        EventKind::Warning { .. } | EventKind::RunSuspended { .. } => "warn",
        EventKind::GuidedChecked(checked) if checked.result == CheckOutcome::Failed => "warn",
        EventKind::GuidedChecked(checked) if checked.result == CheckOutcome::Passed => "good",
        _ => "dim",
    }
}

/// What happened beside replies and calls, in a line.
pub(crate) fn note(event: &Event) -> Option<String> {
    Some(match &event.kind {
        EventKind::RunResumed { .. } => "Carried on.".into(),
        EventKind::Plan(plan) => match &plan.failure {
            Some(failure) => format!("No plan: {}", line(&failure.message)),
            None if plan.steps.is_empty() => line(&plan.text),
            None => format!("Plan: {}", line(&plan.steps.join(" → "))),
        },
        EventKind::ContextPruned(pruned) => {
            format!("Compacted: {} → {} tokens.", pruned.before, pruned.after)
        }
        EventKind::ContextCompacted(_) => "Old steps were summarised.".into(),
        EventKind::ActionChanged(change) => line(&change.reason),
        EventKind::Warning { message } => line(message),
        EventKind::RunSuspended { reason } => match reason {
            Suspension::Approval { .. } => "The run waits for your answer.".into(),
            Suspension::Interrupted => "The run was stopped. It can be resumed.".into(),
            Suspension::Diverged { message } => line(message),
        },
        EventKind::GuidedAimed(aimed) => match aimed.aim {
            Aim::Answer => "The task is a question.".into(),
            Aim::Change => "The task is a change of files.".into(),
            Aim::Run => "The task is a command.".into(),
        },
        EventKind::GuidedLocated(located) => {
            let check =
                located.command.as_deref().map_or(String::new(), |command| format!(", checked by {command}"));
            line(&format!("Edits {}{check}", located.files.join(", ")))
        }
        EventKind::GuidedEdited(edited) => match &edited.outcome {
            EditOutcome::Unusable { problem } => {
                format!("Reply {} could not be used: {}", edited.attempt, line(problem))
            }
            EditOutcome::Repeated => format!("Reply {} repeats an earlier edit.", edited.attempt),
            EditOutcome::Cut => "The reply was cut off; it is continued.".into(),
            EditOutcome::Usable { .. } => return None,
        },
        EventKind::GuidedChecked(checked) => {
            let word = match checked.result {
                CheckOutcome::Passed => "passed",
                CheckOutcome::Failed => "failed",
                CheckOutcome::NotRun => "could not be run",
            };
            line(&format!("{} {word}", checked.command))
        }
        EventKind::RunStarted(_)
        | EventKind::StepStarted { .. }
        | EventKind::ModelDelta { .. }
        | EventKind::ModelMessage(_)
        | EventKind::Feedback { .. }
        | EventKind::UserMessage { .. }
        | EventKind::ToolRequested { .. }
        | EventKind::ToolStarted { .. }
        | EventKind::ToolFinished(_)
        | EventKind::CellStarted { .. }
        | EventKind::CellOutput { .. }
        | EventKind::CellFinished { .. }
        | EventKind::ApprovalRequested(_)
        | EventKind::ApprovalDecided { .. }
        | EventKind::ModelAsked { .. }
        | EventKind::PlanRequested
        | EventKind::AgentStarted(_)
        | EventKind::AgentFinished(_)
        | EventKind::GuidedFound(_)
        | EventKind::RunFinished(_)
        | EventKind::RunFailed { .. }
        | EventKind::Unknown => return None,
    })
}
