//! `gimlet TASK`, `gimlet run` and `gimlet resume`.

use std::sync::Arc;

use gimlet::store::Store;
use tokio_util::sync::CancellationToken;

use crate::args::{ResumeArgs, RunArgs};
use crate::conversation::{self, Conversation};
use crate::ending::{At, refused, tell};
use crate::exit::{ExitStatus, UsageError};
use crate::front::{Front, Typing};
use crate::session::Session;
use crate::{attach, home, world};

/// Runs one task, or an interactive session where there is a terminal and no task.
pub(crate) async fn run(args: RunArgs) -> anyhow::Result<ExitStatus> {
    let options = args.options;
    if args.task.is_none() && is_interactive() && !options.json {
        return Session::new(Conversation::begin(options).await?)?.run().await;
    }
    let blobs = home::store()?;
    let task = attach::task(args.task, &blobs).await?;
    let mut conversation = Conversation::begin(options).await?;
    let task = expanded(task, &conversation).await?;
    let cancel = world::interruptible()?;
    one_task(&mut conversation, Some(&task), cancel).await
}

/// Carries on a run, or goes on with a conversation.
pub(crate) async fn resume(args: ResumeArgs) -> anyhow::Result<ExitStatus> {
    if args.options.work.no_instructions {
        return Err(
            UsageError::new("`--no-instructions` is for a new run; this one has read them, or not").into()
        );
    }
    let json = args.options.json;
    let mut conversation = Conversation::open(&args.run, args.options).await?;
    let message = match args.message {
        Some(message) => {
            let message = attach::task(Some(message), conversation.store.as_ref()).await?;
            Some(expanded(message, &conversation).await?)
        }
        None => None,
    };
    if message.is_none() && conversation::is_answered(&conversation.events().await?) {
        if is_interactive() && !json {
            return Session::new(conversation)?.run().await;
        }
        let id = conversation.id().map(ToString::to_string).unwrap_or_default();
        return Err(UsageError::new(format!("run {id} is finished; there is nothing to carry on"))
            .hint(format!("gimlet resume {id} \"…\" says something more to it"))
            .into());
    }
    let cancel = world::interruptible()?;
    one_task(&mut conversation, message.as_deref(), cancel).await
}

/// Works on one task, or on what is left of one, and tells how it ended.
async fn one_task(
    conversation: &mut Conversation,
    task: Option<&str>,
    cancel: CancellationToken,
) -> anyhow::Result<ExitStatus> {
    let mut front = Front::new(&conversation.options, &conversation.settings, Typing::Ignored);
    let run = match task {
        Some(task) => conversation.say(task, &mut front, cancel).await?,
        None => {
            let id = conversation.id().map(ToString::to_string).unwrap_or_default();
            let run = conversation.carry_on(None, &mut front, cancel).await;
            run.map_err(|error| refused(error, At::Shell(&conversation.resume(&id))))?
        }
    };
    let id = run.id().to_string();
    let ending = front.drive(run).await?;
    tell(&id, At::Shell(&conversation.resume(&id)), &ending, &front)?;
    Ok(ExitStatus::from(&ending))
}

/// The words with the files they name, and what was piped in.
async fn expanded(task: attach::Task, conversation: &Conversation) -> anyhow::Result<String> {
    let store: Arc<dyn Store> = conversation.store.clone();
    Ok(task.expanded(&conversation.place.kit().root, store.as_ref()).await?)
}

fn is_interactive() -> bool {
    crate::out::can_ask() && crate::out::answers_on_terminal()
}
