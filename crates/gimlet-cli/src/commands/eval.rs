//! `gimlet eval`: models on a suite of tasks, and how they did.

use gimlet_eval::Conclusion;
use gimlet_runtime::Options;

use crate::args::EvalArgs;
use crate::exit::ExitStatus;
use crate::{app, diagnostics, interrupt};

/// Tries models on a suite, or does what else can be done with one.
pub(crate) async fn eval(args: EvalArgs) -> anyhow::Result<ExitStatus> {
    let settings = app::settings(Options::default())?;
    diagnostics::start(&settings);
    let conclusion = gimlet_eval::eval(args.into(), &settings, interrupt::interruptible()?).await?;
    Ok(match conclusion {
        Conclusion::Done => ExitStatus::Success,
        Conclusion::Faulty => ExitStatus::Failure,
        Conclusion::Interrupted => ExitStatus::Interrupted,
    })
}
