//! What is known about families of models, as data: how good, how they call tools, what is wrong with them.
//!
//! Matched by family and never by exact name, so that a new size, tag or quantisation is known at once.

use gimlet::constrain::Constrain;
use serde::{Deserialize, Serialize};

use super::discover::Installed;
use super::window::ModelWindow;
use crate::wire::{Reasoning, Think};

const BUILT_IN: &str = include_str!("../../families.toml");

/// Billions of parameters below which a model that writes its calls as text is held to their form from the first step
/// on. By itself a model of 1.5 billion answered six of ten questions about a repository with a call; under the schema,
/// twenty of twenty.
const TOO_SMALL_TO_BE_FREE: f64 = 4.0;
/// Billions of parameters up to which a model without dependable native calls is led by the program: it can write a
/// function, but not plan, choose among tools and quote code inside JSON at once.
const GUIDED_UP_TO: f64 = 15.0;
/// How well a model serves as an agent; the order is the order of choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Made for it.
    Best,
    /// Does it well.
    Good,
    /// Does it.
    Usable,
    /// Does it at times.
    Limited,
    /// Cannot do it.
    Unfit,
}

/// How a model calls tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Calls {
    /// As its server's protocol has it.
    Native,
    /// As JSON in its text; the tools stand in the prompt.
    Text,
}

/// How a model acts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It calls tools.
    #[default]
    Tools,
    /// It writes Python.
    Code,
    /// It is led by the program.
    Guided,
}

/// What is said of a family rests on this.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// Nothing: how dependable its calls are is not known.
    #[default]
    Unknown,
    /// What its makers and servers document; nobody tried it with Gimlet.
    Documented,
    /// It was tried with Gimlet.
    Tried,
}

/// A family of models.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Family {
    /// How the names of its models begin.
    pub name: String,
    /// Other beginnings.
    #[serde(default)]
    pub also: Vec<String>,
    /// How good it is.
    pub tier: Tier,
    /// How it calls tools.
    pub calls: Calls,
    /// How it acts best, where that does not follow from its calls and its size.
    #[serde(default)]
    pub action: Option<Action>,
    /// What the entry rests on.
    #[serde(default)]
    pub evidence: Evidence,
    /// Billions of parameters below which it is unfit.
    #[serde(default)]
    pub smallest: Option<f64>,
    /// How much it shall reason before a step.
    #[serde(default)]
    pub think: Think,
    /// Whether its reasoning goes back to it.
    #[serde(default)]
    pub reasoning: Reasoning,
    /// Its temperature, where the usual one is wrong.
    #[serde(default)]
    pub temperature: Option<f32>,
    /// Its longest reply, where the usual one is wrong.
    #[serde(default)]
    pub max_tokens: Option<u32>,
    /// Its window, where its server does not say.
    #[serde(default)]
    pub context: Option<u32>,
    /// What people should know.
    #[serde(default)]
    pub defects: Vec<String>,
}

/// How to treat one installed model.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Its family, if it is known.
    pub family: Option<String>,
    /// How good it is.
    pub tier: Tier,
    /// What is said of its family rests on this.
    pub evidence: Evidence,
    /// How it acts.
    pub action: Action,
    /// Why it acts so, for people.
    pub why: String,
    /// How it calls tools.
    pub calls: Calls,
    /// When it is held to the form of a call.
    pub constrain: Constrain,
    /// The window to ask for.
    pub window: ModelWindow,
    /// Its longest reply, where the usual one is wrong.
    pub max_tokens: Option<u32>,
    /// Its temperature, where the usual one is wrong.
    pub temperature: Option<f32>,
    /// How much it shall think.
    pub think: Think,
    /// Whether its reasoning goes back to it.
    pub reasoning: Reasoning,
    /// What people should know.
    pub defects: Vec<String>,
}

/// Why a list of families cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the families in {file} are not valid: {source}")]
pub struct FamiliesError {
    /// The file.
    pub file: String,
    /// What is wrong, with its place.
    pub source: Box<toml::de::Error>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    preferred: Option<Vec<String>>,
    #[serde(default)]
    family: Vec<Family>,
}

