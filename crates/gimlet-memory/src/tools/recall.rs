//! `recall`: finds notes.

use gimlet::tool::{ToolCx, ToolError, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CAUTION, Told};
use crate::kit::{Kit, Ranking};

/// The tool.
pub struct Recall {
    /// The memory.
    pub kit: Kit,
}

/// Find what was remembered about this project in earlier runs.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Input {
    /// Words of what you look for. Empty for the newest notes.
    pub query: String,
    /// Most notes to return.
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 20))]
    pub limit: usize,
    /// Only notes with this tag.
    #[serde(default)]
    pub tag: Option<String>,
}

fn five() -> usize {
    5
}

/// The result.
#[derive(Debug, Clone, Serialize)]
pub struct Output {
    /// The notes, the best first.
    pub notes: Vec<Told>,
    /// How they were ranked.
    pub ranking: Ranking,
    /// Why the ranking is not what it could be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// What the notes are not.
    pub caution: &'static str,
}

impl TypedTool for Recall {
    const NAME: &'static str = "recall";
    type Input = Input;
    type Output = Output;

    async fn run(&self, input: Input, _cx: &ToolCx) -> Result<Output, ToolError> {
        let tag = input.tag.filter(|tag| !tag.trim().is_empty());
        let found = self.kit.find(&input.query, tag.as_deref().map(str::trim), input.limit).await?;
        Ok(Output {
            notes: found.notes.into_iter().map(Told::from).collect(),
            ranking: found.ranking,
            warning: found.warning,
            caution: CAUTION,
        })
    }
}
