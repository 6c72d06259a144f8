//! `revise_model`: makes a mental model, or changes what it says.

use gimlet::effect::Effect;
use gimlet::tool::{Manner, ToolCx, ToolError, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{keeping, kept};
use crate::kit::{Kit, source};
use crate::models::Wording;

/// The tool.
pub struct ReviseModel {
    /// The memory.
    pub kit: Kit,
}

/// Create a mental model of this project, or replace what it says. Earlier revisions are kept.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Input {
    /// A short name.
    pub name: String,
    /// What you believe.
    pub statement: String,
    /// How sure you are.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence: f64,
    /// Why you change it.
    #[serde(default)]
    pub because: Option<String>,
}

/// The result.
#[derive(Debug, Clone, Serialize)]
pub struct Output {
    /// The model's name.
    pub name: String,
    /// Number of the revision, from 1.
    pub revision: u32,
    /// False if it said exactly this already.
    pub new: bool,
}

impl TypedTool for ReviseModel {
    const NAME: &'static str = "revise_model";
    type Input = Input;
    type Output = Output;

    fn manner(&self) -> Manner {
        keeping()
    }

    fn effects(&self, input: &Input) -> Result<Vec<Effect>, ToolError> {
        kept("a mental model", json!([input.name, input.statement, input.confidence, input.because]))
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        let (source, now) = (source(cx), cx.now());
        let clean = |text: &str| cx.clean(text).into_owned();
        let (name, statement) = (clean(&input.name), clean(&input.statement));
        let because = input.because.as_deref().map(clean);
        let (model, new) = self
            .kit
            .blocking(move |memory| {
                let wording = Wording {
                    name: &name,
                    statement: &statement,
                    confidence: input.confidence,
                    because: because.as_deref(),
                };
                memory.revise(&wording, &source, now)
            })
            .await?
            .into_parts();
        Ok(Output { name: model.name, revision: model.revision, new })
    }
}
