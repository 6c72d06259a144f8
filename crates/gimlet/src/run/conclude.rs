//! Puts an answer to the checks, and ends the run or sends the model back.

use serde_json::Value;

use super::{Ending, Next, Run};
use crate::event::{EventKind, FeedbackReason, FinishState};
use crate::hook::Facts;
use crate::store::StoreError;

impl Run {
    pub(super) async fn conclude(&self, answer: String, value: Option<Value>) -> Result<Next, StoreError> {
        let journal = &self.services.journal;
        let (closing, cut, refusals, most) =
            journal.with_state(|state| (state.closing, state.cut, state.refusals, state.limits.max_refusals));
        if closing {
            let notes =
                if cut { vec!["the answer was cut off at the token limit".to_owned()] } else { Vec::new() };
            let finished = self.finished(answer, value, FinishState::MaxSteps, notes);
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
        let (task, tools, calls, work) = self.services.journal.with_state(|state| {
            let tools = state.started.as_ref().map(|started| started.tools.clone()).unwrap_or_default();
            let calls = state.history[state.before_task.min(state.history.len())..].to_vec();
            (state.task.clone(), tools, calls, state.work.clone())
        });
        let facts = Facts { task: &task, tools: &tools, calls: &calls, work: &work };
        let mut missing = Vec::new();
        for check in &self.agent.checks {
            if let Err(reason) = check.check(answer, facts).await {
                missing.push(reason);
            }
        }
        missing
    }
}
