//! `resolve_prediction`: says how a prediction came out.

use gimlet::effect::Effect;
use gimlet::tool::{Manner, ToolCx, ToolError, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{keeping, kept, rounded};
use crate::id::Id;
use crate::kit::Kit;
use crate::models::Standing;

/// The tool.
pub struct ResolvePrediction {
    /// The memory.
    pub kit: Kit,
}

/// Say whether a prediction came true. It cannot be changed afterwards.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Input {
    /// The prediction's id, such as `p7`.
    pub id: String,
    /// Whether it came true.
    pub outcome: bool,
    /// What you know it by.
    #[serde(default)]
    pub evidence: Option<String>,
}

/// The result: how the model does.
#[derive(Debug, Clone, Serialize)]
pub struct Output {
    model: String,
    outcome: bool,
    resolved: u32,
    accuracy: Option<f64>,
    brier: Option<f64>,
    standing: Standing,
}

impl TypedTool for ResolvePrediction {
    const NAME: &'static str = "resolve_prediction";
    type Input = Input;
    type Output = Output;

    fn manner(&self) -> Manner {
        keeping()
    }

    fn effects(&self, input: &Input) -> Result<Vec<Effect>, ToolError> {
        kept("an outcome", json!([input.id, input.outcome, input.evidence]))
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        let now = cx.now();
        let id: Id = input.id.parse()?;
        let evidence = input.evidence.as_deref().map(|text| cx.clean(text).into_owned());
        let (prediction, model) = self
            .kit
            .blocking(move |memory| memory.resolve(id, input.outcome, evidence.as_deref(), now))
            .await?;
        Ok(Output {
            outcome: prediction.outcome.unwrap_or(input.outcome),
            resolved: model.record.resolved,
            accuracy: model.record.accuracy.map(rounded),
            brier: model.record.brier.map(rounded),
            standing: model.standing(now),
            model: model.name,
        })
    }
}
