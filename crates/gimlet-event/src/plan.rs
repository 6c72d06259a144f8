//! When an agent plans, and what a plan says.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::event::{Failure, ModelMessage};
use crate::message::{Finish, Thinking, Usage};

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

impl Plan {
    /// The reply behind it.
    pub fn message(&self) -> ModelMessage {
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
}
