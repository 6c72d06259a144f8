//! `gimlet approvals`, `approve` and `deny`: decisions given outside of the terminal a run was started in.

use std::io::Write;

use gimlet::approval::{Decision, Scope};
use gimlet::ids::RunId;
use jiff::Timestamp;

use crate::app;
use crate::args::{ApproveArgs, DenyArgs, JsonArgs};
use crate::exit::{ExitStatus, UsageError};
use crate::show::question;

/// Lists what waits for an answer.
pub(crate) fn list(args: JsonArgs) -> anyhow::Result<ExitStatus> {
    let pending = app::approvals()?.pending()?;
    let mut stdout = anstream::stdout().lock();
    if args.json {
        writeln!(stdout, "{}", serde_json::to_string(&pending)?)?;
        return Ok(ExitStatus::Success);
    }
    if pending.is_empty() {
        writeln!(anstream::stderr(), "nothing waits for an approval")?;
    }
    for waiting in pending {
        write!(stdout, "{}", question(&waiting.request))?;
        let resume =
            if is_kept(&waiting.run) { format!(" && gimlet resume {}", waiting.run) } else { String::new() };
        writeln!(stdout, "  gimlet approve {}{resume}", waiting.request.id)?;
    }
    Ok(ExitStatus::Success)
}

/// Says yes.
pub(crate) fn approve(args: &ApproveArgs) -> anyhow::Result<ExitStatus> {
    let scope = match (args.session, args.always) {
        (_, true) => Scope::Always,
        (true, false) => Scope::Session,
        (false, false) => Scope::Once,
    };
    decide(&args.id, &Decision::Approve { scope }, "approved")
}

/// Says no.
pub(crate) fn deny(args: DenyArgs) -> anyhow::Result<ExitStatus> {
    decide(&args.id, &Decision::Deny { feedback: args.feedback }, "denied")
}

fn decide(id: &str, decision: &Decision, word: &str) -> anyhow::Result<ExitStatus> {
    let approvals = app::approvals()?;
    let run = approvals
        .pending()?
        .into_iter()
        .find(|question| question.request.id == id)
        .map(|question| question.run);
    approvals
        .decide(id, decision, Timestamp::now())
        .map_err(|error| UsageError::new(error.to_string()).hint("see `gimlet approvals`"))?;
    let mut stderr = anstream::stderr();
    writeln!(stderr, "{word} {id}")?;
    match run {
        Some(run) if is_kept(&run) => writeln!(stderr, "hint: gimlet resume {run} carries on")?,
        // A client of `gimlet mcp serve` asked, and is to ask again.
        Some(_) => writeln!(stderr, "hint: make the same call again")?,
        None => {}
    }
    Ok(ExitStatus::Success)
}

/// Whether a question belongs to a run that can be carried on.
fn is_kept(run: &RunId) -> bool {
    app::store().is_ok_and(|store| store.log_path(run).exists())
}
