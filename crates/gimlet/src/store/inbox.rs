//! Questions to a person that outlive the process that asked, the answers, and lasting approvals.

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde::Serialize;

use crate::approval::{ApprovalRequest, Decision};
use crate::ids::RunId;

/// Where questions wait for answers that may be given in another process or on another machine.
///
/// An implementation never blocks the thread that polls it: what has to wait for a file or a server waits elsewhere.
pub trait Inbox: Send + Sync {
    /// Records a question for somebody to find. `session` is what a yes for the session will be good for; a run that
    /// belongs to none passes its own id.
    ///
    /// Asked again by its run, a question keeps an answer that was not used yet, unless what it asks for has changed.
    fn ask<'a>(
        &'a self,
        request: &'a ApprovalRequest,
        session: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<(), InboxError>>;

    /// Answers a question. Until the run has acted on it the answer can be changed, and `Defer` takes it back.
    fn decide<'a>(
        &'a self,
        id: &'a str,
        decision: &'a Decision,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<(), InboxError>>;

    /// Answers a question that nobody has answered, provided it asks for exactly what was shown.
    fn answer<'a>(
        &'a self,
        id: &'a str,
        binding: &'a str,
        decision: &'a Decision,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<(), InboxError>>;

    /// Records the answer that the asking process was given itself, and returns the answer that counts: this one, or
    /// one that was given elsewhere before. Either is used up.
    fn settle<'a>(
        &'a self,
        request: &'a ApprovalRequest,
        decision: Decision,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Decision, InboxError>>;

    /// Hands out the answer to a question, provided it was given for exactly this binding. It is handed out once: should
    /// the run die before it acts on it, it has to ask again. A wider yes goes on as a grant.
    fn take<'a>(
        &'a self,
        id: &'a str,
        binding: &'a str,
    ) -> BoxFuture<'a, Result<Option<Decision>, InboxError>>;

    /// Waits until there is an answer to [`take`](Inbox::take), whoever gives it. Nothing is used up, so the wait can be
    /// given up at any time.
    fn answered<'a>(&'a self, id: &'a str, binding: &'a str) -> BoxFuture<'a, Result<(), InboxError>>;

    /// Questions nobody has answered, oldest first.
    fn pending(&self) -> BoxFuture<'_, Result<Vec<Question>, InboxError>>;

    /// Gives a standing yes to what a request is bound to.
    fn grant<'a>(
        &'a self,
        request: &'a ApprovalRequest,
        reach: &'a Reach,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<(), InboxError>>;

    /// How far a standing yes for this binding reaches, seen from a session; none when there is none.
    fn granted<'a>(
        &'a self,
        binding: &'a str,
        session: &'a str,
    ) -> BoxFuture<'a, Result<Option<Reach>, InboxError>>;

    /// Every standing yes, oldest first.
    fn grants(&self) -> BoxFuture<'_, Result<Vec<Grant>, InboxError>>;

    /// Takes back every standing yes for a binding, with the answers it came from that were not used yet, and says how
    /// many there were.
    fn revoke<'a>(&'a self, binding: &'a str) -> BoxFuture<'a, Result<usize, InboxError>>;

    /// Forgets the questions of a run that is removed, and says how many there were. Lasting approvals that came from it
    /// stay.
    fn forget_run<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<usize, InboxError>>;
}

/// Why a question could not be asked, answered or found.
#[derive(Debug, thiserror::Error)]
pub enum InboxError {
    /// Nobody asked that.
    #[error("there is no question `{0}`")]
    NoSuchQuestion(String),
    /// Two runs ask under one id.
    #[error("question `{id}` was asked by run `{run}`")]
    OtherRun {
        /// The question.
        id: String,
        /// Whose it is.
        run: RunId,
    },
    /// The answer has been acted on.
    #[error("question `{0}` has been answered and the answer was used")]
    Used(String),
    /// Somebody else answered first.
    #[error("question `{0}` has been answered already")]
    Answered(String),
    /// What was shown is not what is asked.
    #[error("question `{0}` asks for something else than what was shown")]
    OtherBinding(String),
    /// The place the questions are kept in cannot be read or written.
    #[error(transparent)]
    Backend(Box<dyn std::error::Error + Send + Sync>),
}

/// A question and whose it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Question {
    /// The run that asks.
    pub run: RunId,
    /// The session the run belongs to.
    pub session: String,
    /// When it was first asked.
    pub asked: Timestamp,
    /// What is asked.
    pub request: ApprovalRequest,
}

/// How far a standing yes reaches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// Every run of the session with this name.
    Session(String),
    /// Everywhere, from now on.
    Always,
}

/// A standing yes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Grant {
    /// The request it was first given for; its binding says exactly what is allowed.
    pub request: ApprovalRequest,
    /// Where it holds.
    pub reach: Reach,
    /// When it was given.
    pub granted: Timestamp,
}
