//! `gimlet approvals`, `approve` and `deny`: decisions given outside of the terminal a run was started in.

use std::io::Write;

use gimlet::approval::{Decision, Scope};
use gimlet::ids::RunId;
use gimlet_runtime::Runtime;
use jiff::Timestamp;

use crate::app;
use crate::args::{ApprovalsArgs, ApprovalsCommand, ApproveArgs, DenyArgs, JsonArgs};
use crate::exit::{ExitStatus, UsageError};
use crate::show::{is_cut, question, whole_question};

/// Lists what waits for an answer, or shows all of one question.
pub(crate) async fn approvals(args: ApprovalsArgs) -> anyhow::Result<ExitStatus> {
    match args.command {
        None => list(args.json).await,
        Some(ApprovalsCommand::Show { id, json }) => show(&id, json).await,
    }
}

async fn show(id: &str, args: JsonArgs) -> anyhow::Result<ExitStatus> {
    let found = app::inbox()?.pending().await?.into_iter().find(|waiting| waiting.request.id == id);
    let Some(waiting) = found else {
        return Err(UsageError::new(format!("no question `{id}` waits for an answer"))
            .hint("see `gimlet approvals`")
            .into());
    };
    match args.json {
        true => crate::out::json(&waiting)?,
        false => write!(crate::out::stdout(), "{}", whole_question(&waiting.request))?,
    }
    Ok(ExitStatus::Success)
}

async fn list(args: JsonArgs) -> anyhow::Result<ExitStatus> {
    let runtime = app::plain()?;
    let pending = runtime.inbox().pending().await?;
    let mut stdout = crate::out::stdout();
    if args.json {
        crate::out::json(&pending)?;
        return Ok(ExitStatus::Success);
    }
    if pending.is_empty() {
        writeln!(crate::out::stderr(), "nothing waits for an approval")?;
    }
    for waiting in pending {
        write!(stdout, "{}", question(&waiting.request))?;
        let kept = is_kept(&runtime, &waiting.run).await;
        let resume = if kept { format!(" && gimlet resume {}", waiting.run) } else { String::new() };
        if is_cut(&waiting.request) {
            writeln!(stdout, "  gimlet approvals show {} shows all of it", waiting.request.id)?;
        }
        writeln!(stdout, "  gimlet approve {}{resume}", waiting.request.id)?;
    }
    Ok(ExitStatus::Success)
}

/// Says yes.
pub(crate) async fn approve(args: &ApproveArgs) -> anyhow::Result<ExitStatus> {
    let scope = match (args.session, args.always) {
        (_, true) => Scope::Always,
        (true, false) => Scope::Session,
        (false, false) => Scope::Once,
    };
    decide(&args.id, &Decision::Approve { scope }, "approved").await
}

/// Says no.
pub(crate) async fn deny(args: DenyArgs) -> anyhow::Result<ExitStatus> {
    decide(&args.id, &Decision::Deny { feedback: args.feedback }, "denied").await
}

async fn decide(id: &str, decision: &Decision, word: &str) -> anyhow::Result<ExitStatus> {
    let runtime = app::plain()?;
    let inbox = runtime.inbox();
    let run = inbox
        .pending()
        .await?
        .into_iter()
        .find(|question| question.request.id == id)
        .map(|question| question.run);
    inbox
        .decide(id, decision, Timestamp::now())
        .await
        .map_err(|error| UsageError::new(error.to_string()).hint("see `gimlet approvals`"))?;
    let mut stderr = crate::out::stderr();
    writeln!(stderr, "{word} {id}")?;
    match run {
        Some(run) if is_kept(&runtime, &run).await => {
            writeln!(stderr, "hint: gimlet resume {run} carries on")?
        }
        // `gimlet tools call` or a client of `gimlet mcp serve` asked, and is to ask again.
        Some(_) => match decision {
            Decision::Approve { .. } | Decision::Edit { .. } => {
                writeln!(stderr, "hint: make the same call again")?;
            }
            Decision::Deny { .. } | Decision::Defer | Decision::Abort => {}
        },
        None => {}
    }
    Ok(ExitStatus::Success)
}

/// Whether a question belongs to a run that can be carried on.
async fn is_kept(runtime: &Runtime, run: &RunId) -> bool {
    runtime.store().lease(run).await.is_ok()
}
