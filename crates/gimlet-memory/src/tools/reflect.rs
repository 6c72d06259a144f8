//! `reflect`: how the memory stands.

use gimlet::tool::{ToolCx, ToolError, TypedTool};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CAUTION, rounded};
use crate::kit::Kit;
use crate::models::{Model, Standing};
use crate::predictions::Prediction;
use crate::store::Status;

/// So many models and predictions are told of; the rest is counted.
const MODELS: usize = 20;
const PREDICTIONS: usize = 20;

/// The tool.
pub struct Reflect {
    /// The memory.
    pub kit: Kit,
}

/// Show the state of your memory: mental models with their record, worst first, and open predictions, oldest first.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Input {}

/// The result.
#[derive(Debug, Clone, Serialize)]
pub struct Output {
    #[serde(flatten)]
    status: Status,
    mental_models: Vec<Belief>,
    predictions: Vec<Open>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    advice: Vec<String>,
    caution: &'static str,
}

#[derive(Debug, Clone, Serialize)]
struct Belief {
    name: String,
    statement: String,
    confidence: f64,
    revision: u32,
    standing: Standing,
    open: u32,
    resolved: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    accuracy: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    brier: Option<f64>,
}

#[derive(Debug, Clone, Serialize)]
struct Open {
    id: String,
    model: String,
    statement: String,
    probability: f64,
    days: i64,
}

impl TypedTool for Reflect {
    const NAME: &'static str = "reflect";
    type Input = Input;
    type Output = Output;

    async fn run(&self, _input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        let now = cx.now();
        let (status, models, predictions) = self
            .kit
            .blocking(|memory| Ok((memory.status()?, memory.models()?, memory.predictions()?)))
            .await?;
        let mut models: Vec<(Standing, Model)> =
            models.into_iter().map(|model| (model.standing(now), model)).collect();
        models.sort_by_key(|(standing, _)| *standing);
        let open = predictions.into_iter().filter(|prediction| prediction.outcome.is_none());
        Ok(Output {
            status,
            advice: models
                .iter()
                .take(MODELS)
                .filter_map(|(standing, model)| advice(*standing, model))
                .collect(),
            mental_models: models
                .into_iter()
                .take(MODELS)
                .map(|(standing, model)| belief(standing, model))
                .collect(),
            predictions: open.take(PREDICTIONS).map(|prediction| told(prediction, now)).collect(),
            caution: CAUTION,
        })
    }
}

fn advice(standing: Standing, model: &Model) -> Option<String> {
    let name = &model.name;
    match standing {
        Standing::Contradicted => Some(format!("{name}: most outcomes speak against it; revise it.")),
        Standing::Overconfident => Some(format!("{name}: its confidence is above its record; lower it.")),
        Standing::Stale => Some(format!("{name}: unused for 30 days; check whether it still holds.")),
        Standing::Untested | Standing::Sound => None,
    }
}

fn belief(standing: Standing, model: Model) -> Belief {
    Belief {
        name: model.name,
        statement: model.statement,
        confidence: rounded(model.confidence),
        revision: model.revision,
        standing,
        open: model.record.open,
        resolved: model.record.resolved,
        accuracy: model.record.accuracy.map(rounded),
        brier: model.record.brier.map(rounded),
    }
}

fn told(prediction: Prediction, now: Timestamp) -> Open {
    Open {
        id: prediction.id.to_string(),
        model: prediction.model,
        statement: prediction.statement,
        probability: rounded(prediction.probability),
        days: now.duration_since(prediction.time).as_hours() / 24,
    }
}
