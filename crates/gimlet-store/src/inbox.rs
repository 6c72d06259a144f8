//! Approvals as an inbox. The database is only touched on threads where blocking is allowed.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::approval::{ApprovalRequest, Decision};
use gimlet::ids::RunId;
use gimlet::store::{Grant, Inbox, InboxError, Question, Reach};
use jiff::Timestamp;

use crate::approvals::{Approvals, ApprovalsError};
use crate::store::FileStore;

/// How long between two looks at the file's time of change.
const PAUSE: Duration = Duration::from_millis(100);
/// After so many pauses the database is read even if the file seems unchanged.
const LOOKS: u32 = 20;

impl FileStore {
    /// Works on the approvals where blocking is allowed.
    fn with_approvals<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Approvals) -> Result<T, ApprovalsError> + Send + 'static,
    ) -> impl Future<Output = Result<T, InboxError>> + Send + 'static {
        let (home, kept) = (self.home().to_owned(), self.approvals.clone());
        let done = tokio::task::spawn_blocking(move || {
            let approvals = match kept.get() {
                Some(approvals) => approvals,
                // Two threads may open the file at once; either value is as good.
                None => {
                    let opened = Approvals::open(&home)?;
                    kept.get_or_init(|| opened)
                }
            };
            work(approvals)
        });
        async { Ok(done.await.map_err(|error| InboxError::Backend(Box::new(error)))??) }
    }
}

impl Inbox for FileStore {
    fn ask<'a>(
        &'a self,
        request: &'a ApprovalRequest,
        session: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<(), InboxError>> {
        let (request, session) = (request.clone(), session.to_owned());
        self.with_approvals(move |approvals| approvals.ask(&request, &session, now)).boxed()
    }

    fn decide<'a>(
        &'a self,
        id: &'a str,
        decision: &'a Decision,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<(), InboxError>> {
        let (id, decision) = (id.to_owned(), decision.clone());
        self.with_approvals(move |approvals| approvals.decide(&id, &decision, now)).boxed()
    }

    fn answer<'a>(
        &'a self,
        id: &'a str,
        binding: &'a str,
        decision: &'a Decision,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<(), InboxError>> {
        let (id, binding, decision) = (id.to_owned(), binding.to_owned(), decision.clone());
        self.with_approvals(move |approvals| approvals.answer(&id, &binding, &decision, now)).boxed()
    }

    fn settle<'a>(
        &'a self,
        request: &'a ApprovalRequest,
        decision: Decision,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Decision, InboxError>> {
        let request = request.clone();
        self.with_approvals(move |approvals| approvals.settle(&request, decision, now)).boxed()
    }

    fn take<'a>(
        &'a self,
        id: &'a str,
        binding: &'a str,
    ) -> BoxFuture<'a, Result<Option<Decision>, InboxError>> {
        let (id, binding) = (id.to_owned(), binding.to_owned());
        self.with_approvals(move |approvals| approvals.decision(&id, &binding)).boxed()
    }

    fn answered<'a>(&'a self, id: &'a str, binding: &'a str) -> BoxFuture<'a, Result<(), InboxError>> {
        let (id, binding): (Arc<str>, Arc<str>) = (id.into(), binding.into());
        async move {
            let mut seen = None;
            let mut unseen = 0;
            loop {
                let (id, binding) = (id.clone(), binding.clone());
                // A change in the same tick of the file system's clock shows no new time, so a look is taken anyway at
                // times.
                let (before, overdue) = (seen, unseen >= LOOKS);
                let (stamp, answered) = self
                    .with_approvals(move |approvals| {
                        let stamp = approvals.stamp();
                        let look = stamp != before || overdue;
                        Ok((stamp, look.then(|| approvals.has_decision(&id, &binding)).transpose()?))
                    })
                    .await?;
                match answered {
                    Some(true) => return Ok(()),
                    Some(false) => (seen, unseen) = (stamp, 0),
                    None => unseen += 1,
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
        .boxed()
    }

    fn pending(&self) -> BoxFuture<'_, Result<Vec<Question>, InboxError>> {
        self.with_approvals(Approvals::pending).boxed()
    }

    fn grant<'a>(
        &'a self,
        request: &'a ApprovalRequest,
        reach: &'a Reach,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<(), InboxError>> {
        let (request, reach) = (request.clone(), reach.clone());
        self.with_approvals(move |approvals| approvals.grant(&request, &reach, now)).boxed()
    }

    fn granted<'a>(
        &'a self,
        binding: &'a str,
        session: &'a str,
    ) -> BoxFuture<'a, Result<Option<Reach>, InboxError>> {
        let (binding, session) = (binding.to_owned(), session.to_owned());
        self.with_approvals(move |approvals| approvals.granted(&binding, &session)).boxed()
    }

    fn grants(&self) -> BoxFuture<'_, Result<Vec<Grant>, InboxError>> {
        self.with_approvals(Approvals::grants).boxed()
    }

    fn revoke<'a>(&'a self, binding: &'a str) -> BoxFuture<'a, Result<usize, InboxError>> {
        let binding = binding.to_owned();
        self.with_approvals(move |approvals| approvals.revoke(&binding)).boxed()
    }

    fn forget_run<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<usize, InboxError>> {
        let run = run.clone();
        self.with_approvals(move |approvals| approvals.forget_run(&run)).boxed()
    }
}
