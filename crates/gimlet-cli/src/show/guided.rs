//! What is told of guided work: the files it looks at, the diff, and why another edit is asked for.

use gimlet::event::{EventKind, ToolFinished};
use gimlet::guided::{Aim, CheckOutcome, EditOutcome, WRITE_TOOL};

use super::diff;
use crate::style::{DIM, NAME, WARNING};

/// Most lines of a failed check that are shown.
const CHECK_LINES: usize = 8;

/// A line about one of its events, if there is something to tell.
pub(super) fn line(kind: &EventKind, verbose: bool) -> Option<String> {
    match kind {
        EventKind::GuidedAimed(aimed) => verbose.then(|| {
            let aim = match aimed.aim {
                Aim::Answer => "a question",
                Aim::Change => "a change of files",
                Aim::Run => "a command",
            };
            format!("{DIM}the task is {aim}{DIM:#}")
        }),
        EventKind::GuidedFound(found) => verbose.then(|| {
            let paths: Vec<&str> = found.candidates.iter().map(|candidate| candidate.path.as_str()).collect();
            format!("{DIM}candidates: {}{DIM:#}", paths.join(", "))
        }),
        EventKind::GuidedLocated(located) => {
            let mut parts = Vec::new();
            if !located.files.is_empty() {
                parts.push(format!("edits {NAME}{}{NAME:#}", located.files.join(", ")));
            }
            if !located.tests.is_empty() {
                parts.push(format!("tested by {}", located.tests.join(", ")));
            }
            if let Some(command) = &located.command {
                parts.push(format!("runs {command}"));
            }
            (!parts.is_empty()).then(|| parts.join(&format!(" {DIM}·{DIM:#} ")))
        }
        EventKind::GuidedEdited(edited) => match &edited.outcome {
            EditOutcome::Unusable { problem } => {
                let first = problem.lines().next().unwrap_or_default();
                Some(format!("{WARNING}reply {} could not be used:{WARNING:#} {first}", edited.attempt))
            }
            EditOutcome::Repeated => Some(format!(
                "{WARNING}reply {} repeats an earlier edit:{WARNING:#} asking for a fresh one",
                edited.attempt
            )),
            EditOutcome::Cut => Some(format!("{DIM}the reply was cut off; it is continued{DIM:#}")),
            EditOutcome::Usable { .. } => None,
        },
        EventKind::GuidedChecked(checked) if checked.result == CheckOutcome::Failed => {
            let lines = checked.text.lines().filter(|line| !line.trim().is_empty()).take(CHECK_LINES);
            let shown: Vec<String> = lines.map(|line| format!("    {DIM}{line}{DIM:#}")).collect();
            (!shown.is_empty()).then(|| shown.join("\n"))
        }
        _ => None,
    }
}

/// The line of a call with the diff it wrote.
pub(super) fn with_diff(line: String, finished: &ToolFinished) -> String {
    let text = finished.result["diff"].as_str().unwrap_or_default();
    if finished.tool != WRITE_TOOL || text.is_empty() {
        return line;
    }
    format!("{line}\n{}", diff(text).trim_end_matches('\n'))
}
