//! Who answers when an approval is needed: a standing grant, a decision given on the command line, the mode the run was
//! started with, the person at the terminal, and at last nobody, which suspends the run.

use std::io::Write;
use std::sync::{Mutex, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::approval::{ApprovalRequest, Approver, Asking, Decision, Scope};
use gimlet_store::{Approvals, ApprovalsError, Reach};
use jiff::Timestamp;
use tokio::sync::oneshot;

use crate::args::ApproveMode;
use crate::front::{Asked, Person};

/// Answers from the approvals file, the mode, or the terminal.
pub(crate) struct CliApprover {
    approvals: Approvals,
    mode: ApproveMode,
    /// What a yes "for the session" is good for; a run that belongs to none is its own session.
    session: Option<String>,
    /// Somebody at a terminal.
    person: Option<Person>,
    /// An answer that was given before the question is asked again; used once.
    ready: Mutex<Option<(String, Decision)>>,
}

impl CliApprover {
    pub(crate) fn new(
        approvals: Approvals,
        mode: ApproveMode,
        session: Option<String>,
        person: Option<Person>,
    ) -> Self {
        CliApprover { approvals, mode, session, person, ready: Mutex::default() }
    }

    /// Has an answer ready for a question that will be asked again.
    pub(crate) fn ready(self, id: String, decision: Decision) -> Self {
        CliApprover { ready: Mutex::new(Some((id, decision))), ..self }
    }

    async fn answer(&self, request: ApprovalRequest) -> Result<Decision, ApprovalsError> {
        let session = self.session.as_deref().unwrap_or(request.run.as_str());
        if self.approvals.granted(&request.binding, session)?.is_some() {
            return Ok(Decision::Approve { scope: Scope::Session });
        }
        if let Some(decision) = self.approvals.decision(&request.id, &request.binding)? {
            return Ok(decision);
        }
        if let Some(decision) = self.take_ready(&request.id) {
            self.remember(&request, &decision, session)?;
            return Ok(decision);
        }
        match (stricter(self.mode, request.asking), &self.person) {
            (ApproveMode::All, _) => Ok(Decision::Approve { scope: Scope::Once }),
            (ApproveMode::Never, _) => Ok(Decision::Deny { feedback: None }),
            (ApproveMode::Ask, Some(person)) => {
                let (answer, decided) = oneshot::channel();
                let asked = Asked { request: request.clone(), answer };
                // Whoever does not answer any more has decided nothing.
                let decision = match person.send(asked) {
                    Ok(()) => decided.await.unwrap_or(Decision::Abort),
                    Err(_) => Decision::Abort,
                };
                self.remember(&request, &decision, session)?;
                Ok(decision)
            }
            (ApproveMode::Ask, None) => {
                self.approvals.ask(&request, session, Timestamp::now())?;
                Ok(Decision::Defer)
            }
        }
    }

    fn take_ready(&self, id: &str) -> Option<Decision> {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        ready.take_if(|(of, _)| of == id).map(|(_, decision)| decision)
    }

    /// Keeps a yes that reaches further than this call.
    fn remember(
        &self,
        request: &ApprovalRequest,
        decision: &Decision,
        session: &str,
    ) -> Result<(), ApprovalsError> {
        let reach = match decision {
            Decision::Approve { scope: Scope::Session } => Reach::Session(session.to_owned()),
            Decision::Approve { scope: Scope::Always } => Reach::Always,
            Decision::Approve { scope: Scope::Once }
            | Decision::Deny { .. }
            | Decision::Defer
            | Decision::Abort => return Ok(()),
        };
        self.approvals.grant(request, &reach, Timestamp::now())
    }
}

/// The mode for an agent that may not be content with it: it can be stricter, never looser.
pub(crate) fn stricter(mode: ApproveMode, asking: Asking) -> ApproveMode {
    match (mode, asking) {
        (ApproveMode::Never, _) | (_, Asking::Nobody) => ApproveMode::Never,
        (ApproveMode::All, Asking::Person) => ApproveMode::Ask,
        (ApproveMode::All | ApproveMode::Ask, Asking::Open | Asking::Person) => mode,
    }
}

impl Approver for CliApprover {
    fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, Decision> {
        async move {
            self.answer(request).await.unwrap_or_else(|error| {
                // What cannot be read grants nothing.
                let warning = crate::style::WARNING;
                let _ = writeln!(crate::out::stderr(), "{warning}warning:{warning:#} {error}");
                Decision::Deny { feedback: None }
            })
        }
        .boxed()
    }
}
