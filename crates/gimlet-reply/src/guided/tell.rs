//! The result of guided work in words, from facts alone.

use super::record::{Aim, CheckOutcome, Checked};
use super::state::{Guided, LastReply};
use gimlet_event::event::FinishState;

/// What the person reads, and how the run ends.
pub fn result(guided: &Guided, limit: Option<FinishState>) -> (String, FinishState) {
    if guided.aim == Some(Aim::Run) {
        return ran(guided, limit);
    }
    let Some(attempt) = guided.current.and_then(|at| guided.attempts.get(at)) else {
        let why = guided.stopped.clone().unwrap_or_else(|| match (&guided.last, limit) {
            (_, Some(_)) => "a limit was reached before the model gave a usable edit".into(),
            (LastReply::Unusable(problem), None) => {
                format!("the model gave no usable edit (its last reply: {problem})")
            }
            (LastReply::None | LastReply::Checked | LastReply::Repeated, None) => {
                "the model gave no usable edit".into()
            }
        });
        return (format!("No change was made: {why}."), limit.unwrap_or(FinishState::Failed));
    };
    let paths: Vec<String> = attempt
        .files
        .iter()
        .map(|edit| match (&edit.before, &edit.after) {
            (None, _) => format!("{} (new)", edit.path),
            (Some(_), None) => format!("{} (removed)", edit.path),
            (Some(_), Some(_)) => edit.path.clone(),
        })
        .collect();
    let changed = format!("Changed {}.", paths.join(", "));
    let Some(checked) = &attempt.checked else {
        return (
            format!("{changed} It was not tested: nothing tells how to test it."),
            limit.unwrap_or(FinishState::Answered),
        );
    };
    let command = &checked.command;
    match checked.result {
        CheckOutcome::Passed => {
            (format!("{changed} `{command}` passes{}.", counts(checked)), FinishState::Answered)
        }
        CheckOutcome::Failed => (
            format!("{changed} `{command}` still fails{}:\n\n{}", counts(checked), checked.text.trim()),
            limit.unwrap_or(FinishState::Failed),
        ),
        CheckOutcome::NotRun => (
            format!("{changed} It was not tested: `{command}` could not be run ({}).", checked.text.trim()),
            limit.unwrap_or(FinishState::Answered),
        ),
    }
}

/// The result of a command that the task asked for. A command that ran is an answered task, whatever its exit code.
fn ran(guided: &Guided, limit: Option<FinishState>) -> (String, FinishState) {
    match &guided.ran {
        Some(checked) if checked.result == CheckOutcome::NotRun => {
            (format!("`{}` could not be run: {}", checked.command, checked.text.trim()), FinishState::Failed)
        }
        Some(checked) => {
            let exit = checked.exit.unwrap_or_default();
            let verdict =
                if exit == 0 { "succeeded".to_owned() } else { format!("failed with exit code {exit}") };
            let text =
                format!("`{}` {verdict}{}.\n\n{}", checked.command, counts(checked), checked.text.trim());
            (text.trim_end().to_owned(), FinishState::Answered)
        }
        None => ("Nothing was run.".to_owned(), limit.unwrap_or(FinishState::Failed)),
    }
}

/// The counts of tests, where they are known: ` (3 tests passed, 1 failed)`.
fn counts(checked: &Checked) -> String {
    let tests = |n: u32| if n == 1 { "1 test".to_owned() } else { format!("{n} tests") };
    match (checked.passed, checked.failed.unwrap_or(0)) {
        (Some(passed), 0) => format!(" ({} passed)", tests(passed)),
        (Some(passed), failed) => format!(" ({} passed, {failed} failed)", tests(passed)),
        (None, 0) => String::new(),
        (None, failed) => format!(" ({} failed)", tests(failed)),
    }
}
