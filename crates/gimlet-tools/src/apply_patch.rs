//! `apply_patch`: writes a proposed patch to the files. The one tool here that changes them.

use std::path::Path;
use std::sync::Arc;

use gimlet::effect::Effect;
use gimlet::patch::{FileChange, PatchValidator};
use gimlet::tool::{Manner, ToolCx, ToolError, TypedTool};
use gimlet_repo::syntax;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::code;
use crate::gate::is_prose;
use crate::patch::{PatchEntry, Patches, Proposal, Stage, Undo, is_written, propose_diff, write_changes};
use crate::propose_patch_unified::{check, manner};
use crate::root::Root;

/// The tool.
#[derive(Clone)]
pub struct ApplyPatch {
    /// Where the files are.
    pub root: Root,
    /// Where proposals are.
    pub patches: Patches,
    /// Who checks them.
    pub validator: Arc<dyn PatchValidator>,
}

/// Write a proposed patch to the files.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Input {
    /// The id that propose_patch returned.
    pub patch_id: String,
    /// The patch that a person made of the proposed one; it is applied instead.
    #[serde(default)]
    #[schemars(skip)]
    pub edited_diff: Option<String>,
}

impl Input {
    /// A proposed patch as it is.
    pub fn of(patch_id: impl Into<String>) -> Self {
        Input { patch_id: patch_id.into(), edited_diff: None }
    }
}

/// The argument of the tools here that takes a person's patch.
pub(crate) const EDITED: &str = "edited_diff";

/// The result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Output {
    /// It is done.
    pub ok: bool,
    /// The patch.
    pub patch_id: String,
    /// What it is for.
    pub intent: String,
    /// The files it changed, as one text.
    pub file_path: String,
    /// The files it changed.
    pub files_changed: Vec<String>,
    /// Where it was checked.
    pub validated_by: String,
    /// Syntax errors that it brought into its files, to be mended at once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub new_syntax_errors: Vec<String>,
    /// Whether it changed nothing that a test could find: prose, or comments alone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_test_needed: bool,
}

impl ApplyPatch {
    /// The patch to apply: the proposed one, or what a person made of it.
    fn patch(&self, input: &Input) -> Result<Proposal, ToolError> {
        let proposed = self.patches.get(&input.patch_id)?;
        match &input.edited_diff {
            None => Ok(proposed),
            Some(diff) => propose_diff(&self.root, &proposed.intent, diff),
        }
    }
}

impl TypedTool for ApplyPatch {
    const NAME: &'static str = "apply_patch";
    type Input = Input;
    type Output = Output;

    fn manner(&self) -> Manner {
        Manner { parallel: false, ..manner() }
    }

    fn effects(&self, input: &Input) -> Result<Vec<Effect>, ToolError> {
        let patch = self.patch(input)?;
        for path in patch.paths() {
            self.root.resolve_for_writing(&path)?;
        }
        Ok(patch.effects())
    }

    fn preview(&self, input: &Input) -> Option<String> {
        Some(self.patch(input).ok()?.diff)
    }

    fn patch_argument(&self) -> Option<&'static str> {
        Some(EDITED)
    }

    async fn run(&self, mut input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        if input.edited_diff.is_some() {
            let edited = self.patch(&input)?;
            unchanged(&edited, cx)?;
            input = Input::of(&edited.id);
            self.patches.step(PatchEntry::Proposed(edited)).await?;
        }
        apply(&self.root, &self.patches, self.validator.as_ref(), &input, &cx.cancel).await
    }
}

/// Makes sure that a patch still does what was approved.
pub(crate) fn unchanged(patch: &Proposal, cx: &ToolCx) -> Result<(), ToolError> {
    if patch.effects() == cx.effects() {
        return Ok(());
    }
    let path = patch.file_path();
    let message = format!("{path} has changed since this edit was shown: nothing was written");
    Err(ToolError::failed(code::PATCH_APPLY_FAILED, message).with("path", path))
}

/// Applies a patch: all its files or none, and only if they are as they were when it was proposed. What is needed to
/// undo it is logged first.
pub async fn apply(
    root: &Root,
    patches: &Patches,
    validator: &dyn PatchValidator,
    input: &Input,
    cancel: &CancellationToken,
) -> Result<Output, ToolError> {
    let patch = patches.get(&input.patch_id)?;
    let (files_changed, validated_by) = match patch.stage {
        Stage::Applied => {
            let message = format!("{} has been applied already", patch.id);
            return Err(ToolError::failed(code::PATCH_APPLY_FAILED, message).with("patch_id", patch.id));
        }
        Stage::Applying if is_written(root, &patch.changes) => {
            (patch.paths(), "the files themselves: they were written before the program stopped".into())
        }
        Stage::Proposed | Stage::Applying | Stage::Undone => {
            let validated = check(root, validator, &patch, cancel, code::PATCH_APPLY_FAILED).await?;
            patches.step(PatchEntry::Applying(Undo::of(root, &patch.id, &patch.changes))).await?;
            // Not on another thread: a call dropped here would leave writing behind that nobody waits for.
            match write_changes(root, &patch.changes) {
                Ok(paths) => (paths, validated.by),
                Err(error) => {
                    patches.step(PatchEntry::Failed { id: patch.id.clone() }).await?;
                    return Err(error.with("patch_id", patch.id));
                }
            }
        }
    };
    patches.step(PatchEntry::Applied { id: patch.id.clone() }).await?;
    Ok(Output {
        new_syntax_errors: new_syntax_errors(&patch.changes),
        no_test_needed: patch.changes.iter().all(is_untestable),
        ok: true,
        file_path: patch.file_path(),
        patch_id: patch.id,
        intent: patch.intent,
        files_changed,
        validated_by,
    })
}

/// The syntax errors that changes bring, in words for the model.
pub(crate) fn new_syntax_errors(changes: &[FileChange]) -> Vec<String> {
    let problem = |change: &FileChange| {
        let before = change.before.as_ref().map(|state| state.text.as_str()).unwrap_or_default();
        let after = change.after.as_ref()?;
        let found = syntax::new_problem(Path::new(&change.path), before, &after.text)?;
        Some(format!("{}: {}", change.path, found.text))
    };
    changes.iter().filter_map(problem).collect()
}

/// Whether no test can find a change: it is in prose, or in comments alone.
fn is_untestable(change: &FileChange) -> bool {
    if is_prose(&change.path) {
        return is_prose(change.old_path());
    }
    match (&change.before, &change.after) {
        (Some(before), Some(after)) if change.renamed_from.is_none() => {
            syntax::is_same_code(Path::new(&change.path), &before.text, &after.text)
        }
        (_, _) => false,
    }
}
