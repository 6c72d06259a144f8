//! `gimlet TASK`, `gimlet run` and `gimlet resume`.

use gimlet::Ending;
use gimlet::event::Suspension;
use gimlet_runtime::{Input, Session, is_answered};

use crate::app;
use crate::args::{ResumeArgs, RunArgs};
use crate::attach;
use crate::ending::{At, refused, resume_line, tell, tell_unfinished};
use crate::exit::{ExitStatus, UsageError};
use crate::front::{Front, Typing};
use crate::interrupt;
use crate::session::Interactive;

/// Runs one task, or an interactive session where there is a terminal and no task.
pub(crate) async fn run(args: RunArgs) -> anyhow::Result<ExitStatus> {
    let options = args.options;
    let runtime = app::runtime(&options)?;
    if args.task.is_none() && is_interactive() && !options.json {
        let front = Front::new(&options, Typing::Steers);
        let begun = runtime.begin_attended((&options).into(), front.attendance());
        let session = interrupt::starting(begun).await?;
        return Interactive::new(session, front, options)?.run().await;
    }
    let task = attach::task(args.task).await?;
    let front = Front::new(&options, Typing::Ignored);
    let begun = runtime.begin_attended((&options).into(), front.attendance());
    let session = interrupt::starting(begun).await?;
    let task = expanded(task, &session).await?;
    one_task(session, front, Some(task)).await
}

/// Carries on a run, or goes on with a conversation.
pub(crate) async fn resume(args: ResumeArgs) -> anyhow::Result<ExitStatus> {
    let options = args.options;
    if options.work.no_instructions {
        return Err(
            UsageError::new("`--no-instructions` is for a new run; this one has read them, or not").into()
        );
    }
    let runtime = app::runtime(&options)?;
    let id = runtime.find(&args.run).await?;
    let front = Front::new(&options, Typing::Ignored);
    let opened = runtime.reopen_attended(&id, (&options).into(), front.attendance());
    let session = interrupt::starting(opened).await?;
    let message = match args.message {
        Some(message) => {
            let message = attach::task(Some(message)).await?;
            Some(expanded(message, &session).await?)
        }
        None => None,
    };
    if message.is_none() && is_answered(&session.stored_events().await?) {
        if is_interactive() && !options.json {
            drop(front);
            let front = Front::new(&options, Typing::Steers);
            return Interactive::new(session, front, options)?.run().await;
        }
        return Err(UsageError::new(format!("run {id} is finished; there is nothing to carry on"))
            .hint(format!("gimlet resume {id} \"…\" says something more to it"))
            .into());
    }
    one_task(session, front, message).await
}

/// Works on one task, or on what is left of one, and tells how it ended.
async fn one_task(session: Session, mut front: Front, task: Option<String>) -> anyhow::Result<ExitStatus> {
    let cancel = interrupt::interruptible()?;
    front.tell_warnings(session.settings());
    let resume = resume_line(&session);
    let input = task.map_or(Input::Resume(None), Input::Task);
    let turn = session.submit(input).await.map_err(|error| refused(error, At::Shell(&resume)))?;
    let (id, resume) = (turn.run().to_string(), resume_line(&session));
    let ending = front.follow_until(&session, turn, &cancel).await?;
    if ending == Ending::Suspended(Suspension::Interrupted) {
        tell_unfinished(&session, &front).await?;
    }
    tell(&id, At::Shell(&resume), &ending, &front).await?;
    Ok(ExitStatus::from(&ending))
}

/// The words with the files they name, and what was piped in.
async fn expanded(task: attach::Task, session: &Session) -> anyhow::Result<String> {
    task.expanded(session).await
}

fn is_interactive() -> bool {
    crate::out::can_ask() && crate::out::answers_on_terminal()
}
