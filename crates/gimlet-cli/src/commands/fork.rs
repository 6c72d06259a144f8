//! `gimlet runs fork`: a new run that shares the steps of another before one of them.

use std::io::Write;

use gimlet::ids::RunId;
use gimlet_runtime::Forked;

use crate::app;
use crate::exit::ExitStatus;

/// Forks a run and prints the new one's id.
pub(crate) async fn fork(run: &str, at: u32, message: Option<String>) -> anyhow::Result<ExitStatus> {
    let runtime = app::plain()?;
    let from = runtime.find(run).await?;
    let forked = runtime.fork(&from, at, message).await?;
    writeln!(crate::out::stdout(), "{}", forked.id)?;
    tell(&from, &forked, at)?;
    Ok(ExitStatus::Success)
}

fn tell(from: &RunId, Forked { id, has_changes }: &Forked, at: u32) -> anyhow::Result<()> {
    let mut stderr = crate::out::stderr();
    let steps = match at - 1 {
        1 => "1 step is".to_owned(),
        many => format!("{many} steps are"),
    };
    writeln!(stderr, "forked from {from}: {steps} shared, step {at} is new")?;
    if *has_changes {
        writeln!(stderr, "note: what those steps changed stays changed; the files are as they are now")?;
    }
    writeln!(stderr, "hint: gimlet resume {id} goes on from there")?;
    Ok(())
}
