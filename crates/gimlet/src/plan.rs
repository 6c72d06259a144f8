//! Planning: what is known, what is to be found out, and the steps from here; asked of the model at the start of a task
//! and every so many steps.
//!
//! A plan is asked for and given in the conversation itself, so it is made from all that happened so far, the server's
//! prefix cache stays valid, and the model reads its own plan as its own words.

use std::num::NonZeroU32;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::event::{Failure, ModelMessage};
use crate::message::{Finish, Message, Thinking, Usage};
use crate::sections::{self, Section};
use crate::state::State;

/// When an agent plans. In logs and settings: nothing, 0 for the start only, or a number of steps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Option<u32>", into = "Option<u32>")]
pub enum Planning {
    /// Only when the person asks for it.
    #[default]
    Never,
    /// At the start of every task.
    AtStart,
    /// At the start of every task and again after so many steps.
    Every(NonZeroU32),
}

impl Planning {
    /// Whether nothing is planned unasked.
    pub fn is_never(&self) -> bool {
        *self == Planning::Never
    }
}

impl From<Option<u32>> for Planning {
    fn from(every: Option<u32>) -> Self {
        every.map_or(Planning::Never, |steps| {
            NonZeroU32::new(steps).map_or(Planning::AtStart, Planning::Every)
        })
    }
}

impl From<Planning> for Option<u32> {
    fn from(planning: Planning) -> Self {
        match planning {
            Planning::Never => None,
            Planning::AtStart => Some(0),
            Planning::Every(steps) => Some(steps.get()),
        }
    }
}

/// A plan, or why there is none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Plan {
    /// Steps taken before it.
    pub step: u32,
    /// What is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<String>,
    /// What is to be found out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub to_find: Vec<String>,
    /// The steps from here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// The reply as the model wrote it; all there is of a plan that keeps no form.
    pub text: String,
    /// Reasoning.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub thinking: Vec<Thinking>,
    /// Why the model gave no reply; the run goes on without a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// What it cost.
    pub usage: Usage,
    /// Why the reply ended.
    pub finish: Finish,
    /// The model that wrote it.
    pub model: String,
    /// How long it took.
    pub seconds: f64,
}

const SECTIONS: [Section; 3] = [
    Section {
        key: "known",
        headings: &["facts known", "known facts", "known", "facts", "what is known", "facts given"],
    },
    Section {
        key: "to_find",
        headings: &[
            "facts to find",
            "to find",
            "to find out",
            "facts to look up",
            "unknown",
            "unknowns",
            "what to find out",
        ],
    },
    Section { key: "steps", headings: &["steps", "plan", "the plan", "next steps", "steps from here"] },
];

impl Plan {
    /// Reads what it can of a reply; words that keep no form stay words.
    pub(crate) fn read(text: String) -> Self {
        let [known, to_find, steps] = sections::read(&text, &SECTIONS).unwrap_or_default();
        Plan { known, to_find, steps, text, ..Plan::default() }
    }

    /// The reply behind it.
    pub(crate) fn message(&self) -> ModelMessage {
        ModelMessage {
            step: self.step,
            text: self.text.clone(),
            thinking: self.thinking.clone(),
            usage: self.usage,
            finish: self.finish,
            model: self.model.clone(),
            seconds: self.seconds,
            ..ModelMessage::default()
        }
    }
}

/// The form of a plan, for servers that hold replies to one.
pub(crate) fn schema() -> Value {
    let list = json!({ "type": "array", "items": { "type": "string" } });
    json!({
        "type": "object",
        "required": ["known", "to_find", "steps"],
        "additionalProperties": false,
        "properties": { "known": list, "to_find": list, "steps": list },
    })
}

/// Whether the next thing is a plan.
pub(crate) fn is_due(state: &State) -> bool {
    if state.closing.is_some() {
        return false;
    }
    state.replan
        || match (state.planning, state.planned_at) {
            (Planning::Never, _) | (Planning::AtStart, Some(_)) => false,
            (Planning::AtStart | Planning::Every(_), None) => true,
            (Planning::Every(steps), Some(at)) => state.step.saturating_sub(at) >= steps.get(),
        }
}

/// What the model is asked.
pub(crate) fn question(state: &State) -> String {
    let why = match &state.plan {
        Some(_) => "Stop and plan anew, from all that happened so far.",
        None => "Before you act, plan.",
    };
    format!("{why} {FORM}")
}

const FORM: &str = "Reply with three short lists and nothing else: no call, no code.\n\
    Facts known:\n- …\nFacts to find:\n- …\nSteps:\n1. …";

/// What the user side says once there is a plan.
pub(crate) const GO: &str = "Now act on the plan, one action at a time, in the form of an action.";

/// The conversation with the question at its end. Roles take turns, so it joins what the user side said last.
pub(crate) fn conversation(state: &State, question: &str) -> Vec<Arc<Message>> {
    let mut messages = state.messages.clone();
    match messages.last().map(AsRef::as_ref) {
        Some(Message::User { text }) => {
            let joined = Message::user(format!("{text}\n\n{question}"));
            messages.pop();
            messages.push(Arc::new(joined));
        }
        Some(Message::System { .. } | Message::Assistant { .. } | Message::Tool { .. }) | None => {
            messages.push(Arc::new(Message::user(question)));
        }
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planning_is_a_number_in_logs() {
        for (planning, text) in
            [(Planning::Never, "null"), (Planning::AtStart, "0"), (Planning::Every(NonZeroU32::MIN), "1")]
        {
            assert_eq!(serde_json::to_string(&planning).unwrap(), text);
            assert_eq!(serde_json::from_str::<Planning>(text).unwrap(), planning);
        }
    }

    #[test]
    fn a_reply_without_a_form_is_still_a_plan_in_words() {
        let plan = Plan::read("I would read the file and then mend it.".into());
        assert!(plan.steps.is_empty() && plan.text.starts_with("I would"));
        let plan =
            Plan::read("Facts known:\n- it fails\nFacts to find:\n- why\nSteps:\n1. read\n2. mend".into());
        assert_eq!((plan.known.len(), plan.to_find.len(), plan.steps.len()), (1, 1, 2));
    }
}
