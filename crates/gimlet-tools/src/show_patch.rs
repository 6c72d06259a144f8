//! `show_patch`: a proposed patch in full.

use gimlet::effect::Effect;
use gimlet::tool::{ToolCx, ToolError, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::patch::{Patches, Stage};

/// The tool.
#[derive(Clone)]
pub struct ShowPatch {
    /// Where proposals are.
    pub patches: Patches,
}

/// Show a proposed patch as a diff.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Input {
    /// The id that propose_patch returned.
    pub patch_id: String,
}

/// The result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Output {
    /// The patch.
    pub patch_id: String,
    /// What it is for.
    pub intent: String,
    /// The files it changes.
    pub file_path: String,
    /// How far it got.
    pub stage: Stage,
    /// The diff.
    pub diff: String,
}

impl TypedTool for ShowPatch {
    const NAME: &'static str = "show_patch";
    type Input = Input;
    type Output = Output;

    fn effects(&self, _input: &Input) -> Result<Vec<Effect>, ToolError> {
        Ok(Vec::new())
    }

    async fn run(&self, input: Input, _cx: &ToolCx) -> Result<Output, ToolError> {
        show(&self.patches, &input)
    }
}

/// Looks a patch up.
pub fn show(patches: &Patches, input: &Input) -> Result<Output, ToolError> {
    let patch = patches.get(&input.patch_id)?;
    Ok(Output {
        file_path: patch.file_path(),
        patch_id: patch.id,
        intent: patch.intent,
        stage: patch.stage,
        diff: patch.diff,
    })
}
