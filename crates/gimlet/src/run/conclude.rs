//! Puts an answer to the checks, and ends the run or sends the model back.

use serde_json::Value;

use super::{Ending, Next, Run};
use crate::event::{EventKind, FeedbackReason, FinishState};
use crate::hook::Facts;
use crate::store::StoreError;

impl Run {
    pub(super) async fn conclude(&self, answer: String, value: Option<Value>) -> Result<Next, StoreError> {
        let journal = &self.services.journal;
        let (closing, refusals, most) =
            journal.with_state(|state| (state.closing, state.refusals, state.limits.max_refusals));
        if closing {
            let finished = self.finished(answer, value, FinishState::MaxSteps, Vec::new());
            return Ok(Next::End(Ending::Finished(finished)));
        }
        let missing = self.missing(&answer).await;
        if !missing.is_empty() && refusals < most {
            let text = format!("That answer is not accepted yet:\n- {}\nGo on.", missing.join("\n- "));
            journal.append(EventKind::Feedback { reason: FeedbackReason::AnswerRefused, text }).await?;
            return Ok(Next::Go);
        }
        let finished = self.finished(answer, value, FinishState::Answered, missing);
        Ok(Next::End(Ending::Finished(finished)))
    }

    /// What the checks find missing.
    async fn missing(&self, answer: &str) -> Vec<String> {
        if self.agent.checks.is_empty() {
            return Vec::new();
        }
        let (task, calls) = self.services.journal.with_state(|state| {
            let task = state.started.as_ref().map(|started| started.task.clone()).unwrap_or_default();
            (task, state.history.clone())
        });
        let mut missing = Vec::new();
        for check in &self.agent.checks {
            if let Err(reason) = check.check(answer, Facts { task: &task, calls: &calls }).await {
                missing.push(reason);
            }
        }
        missing
    }
}
