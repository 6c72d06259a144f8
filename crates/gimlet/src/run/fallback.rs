//! A model whose code cannot be read is given the format of tool calls for the rest of its work; one whose native calls
//! its server cannot read writes them as text.

use super::{Next, Run, fail};
use crate::event::{ActionChange, ActionFormat, ChangeCause, Dialect, EventKind};
use crate::parse;
use crate::prompt::system_prompt;
use crate::store::StoreError;

const REASON: &str = "the model's code could not be read three times in a row; it calls tools from here on";

impl Run {
    pub(super) async fn fall_back(&mut self) -> Result<Next, StoreError> {
        let agent = &self.agent;
        let (action, dialect) = (ActionFormat::Tools, agent.dialect);
        let system = match system_prompt(action, dialect, agent.toolbox.specs(), &agent.told(action)) {
            Ok(system) => system,
            Err(error) => return Ok(fail("PROMPT", error.to_string(), None)),
        };
        let mut text = "Your code could not be read. Write no code from here on: call tools, one at a time, or reply in \
                        plain words once you know enough. Variables are gone."
            .to_owned();
        if dialect == Dialect::Text {
            text = format!("{text} A call:\n{}", parse::right_shape(action));
        }
        // What the interpreter holds is of no use any more.
        self.session = None;
        let (reason, cause) = (REASON.to_owned(), ChangeCause::Unreadable);
        let change = ActionChange { action, dialect, system, text, reason, cause };
        self.services.journal.append(EventKind::ActionChanged(Box::new(change))).await?;
        Ok(Next::Go)
    }
    /// Asks for calls as text from here on.
    pub(super) async fn calls_as_text(&mut self) -> Result<Next, StoreError> {
        let agent = &self.agent;
        let (action, dialect) = (ActionFormat::Tools, Dialect::Text);
        let system = match system_prompt(action, dialect, agent.toolbox.specs(), &agent.told(action)) {
            Ok(system) => system,
            Err(error) => return Ok(fail("PROMPT", error.to_string(), None)),
        };
        let text = format!(
            "The server cannot read your tool calls. From here on write each call as plain JSON in your reply, and \
             nothing else beside it:\n{}",
            parse::right_shape(action)
        );
        let reason =
            "the model server could not read its model's tool calls twice in a row; they are asked for as \
                      text from here on"
                .to_owned();
        let cause = ChangeCause::Unreadable;
        let change = ActionChange { action, dialect, system, text, reason, cause };
        self.services.journal.append(EventKind::ActionChanged(Box::new(change))).await?;
        Ok(Next::Go)
    }
}
