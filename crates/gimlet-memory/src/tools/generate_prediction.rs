//! `generate_prediction`: writes down what a mental model expects, before it is known.

use gimlet::effect::Effect;
use gimlet::tool::{Manner, ToolCx, ToolError, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{keeping, kept, rounded};
use crate::kit::{Kit, source};

/// The tool.
pub struct GeneratePrediction {
    /// The memory.
    pub kit: Kit,
}

/// Write down what a mental model expects, so that it can be checked later.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Input {
    /// Name of the mental model.
    pub model: String,
    /// What will be seen to be true or false.
    pub statement: String,
    /// How likely it is to be true.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub probability: f64,
}

/// The result.
#[derive(Debug, Clone, Serialize)]
pub struct Output {
    /// The prediction's id, for `resolve_prediction`.
    pub id: String,
    /// How likely it was said to be; an open prediction keeps its first probability.
    pub probability: f64,
    /// False if the same was open already.
    pub new: bool,
}

impl TypedTool for GeneratePrediction {
    const NAME: &'static str = "generate_prediction";
    type Input = Input;
    type Output = Output;

    fn manner(&self) -> Manner {
        keeping()
    }

    fn effects(&self, input: &Input) -> Result<Vec<Effect>, ToolError> {
        kept("a prediction", json!([input.model, input.statement, input.probability]))
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        let (source, now) = (source(cx), cx.now());
        let statement = cx.clean(&input.statement).into_owned();
        let (prediction, new) = self
            .kit
            .blocking(move |memory| memory.predict(&input.model, &statement, input.probability, &source, now))
            .await?
            .into_parts();
        Ok(Output { id: prediction.id.to_string(), probability: rounded(prediction.probability), new })
    }
}
