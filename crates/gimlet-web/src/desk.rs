//! The runs this server works on: begun, carried on, spoken to and stopped.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use gimlet::approval::{Decision, Scope};
use gimlet::ids::RunId;
use gimlet::store::{InboxError, Question, RunStatus, RunSummary};
use gimlet_runtime::options::ApproveMode;

use gimlet_runtime::{Attendance, Input, Options, Runtime, Session, Turn, rules};
use jiff::Timestamp;
use serde::Deserialize;

use crate::answers::Answers;
use crate::page::list::Wanted;
use crate::problem::Problem;
use crate::vitals::word;

/// Most runs at work at a time.
const MOST_RUNS: usize = 256;

/// Runs at work, by id.
type AtWork = Arc<Mutex<HashMap<RunId, Session>>>;

pub(crate) struct Desk {
    runtime: Runtime,
    answers: Answers,
    /// Each is taken out when its turn ends, so that another process may take the run up.
    at_work: AtWork,
}

/// An answer as pages and programs send it.
#[derive(Deserialize)]
pub(crate) struct Answer {
    /// What the question was bound to when it was shown.
    pub(crate) binding: String,
    pub(crate) decision: String,
    #[serde(default)]
    pub(crate) scope: Option<String>,
    #[serde(default)]
    pub(crate) feedback: Option<String>,
    #[serde(default)]
    pub(crate) patch: Option<String>,
}

