//! From a diff to the files it would leave: pure, with the project behind a trait.

use std::collections::BTreeMap;

use gimlet::patch::{FileChange, FileState};

use super::apply::{HunkError, apply};
use super::read::{FileDiff, LineKind};
use super::seek::Strictness;

/// The changes of a patch, and what had to be overlooked to understand it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The changes, in the diff's order.
    pub changes: Vec<FileChange>,
    /// What a person should know, such as that indentation was adjusted.
    pub notes: Vec<String>,
}

/// The project as a plan sees it.
pub trait Files {
    /// Why a file cannot be had.
    type Error;

    /// The path relative to the root behind a name in a diff, if it may be written.
    fn locate(&self, name: &str) -> Result<String, Self::Error>;

    /// The file at a located path, or none.
    fn load(&self, path: &str) -> Result<Option<FileState>, Self::Error>;
}

/// Why a diff leads to no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError<E> {
    /// The project refused.
    #[error(transparent)]
    Files(E),
    /// A file that is to be changed does not exist.
    #[error("{0} does not exist, so it cannot be changed")]
    Missing(String),
    /// A file that is to be created exists.
    #[error("{0} exists already, so it cannot be created")]
    Exists(String),
    /// A mode other than that of a plain file.
    #[error("{path} would become something else than a file (mode {mode:o})")]
    Mode {
        /// The file.
        path: String,
        /// The mode.
        mode: u32,
    },
    /// A hunk has no place.
    #[error("{path}: {error}")]
    Hunk {
        /// The file.
        path: String,
        /// Why.
        error: HunkError,
    },
    /// The diff removes a file but its lines are others.
    #[error("{0} would be removed, but the diff's lines are not all of the file's")]
    NotAll(String),
    /// Everything it wants is there already.
    #[error("the patch changes nothing: the files already look like that")]
    Nothing,
}

/// Works out what a diff would leave.
pub fn plan<F: Files>(diffs: &[FileDiff], files: &F) -> Result<Plan, PlanError<F::Error>> {
    let mut planner =
        Planner { files, now: BTreeMap::new(), order: Vec::new(), renames: Vec::new(), notes: Vec::new() };
    for diff in diffs {
        planner.take(diff)?;
    }
    planner.finish()
}

/// Whether the file a diff names is there, and where it is or would be.
enum Existing {
    Yes(String, FileState),
    No(String),
}

struct Planner<'a, F> {
    files: &'a F,
    /// Every file met so far: as it was, and as the patch leaves it so far.
    now: BTreeMap<String, (Option<FileState>, Option<FileState>)>,
    order: Vec<String>,
    renames: Vec<(String, String)>,
    notes: Vec<String>,
}

