//! `gimlet runs undo`: takes back what a run's patches did.

use std::io::Write;

use gimlet_runtime::undo::Outcome;

use crate::app;
use crate::args::UndoArgs;
use crate::exit::ExitStatus;
use crate::style::{DIM, ERROR, GOOD};

/// Takes patches of a run back.
pub(crate) async fn undo(args: UndoArgs) -> anyhow::Result<ExitStatus> {
    let runtime = app::plain()?;
    let id = runtime.find(&args.run)?;
    let outcomes = runtime.undo(&id, args.patch.as_deref()).await?;
    tell(&outcomes, id.as_str(), args.json.json)?;
    let failed = outcomes.iter().any(|outcome| outcome.error.is_some());
    Ok(if failed { ExitStatus::Failure } else { ExitStatus::Success })
}

/// What came of taking one patch back, for people.
pub(crate) fn line(outcome: &Outcome) -> String {
    match &outcome.error {
        None => format!(
            "{GOOD}undone{GOOD:#} {} {DIM}({}){DIM:#}: restored {}",
            outcome.patch,
            outcome.intent,
            outcome.restored.join(", ")
        ),
        Some(error) => format!("{ERROR}not undone{ERROR:#} {}: {error}", outcome.patch),
    }
}

fn tell(outcomes: &[Outcome], run: &str, json: bool) -> anyhow::Result<()> {
    let mut stdout = anstream::stdout().lock();
    if json {
        writeln!(stdout, "{}", serde_json::json!({ "run": run, "patches": outcomes }))?;
        return Ok(());
    }
    for outcome in outcomes {
        writeln!(stdout, "{}", line(outcome))?;
    }
    Ok(())
}
