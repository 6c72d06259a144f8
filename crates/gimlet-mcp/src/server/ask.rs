//! `ask`: a whole task, worked on by an agent of the user's own. It may take minutes, so it tells how far it is; it
//! may stop for an approval, and goes on where it stopped.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use gimlet::Ending;
use gimlet::approval::Approver;
use gimlet::event::{Event, EventKind, Suspension};
use gimlet::journal::Observer;
use gimlet::tool::{ToolFailure, code};
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ProgressNotificationParam, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::approve::Way;
use super::{Server, ask_back, done, failed};

/// The tool's name.
pub(super) const NAME: &str = "ask";

/// What is to be worked on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    /// Something new.
    New(String),
    /// A run that stopped.
    Resume(String),
}

/// How far a task came.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The run that worked on it.
    pub run: String,
    /// How it ended, for now or for good.
    pub ending: Ending,
}

/// Works on whole tasks.
pub trait Tasks: Send + Sync {
    /// Works until the task is done or cannot go on. An error is told to the client.
    fn work(
        &self,
        task: Task,
        approver: Arc<dyn Approver>,
        observer: Arc<dyn Observer>,
        stop: CancellationToken,
    ) -> BoxFuture<'_, Result<Report, String>>;
}

/// Runs that wait for an answer of this session's client. Only these can be carried on by what a client sends back.
#[derive(Debug, Default)]
pub(super) struct Suspended(Mutex<HashSet<String>>);

impl Suspended {
    fn add(&self, run: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(run);
    }

    fn take(&self, run: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(run)
    }
}

/// The tool as clients see it.
pub(super) fn listed() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "task": {"type": "string", "description": "What to do, in full: nothing else of this conversation is seen."},
            "resume": {"type": "string", "description": "Instead of a task: the run to carry on after an approval."},
        },
        "additionalProperties": false,
    });
    let schema = schema.as_object().cloned().unwrap_or_default();
    Tool::new(
        NAME,
        "Hand a whole task about this folder's code to Gimlet, an agent with its own model. Returns its answer.",
        schema,
    )
    .with_annotations(ToolAnnotations::new().read_only(false).open_world(false))
}

impl Server {
    pub(super) async fn ask(
        &self,
        tasks: Arc<dyn Tasks>,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let args = request.arguments.unwrap_or_default();
        let task = match self.task(&args, request.request_state.as_deref()) {
            Ok(task) => task,
            Err(problem) => return wrong(code::VALIDATION_FAILED, problem),
        };
        let approver = self.approver(Way::of(&context, request.input_responses));
        let (steps, mut news) = mpsc::channel(64);
        let work = tasks.work(task, approver.clone(), Arc::new(Steps(steps)), context.ct.clone());
        tokio::pin!(work);
        let token = context.meta.get_progress_token();
        let mut count = 0.0;
        let worked = loop {
            tokio::select! {
                biased;
                Some(step) = news.recv() => if let Some(token) = token.clone() {
                    count += 1.0;
                    let progress = ProgressNotificationParam::new(token, count).with_message(step);
                    // A client that does not listen misses nothing it needs.
                    let _ = context.peer.notify_progress(progress).await;
                },
                worked = &mut work => break worked,
            }
        };
        let Report { run, ending } = match worked {
            Ok(report) => report,
            Err(problem) => return wrong("TASK_FAILED", problem),
        };
        match ending {
            Ending::Finished(finished) => done(json!({
                "answer": finished.value.unwrap_or(Value::String(finished.answer)),
                "state": finished.state, "steps": finished.steps, "run": run, "notes": finished.notes,
            }))
            .into(),
            Ending::Suspended(Suspension::Approval { approval }) => match ask_back(&approver, Some(run.clone())) {
                Some(question) => {
                    self.suspended.add(run);
                    question.into()
                }
                None => done(json!({
                    "state": "suspended", "run": run, "approval": approval,
                    "next": format!("Ask the user to run `gimlet approve {approval}`, then call ask(resume={run:?})."),
                }))
                .into(),
            },
            Ending::Suspended(Suspension::Interrupted) => wrong(code::CANCELLED, "the task was stopped".into()),
            Ending::Suspended(Suspension::Diverged { message }) => wrong("TASK_FAILED", message),
            Ending::Failed(failure) => wrong(&failure.error, failure.message),
        }
    }

    fn task(&self, args: &Map<String, Value>, state: Option<&str>) -> Result<Task, String> {
        let text =
            |key: &str| args.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
        match (state, text("task"), text("resume")) {
            (Some(run), _, _) if self.suspended.take(run) => Ok(Task::Resume(run.to_owned())),
            (Some(_), _, _) => Err("the request state is not one of this session's".into()),
            (None, Some(task), None) => Ok(Task::New(task.to_owned())),
            (None, None, Some(run)) => Ok(Task::Resume(run.to_owned())),
            (None, ..) => Err("give a `task`, or a run to `resume`".into()),
        }
    }
}

fn wrong(error: &str, message: String) -> CallToolResponse {
    failed(&ToolFailure { tool: NAME.into(), ..ToolFailure::new(error, message) }).into()
}

/// Turns events into a few words each.
struct Steps(mpsc::Sender<String>);

impl Observer for Steps {
    fn observe(&self, event: &Event) {
        let words = match &event.kind {
            EventKind::StepStarted { step, .. } => format!("step {step}"),
            EventKind::ToolStarted { tool, .. } => format!("calls {tool}"),
            _ => return,
        };
        // A full channel means that the client is slow; it misses a step.
        let _ = self.0.try_send(words);
    }
}
