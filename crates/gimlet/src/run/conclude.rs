//! Puts an answer to its form and to the checks, and ends the run or sends the model back.

use serde_json::Value;

use super::{Ending, Next, Run, fail};
use crate::event::{EventKind, FeedbackReason, FinishState};
use crate::guided::Aim;
use crate::hook::Facts;
use crate::state::{CallSummary, result_text};
use crate::store::StoreError;
use crate::work::Work;
use gimlet_reply::answer::{CORRECTIONS, correction};

/// An answer that has the form it should have, or what is wrong with it.
enum Shaped {
    Fits { answer: String, value: Option<Value> },
    Misshapen { problem: String, correction: String },
}

impl Run {
    pub(super) async fn conclude(
        &mut self,
        answer: String,
        value: Option<Value>,
    ) -> Result<Next, StoreError> {
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
    async fn judge(&mut self, answer: String, value: Option<Value>) -> Result<Next, StoreError> {
        if self.wants_aim()
            && let Some(end) = self.ask_aim().await?
        {
            return Ok(end);
        }
        let missing = self.missing(&answer).await;
        if !missing.is_empty() && self.is_to_be_guided() {
            return self.guide_instead().await;
        }
        let journal = &self.services.journal;
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
        let mut missing = Vec::new();
        if self.agent.checks.is_empty() {
            return missing;
        }
        let known = self.known();
        for check in &self.agent.checks {
            if let Err(reason) = check.check(answer, known.facts()).await {
                missing.push(reason);
            }
        }
        missing
    }

    /// Whether a check must know what the task wants, and nobody has asked the model yet.
    fn wants_aim(&self) -> bool {
        if self.agent.checks.is_empty()
            || self.services.journal.with_state(|state| state.guided.aim.is_some())
        {
            return false;
        }
        let known = self.known();
        self.agent.checks.iter().any(|check| check.wants_aim(&known.facts()))
    }

    /// Whether the program takes over: a change is asked for, none was made, and telling the model so did not help.
    fn is_to_be_guided(&self) -> bool {
        self.agent.guide.is_some()
            && self.services.journal.with_state(|state| {
                state.guided.aim == Some(Aim::Change)
                    && state.refused.is_some()
                    && state.work.files_changed.is_empty()
                    && state.work.patches.is_empty()
            })
    }

    fn known(&self) -> Known {
        self.services.journal.with_state(|state| Known {
            task: state.task.clone(),
            tools: state.started.as_ref().map(|started| started.tools.clone()).unwrap_or_default(),
            calls: state.history[state.before_task.min(state.history.len())..].to_vec(),
            work: state.work.clone(),
            aim: state.guided.aim,
        })
    }
}

/// What checks are told, taken out of the state: a check may wait, and the state is locked only for a moment.
struct Known {
    task: String,
    tools: Vec<String>,
    calls: Vec<CallSummary>,
    work: Work,
    aim: Option<Aim>,
}

impl Known {
    fn facts(&self) -> Facts<'_> {
        let Known { task, tools, calls, work, aim } = self;
        Facts { task, tools, calls, work, aim: *aim }
    }
}
