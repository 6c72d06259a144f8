//! Asks the model what a task wants, in any format: one short reply that is held to a schema.

use std::sync::Arc;

use serde_json::Value;
use tracing::Instrument;

use super::aside::Aside;
use super::{Ending, Next, Run, fail};
use crate::event::{ActionChange, ActionFormat, ChangeCause, EventKind, Purpose, Suspension};
use crate::guided::record::{Aim, AimReply, Aimed, DecidedBy};
use crate::guided::{WRITE_TOOL, ask};
use crate::message::Message;
use crate::model::{Reply, Request};
use crate::prompt::system_prompt;
use crate::store::StoreError;
use crate::telemetry;

/// Longest reply to a question whose answer is a choice, in tokens.
const CHOICE_TOKENS: u32 = 120;

impl Run {
    /// Asks beside the steps, once for a task. A model that does not say is taken to have answered what was asked:
    /// holding up an answer is worse than letting a lazy one pass. Returns how the run ends if it was stopped meanwhile.
    pub(super) async fn ask_aim(&self) -> Result<Option<Next>, StoreError> {
        let (question, request) = self.aim_request();
        let span = telemetry::aim_span(self.services.journal.with_state(|state| state.step));
        let asked = match self.ask_aside(Purpose::Aim, question, request).instrument(span).await? {
            Aside::Interrupted => {
                return Ok(Some(Next::End(Ending::Suspended(Suspension::Interrupted))));
            }
            Aside::Replied(reply, _) => {
                let Reply { text, usage, finish, .. } = reply;
                AimReply { text, usage, finish, failure: None }
            }
            Aside::Failed(failure, _) => AimReply { failure: Some(failure), ..AimReply::default() },
        };
        let (aim, by) = match ask::read_aim(&asked.text) {
            Some(aim) => (aim, DecidedBy::Model),
            None => (Aim::Answer, DecidedBy::Default),
        };
        let aimed = Aimed { aim, by, asked: Some(Box::new(asked)) };
        self.services.journal.append(EventKind::GuidedAimed(aimed)).await?;
        Ok(None)
    }

    /// The request for what the task wants, and the part of it that the log does not hold: the rule.
    pub(super) fn aim_request(&self) -> (String, Request) {
        let (messages, schema) = self.services.journal.with_state(|state| ask::aim(&state.task));
        let rule = messages.iter().find_map(|message| match message {
            Message::System { text } => Some(text.clone()),
            Message::User { .. } | Message::Assistant { .. } | Message::Tool { .. } => None,
        });
        let messages = messages.into_iter().map(Arc::new).collect();
        (rule.unwrap_or_default(), Request { messages, ..self.choice(schema) })
    }

    /// A request whose reply is held to a schema.
    pub(super) fn choice(&self, schema: Value) -> Request {
        let mut sampling = self.agent.sampling.clone();
        sampling.schema = Some(Arc::new(schema));
        sampling.max_tokens = Some(CHOICE_TOKENS);
        sampling.temperature = Some(0.0);
        Request { sampling, ..Request::default() }
    }

    /// Goes on in the guided format: a change was asked for, and the model made none.
    pub(super) async fn guide_instead(&mut self) -> Result<Next, StoreError> {
        if !self.agent.toolbox.has(WRITE_TOOL) {
            return Ok(fail("NO_GUIDE", "this agent has no tool that writes files".into(), None));
        }
        let reason = "a change was asked for and none was made: the program leads from here on".to_owned();
        self.change_action(ActionFormat::Guided, reason, ChangeCause::NoChange).await
    }

    /// Goes on in another format, for a reason that lies in the task.
    pub(super) async fn change_action(
        &mut self,
        action: ActionFormat,
        reason: String,
        cause: ChangeCause,
    ) -> Result<Next, StoreError> {
        let agent = &self.agent;
        let dialect = agent.dialect;
        let system = match system_prompt(action, dialect, agent.toolbox.specs(), &agent.told(action)) {
            Ok(system) => system,
            Err(error) => return Ok(fail("PROMPT", error.to_string(), None)),
        };
        let change = ActionChange { action, dialect, system, text: String::new(), reason, cause };
        self.close_step().await;
        self.services.journal.append(EventKind::ActionChanged(Box::new(change))).await?;
        Ok(Next::Go)
    }
}