/// The families in force.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Families {
    preferred: Vec<String>,
    list: Vec<Family>,
}

impl Families {
    /// The families that come with Gimlet.
    pub fn built_in() -> Result<Self, FamiliesError> {
        Families::default().with("the built-in list", BUILT_IN)
    }

    /// Adds a user's file before the known ones; a family with a known name replaces the known one.
    pub fn with(mut self, file: &str, text: &str) -> Result<Self, FamiliesError> {
        let added: File = toml::from_str(text)
            .map_err(|source| FamiliesError { file: file.to_owned(), source: Box::new(source) })?;
        self.list.retain(|known| added.family.iter().all(|family| family.name != known.name));
        self.list.splice(0..0, added.family);
        if let Some(preferred) = added.preferred {
            self.preferred = preferred;
        }
        Ok(self)
    }

    /// Models to take before any other.
    pub fn preferred(&self) -> &[String] {
        &self.preferred
    }

    /// The family of a model and its place in the list.
    pub fn find(&self, model: &str) -> Option<(usize, &Family)> {
        let model = plain(model);
        let fit = |family: &Family| {
            std::iter::once(&family.name)
                .chain(&family.also)
                .filter(|name| begins(&model, name))
                .map(|name| name.len())
                .max()
        };
        self.list
            .iter()
            .enumerate()
            .filter_map(|(place, family)| Some((fit(family)?, place, family)))
            .max_by_key(|(length, place, _)| (*length, std::cmp::Reverse(*place)))
            .map(|(_, place, family)| (place, family))
    }

    /// How to treat a model.
    pub fn profile(&self, model: &Installed) -> Profile {
        let family = self.find(&model.name).map(|(_, family)| family);
        let mut defects = family.map(|family| family.defects.clone()).unwrap_or_default();
        let mut tier = family.map_or(Tier::Usable, |family| family.tier);
        let smallest = family.and_then(|family| family.smallest);
        if let (Some(size), Some(smallest)) = (model.billions(), smallest)
            && size < smallest
        {
            tier = Tier::Unfit;
            defects.push(format!("too small: below {smallest} billion parameters"));
        }
        if model.writes == Some(false) {
            tier = Tier::Unfit;
            defects.push("does not write text".to_owned());
        }
        // The server knows best whether it offers native calls; the family, whether the model then makes them.
        let calls = match (model.tools, family.map(|family| family.calls)) {
            (Some(false), _) | (_, Some(Calls::Text)) => Calls::Text,
            (Some(true) | None, Some(Calls::Native)) | (Some(true), None) => Calls::Native,
            (None, None) => Calls::Text,
        };
        let (action, why) = acting(model, family, calls);
        Profile {
            family: family.map(|family| family.name.clone()),
            tier,
            evidence: family.map(|family| family.evidence).unwrap_or_default(),
            action,
            why,
            calls,
            constrain: match (calls, model.billions()) {
                (Calls::Text, Some(size)) if size < TOO_SMALL_TO_BE_FREE => Constrain::Always,
                (Calls::Text | Calls::Native, _) => Constrain::AfterFailures,
            },
            window: ModelWindow::of(model, family),
            max_tokens: family.and_then(|family| family.max_tokens),
            temperature: family.and_then(|family| family.temperature),
            // A server refuses the question for a model that does not reason.
            think: family
                .filter(|_| model.thinks != Some(false))
                .map(|family| family.think)
                .unwrap_or_default(),
            reasoning: family.map(|family| family.reasoning).unwrap_or_default(),
            defects,
        }
    }
}

