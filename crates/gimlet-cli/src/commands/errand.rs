//! One question to the model on behalf of a command: a run of its own, in plan mode, by an agent made for it. It is in the
//! log like any other run.

use gimlet::Ending;
use gimlet::event::{FinishState, Suspension};
use gimlet_runtime::options::{Action, ApproveMode};
use gimlet_runtime::parts::tools::git::Git;
use gimlet_runtime::{Input, Options, Project, Session};
use serde_json::{Value, json};

use crate::args::{ModelOptions, RootArgs, TraceArgs};
use crate::ending::{At, resume_line, tell};
use crate::exit::ExitStatus;
use crate::front::Front;
use crate::{app, interrupt};

/// Who is asked, and how it is to answer.
pub(super) struct Errand {
    /// The agent's name.
    pub(super) name: &'static str,
    /// What it is told beside the standing prompt.
    pub(super) instructions: &'static str,
    /// The tools it has; all of them only look.
    pub(super) tools: &'static [&'static str],
    /// The JSON schema of its answer.
    pub(super) output: Option<Value>,
    pub(super) max_steps: u32,
}

/// The repository of a folder. It needs no model.
pub(super) fn git(root: &RootArgs) -> anyhow::Result<Git> {
    let settings = app::settings(root)?;
    let project = Project::to_look_at(&settings)?;
    let kit = project.kit();
    Ok(Git { root: kit.root.clone(), environment: kit.environment.clone() })
}

/// A session for an errand.
pub(super) async fn begin(
    errand: &Errand,
    model: &ModelOptions,
    root: &RootArgs,
    trace: &TraceArgs,
) -> anyhow::Result<Session> {
    let runtime = app::errand(trace)?;
    let agent = json!({ "instructions": errand.instructions, "tools": errand.tools });
    let options = Options {
        root: root.root.clone(),
        agent: Some(errand.name.to_owned()),
        action: Some(Action::Tools),
        max_steps: Some(errand.max_steps),
        approve: Some(ApproveMode::Plan),
        trace: trace.into(),
        output: errand.output.clone(),
        given: Some(json!({ "agents": { errand.name: agent } })),
        ..Options::from(model)
    };
    interrupt::starting(runtime.begin_attended(options, gimlet_runtime::Attendance::Nobody)).await
}

/// Asks, and waits for the answer. `Err` inside is how the program ends where there is none; the person knows why.
pub(super) async fn answer(session: &Session, task: String) -> anyhow::Result<Result<String, ExitStatus>> {
    let cancel = interrupt::interruptible()?;
    let mut front = Front::errand();
    front.tell_warnings(session.settings());
    let turn = session.submit(Input::Task(task)).await?;
    let (id, resume) = (turn.run().to_string(), resume_line(session));
    let ending = front.follow_until(session, turn, &cancel).await?;
    match &ending {
        Ending::Finished(finished) if finished.state == FinishState::Answered => {
            Ok(Ok(finished.answer.clone()))
        }
        Ending::Suspended(Suspension::Interrupted) => Ok(Err(ExitStatus::Interrupted)),
        Ending::Finished(_) | Ending::Suspended(_) | Ending::Failed(_) => {
            tell(&id, At::Shell(&resume), &ending, &front).await?;
            Ok(Err(ExitStatus::from(&ending)))
        }
    }
}
