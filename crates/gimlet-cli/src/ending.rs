//! Tells how a run ended, and what can be done next.

use std::io::Write;

use gimlet::Ending;
use gimlet::event::{Failure, FinishState, Finished, Suspension};
use gimlet::parse::words_before_action;
use gimlet::run::RunError;
use gimlet::state::State;
use gimlet::text::Printable;
use gimlet_runtime::Session;

use crate::app;
use crate::exit::UsageError;
use crate::front::Front;
use crate::show::{is_cut, markdown, question, summary, without_order};
use crate::style::{ERROR, WARNING};

/// Where the person is who reads how a run ended, and so what they can type next.
#[derive(Clone, Copy)]
pub(crate) enum At<'a> {
    /// In a shell; this command carries the run on.
    Shell(&'a str),
    /// In a session that goes on.
    Session,
}

impl At<'_> {
    fn after_limit(self, flag: &str) -> String {
        match self {
            At::Shell(resume) => format!("{resume} {flag} carries on"),
            At::Session => "say `go on`: what you say next may take as much again".to_owned(),
        }
    }

    fn after_question(self, approval: &str) -> String {
        match self {
            At::Shell(resume) => format!("gimlet approve {approval} && {resume}"),
            At::Session => "/approve or /deny answers it".to_owned(),
        }
    }

    fn again(self) -> String {
        match self {
            At::Shell(resume) => resume.to_owned(),
            At::Session => "/resume".to_owned(),
        }
    }
}

/// The command that carries a session's run on. Its log knows what it was begun with.
pub(crate) fn resume_line(session: &Session) -> String {
    let id = session.id().map(|id| id.to_string()).unwrap_or_default();
    format!("gimlet resume {id}")
}

/// Prints what there is of a reply that was interrupted, unless it is on the screen already.
pub(crate) async fn tell_unfinished(session: &Session, front: &Front) -> anyhow::Result<()> {
    if front.is_json() || front.streams_words() {
        return Ok(());
    }
    let state = State::fold(&session.stored_events().await?, &Default::default());
    let words = words_before_action(&state.unfinished, state.action).trim();
    if !words.is_empty() {
        crate::out::answer(words)?;
    }
    Ok(())
}

/// Why a run is not carried on, with what would make it so.
pub(crate) fn refused(error: anyhow::Error, at: At<'_>) -> anyhow::Error {
    let Some(RunError::AtLimit(run, finished)) = error.downcast_ref() else { return error };
    let Some((what, flag)) = limit(finished) else { return error };
    UsageError::new(format!("run {run} has reached {what}, and nothing raises it"))
        .hint(at.after_limit(&flag))
        .into()
}

/// Tells how a run ended, and what would carry it on: the answer on standard output, everything else on standard error.
pub(crate) async fn tell(id: &str, at: At<'_>, ending: &Ending, front: &Front) -> anyhow::Result<()> {
    if front.is_json() {
        return Ok(());
    }
    let mut stderr = crate::out::stderr();
    match ending {
        Ending::Finished(finished) => {
            answer(finished, front)?;
            if front.is_quiet() {
                return Ok(());
            }
            writeln!(stderr)?;
            for note in &finished.notes {
                writeln!(stderr, "{WARNING}note:{WARNING:#} {}", Printable::line(without_order(note)))?;
            }
            if let Some((what, flag)) = limit(finished) {
                writeln!(stderr, "{WARNING}stopped:{WARNING:#} the run reached {what}")?;
                writeln!(stderr, "hint: {}", at.after_limit(&flag))?;
            }
            if finished.state == FinishState::Repeating {
                writeln!(stderr, "{WARNING}stopped:{WARNING:#} the model only repeated itself")?;
                writeln!(stderr, "hint: say more exactly what to do, or use a larger model")?;
            }
            writeln!(stderr, "{}", summary(id, finished))?;
        }
        Ending::Suspended(Suspension::Approval { approval }) => {
            let pending = app::inbox()?.pending().await?;
            if let Some(pending) = pending.into_iter().find(|question| question.request.id == *approval) {
                write!(stderr, "{}", question(&pending.request))?;
                if is_cut(&pending.request) {
                    writeln!(stderr, "  gimlet approvals show {approval} shows all of it")?;
                }
            }
            writeln!(stderr, "{WARNING}suspended:{WARNING:#} run {id} waits for approval {approval}")?;
            writeln!(stderr, "hint: {}", at.after_question(approval))?;
        }
        Ending::Suspended(Suspension::Interrupted) => {
            writeln!(stderr, "{WARNING}interrupted:{WARNING:#} nothing is lost")?;
            writeln!(stderr, "hint: {} carries on", at.again())?;
        }
        Ending::Suspended(Suspension::Diverged { message }) => {
            writeln!(
                stderr,
                "{ERROR}error:{ERROR:#} run {id} cannot be replayed: {}",
                Printable::line(message)
            )?;
        }
        Ending::Failed(Failure { error, message, hint }) => {
            writeln!(stderr, "{ERROR}error:{ERROR:#} {} ({error})", Printable::block(message))?;
            if let Some(hint) = hint {
                writeln!(stderr, "hint: {hint}")?;
            }
            writeln!(stderr, "hint: {} tries again from where it stopped", at.again())?;
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
        writeln!(crate::out::stderr())?;
    }
    if crate::out::answers_on_terminal() {
        writeln!(crate::out::stdout(), "{}", markdown(&finished.answer, front.screen().columns()))?;
    } else {
        crate::out::answer(finished.answer.trim_end())?;
    }
    Ok(())
}

/// The limit that ended a run, and what raises it.
fn limit(finished: &Finished) -> Option<(&'static str, String)> {
    match finished.state {
        FinishState::Answered | FinishState::Failed | FinishState::Repeating => None,
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
