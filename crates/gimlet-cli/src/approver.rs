//! Who answers when an approval is needed: a standing grant, a decision given on the command line, the mode the run was
//! started with, the person at the terminal, and at last nobody, which suspends the run.

use std::io::{IsTerminal, Write};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::approval::{ApprovalRequest, Approver, Decision, Scope};
use gimlet_store::{Approvals, ApprovalsError, Reach};
use jiff::Timestamp;

use crate::args::ApproveMode;
use crate::show::question;

/// Answers from the approvals file, the mode, or the terminal.
pub(crate) struct CliApprover {
    approvals: Approvals,
    mode: ApproveMode,
    /// What a yes "for the session" is good for; a run that belongs to none is its own session.
    session: Option<String>,
}

impl CliApprover {
    pub(crate) fn new(approvals: Approvals, mode: ApproveMode, session: Option<String>) -> Self {
        CliApprover { approvals, mode, session }
    }

    async fn answer(&self, request: ApprovalRequest) -> Result<Decision, ApprovalsError> {
        let session = self.session.as_deref().unwrap_or(request.run.as_str());
        if self.approvals.granted(&request.binding, session)?.is_some() {
            return Ok(Decision::Approve { scope: Scope::Session });
        }
        if let Some(decision) = self.approvals.decision(&request.id, &request.binding)? {
            return Ok(decision);
        }
        match self.mode {
            ApproveMode::All => Ok(Decision::Approve { scope: Scope::Once }),
            ApproveMode::Never => Ok(Decision::Deny { feedback: None }),
            ApproveMode::Ask if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() => {
                let asked = request.clone();
                let decision =
                    tokio::task::spawn_blocking(move || ask_person(&asked)).await.unwrap_or(Decision::Defer);
                let reach = match decision {
                    Decision::Approve { scope: Scope::Session } => Some(Reach::Session(session.to_owned())),
                    Decision::Approve { scope: Scope::Always } => Some(Reach::Always),
                    Decision::Approve { scope: Scope::Once }
                    | Decision::Deny { .. }
                    | Decision::Defer
                    | Decision::Abort => None,
                };
                if let Some(reach) = reach {
                    self.approvals.grant(&request, &reach, Timestamp::now())?;
                }
                Ok(decision)
            }
            ApproveMode::Ask => {
                self.approvals.ask(&request, session, Timestamp::now())?;
                Ok(Decision::Defer)
            }
        }
    }
}

impl Approver for CliApprover {
    fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, Decision> {
        async move {
            self.answer(request).await.unwrap_or_else(|error| {
                // What cannot be read grants nothing.
                let warning = crate::style::WARNING;
                let _ = writeln!(anstream::stderr(), "{warning}warning:{warning:#} {error}");
                Decision::Deny { feedback: None }
            })
        }
        .boxed()
    }
}

/// Asks on the terminal. Anything that is no clear yes is a no.
fn ask_person(request: &ApprovalRequest) -> Decision {
    let mut stderr = anstream::stderr().lock();
    let _ = write!(stderr, "{}", question(request));
    loop {
        let _ =
            write!(stderr, "  [y]es once, [s]ession, [a]lways, [n]o, [q]uit, or say what to do instead: ");
        let _ = stderr.flush();
        let mut line = String::new();
        match std::io::stdin().read_line(&mut line) {
            Ok(0) | Err(_) => return Decision::Deny { feedback: None },
            Ok(_) => {}
        }
        return match line.trim().to_lowercase().as_str() {
            "" => continue,
            "y" | "yes" => Decision::Approve { scope: Scope::Once },
            "s" | "session" => Decision::Approve { scope: Scope::Session },
            "a" | "always" => Decision::Approve { scope: Scope::Always },
            "n" | "no" => Decision::Deny { feedback: None },
            "q" | "quit" => Decision::Abort,
            _ => Decision::Deny { feedback: Some(line.trim().to_owned()) },
        };
    }
}
