//! How the program ends: the exit codes that scripts rely on, and errors that tell what to do.

use std::process::ExitCode;

use gimlet::event::{FinishState, Suspension};
use gimlet::run::Ending;
pub(crate) use gimlet_runtime::{UsageError, hint_of};

/// The exit codes of the command line's contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitStatus {
    /// It did what was asked.
    Success,
    /// The run failed, or a check found something wrong.
    Failure,
    /// Wrong usage or configuration.
    Usage,
    /// An approval is needed.
    Suspended,
    /// A limit was reached; a partial result was printed.
    Limited,
    /// The person stopped it.
    Interrupted,
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> ExitCode {
        ExitCode::from(match status {
            ExitStatus::Success => 0,
            ExitStatus::Failure => 1,
            ExitStatus::Usage => 2,
            ExitStatus::Suspended => 3,
            ExitStatus::Limited => 4,
            ExitStatus::Interrupted => 130,
        })
    }
}

impl From<&Ending> for ExitStatus {
    fn from(ending: &Ending) -> ExitStatus {
        match ending {
            Ending::Finished(finished) => match finished.state {
                FinishState::Answered => ExitStatus::Success,
                FinishState::MaxSteps
                | FinishState::Timeout
                | FinishState::TokenBudget
                | FinishState::StepBudget
                | FinishState::Repeating => ExitStatus::Limited,
                FinishState::Failed => ExitStatus::Failure,
            },
            Ending::Suspended(Suspension::Approval { .. }) => ExitStatus::Suspended,
            Ending::Suspended(Suspension::Interrupted) => ExitStatus::Interrupted,
            Ending::Suspended(Suspension::Diverged { .. }) | Ending::Failed(_) => ExitStatus::Failure,
        }
    }
}

/// Tells the person what went wrong, and how the program ends.
pub(crate) fn report(error: &anyhow::Error) -> ExitStatus {
    // Whoever reads the output has seen enough, such as `head`.
    let is_closed = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
    };
    if error.chain().any(is_closed) {
        return ExitStatus::Success;
    }
    use std::io::Write;
    let mut stderr = crate::out::stderr();
    let red = crate::style::ERROR;
    // Nobody is left to tell when this fails.
    let _ = writeln!(stderr, "{red}error:{red:#} {error:#}");
    if let Some(hint) = hint_of(error) {
        let _ = writeln!(stderr, "hint: {hint}");
    }
    match error.downcast_ref::<UsageError>() {
        Some(_) => ExitStatus::Usage,
        None => ExitStatus::Failure,
    }
}
