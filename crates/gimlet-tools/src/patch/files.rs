//! Proposing changes to the files of a root.

use std::collections::HashSet;

use gimlet::digest::digest_json;
use gimlet::patch::{FileChange, FileState};
use gimlet::text::{Printable, first_control, shown};
use gimlet::tool::ToolError;
use serde_json::json;
use similar::{ChangeTag, TextDiff};

use super::plan::{Files, Plan, PlanError, plan};
use super::proposals::{Proposal, Stage};
use super::read::{FileDiff, Hunk, HunkLine, LineKind, read};
use super::render::render;
use super::{HunkError, ReadError};
use crate::code;
use crate::lines::read_all;
use crate::root::{PathError, Root};

/// Largest file a patch may touch.
const MOST_BYTES: u64 = 8 * 1024 * 1024;

/// The files of a root that may be written.
struct Project<'a>(&'a Root);

impl Files for Project<'_> {
    type Error = ToolError;

    fn locate(&self, name: &str) -> Result<String, ToolError> {
        let path = self.0.resolve_for_writing(name)?;
        match path.as_path().to_str() {
            Some(path) => Ok(path.into()),
            None => Err(ToolError::failed(
                code::INVALID_DIFF,
                format!("{} has an unreadable name", path.display()),
            )),
        }
    }

    fn load(&self, path: &str) -> Result<Option<FileState>, ToolError> {
        load(self.0, path)
    }
}