impl<F: Files> Planner<'_, F> {
    fn take(&mut self, diff: &FileDiff) -> Result<(), PlanError<F::Error>> {
        let only_adds =
            diff.hunks.iter().all(|hunk| hunk.lines.iter().all(|line| line.kind == LineKind::Add));
        if diff.creates {
            let path = self.locate(diff.new.as_deref().or(diff.old.as_deref()), "b/")?;
            return self.create(&path, diff);
        }
        if diff.renames {
            let from = self.locate(diff.old.as_deref(), "a/")?;
            let to = self.locate(diff.new.as_deref(), "b/")?;
            return self.rename(from, to, diff);
        }
        match self.existing(diff)? {
            Existing::No(path) if only_adds && !diff.deletes && !diff.hunks.is_empty() => {
                self.create(&path, diff)
            }
            Existing::No(path) => Err(PlanError::Missing(path)),
            Existing::Yes(path, state) if diff.deletes => self.delete(&path, &state, diff),
            Existing::Yes(path, state) => {
                let after = self.changed(&path, &state, diff)?;
                self.set(&path, Some(after));
                Ok(())
            }
        }
    }

    /// The file a diff changes: its names with and without their prefix, the new one first.
    fn existing(&mut self, diff: &FileDiff) -> Result<Existing, PlanError<F::Error>> {
        let names = [(diff.new.as_deref(), "b/"), (diff.old.as_deref(), "a/")];
        let mut first = None;
        for (name, prefix) in names.into_iter().filter_map(|(name, prefix)| name.map(|name| (name, prefix))) {
            let stripped = name.strip_prefix(prefix);
            for name in stripped.into_iter().chain([name]) {
                let path = self.files.locate(name).map_err(PlanError::Files)?;
                if let Some(state) = self.current(&path)? {
                    return Ok(Existing::Yes(path, state));
                }
                first.get_or_insert(path);
            }
        }
        Ok(Existing::No(first.unwrap_or_default()))
    }

    fn locate(&self, name: Option<&str>, prefix: &str) -> Result<String, PlanError<F::Error>> {
        let name = name.unwrap_or_default();
        self.files.locate(name.strip_prefix(prefix).unwrap_or(name)).map_err(PlanError::Files)
    }

    fn create(&mut self, path: &str, diff: &FileDiff) -> Result<(), PlanError<F::Error>> {
        if self.current(path)?.is_some() {
            return Err(PlanError::Exists(path.into()));
        }
        let empty = FileState { text: String::new(), mode: None };
        let after = self.changed(path, &empty, diff)?;
        self.set(path, Some(after));
        Ok(())
    }

    fn delete(&mut self, path: &str, state: &FileState, diff: &FileDiff) -> Result<(), PlanError<F::Error>> {
        if !diff.hunks.is_empty() && !self.changed(path, state, diff)?.text.trim().is_empty() {
            return Err(PlanError::NotAll(path.into()));
        }
        self.set(path, None);
        Ok(())
    }

    fn rename(&mut self, from: String, to: String, diff: &FileDiff) -> Result<(), PlanError<F::Error>> {
        let Some(state) = self.current(&from)? else { return Err(PlanError::Missing(from)) };
        if self.current(&to)?.is_some() {
            return Err(PlanError::Exists(to));
        }
        let after = self.changed(&to, &state, diff)?;
        self.set(&from, None);
        self.set(&to, Some(after));
        self.renames.push((from, to));
        Ok(())
    }

    fn changed(
        &mut self,
        path: &str,
        state: &FileState,
        diff: &FileDiff,
    ) -> Result<FileState, PlanError<F::Error>> {
        let applied =
            apply(&state.text, &diff.hunks).map_err(|error| PlanError::Hunk { path: path.into(), error })?;
        let overlooked = match applied.strictness {
            Strictness::Exact => None,
            Strictness::TrailingSpace => Some("space at the end of lines was overlooked"),
            Strictness::Indentation => Some("indentation differs and was adjusted"),
            Strictness::Punctuation => Some("typographic characters were overlooked"),
        };
        if let Some(note) = overlooked {
            self.notes.push(format!("{path}: {note}"));
        }
        let mode = match diff.mode {
            None => state.mode,
            Some(0o100_644) => state.mode.map(|mode| mode & !0o111),
            // Whoever may read it may run it.
            Some(0o100_755) => Some(state.mode.map_or(0o755, |mode| mode | ((mode & 0o444) >> 2))),
            Some(mode) => return Err(PlanError::Mode { path: path.into(), mode }),
        };
        Ok(FileState { text: applied.text, mode })
    }

    fn current(&mut self, path: &str) -> Result<Option<FileState>, PlanError<F::Error>> {
        if let Some((_, now)) = self.now.get(path) {
            return Ok(now.clone());
        }
        let state = self.files.load(path).map_err(PlanError::Files)?;
        self.now.insert(path.into(), (state.clone(), state.clone()));
        self.order.push(path.into());
        Ok(state)
    }

    fn set(&mut self, path: &str, state: Option<FileState>) {
        if let Some((_, now)) = self.now.get_mut(path) {
            *now = state;
        }
    }

    fn finish(mut self) -> Result<Plan, PlanError<F::Error>> {
        let mut changes = Vec::new();
        for path in &self.order {
            let Some((before, after)) = self.now.get(path) else { continue };
            if before == after || self.is_renamed_away(path) {
                continue;
            }
            let from = self.renames.iter().find(|(_, to)| to == path).map(|(from, _)| from);
            let change = match from.and_then(|from| Some((from, self.now.get(from)?))) {
                Some((from, (Some(old), None))) if before.is_none() && after.is_some() => FileChange {
                    path: path.clone(),
                    renamed_from: Some(from.clone()),
                    before: Some(old.clone()),
                    after: after.clone(),
                },
                Some(_) | None => FileChange {
                    path: path.clone(),
                    renamed_from: None,
                    before: before.clone(),
                    after: after.clone(),
                },
            };
            changes.push(change);
        }
        if changes.is_empty() {
            return Err(PlanError::Nothing);
        }
        self.notes.dedup();
        Ok(Plan { changes, notes: self.notes })
    }

    /// Whether a file's going away is told by the change of its new name.
    fn is_renamed_away(&self, path: &str) -> bool {
        let state = |path: &str| self.now.get(path);
        self.renames.iter().any(|(from, to)| {
            from == path
                && matches!(state(from), Some((Some(_), None)))
                && matches!(state(to), Some((None, Some(_))))
        })
    }
}
