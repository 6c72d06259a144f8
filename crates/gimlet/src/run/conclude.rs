//! Puts an answer to its form and to the checks, and ends the run or sends the model back.

use serde_json::Value;

use super::{Ending, Next, Run, fail};
use crate::event::{EventKind, FeedbackReason, FinishState};
use crate::hook::Facts;
use crate::output::{CORRECTIONS, correction};
use crate::state::result_text;
use crate::store::StoreError;

/// An answer that has the form it should have, or what is wrong with it.
enum Shaped {
    Fits { answer: String, value: Option<Value> },
    Misshapen { problem: String, correction: String },
}

impl Run {
    pub(super) async fn conclude(&self, answer: String, value: Option<Value>) -> Result<Next, StoreError> {
        let (closing, misshapen) = self.services.journal.with_state(|state| (state.closing, state.misshapen));
        match (self.shape(&answer, value), closing) {
            (Shaped::Fits { answer, value }, Some(limit)) => Ok(self.close(answer, value, limit, None)),
            (Shaped::Fits { answer, value }, None) => self.judge(answer, value).await,
            (Shaped::Misshapen { problem, .. }, Some(limit)) => {
                Ok(self.close(answer, None, limit, Some(problem)))
            }
            (Shaped::Misshapen { correction, .. }, None) if misshapen < CORRECTIONS => {
                let reason = FeedbackReason::AnswerMisshapen;
                self.services.journal.append(EventKind::Feedback { reason, text: correction }).await?;
                Ok(Next::Go)
            }
            (Shaped::Misshapen { problem, .. }, None) => {
                let message = format!("the answer does not have the form that is asked for: {problem}");
                Ok(fail("ANSWER_MISSHAPEN", message, Some("a larger model, or a simpler schema")))
            }
        }
    }

    /// The answer in the form it should have; an agent without one may answer as it likes.
    fn shape(&self, answer: &str, value: Option<Value>) -> Shaped {
        let Some(form) = &self.agent.form else { return Shaped::Fits { answer: answer.to_owned(), value } };
        match form.fit(answer, value.as_ref()) {
            Ok(value) => Shaped::Fits { answer: result_text(&value), value: Some(value) },
            Err(problem) => {
                let action = self.services.journal.with_state(|state| state.action);
                let correction = correction(form, action, &problem);
                Shaped::Misshapen { problem, correction }
            }
        }
    }

    /// Ends with the answer that was asked for because the steps are used up.
    fn close(
        &self,
        answer: String,
        value: Option<Value>,
        limit: FinishState,
        problem: Option<String>,
    ) -> Next {
        let cut = self.services.journal.with_state(|state| state.cut);
        let cut = cut.then(|| "the answer was cut off at the token limit".to_owned());
        let problem = problem.map(|problem| format!("the answer does not have its form: {problem}"));
        let notes = cut.into_iter().chain(problem).collect();
        Next::End(Ending::Finished(self.finished(answer, value, limit, notes)))
    }

    /// Puts an answer to the checks.
    async fn judge(&self, answer: String, value: Option<Value>) -> Result<Next, StoreError> {
        let journal = &self.services.journal;
        let missing = self.missing(&answer).await;
        let text = format!("That answer is not accepted yet:\n- {}\nGo on.", missing.join("\n- "));
        let is_given_up = journal.with_state(|state| {
            let again = state.refused.as_ref().filter(|refused| refused.text == text);
            again.map_or(0, |refused| refused.times) >= state.limits.max_refusals
        });
        if !missing.is_empty() && !is_given_up {
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