/// A text file as it is now, or none.
pub(super) fn load(root: &Root, path: &str) -> Result<Option<FileState>, ToolError> {
    let located = root.resolve_for_writing(path)?;
    match root.look(&located) {
        Err(PathError::NotFound(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
        Ok(_) => {}
    }
    let bytes = read_all(root, &located, MOST_BYTES)?;
    let mode = root.mode(&located)?;
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(Some(FileState { text, mode: Some(mode) })),
        Ok(_) | Err(_) => {
            let message = format!("{path} is not UTF-8 text, so it cannot be patched");
            Err(ToolError::failed(code::BINARY_FILE, message).with("path", path))
        }
    }
}

/// The text of a file that may be written, or none.
pub fn text_of(root: &Root, file_path: &str) -> Result<Option<String>, ToolError> {
    Ok(load(root, &Project(root).locate(file_path)?)?.map(|state| state.text))
}

/// Proposes what a unified diff wants.
pub fn propose_diff(root: &Root, intent: &str, diff: &str) -> Result<Proposal, ToolError> {
    let diffs = read(diff).map_err(|error| unreadable(&error))?;
    let plan = plan(&diffs, &Project(root)).map_err(no_plan)?;
    checked(proposal(intent, plan))
}

/// The files a unified diff names, all of them inside the root and writable by rule.
pub(crate) fn named_files(root: &Root, diff: &str) -> Result<Vec<String>, ToolError> {
    let diffs = read(diff).map_err(|error| unreadable(&error))?;
    let mut paths = Vec::new();
    for diff in &diffs {
        let names = [(&diff.old, "a/"), (&diff.new, "b/")];
        for (name, prefix) in names.into_iter().filter_map(|(name, prefix)| Some((name.as_ref()?, prefix))) {
            let name = name.strip_prefix(prefix).unwrap_or(name);
            paths.push(Project(root).locate(name)?);
        }
    }
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// Proposes to replace a text, the whole file or a part of it that occurs once, by another.
pub fn propose_texts(
    root: &Root,
    intent: &str,
    file_path: &str,
    original: &str,
    new: &str,
) -> Result<Proposal, ToolError> {
    let path = Project(root).locate(file_path)?;
    let before = load(root, &path)?;
    let whole = match &before {
        None if original.trim().is_empty() => Some(FileState { text: new.into(), mode: None }),
        None => return Err(no_plan(PlanError::Missing(path))),
        Some(state) if state.text == original => Some(FileState { text: new.into(), mode: state.mode }),
        Some(_) if original.trim().is_empty() => {
            let message = format!("{path} is not empty: the lines to replace must be given");
            return Err(ToolError::failed(code::INVALID_DIFF, message).with("path", path));
        }
        Some(_) => None,
    };
    if let Some(after) = whole {
        if before.as_ref() == Some(&after) {
            return Err(no_plan(PlanError::Nothing));
        }
        let change = FileChange { path, renamed_from: None, before, after: Some(after) };
        return checked(proposal(intent, Plan { changes: vec![change], notes: Vec::new() }));
    }
    let diff = FileDiff {
        old: Some(path.clone()),
        new: Some(path.clone()),
        hunks: vec![Hunk::new(lines_between(original, new))],
        ..FileDiff::default()
    };
    match plan(&[diff], &Project(root)) {
        Ok(plan) => checked(proposal(intent, plan)),
        Err(error) => match before.and_then(|before| within_a_line(before, original, new)) {
            Some((before, after)) if is_not_found(&error) => {
                let change =
                    FileChange { path, renamed_from: None, before: Some(before), after: Some(after) };
                checked(proposal(intent, Plan { changes: vec![change], notes: Vec::new() }))
            }
            Some(_) | None => Err(no_plan(error)),
        },
    }
}

/// Proposes to give files these texts; none removes a file.
pub fn propose_files(
    root: &Root,
    intent: &str,
    files: &[(String, Option<String>)],
) -> Result<Proposal, ToolError> {
    let mut changes = Vec::with_capacity(files.len());
    for (file_path, text) in files {
        let path = Project(root).locate(file_path)?;
        let before = load(root, &path)?;
        let mode = before.as_ref().and_then(|state| state.mode);
        let after = text.as_ref().map(|text| FileState { text: text.clone(), mode });
        if before != after {
            changes.push(FileChange { path, renamed_from: None, before, after });
        }
    }
    if changes.is_empty() {
        return Err(no_plan(PlanError::Nothing));
    }
    Ok(proposal(intent, Plan { changes, notes: Vec::new() }))
}

fn is_not_found(error: &PlanError<ToolError>) -> bool {
    matches!(error, PlanError::Hunk { error: HunkError::NotFound { .. }, .. })
}

/// A file before and after a part of a line, which occurs once in it, is replaced.
fn within_a_line(before: FileState, original: &str, new: &str) -> Option<(FileState, FileState)> {
    let mut found = before.text.match_indices(original);
    let (at, _) = found.next()?;
    if found.next().is_some() || original.contains('\n') || original == new {
        return None;
    }
    let (head, tail) = (&before.text[..at], &before.text[at + original.len()..]);
    let after = FileState { text: format!("{head}{new}{tail}"), mode: before.mode };
    Some((before, after))
}

/// The lines of both texts as one hunk.
fn lines_between(original: &str, new: &str) -> Vec<HunkLine> {
    let (old, new): (Vec<&str>, Vec<&str>) = (original.lines().collect(), new.lines().collect());
    let diff = TextDiff::from_slices(&old, &new);
    diff.iter_all_changes()
        .map(|change| HunkLine {
            kind: match change.tag() {
                ChangeTag::Equal => LineKind::Keep,
                ChangeTag::Delete => LineKind::Remove,
                ChangeTag::Insert => LineKind::Add,
            },
            text: change.value().into(),
            carriage_return: None,
        })
        .collect()
}

/// Refuses names and new lines that a terminal would obey: whoever is asked about them must see them. Lines that the
/// file has already stay as they are.
fn checked(proposal: Proposal) -> Result<Proposal, ToolError> {
    for change in &proposal.changes {
        let names = [Some(&change.path), change.renamed_from.as_ref()];
        if let Some(name) = names.into_iter().flatten().find(|name| first_control(name).is_some()) {
            let message = format!("the file name {} has a control character", Printable::line(name));
            return Err(ToolError::failed(code::INVALID_DIFF, message).with("hint", "Choose a plain name."));
        }
        let known: HashSet<&str> = change.before.iter().flat_map(|before| before.text.split('\n')).collect();
        let Some(after) = &change.after else { continue };
        let new = after.text.split('\n').enumerate().filter(|(_, line)| !known.contains(line));
        for (at, line) in new {
            if let Some(control) = first_control(line) {
                let (number, path) = (at + 1, &change.path);
                let message =
                    format!("line {number} of {path} would have a control character, {}", shown(control));
                let hint = "Write it as an escape of the language, such as \\x1b.";
                return Err(ToolError::failed(code::INVALID_DIFF, message)
                    .with("path", path.as_str())
                    .with("hint", hint));
            }
        }
    }
    Ok(proposal)
}

/// The id is made of what would be written over what, so the same proposal always has the same one.
fn proposal(intent: &str, plan: Plan) -> Proposal {
    let states: Vec<_> = plan
        .changes
        .iter()
        .map(|change| {
            json!({
                "path": change.path,
                "from": change.renamed_from,
                "before": change.before.as_ref().map(FileState::digest),
                "after": change.after.as_ref().map(FileState::digest),
                "mode": change.after.as_ref().map(FileState::git_mode),
            })
        })
        .collect();
    let id: String = digest_json(&json!(states)).chars().take(10).collect();
    Proposal {
        id: format!("patch_{id}"),
        intent: intent.into(),
        diff: render(&plan.changes),
        changes: plan.changes,
        notes: plan.notes,
        stage: Stage::Proposed,
    }
}

fn unreadable(error: &ReadError) -> ToolError {
    ToolError::failed(code::INVALID_DIFF, error.to_string())
}

fn no_plan(error: PlanError<ToolError>) -> ToolError {
    let message = error.to_string();
    let invalid = |path: String| ToolError::failed(code::INVALID_DIFF, message.clone()).with("path", path);
    match error {
        PlanError::Files(error) => error,
        PlanError::Missing(path) => ToolError::failed(code::FILE_NOT_FOUND, message).with("path", path),
        PlanError::Exists(path) | PlanError::NotAll(path) | PlanError::Mode { path, .. } => invalid(path),
        PlanError::Nothing => ToolError::failed(code::INVALID_DIFF, message),
        PlanError::Hunk { path, error } => match error {
            HunkError::NotFound { number, not_found, nearest } => {
                let nearest: Vec<_> =
                    nearest.into_iter().map(|(line, text)| json!({ "line": line, "text": text })).collect();
                invalid(path).with("hunk", number).with("not_found", not_found).with("nearest", nearest)
            }
            HunkError::Ambiguous { number, lines } => {
                invalid(path).with("hunk", number).with("fits_at", lines)
            }
            HunkError::NoPlace { number } | HunkError::Inside { number } => {
                invalid(path).with("hunk", number)
            }
        },
    }
}
