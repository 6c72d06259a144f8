//! Planning: what is known, what is to be found out, and the steps from here; asked of the model at the start of a task
//! and every so many steps.
//!
//! A plan is asked for and given in the conversation itself, so it is made from all that happened so far, the server's
//! prefix cache stays valid, and the model reads its own plan as its own words.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::message::Message;
use crate::state::State;
use gimlet_reply::sections::{self, Section};

pub use gimlet_event::plan::{Plan, Planning};

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

/// Reads what it can of a reply; words that keep no form stay words.
pub(crate) fn read(text: String) -> Plan {
    let [known, to_find, steps] = sections::read(&text, &SECTIONS).unwrap_or_default();
    Plan { known, to_find, steps, text, ..Plan::default() }
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
    fn a_reply_without_a_form_is_still_a_plan_in_words() {
        let plan = read("I would read the file and then mend it.".into());
        assert!(plan.steps.is_empty() && plan.text.starts_with("I would"));
        let plan = read("Facts known:\n- it fails\nFacts to find:\n- why\nSteps:\n1. read\n2. mend".into());
        assert_eq!((plan.known.len(), plan.to_find.len(), plan.steps.len()), (1, 1, 2));
    }
}
