//! A session of the client: one conversation of the runtime. Its id is the run's, which is reserved before the first task.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gimlet::Ending;
use gimlet::approval::Decision;
use gimlet::event::{FinishState, Suspension};
use gimlet::ids::RunId;
use gimlet::message::Usage;
use gimlet_runtime::{Attendance, Extras, Input, Options, Runtime, Session, is_answered, open_question};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::commands;
use crate::follow::View;
use crate::wire::RpcError;

/// One session.
pub(crate) struct Chat {
    pub(crate) view: View,
    runtime: Runtime,
    /// What it was begun with, to begin it again in another way before its first task.
    options: Mutex<Options>,
    extras: Extras,
    session: Mutex<Session>,
    /// Stops the prompt that was asked for last, from before its turn begins.
    stop: Mutex<CancellationToken>,
    /// Asks the question that an earlier process left open, and carries on with the answer.
    asking: Mutex<Option<JoinHandle<()>>>,
}

impl Chat {
    /// A new conversation.
    pub(crate) async fn begin(
        runtime: Runtime,
        view: View,
        options: Options,
        extras: Extras,
    ) -> anyhow::Result<Chat> {
        let session = runtime.begin_with(options.clone(), Attendance::Person, extras.clone()).await?;
        Ok(Chat::new(runtime, view, options, extras, session))
    }

    /// A conversation that has a run already.
    pub(crate) async fn reopen(
        runtime: Runtime,
        view: View,
        run: &RunId,
        options: Options,
        extras: Extras,
    ) -> anyhow::Result<Chat> {
        let session = runtime.reopen_with(run, options.clone(), Attendance::Person, extras.clone()).await?;
        Ok(Chat::new(runtime, view, options, extras, session))
    }

    fn new(runtime: Runtime, view: View, options: Options, extras: Extras, session: Session) -> Chat {
        Chat {
            view,
            runtime,
            options: Mutex::new(options),
            extras,
            session: Mutex::new(session),
            stop: Mutex::default(),
            asking: Mutex::default(),
        }
    }

    pub(crate) fn session(&self) -> Session {
        lock(&self.session).clone()
    }

    /// Begins the conversation again with other options; its first task has not been given yet.
    pub(crate) async fn begin_again(&self, change: impl FnOnce(&mut Options)) -> Result<(), RpcError> {
        let mut options = lock(&self.options).clone();
        change(&mut options);
        if self.session().id().is_some() {
            return Err(RpcError::params(
                "the conversation has begun; this can only be set before its first task",
            ));
        }
        let session =
            self.runtime.begin_with(options.clone(), Attendance::Person, self.extras.clone()).await?;
        session.set_approve(self.session().approve());
        *lock(&self.session) = session;
        *lock(&self.options) = options;
        Ok(())
    }

    /// Works on what the person said. The answer says how it ended.
    pub(crate) async fn prompt(self: &Arc<Self>, task: String) -> Result<Value, RpcError> {
        self.stop_asking();
        let session = self.session();
        if let Some(command) = commands::read(&task) {
            return commands::perform(self, &session, command).await;
        }
        self.work(&session, Input::Task(task)).await
    }

    /// Carries on with what is left of the run. A question that it stopped at is put to the client first.
    pub(crate) async fn resume(self: &Arc<Self>) -> Result<Value, RpcError> {
        let session = self.session();
        let events = session.stored_events().await?;
        if events.is_empty() || is_answered(&events) {
            return Err(RpcError::params("there is nothing left to carry on; give the run another task"));
        }
        let decision = match open_question(&events) {
            None => None,
            Some(request) => match self.view.ask(&session, request).await {
                Decision::Defer | Decision::Abort => {
                    let approval = request.id.clone();
                    return self.ended(&session, Ending::Suspended(Suspension::Approval { approval }));
                }
                decision @ (Decision::Approve { .. } | Decision::Edit { .. } | Decision::Deny { .. }) => {
                    Some(decision)
                }
            },
        };
        self.work(&session, Input::Resume(decision)).await
    }

