//! `propose_patch`: a change given as old and new text. Nothing is written.

use std::sync::Arc;

use gimlet::effect::Effect;
use gimlet::patch::PatchValidator;
use gimlet::tool::{Manner, ToolCx, ToolError, TypedTool};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::blocking::blocking;
use crate::patch::{Patches, propose_texts};
use crate::propose_patch_unified::{Output, keep, manner};
use crate::root::Root;

/// The tool.
#[derive(Clone)]
pub struct ProposePatch {
    /// Where the files are.
    pub root: Root,
    /// Where proposals go.
    pub patches: Patches,
    /// Who checks them.
    pub validator: Arc<dyn PatchValidator>,
}

/// Propose to replace lines of a file by others; an empty original_content makes a new file. Nothing is written yet: call
/// apply_patch with the returned patch_id.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Input {
    /// One sentence: what the change is for.
    pub intent: String,
    /// File path relative to the project root.
    pub file_path: String,
    /// The lines to replace, copied exactly from the file, with enough of them to be unique. Empty for a new file.
    pub original_content: String,
    /// The lines to put in their place.
    pub new_content: String,
}

impl TypedTool for ProposePatch {
    const NAME: &'static str = "propose_patch";
    type Input = Input;
    type Output = Output;

    fn manner(&self) -> Manner {
        manner()
    }

    fn effects(&self, input: &Input) -> Result<Vec<Effect>, ToolError> {
        let path = self.root.resolve_for_writing(&input.file_path)?;
        Ok(vec![Effect::Read { path: path.as_path().into() }])
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        let root = self.root.clone();
        let proposal = blocking(&cx.cancel, move |_| {
            propose_texts(&root, &input.intent, &input.file_path, &input.original_content, &input.new_content)
        })
        .await?;
        keep(&self.root, &self.patches, self.validator.as_ref(), proposal, &cx.cancel).await
    }
}
