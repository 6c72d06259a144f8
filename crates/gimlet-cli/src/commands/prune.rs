//! `gimlet runs delete` and `gimlet runs prune`: removing runs, and what only they kept.

use std::io::Write;
use std::time::Duration;

use gimlet::ids::RunId;
use gimlet::store::{RunStatus, StoreError};
use gimlet_runtime::Runtime;
use jiff::Timestamp;

use super::runs::find;
use crate::exit::{ExitStatus, UsageError};
use crate::show::clip;
use crate::style::DIM;
use crate::{app, out};

/// A run at work stores a long text a moment before its log names it.
const GRACE: Duration = Duration::from_secs(60 * 60);

/// Removes the runs that are named.
pub(crate) async fn delete(runs: &[String]) -> anyhow::Result<ExitStatus> {
    let runtime = app::plain()?;
    // All are looked for before any is removed.
    let mut ids = Vec::new();
    for run in runs {
        ids.push(find(&runtime, run).await?);
    }
    for id in &ids {
        remove(&runtime, id).await?;
        writeln!(out::stdout(), "removed {id}")?;
    }
    sweep(&runtime).await
}

/// Removes runs by their age.
pub(crate) async fn prune(older_than: Duration, dry_run: bool) -> anyhow::Result<ExitStatus> {
    let runtime = app::plain()?;
    let before = Timestamp::now() - older_than;
    let mut count = 0;
    for run in runtime.catalog().list(usize::MAX).await? {
        if run.updated >= before || run.status == RunStatus::Running {
            continue;
        }
        if !dry_run {
            remove(&runtime, &run.id).await?;
        }
        count += 1;
        let word = if dry_run { "would remove" } else { "removed" };
        writeln!(out::stdout(), "{word} {}  {DIM}{}{DIM:#}", run.id, clip(&run.task, 60))?;
    }
    if count == 0 {
        writeln!(out::stderr(), "no run is that old")?;
    }
    if dry_run { Ok(ExitStatus::Success) } else { sweep(&runtime).await }
}

async fn remove(runtime: &Runtime, id: &RunId) -> anyhow::Result<()> {
    runtime.catalog().delete(id).await.map_err(|error| match error {
        StoreError::Locked(_) => {
            UsageError::new(format!("run {id} is at work")).hint("stop it, or wait until it is done").into()
        }
        other => anyhow::Error::from(other),
    })?;
    runtime.inbox().forget_run(id).await?;
    Ok(())
}

/// Removes what no run names any more.
async fn sweep(runtime: &Runtime) -> anyhow::Result<ExitStatus> {
    let swept = runtime.catalog().sweep(GRACE).await?;
    if swept.files > 0 {
        let bytes = swept.bytes.div_ceil(1024);
        writeln!(out::stderr(), "{DIM}{} long results went with them ({bytes} KB){DIM:#}", swept.files)?;
    }
    Ok(ExitStatus::Success)
}
