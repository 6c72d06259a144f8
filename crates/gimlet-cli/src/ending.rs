//! Tells how a run ended, and what can be done next.

use std::io::{IsTerminal, Write};

use gimlet::Ending;
use gimlet::event::{Failure, FinishState, Finished, Suspension};

use crate::front::Front;
use crate::home;
use crate::show::{markdown, question, summary};
use crate::style::{ERROR, WARNING};

/// Tells how a run ended, and which command would carry it on: the answer on standard output, everything else on
/// standard error.
pub(crate) fn tell(id: &str, resume: &str, ending: &Ending, front: &Front) -> anyhow::Result<()> {
    if front.is_json() {
        return Ok(());
    }
    let mut stderr = anstream::stderr().lock();
    match ending {
        Ending::Finished(finished) => {
            answer(finished, front)?;
            if front.is_quiet() {
                return Ok(());
            }
            writeln!(stderr)?;
            for note in &finished.notes {
                writeln!(stderr, "{WARNING}note:{WARNING:#} {note}")?;
            }
            if let Some((what, flag)) = limit(finished) {
                writeln!(stderr, "{WARNING}stopped:{WARNING:#} the run reached {what}")?;
                writeln!(stderr, "hint: {resume} {flag} carries on")?;
            }
            writeln!(stderr, "{}", summary(id, finished))?;
        }
        Ending::Suspended(Suspension::Approval { approval }) => {
            let pending = home::approvals()?.pending()?;
            if let Some(pending) = pending.into_iter().find(|question| question.request.id == *approval) {
                write!(stderr, "{}", question(&pending.request))?;
            }
            writeln!(stderr, "{WARNING}suspended:{WARNING:#} run {id} waits for approval {approval}")?;
            writeln!(stderr, "hint: gimlet approve {approval} && {resume}")?;
        }
        Ending::Suspended(Suspension::Interrupted) => {
            writeln!(stderr, "{WARNING}interrupted:{WARNING:#} nothing is lost")?;
            writeln!(stderr, "hint: {resume} carries on")?;
        }
        Ending::Suspended(Suspension::Diverged { message }) => {
            writeln!(stderr, "{ERROR}error:{ERROR:#} run {id} cannot be replayed: {message}")?;
        }
        Ending::Failed(Failure { error, message, hint }) => {
            writeln!(stderr, "{ERROR}error:{ERROR:#} {message} ({error})")?;
            if let Some(hint) = hint {
                writeln!(stderr, "hint: {hint}")?;
            }
            writeln!(stderr, "hint: {resume} tries again from where it stopped")?;
        }
    }
    Ok(())
}

/// The answer, unless it is on the screen already: as it is in a pipe, rendered on a terminal.
fn answer(finished: &Finished, front: &Front) -> anyhow::Result<()> {
    if finished.answer.is_empty() || front.showed(&finished.answer) {
        return Ok(());
    }
    if !front.is_quiet() {
        // Sets the answer apart from the talk where both are seen.
        writeln!(anstream::stderr())?;
    }
    if std::io::stdout().is_terminal() {
        writeln!(anstream::stdout(), "{}", markdown(&finished.answer, front.screen().columns()))?;
    } else {
        writeln!(std::io::stdout(), "{}", finished.answer.trim_end())?;
    }
    Ok(())
}

/// The limit that ended a run, and what raises it.
fn limit(finished: &Finished) -> Option<(&'static str, String)> {
    match finished.state {
        FinishState::Answered | FinishState::Failed => None,
        FinishState::MaxSteps => {
            Some(("the step limit", format!("--max-steps {}", finished.steps.saturating_mul(2))))
        }
        FinishState::Timeout => {
            Some(("the time limit", format!("--timeout {:.0}", (finished.seconds * 2.0).ceil().max(2.0))))
        }
        FinishState::StepBudget => {
            let together = finished.steps.saturating_add(finished.steps_below);
            Some(("the step budget", format!("--step-budget {}", together.saturating_mul(2))))
        }
        FinishState::TokenBudget => {
            Some(("the token budget", format!("--token-budget {}", finished.usage.total().saturating_mul(2))))
        }
    }
}
