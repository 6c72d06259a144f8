//! `write_files`: the files of a whole edit in one step, for a program that has complete texts. All of them or none are
//! written, a person approves the diff of all of them at once, and the patch log can undo it.

use std::sync::Arc;

use gimlet::digest::digest;
use gimlet::effect::Effect;
use gimlet::patch::PatchValidator;
use gimlet::tool::{Manner, ToolCx, ToolError, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::apply_patch::{self, EDITED, apply};
use crate::blocking::blocking;
use crate::code;
use crate::patch::{PatchEntry, Patches, Proposal, propose_diff, propose_files, text_of};
use crate::propose_patch_unified::manner;
use crate::root::Root;

/// Characters of the diff in the result.
const DIFF_CHARS: usize = 2500;

/// The tool.
#[derive(Clone)]
pub struct WriteFiles {
    /// Where the files are.
    pub root: Root,
    /// Where its patches are kept, so that they can be undone.
    pub patches: Patches,
    /// Who checks them.
    pub validator: Arc<dyn PatchValidator>,
}

/// Write whole files, or remove them.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Input {
    /// One sentence: what the change is for.
    pub intent: String,
    /// The files.
    pub files: Vec<FileText>,
    /// The patch that a person made of this edit; it is applied instead.
    #[serde(default)]
    #[schemars(skip)]
    pub edited_diff: Option<String>,
}

/// A file as it shall be.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct FileText {
    /// File path relative to the project root.
    pub path: String,
    /// All its text; null removes the file.
    pub text: Option<String>,
    /// SHA-256 of the text it has now, empty if there is no such file. A file that has another text is not written.
    #[serde(default)]
    pub expected: Option<String>,
}

/// The result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Output {
    /// It is done.
    pub ok: bool,
    /// The files that were changed.
    pub files_changed: Vec<String>,
    /// The patch, for `gimlet runs undo`; empty if the files had these texts already.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub patch_id: String,
    /// The beginning of the diff.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub diff: String,
    /// Whether nothing was changed that a test could find: prose, or comments alone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_test_needed: bool,
}

impl WriteFiles {
    /// The change; none if all files have their texts already.
    fn proposal(&self, input: &Input) -> Result<Option<Proposal>, ToolError> {
        if let Some(diff) = &input.edited_diff {
            return propose_diff(&self.root, &input.intent, diff).map(Some);
        }
        let mut files = Vec::new();
        for file in &input.files {
            let now = text_of(&self.root, &file.path)?;
            if now == file.text {
                continue;
            }
            let found = now.map(|text| digest(text.as_bytes())).unwrap_or_default();
            if file.expected.as_ref().is_some_and(|expected| *expected != found) {
                let message = format!("{} has changed since it was read: nothing was written", file.path);
                return Err(
                    ToolError::failed(code::PATCH_APPLY_FAILED, message).with("path", file.path.clone())
                );
            }
            files.push((file.path.clone(), file.text.clone()));
        }
        if files.is_empty() { Ok(None) } else { propose_files(&self.root, &input.intent, &files).map(Some) }
    }
}

impl TypedTool for WriteFiles {
    const NAME: &'static str = gimlet::guided::WRITE_TOOL;
    type Input = Input;
    type Output = Output;

    fn manner(&self) -> Manner {
        Manner { parallel: false, ..manner() }
    }

    fn effects(&self, input: &Input) -> Result<Vec<Effect>, ToolError> {
        Ok(self.proposal(input)?.map(|proposal| proposal.effects()).unwrap_or_default())
    }

    fn preview(&self, input: &Input) -> Option<String> {
        Some(self.proposal(input).ok()??.diff)
    }

    fn patch_argument(&self) -> Option<&'static str> {
        Some(EDITED)
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        let tool = self.clone();
        let proposal = blocking(&cx.cancel, move |_| tool.proposal(&input)).await?;
        let Some(proposal) = proposal else {
            return Ok(Output {
                ok: true,
                files_changed: Vec::new(),
                patch_id: String::new(),
                diff: String::new(),
                no_test_needed: false,
            });
        };
        if proposal.effects() != cx.effects() {
            let message = "the files have changed since this edit was shown: nothing was written";
            return Err(ToolError::failed(code::PATCH_APPLY_FAILED, message));
        }
        let (patch_id, diff) = (proposal.id.clone(), proposal.diff.chars().take(DIFF_CHARS).collect());
        self.patches.step(PatchEntry::Proposed(proposal)).await?;
        let input = apply_patch::Input::of(&patch_id);
        let applied = apply(&self.root, &self.patches, self.validator.as_ref(), &input, &cx.cancel).await?;
        let (files_changed, no_test_needed) = (applied.files_changed, applied.no_test_needed);
        Ok(Output { ok: true, files_changed, patch_id, diff, no_test_needed })
    }
}
