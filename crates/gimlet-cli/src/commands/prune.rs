//! `gimlet runs delete` and `gimlet runs prune`: removing runs, and what only they kept.

use std::io::Write;
use std::time::Duration;

use gimlet::ids::RunId;
use gimlet::store::StoreError;
use gimlet_runtime::parts::store::{FileStore, RunStatus};
use jiff::Timestamp;

use super::runs::find;
use crate::exit::{ExitStatus, UsageError};
use crate::show::clip;
use crate::style::DIM;
use crate::{app, out};

/// A run at work stores a long text a moment before its log names it.
const GRACE: Duration = Duration::from_secs(60 * 60);

/// Removes the runs that are named.
pub(crate) fn delete(runs: &[String]) -> anyhow::Result<ExitStatus> {
    let store = app::store()?;
    // All are looked for before any is removed.
    let ids = runs.iter().map(|run| find(&store, run)).collect::<anyhow::Result<Vec<RunId>>>()?;
    for id in &ids {
        remove(&store, id)?;
        writeln!(out::stdout(), "removed {id}")?;
    }
    sweep(&store)
}

/// Removes runs by their age.
pub(crate) fn prune(older_than: Duration, dry_run: bool) -> anyhow::Result<ExitStatus> {
    let store = app::store()?;
    let before = Timestamp::now() - older_than;
    let mut count = 0;
    for run in store.list(usize::MAX)? {
        if run.updated >= before || run.status == RunStatus::Running {
            continue;
        }
        if !dry_run {
            remove(&store, &run.id)?;
        }
        count += 1;
        let word = if dry_run { "would remove" } else { "removed" };
        writeln!(out::stdout(), "{word} {}  {DIM}{}{DIM:#}", run.id, clip(&run.task, 60))?;
    }
    if count == 0 {
        writeln!(out::stderr(), "no run is that old")?;
    }
    if dry_run { Ok(ExitStatus::Success) } else { sweep(&store) }
}

fn remove(store: &FileStore, id: &RunId) -> anyhow::Result<()> {
    store.delete(id).map_err(|error| match error {
        StoreError::Locked(_) => {
            UsageError::new(format!("run {id} is at work")).hint("stop it, or wait until it is done").into()
        }
        other => anyhow::Error::from(other),
    })?;
    app::approvals()?.forget_run(id)?;
    Ok(())
}

/// Removes what no run names any more.
fn sweep(store: &FileStore) -> anyhow::Result<ExitStatus> {
    let swept = store.sweep(GRACE)?;
    if swept.files > 0 {
        let bytes = swept.bytes.div_ceil(1024);
        writeln!(out::stderr(), "{DIM}{} long results went with them ({bytes} KB){DIM:#}", swept.files)?;
    }
    Ok(ExitStatus::Success)
}
