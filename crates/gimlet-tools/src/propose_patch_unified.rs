//! `propose_patch_unified`: a change given as a unified diff. Nothing is written.

use std::sync::Arc;

use gimlet::effect::Effect;
use gimlet::patch::{Draft, PatchValidator, Validated, ValidationError};
use gimlet::telemetry::sandboxed;
use gimlet::tool::{Manner, ToolCx, ToolError, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::apply_patch::new_syntax_errors;
use crate::blocking::blocking;
use crate::code;
use crate::patch::{PatchEntry, Patches, Proposal, TESTS_TIMEOUT, named_files, propose_diff};
use crate::root::Root;

/// Characters of a diff shown in a result; `show_patch` shows all.
const PREVIEW_CHARS: usize = 500;

/// The tool.
#[derive(Clone)]
pub struct ProposePatchUnified {
    /// Where the files are.
    pub root: Root,
    /// Where proposals go.
    pub patches: Patches,
    /// Who checks them.
    pub validator: Arc<dyn PatchValidator>,
}

/// Propose a change as a unified diff. Nothing is written yet: call apply_patch with the returned patch_id to apply it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Input {
    /// One sentence: what the change is for.
    pub intent: String,
    /// The diff: "--- a/file", "+++ b/file", "@@ -1,3 +1,3 @@", then lines starting with a space (unchanged), - (removed)
    /// or + (added). Copy unchanged lines exactly.
    pub unified_diff: String,
}

/// The result of proposing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Output {
    /// Names the patch from now on.
    pub patch_id: String,
    /// What it is for.
    pub intent: String,
    /// The files it changes.
    pub file_path: String,
    /// The beginning of the diff as it would be applied.
    pub diff_preview: String,
    /// Where it was checked.
    pub validated_by: String,
    /// What had to be overlooked to understand it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What to do next.
    pub message: String,
}

impl TypedTool for ProposePatchUnified {
    const NAME: &'static str = "propose_patch_unified";
    type Input = Input;
    type Output = Output;

    fn manner(&self) -> Manner {
        manner()
    }

    fn effects(&self, input: &Input) -> Result<Vec<Effect>, ToolError> {
        let paths = named_files(&self.root, &input.unified_diff)?;
        Ok(paths.into_iter().map(|path| Effect::Read { path: path.into() }).collect())
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        let root = self.root.clone();
        let propose = move || propose_diff(&root, &input.intent, &input.unified_diff);
        let proposal = blocking(&cx.cancel, move |_| propose()).await?;
        keep(&self.root, &self.patches, self.validator.as_ref(), proposal, &cx.cancel).await
    }
}

/// How the guard treats tools that have patches checked: whoever checks has limits, which come before its own.
pub(crate) fn manner() -> Manner {
    Manner { timeout: 2 * TESTS_TIMEOUT, ..Manner::default() }
}

/// Checks a proposal and keeps it.
pub async fn keep(
    root: &Root,
    patches: &Patches,
    validator: &dyn PatchValidator,
    proposal: Proposal,
    cancel: &CancellationToken,
) -> Result<Output, ToolError> {
    let validated = check(root, validator, &proposal, cancel, code::INVALID_DIFF).await?;
    let broken = new_syntax_errors(&proposal.changes);
    let broken = broken.into_iter().map(|problem| format!("this patch brings a syntax error: {problem}"));
    let output = Output {
        patch_id: proposal.id.clone(),
        intent: proposal.intent.clone(),
        file_path: proposal.file_path(),
        diff_preview: preview(&proposal.diff),
        validated_by: validated.by,
        notes: proposal.notes.iter().cloned().chain(broken).collect(),
        message: format!("not applied yet; call apply_patch with patch_id {}", proposal.id),
    };
    patches.step(PatchEntry::Proposed(proposal)).await?;
    Ok(output)
}

/// Asks the validator. A patch that cannot be checked is not let through.
pub(crate) async fn check(
    root: &Root,
    validator: &dyn PatchValidator,
    proposal: &Proposal,
    cancel: &CancellationToken,
    word: &str,
) -> Result<Validated, ToolError> {
    let word_of = |error: &ValidationError| match error {
        ValidationError::Refused { .. } => "REFUSED",
        ValidationError::TestsFailed { .. } => code::TESTS_FAILED,
        ValidationError::Unavailable { .. } => "UNAVAILABLE",
    };
    let draft = Draft { root: root.path(), changes: &proposal.changes, diff: &proposal.diff };
    let by = |checked: &Result<Validated, ValidationError>| match checked {
        Ok(validated) => validated.by.clone(),
        Err(error) => error.by().to_owned(),
    };
    let checked = validator.validate(draft, cancel);
    sandboxed("validate_patch", draft.diff.len(), by, word_of, checked).await.map_err(|error| {
        let word = match error {
            ValidationError::TestsFailed { .. } => code::TESTS_FAILED,
            ValidationError::Refused { .. } => word,
            ValidationError::Unavailable { .. } => code::PATCH_NOT_CHECKED,
        };
        let failed = ToolError::failed(word, error.to_string()).with("validated_by", error.by());
        match error {
            ValidationError::Refused { said, .. } => failed.with("stderr", said),
            ValidationError::TestsFailed { said, .. } => failed.with("output", said),
            ValidationError::Unavailable { .. } => failed,
        }
    })
}

fn preview(diff: &str) -> String {
    match diff.char_indices().nth(PREVIEW_CHARS) {
        Some((cut, _)) => format!("{}… (show_patch shows all {} lines)", &diff[..cut], diff.lines().count()),
        None => diff.into(),
    }
}
