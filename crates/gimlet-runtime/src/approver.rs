//! Who answers when a session needs an approval: a lasting approval, a decision given elsewhere, the session's mode, whoever
//! attends the session, and at last nobody, which suspends the run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::approval::{ApprovalRequest, Approver, Asking, Decision, Scope};
use gimlet_config::options::ApproveMode;
use gimlet_store::{Approvals, ApprovalsError, Reach};
use jiff::Timestamp;
use tokio::sync::{oneshot, watch};

use crate::notice::{Notice, Notify};

/// Whether somebody can answer questions of a session while it works.
#[derive(Clone, Default)]
pub enum Attendance {
    /// Nobody: a question suspends the run.
    #[default]
    Nobody,
    /// Somebody calls [`Session::pending`](crate::Session::pending) and [`Session::decide`](crate::Session::decide).
    Person,
    /// Somebody else answers everything, lasting approvals included.
    Other(Arc<dyn Approver>),
}

/// A question that waits, and the way back.
struct Waiting {
    request: ApprovalRequest,
    answer: oneshot::Sender<Decision>,
}

/// Answers for one session.
pub struct SessionApprover {
    approvals: Approvals,
    mode: ApproveMode,
    /// What a yes "for the session" is good for; a run that belongs to none is its own session.
    session: Option<String>,
    attendance: Attendance,
    /// Questions that wait for whoever attends.
    waiting: Mutex<BTreeMap<String, Waiting>>,
    /// Told whenever `waiting` changes.
    changed: watch::Sender<()>,
    /// An answer that was given before its question is asked again; used once.
    ready: Mutex<Option<(String, Decision)>>,
    notify: Notify,
}

impl SessionApprover {
    /// One for a session of this name.
    pub fn new(
        approvals: Approvals,
        mode: ApproveMode,
        session: Option<String>,
        attendance: Attendance,
        notify: Notify,
    ) -> Self {
        SessionApprover {
            approvals,
            mode,
            session,
            attendance,
            waiting: Mutex::default(),
            changed: watch::Sender::new(()),
            ready: Mutex::default(),
            notify,
        }
    }

    /// Has an answer ready for a question that will be asked again.
    pub(crate) fn prepare(&self, ready: Option<(String, Decision)>) {
        *lock(&self.ready) = ready;
    }

    /// The questions that wait.
    pub fn pending(&self) -> Vec<ApprovalRequest> {
        lock(&self.waiting).values().map(|waiting| waiting.request.clone()).collect()
    }

    /// Waits until a question waits, and returns the first one.
    pub async fn asked(&self) -> ApprovalRequest {
        let mut changed = self.changed.subscribe();
        loop {
            let first = lock(&self.waiting).values().next().map(|waiting| waiting.request.clone());
            if let Some(request) = first {
                return request;
            }
            // The sender is part of this value, so it is there.
            let _ = changed.changed().await;
        }
    }

    /// Answers a question that waits. Says whether it did.
    pub fn decide(&self, approval: &str, decision: Decision) -> bool {
        let waiting = lock(&self.waiting).remove(approval);
        self.changed.send_replace(());
        waiting.is_some_and(|waiting| waiting.answer.send(decision).is_ok())
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
        match (stricter(self.mode, request.asking), &self.attendance) {
            (ApproveMode::All, _) => Ok(Decision::Approve { scope: Scope::Once }),
            (ApproveMode::Never, _) => Ok(Decision::Deny { feedback: None }),
            (ApproveMode::Ask, Attendance::Person) => {
                let decision = self.wait_for(&request).await;
                self.remember(&request, &decision, session)?;
                Ok(decision)
            }
            (ApproveMode::Ask, Attendance::Nobody | Attendance::Other(_)) => {
                self.approvals.ask(&request, session, Timestamp::now())?;
                Ok(Decision::Defer)
            }
        }
    }

    /// Puts the question to whoever attends. Whoever does not answer any more has decided nothing.
    async fn wait_for(&self, request: &ApprovalRequest) -> Decision {
        let (answer, decided) = oneshot::channel();
        let waiting = Waiting { request: request.clone(), answer };
        lock(&self.waiting).insert(request.id.clone(), waiting);
        self.changed.send_replace(());
        let _forget = Forget(self, &request.id);
        decided.await.unwrap_or(Decision::Abort)
    }

    fn take_ready(&self, id: &str) -> Option<Decision> {
        lock(&self.ready).take_if(|(of, _)| of == id).map(|(_, decision)| decision)
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

/// Takes a question back when the run that asked stops before it is answered.
struct Forget<'a>(&'a SessionApprover, &'a str);

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        lock(&self.0.waiting).remove(self.1);
        self.0.changed.send_replace(());
    }
}

/// The mode for an agent that may not be content with it: it can be stricter, never looser.
pub fn stricter(mode: ApproveMode, asking: Asking) -> ApproveMode {
    match (mode, asking) {
        (ApproveMode::Never, _) | (_, Asking::Nobody) => ApproveMode::Never,
        (ApproveMode::All, Asking::Person) => ApproveMode::Ask,
        (ApproveMode::All | ApproveMode::Ask, Asking::Open | Asking::Person) => mode,
    }
}

impl Approver for SessionApprover {
    fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, Decision> {
        if let Attendance::Other(other) = &self.attendance {
            return other.ask(request);
        }
        async move {
            self.answer(request).await.unwrap_or_else(|error| {
                // What cannot be read grants nothing.
                (self.notify)(Notice::Warning(error.to_string()));
                Decision::Deny { feedback: None }
            })
        }
        .boxed()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