impl Desk {
    pub(crate) fn new(runtime: Runtime) -> Self {
        Desk { runtime, answers: Answers::default(), at_work: AtWork::default() }
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    pub(crate) fn is_here(&self, run: &RunId) -> bool {
        lock(&self.at_work).contains_key(run)
    }

    /// Runs, the newest first.
    pub(crate) async fn runs(&self) -> Result<Vec<RunSummary>, Problem> {
        Ok(self.runtime.catalog().list(1000).await?)
    }

    pub(crate) async fn summary(&self, run: &RunId) -> Result<RunSummary, Problem> {
        let found = self.runs().await?.into_iter().find(|known| known.id == *run);
        found.ok_or_else(|| Problem::not_found(format!("there is no run `{run}`")))
    }

    /// The runs that are wanted, the newest first.
    pub(crate) async fn find(&self, wanted: &Wanted) -> Result<Vec<RunSummary>, Problem> {
        let words = wanted.q.trim().to_lowercase();
        let fits = |run: &RunSummary| {
            (wanted.state.is_empty() || word(&run.status) == wanted.state)
                && (wanted.root.is_empty() || run.root == wanted.root)
        };
        let runs: Vec<RunSummary> = self.runs().await?.into_iter().filter(fits).collect();
        let most = wanted.limit.unwrap_or(usize::MAX);
        if words.is_empty() {
            return Ok(runs.into_iter().take(most).collect());
        }
        let has = |text: &str| text.to_lowercase().contains(&words);
        let mut found = Vec::new();
        for run in runs {
            let is_told = has(&run.task) || has(&run.root) || has(&run.model) || has(run.id.as_str());
            if is_told || has(&self.answers.of(&run, self.runtime.store().as_ref()).await) {
                found.push(run);
            }
            if found.len() == most {
                break;
            }
        }
        Ok(found)
    }

    /// How many questions wait.
    pub(crate) async fn waiting(&self) -> usize {
        self.questions().await.map_or(0, |questions| questions.len())
    }

    /// What happens when the run needs an approval; none where it is not at work here.
    pub(crate) fn mode(&self, run: &RunId) -> Option<ApproveMode> {
        lock(&self.at_work).get(run).map(Session::approve)
    }

    /// Changes what happens when the run needs an approval.
    pub(crate) fn set_mode(&self, run: &RunId, mode: ApproveMode) -> Result<(), Problem> {
        let session = lock(&self.at_work).get(run).cloned();
        let elsewhere = || Problem::conflict("the run is not at work in this server");
        session.ok_or_else(elsewhere)?.set_approve(mode);
        Ok(())
    }

    /// Questions that wait.
    pub(crate) async fn questions(&self) -> Result<Vec<Question>, Problem> {
        self.runtime.inbox().pending().await.map_err(|error| Problem::from(anyhow::Error::from(error)))
    }

    pub(crate) async fn start(&self, options: Options, task: String) -> Result<RunId, Problem> {
        self.has_room()?;
        let session = self.runtime.begin_attended(options, Attendance::Person).await?;
        let turn = session.submit(Input::Task(task)).await?;
        Ok(self.follow(session, turn))
    }

    /// Carries a run on that nobody works on.
    pub(crate) async fn resume(&self, run: &RunId, input: Input) -> Result<(), Problem> {
        self.has_room()?;
        if self.is_here(run) {
            return Err(Problem::conflict("the run is at work already"));
        }
        let session = self.runtime.reopen_attended(run, Options::default(), Attendance::Person).await?;
        let turn = session.submit(input).await?;
        self.follow(session, turn);
        Ok(())
    }

    /// Speaks to a run: in between where it is at work here, as the next task where it rests.
    pub(crate) async fn say(&self, run: &RunId, text: String) -> Result<(), Problem> {
        if text.trim().is_empty() {
            return Err(Problem::unusable("there is nothing to say"));
        }
        let session = lock(&self.at_work).get(run).cloned();
        match session {
            Some(session) => Ok(session.say(&text).await?),
            None => self.resume(run, Input::Task(text)).await,
        }
    }

    pub(crate) fn cancel(&self, run: &RunId) -> Result<(), Problem> {
        let session = lock(&self.at_work).get(run).cloned();
        let elsewhere = || Problem::conflict("the run is not at work in this server; stop it where it is");
        session.ok_or_else(elsewhere)?.cancel();
        Ok(())
    }

    /// Answers a question, and carries its run on where nobody does. Returns the answer as it counts.
    pub(crate) async fn decide(&self, id: &str, answer: Answer) -> Result<Decision, Problem> {
        let asked = self.questions().await?.into_iter().find(|question| question.request.id == id);
        let scope = match answer.scope.as_deref() {
            None | Some("" | "once") => Scope::Once,
            Some("session") => Scope::Session,
            Some("always") => Scope::Always,
            Some(other) => {
                let detail = format!("`{other}` is not a known scope: use once, session or always");
                return Err(Problem::unusable(detail));
            }
        };
        let decision = match (answer.decision.as_str(), answer.patch) {
            ("approve", _) => Decision::Approve { scope },
            ("deny", _) => {
                Decision::Deny { feedback: answer.feedback.filter(|text| !text.trim().is_empty()) }
            }
            ("edit", Some(patch)) => {
                let question = asked.as_ref().ok_or_else(|| answered(id))?;
                if !question.request.editable {
                    return Err(Problem::unusable("there is no patch to edit"));
                }
                self.check(&question.run, &patch).await?;
                Decision::Edit { patch: patch.replace("\r\n", "\n") }
            }
            _ => return Err(Problem::unusable("decision must be approve, deny, or edit with a patch")),
        };
        let given = self.runtime.inbox().answer(id, &answer.binding, &decision, Timestamp::now()).await;
        given.map_err(|error| match error {
            InboxError::NoSuchQuestion(_) => Problem::not_found(error.to_string()),
            InboxError::Answered(_) | InboxError::Used(_) | InboxError::OtherBinding(_) => {
                Problem::conflict(error.to_string())
            }
            other => Problem::from(anyhow::Error::from(other)),
        })?;
        let Some(question) = asked else { return Ok(decision) };
        // Otherwise a process works on it and finds the answer; or a call outside of runs asked.
        let status = self.summary(&question.run).await.map(|run| run.status);
        if let Ok(RunStatus::Suspended { .. } | RunStatus::Interrupted | RunStatus::Crashed) = status {
            match self.resume(&question.run, Input::Resume(None)).await {
                // Somebody else carries it on, and finds the answer.
                Err(problem) if problem.status == StatusCode::CONFLICT => {}
                other => other?,
            }
        }
        Ok(decision)
    }

    /// Makes sure that an edited patch applies, before anybody approves it.
    async fn check(&self, run: &RunId, patch: &str) -> Result<(), Problem> {
        use gimlet_runtime::parts::tools::patch::propose_diff;
        let summary = self.summary(run).await?;
        let (process, folder) = (self.runtime.process(), Path::new(&summary.root));
        let policy = rules::policy(process, folder)?;
        let root = gimlet_runtime::root(process, folder, &policy)?;
        let checked = propose_diff(&root, "edited", &patch.replace("\r\n", "\n"));
        checked.map(drop).map_err(|error| Problem::unusable(format!("the patch does not apply: {error}")))
    }

    /// Stops every run that is at work here; they can be resumed.
    pub(crate) async fn stop_all(&self) {
        let sessions: Vec<Session> = lock(&self.at_work).values().cloned().collect();
        sessions.iter().for_each(Session::cancel);
        drop(sessions);
        for _ in 0..50 {
            if lock(&self.at_work).is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    fn has_room(&self) -> Result<(), Problem> {
        match lock(&self.at_work).len() {
            0..MOST_RUNS => Ok(()),
            _ => Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many runs are at work")),
        }
    }

    fn follow(&self, session: Session, turn: Turn) -> RunId {
        let run = turn.run().clone();
        lock(&self.at_work).insert(run.clone(), session);
        let (at_work, id) = (self.at_work.clone(), run.clone());
        tokio::spawn(async move {
            // How it ended is in its log.
            let _ = turn.ended().await;
            let session = lock(&at_work).remove(&id);
            drop(session);
        });
        run
    }
}

fn answered(id: &str) -> Problem {
    Problem::conflict(format!("question `{id}` does not wait for an answer"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