    async fn work(&self, session: &Session, input: Input) -> Result<Value, RpcError> {
        let stop = lock(&self.stop).clone();
        let turn = session.submit(input).await?;
        if stop.is_cancelled() {
            session.cancel();
        }
        let ending = self.view.follow(session, turn).await?;
        self.ended(session, ending)
    }

    /// Asks a question again that an earlier process left open. Once it is answered, the run goes on.
    pub(crate) async fn ask_again(self: &Arc<Self>) -> anyhow::Result<()> {
        let session = self.session();
        let events = session.stored_events().await?;
        let Some(request) = open_question(&events).cloned() else { return Ok(()) };
        let chat = self.clone();
        let asking = tokio::spawn(async move {
            let decision = chat.view.ask(&session, &request).await;
            if matches!(decision, Decision::Defer | Decision::Abort) {
                return;
            }
            let carried_on = match session.submit(Input::Resume(Some(decision))).await {
                Ok(turn) => chat.view.follow(&session, turn).await.map(drop),
                Err(error) => Err(error),
            };
            if let Err(error) = carried_on {
                chat.view.update(crate::updates::chunk("agent_message_chunk", &format!("{error:#}")));
            }
        });
        *lock(&self.asking) = Some(asking);
        Ok(())
    }

    /// Takes a question back that was asked again, if it has no answer yet.
    fn stop_asking(&self) {
        if let Some(asking) = lock(&self.asking).take()
            && !self.session().is_working()
        {
            asking.abort();
        }
    }

    /// A prompt is about to be worked on.
    pub(crate) fn expect_prompt(&self) {
        *lock(&self.stop) = CancellationToken::new();
    }

    /// Stops what is under way.
    pub(crate) fn cancel(&self) {
        lock(&self.stop).cancel();
        self.session().cancel();
    }

    /// Whether a question waits for the client.
    pub(crate) fn is_asking(&self) -> bool {
        self.view.is_deferred() || !self.session().pending().is_empty()
    }

    /// Waits until nothing is under way.
    pub(crate) async fn rest(&self) {
        let asking = lock(&self.asking).take();
        if let Some(asking) = asking {
            // Whatever became of it is in the log.
            let _ = asking.await;
        }
        self.session().rest().await;
    }

    /// How a turn ended, as an answer to the prompt.
    fn ended(&self, session: &Session, ending: Ending) -> Result<Value, RpcError> {
        let run = session.id();
        match ending {
            Ending::Finished(finished) => Ok(json!({
                "stopReason": stop_reason(finished.state),
                "usage": usage(finished.usage),
                "_meta": { "gimlet": { "run": run, "finished": finished } },
            })),
            Ending::Suspended(reason) => {
                let stop = match &reason {
                    Suspension::Interrupted => "cancelled",
                    Suspension::Approval { .. } | Suspension::Diverged { .. } => "end_turn",
                };
                if let Suspension::Diverged { message } = &reason {
                    self.view.update(crate::updates::chunk("agent_message_chunk", message));
                }
                Ok(json!({ "stopReason": stop, "_meta": { "gimlet": { "run": run, "suspended": reason } } }))
            }
            Ending::Failed(failure) => {
                let message = match &failure.hint {
                    Some(hint) => format!("{} (hint: {hint})", failure.message),
                    None => failure.message.clone(),
                };
                let mut data = json!(failure);
                data["run"] = json!(run);
                Err(RpcError { code: RpcError::INTERNAL, message, data: Some(data) })
            }
        }
    }
}

fn stop_reason(state: FinishState) -> &'static str {
    match state {
        FinishState::Answered | FinishState::Failed | FinishState::Timeout => "end_turn",
        FinishState::MaxSteps | FinishState::StepBudget | FinishState::Repeating => "max_turn_requests",
        FinishState::TokenBudget => "max_tokens",
    }
}

fn usage(usage: Usage) -> Value {
    json!({
        "totalTokens": usage.total(),
        "inputTokens": usage.input,
        "outputTokens": usage.output,
        "thoughtTokens": usage.reasoning,
        "cachedReadTokens": usage.cached,
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
