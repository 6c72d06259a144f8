//! `edit_file`: a change in one step, for models that lose their way between proposing and applying one. What a person
//! approves is the diff, and nothing else is written.

use std::sync::Arc;

use gimlet::effect::Effect;
use gimlet::patch::PatchValidator;
use gimlet::tool::{Manner, ToolCx, ToolError, TypedTool};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::apply_patch::{self, EDITED, Output, apply, unchanged};
use crate::blocking::blocking;
use crate::code;
use crate::patch::{PatchEntry, Patches, Proposal, propose_diff, propose_texts, text_of};
use crate::propose_patch_unified::manner;
use crate::root::Root;

/// The tool.
#[derive(Clone)]
pub struct EditFile {
    /// Where the files are.
    pub root: Root,
    /// Where its patches are kept, so that they can be undone.
    pub patches: Patches,
    /// Who checks them.
    pub validator: Arc<dyn PatchValidator>,
}

/// Change a file: write new_text in the place of old_text; an empty old_text makes a new file, or replaces all of a short one.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Input {
    /// File path relative to the project root.
    pub path: String,
    /// The lines to replace, copied exactly from the file. Empty to write the whole file.
    pub old_text: String,
    /// The lines to put in their place, or all lines of the file.
    pub new_text: String,
    /// The patch that a person made of this edit; it is applied instead.
    #[serde(default)]
    #[schemars(skip)]
    pub edited_diff: Option<String>,
}

/// Most lines and characters of a file that may be replaced without saying which lines: of more, a small model forgets some.
const SHORT: (usize, usize) = (60, 4000);

fn is_short(text: &str) -> bool {
    text.lines().count() <= SHORT.0 && text.chars().count() <= SHORT.1
}

impl EditFile {
    fn proposal(&self, input: &Input) -> Result<Proposal, ToolError> {
        let intent = format!("Edit {}", input.path);
        if let Some(diff) = &input.edited_diff {
            return propose_diff(&self.root, &intent, diff);
        }
        let is_whole = input.old_text.trim().is_empty() && !input.new_text.trim().is_empty();
        let before = if is_whole { text_of(&self.root, &input.path)? } else { None };
        let whole = before.filter(|text| is_short(text));
        let old = whole.as_ref().unwrap_or(&input.old_text);
        propose_texts(&self.root, &intent, &input.path, old, &input.new_text)
            .map_err(|error| self.with_file(error, &input.path))
    }

    /// An edit that does not fit shows what there is, where that is short: a small model would guess again.
    fn with_file(&self, error: ToolError, path: &str) -> ToolError {
        let is_misfit = matches!(&error, ToolError::Failed(failure) if failure.error == code::INVALID_DIFF);
        match text_of(&self.root, path) {
            Ok(Some(text)) if is_misfit && is_short(&text) => error.with("file", text),
            Ok(_) | Err(_) => error,
        }
    }
}

impl TypedTool for EditFile {
    const NAME: &'static str = "edit_file";
    type Input = Input;
    type Output = Output;

    fn manner(&self) -> Manner {
        Manner { parallel: false, ..manner() }
    }

    fn effects(&self, input: &Input) -> Result<Vec<Effect>, ToolError> {
        Ok(self.proposal(input)?.effects())
    }

    fn preview(&self, input: &Input) -> Option<String> {
        Some(self.proposal(input).ok()?.diff)
    }

    fn patch_argument(&self) -> Option<&'static str> {
        Some(EDITED)
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        let tool = self.clone();
        let proposal = blocking(&cx.cancel, move |_| tool.proposal(&input)).await?;
        unchanged(&proposal, cx)?;
        let patch_id = proposal.id.clone();
        self.patches.step(PatchEntry::Proposed(proposal)).await?;
        let input = apply_patch::Input::of(patch_id);
        apply(&self.root, &self.patches, self.validator.as_ref(), &input, &cx.cancel).await
    }
}
