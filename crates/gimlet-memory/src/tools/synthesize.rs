//! `synthesize`: gathers what is known about a topic, and keeps what the agent makes of it. The thinking is the agent's.

use gimlet::effect::Effect;
use gimlet::event::Suspension;
use gimlet::tool::{Manner, ToolCx, ToolError, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{CAUTION, Told, keeping, kept, rounded};
use crate::id::Id;
use crate::kit::{Kit, source};
use crate::notes::{Draft, NoteKind};

/// So many notes and models are gathered.
const NOTES: usize = 12;
const MODELS: usize = 5;

/// The tool.
pub struct Synthesize {
    /// The memory.
    pub kit: Kit,
}

/// Gather the notes and mental models about a topic. Call it again with `text` to keep your summary of them.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Input {
    /// What it is about.
    pub topic: String,
    /// Your summary. Leave out to gather.
    #[serde(default)]
    pub text: Option<String>,
    /// Ids of the notes that the summary stands on.
    #[serde(default)]
    pub sources: Vec<String>,
}

/// The result: what was gathered, or what was kept.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Output {
    /// What is known.
    Gathered {
        /// The notes, the best first.
        notes: Vec<Told>,
        /// The mental models.
        models: Vec<Belief>,
        /// Why the ranking is not what it could be.
        #[serde(skip_serializing_if = "Option::is_none")]
        warning: Option<String>,
        /// What they are not.
        caution: &'static str,
        /// What to do with them.
        next: &'static str,
    },
    /// The summary is a note now.
    Kept {
        /// Its id.
        id: String,
        /// False if the same was kept before.
        new: bool,
    },
}

/// A mental model in short.
#[derive(Debug, Clone, Serialize)]
pub struct Belief {
    name: String,
    statement: String,
    confidence: f64,
}

/// The summary, unless there is none.
fn summary(input: &Input) -> Option<&str> {
    input.text.as_deref().filter(|text| !text.trim().is_empty())
}

impl TypedTool for Synthesize {
    const NAME: &'static str = "synthesize";
    type Input = Input;
    type Output = Output;

    fn manner(&self) -> Manner {
        keeping()
    }

    fn effects(&self, input: &Input) -> Result<Vec<Effect>, ToolError> {
        match summary(input) {
            Some(text) => kept("a synthesis", json!([input.topic, text, input.sources])),
            None => Ok(Vec::new()),
        }
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        match summary(&input) {
            Some(text) => self.keep(&input, text, cx).await,
            // Gathering may wait for vectors, and nobody has to wait for it.
            None => match cx.cancel.run_until_cancelled(self.gather(input.topic)).await {
                Some(gathered) => gathered,
                None => Err(ToolError::Suspended(Suspension::Interrupted)),
            },
        }
    }
}

impl Synthesize {
    async fn keep(&self, input: &Input, text: &str, cx: &ToolCx) -> Result<Output, ToolError> {
        let (source, time) = (source(cx), cx.now());
        let text = cx.clean(text).into_owned();
        let tags = vec![cx.clean(&input.topic).into_owned()];
        let sources: Vec<Id> =
            input.sources.iter().map(|id| id.parse()).collect::<Result<_, crate::MemoryError>>()?;
        let (id, new) = self
            .kit
            .blocking(move |memory| {
                let kind = NoteKind::Synthesis;
                memory.note(&Draft {
                    kind,
                    text: &text,
                    tags: &tags,
                    sources: &sources,
                    source: &source,
                    time,
                })
            })
            .await?
            .into_parts();
        Ok(Output::Kept { id: id.to_string(), new })
    }

    async fn gather(&self, topic: String) -> Result<Output, ToolError> {
        let found = self.kit.find(&topic, None, NOTES).await?;
        let models = self.kit.blocking(move |memory| memory.search_models(&topic, MODELS)).await?;
        let models = models.into_iter().map(|model| Belief {
            name: model.name,
            statement: model.statement,
            confidence: rounded(model.confidence),
        });
        Ok(Output::Gathered {
            notes: found.notes.into_iter().map(Told::from).collect(),
            models: models.collect(),
            warning: found.warning,
            caution: CAUTION,
            next: "Call synthesize again with text, and with sources, to keep your summary.",
        })
    }
}
