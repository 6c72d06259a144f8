//! `gimlet runs undo`: takes back what a run's patches did.

use std::io::Write;

use gimlet::text::Printable;
use gimlet_runtime::undo::Outcome;

use crate::app;
use crate::args::UndoArgs;
use crate::exit::ExitStatus;
use crate::style::{DIM, ERROR, GOOD};

/// Takes patches of a run back.
pub(crate) async fn undo(args: UndoArgs) -> anyhow::Result<ExitStatus> {
    let runtime = app::plain()?;
    let id = super::runs::find(&runtime, &args.run).await?;
    let outcomes = runtime.undo(&id, args.patch.as_deref()).await?;
    tell(&outcomes, id.as_str(), args.json.json)?;
    let failed = outcomes.iter().any(|outcome| outcome.error.is_some());
    Ok(if failed { ExitStatus::Failure } else { ExitStatus::Success })
}

/// What came of taking one patch back, for people.
pub(crate) fn line(outcome: &Outcome) -> String {
    match &outcome.error {
        None => format!(
            "{GOOD}undone{GOOD:#} {} {DIM}({}){DIM:#}: {}",
            outcome.patch,
            Printable::line(&outcome.intent),
            Printable::line(&outcome.done())
        ),
        Some(error) => format!("{ERROR}not undone{ERROR:#} {}: {}", outcome.patch, Printable::line(error)),
    }
}

fn tell(outcomes: &[Outcome], run: &str, json: bool) -> anyhow::Result<()> {
    let mut stdout = crate::out::stdout();
    if json {
        crate::out::json(&serde_json::json!({ "run": run, "patches": outcomes }))?;
        return Ok(());
    }
    for outcome in outcomes {
        writeln!(stdout, "{}", line(outcome))?;
    }
    Ok(())
}