/// How a model acts, and why. Models without dependable native calls are led by the program up to a size; what the family
/// says counts beyond it.
fn acting(model: &Installed, family: Option<&Family>, calls: Calls) -> (Action, String) {
    let is_small = model.billions().is_none_or(|size| size <= GUIDED_UP_TO);
    let said = family.and_then(|family| family.action);
    match (calls, said) {
        (_, Some(Action::Guided)) => (Action::Guided, "its family is led by the program".to_owned()),
        (Calls::Text, _) if is_small => {
            let whose = match (model.tools, family) {
                (Some(false), _) => "its server offers no native tool calls",
                (_, Some(_)) => "its family makes no dependable native tool calls",
                (_, None) => "nothing is known of its tool calls",
            };
            let size = match model.billions() {
                Some(size) => format!("{size:.1} billion parameters"),
                None => "its size is unknown".to_owned(),
            };
            (Action::Guided, format!("{whose}, {size}"))
        }
        (_, Some(action)) => (action, "as its family works best".to_owned()),
        (Calls::Native, None) => (Action::Tools, "native tool calls".to_owned()),
        (Calls::Text, None) => (Action::Tools, "large enough to write tool calls as text".to_owned()),
    }
}

/// A name without its owner, in lower case: `Qwen/Qwen2.5-Coder-1.5B` is `qwen2.5-coder-1.5b`.
fn plain(model: &str) -> String {
    let name = model.rsplit(['/', '\\']).next().unwrap_or(model);
    name.to_lowercase().replace('_', "-")
}

/// Whether a name begins with a family's, and does not go on as another family's would.
fn begins(model: &str, family: &str) -> bool {
    model
        .strip_prefix(family)
        .is_some_and(|rest| rest.chars().next().is_none_or(|next| matches!(next, ':' | '-' | '@')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_matched_whatever_the_size_or_tag() {
        let families = Families::built_in().unwrap();
        for (model, family) in [
            ("qwen2.5-coder:14b", Some("qwen2.5-coder")),
            ("qwen2.5-coder:14b-instruct", Some("qwen2.5-coder")),
            ("qwen2.5-coder:7b-instruct-q4_K_M", Some("qwen2.5-coder")),
            ("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", Some("qwen2.5-coder")),
            ("/models/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", Some("qwen2.5-coder")),
            ("hf.co/bartowski/Meta-Llama-3.1-8B-Instruct-GGUF:Q4_K_M", Some("llama3.1")),
            ("meta-llama-3.1-8b-instruct", Some("llama3.1")),
            ("qwen2.5:3b", Some("qwen2.5")),
            ("qwen3:latest", Some("qwen3")),
            ("qwen3-coder:30b", Some("qwen3-coder")),
            ("llama3.2", Some("llama3.2")),
            ("llama3:8b", Some("llama3")),
            ("llama3.25:8b", None),
            ("mistral-nemo:12b", Some("mistral")),
            ("mistral-small3.2:24b", Some("mistral-small")),
            ("my-own-model", None),
        ] {
            let found = families.find(model).map(|(_, family)| family.name.as_str());
            assert_eq!(found, family, "{model}");
        }
    }

    #[test]
    fn every_family_people_run_is_known_and_says_what_that_rests_on() {
        let families = Families::built_in().unwrap();
        for model in [
            "qwen3:8b",
            "qwen3-coder:30b",
            "qwen3-coder-next",
            "qwen3.5:9b",
            "devstral:24b",
            "devstral-small-2:24b",
            "gpt-oss:20b",
            "gemma3:12b",
            "gemma4:e4b",
            "phi4:14b",
            "phi4-mini",
            "granite4:3b",
            "glm-4.7-flash",
            "GLM-4.5-Air-GGUF",
            "deepseek-r1:8b",
            "deepseek-v3.2",
            "deepseek-coder-v2:16b",
            "llama3.1:8b",
            "llama3.3:70b",
            "llama4:scout",
            "SmolLM3-3B-Q4_K_M.gguf",
        ] {
            assert!(families.find(model).is_some(), "{model}");
        }
        let entries = BUILT_IN.matches("[[family]]").count();
        let told = BUILT_IN.lines().filter(|line| line.starts_with("evidence = ")).count();
        assert_eq!((entries, families.list.len()), (told, told), "every entry says what it rests on");
    }
}
