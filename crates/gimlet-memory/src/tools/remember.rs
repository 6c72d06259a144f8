//! `remember`: keeps a note.

use gimlet::effect::Effect;
use gimlet::tool::{Manner, ToolCx, ToolError, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{keeping, kept};
use crate::kit::{Kit, source};
use crate::notes::{Draft, NoteKind};

/// The tool.
pub struct Remember {
    /// The memory.
    pub kit: Kit,
}

/// Keep one fact about this project for later runs. Never keep secrets.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Input {
    /// The fact, in a sentence or two that can be understood alone.
    pub text: String,
    /// Words to find it by.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// The result.
#[derive(Debug, Clone, Serialize)]
pub struct Output {
    /// The note's id.
    pub id: String,
    /// False if the same was remembered before.
    pub new: bool,
}

impl TypedTool for Remember {
    const NAME: &'static str = "remember";
    type Input = Input;
    type Output = Output;

    fn manner(&self) -> Manner {
        keeping()
    }

    fn effects(&self, input: &Input) -> Result<Vec<Effect>, ToolError> {
        kept("a note", json!([input.text, input.tags]))
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        let (source, time) = (source(cx), cx.now());
        let text = cx.clean(&input.text).into_owned();
        let tags: Vec<String> = input.tags.iter().map(|tag| cx.clean(tag).into_owned()).collect();
        let (id, new) = self
            .kit
            .blocking(move |memory| {
                let kind = NoteKind::Note;
                memory.note(&Draft { kind, text: &text, tags: &tags, sources: &[], source: &source, time })
            })
            .await?
            .into_parts();
        Ok(Output { id: id.to_string(), new })
    }
}
