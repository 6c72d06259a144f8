//! Who answers when a session needs an approval: a lasting approval, a decision given elsewhere, the session's mode, whoever
//! attends the session, and at last nobody, which suspends the run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::approval::{ApprovalRequest, Approver, Asking, Decision, Scope};
use gimlet::store::{Inbox, InboxError, Reach};
use gimlet_config::options::ApproveMode;
use jiff::Timestamp;
use tokio::sync::{oneshot, watch};

use crate::mode::{Bounded, decided_by};
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
    inbox: Arc<dyn Inbox>,
    mode: Mutex<ApproveMode>,
    /// What a yes "for the session" is good for; a run that belongs to none is its own session.
    session: Option<String>,
    attendance: Attendance,
    /// What stays inside the project.
    bounded: Bounded,
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
        inbox: Arc<dyn Inbox>,
        mode: ApproveMode,
        session: Option<String>,
        attendance: Attendance,
        bounded: Bounded,
        notify: Notify,
    ) -> Self {
        SessionApprover {
            inbox,
            mode: Mutex::new(mode),
            session,
            attendance,
            bounded,
            waiting: Mutex::default(),
            changed: watch::Sender::new(()),
            ready: Mutex::default(),
            notify,
        }
    }

    /// What happens when an approval is needed.
    pub fn mode(&self) -> ApproveMode {
        *lock(&self.mode)
    }

    /// Changes what happens when an approval is needed.
    pub fn set_mode(&self, mode: ApproveMode) {
        *lock(&self.mode) = mode;
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

    async fn answer(&self, request: ApprovalRequest) -> Result<Decision, InboxError> {
        let session = self.session.as_deref().unwrap_or(request.run.as_str());
        if self.inbox.granted(&request.binding, session).await?.is_some()
            || self.may_edit(&request, session).await?
        {
            return Ok(Decision::Approve { scope: Scope::Session });
        }
        let decision = self.decision(&request, session).await?;
        // Whoever agrees to an edit for the session agrees to edits of this project, not to these bytes alone.
        if decision == (Decision::Approve { scope: Scope::Session }) && Bounded::is_edit(&request) {
            let edits = ApprovalRequest { binding: self.bounded.edits_binding(), ..request.clone() };
            self.inbox.grant(&edits, &Reach::Session(session.to_owned()), Timestamp::now()).await?;
        }
        Ok(decision)
    }

    /// Whether a person agreed to edits of this project for the session. An agent that wants a person asks for each.
    async fn may_edit(&self, request: &ApprovalRequest, session: &str) -> Result<bool, InboxError> {
        let is_open = match request.asking {
            Asking::Open => true,
            Asking::Person | Asking::Nobody => false,
        };
        Ok(is_open
            && Bounded::is_edit(request)
            && self.inbox.granted(&self.bounded.edits_binding(), session).await?.is_some())
    }

    async fn decision(&self, request: &ApprovalRequest, session: &str) -> Result<Decision, InboxError> {
        if let Some(decision) = self.inbox.take(&request.id, &request.binding).await? {
            return Ok(decision);
        }
        if let Some(decision) = self.take_ready(&request.id) {
            self.remember(request, &decision, session).await?;
            // A question that was left open in the inbox waits for nobody any more.
            self.inbox.settle(request, decision.clone(), Timestamp::now()).await?;
            return Ok(decision);
        }
        if let Some(decision) = decided_by(self.mode(), request, &self.bounded) {
            return Ok(decision);
        }
        self.inbox.ask(request, session, Timestamp::now()).await?;
        match &self.attendance {
            // Others find the question, too: whoever answers first, here or in another process, has answered it.
            Attendance::Person => loop {
                tokio::select! {
                    biased;
                    decision = self.wait_for(request) => return match decision {
                        // Whoever stops at a question leaves it open.
                        Decision::Defer | Decision::Abort => Ok(decision),
                        answer @ (Decision::Approve { .. } | Decision::Edit { .. } | Decision::Deny { .. }) => {
                            self.inbox.settle(request, answer, Timestamp::now()).await
                        }
                    },
                    answered = self.inbox.answered(&request.id, &request.binding) => answered?,
                }
                // None where the answer was taken back meanwhile: the question waits again.
                if let Some(decision) = self.inbox.take(&request.id, &request.binding).await? {
                    return Ok(decision);
                }
            },
            Attendance::Nobody | Attendance::Other(_) => Ok(Decision::Defer),
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

    /// Waits until a question waits no more: it was answered, here or elsewhere, or its run stopped.
    pub async fn settled(&self, approval: &str) {
        let mut changed = self.changed.subscribe();
        while lock(&self.waiting).contains_key(approval) {
            // The sender is part of this value, so it is there.
            let _ = changed.changed().await;
        }
    }

    fn take_ready(&self, id: &str) -> Option<Decision> {
        lock(&self.ready).take_if(|(of, _)| of == id).map(|(_, decision)| decision)
    }

    /// Keeps a yes that reaches further than this call.
    async fn remember(
        &self,
        request: &ApprovalRequest,
        decision: &Decision,
        session: &str,
    ) -> Result<(), InboxError> {
        let reach = match decision {
            Decision::Approve { scope: Scope::Session } => Reach::Session(session.to_owned()),
            Decision::Approve { scope: Scope::Always } => Reach::Always,
            Decision::Approve { scope: Scope::Once }
            | Decision::Edit { .. }
            | Decision::Deny { .. }
            | Decision::Defer
            | Decision::Abort => return Ok(()),
        };
        self.inbox.grant(request, &reach, Timestamp::now()).await
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
