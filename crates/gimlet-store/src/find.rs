//! From what a person types to the run they mean.

use std::path::Path;

use gimlet::ids::RunId;
use gimlet::store::StoreError;

use crate::store::FileStore;

/// Why a run was not found.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// There are no runs at all.
    #[error("there are no runs yet")]
    NoRuns,
    /// There are none of this folder.
    #[error("there are no runs in this folder; `gimlet runs --all` lists those of other folders")]
    NoneHere,
    /// No id begins or ends like that.
    #[error("no run begins or ends with `{0}`")]
    NotFound(String),
    /// More than one id does.
    #[error("`{text}` could be any of {}", list(candidates))]
    Ambiguous {
        /// What was asked for.
        text: String,
        /// The runs it could be, newest id first.
        candidates: Vec<RunId>,
    },
    /// The runs cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl FileStore {
    /// Like [`resolve`](Self::resolve), but `last` is the last run of this folder, which is an absolute path.
    pub fn resolve_in(&self, text: &str, folder: &Path) -> Result<RunId, FindError> {
        if text != "last" {
            return self.resolve(text);
        }
        let all = self.list(usize::MAX)?;
        let none = if all.is_empty() { FindError::NoRuns } else { FindError::NoneHere };
        all.into_iter().find(|run| Path::new(&run.root) == folder).map(|run| run.id).ok_or(none)
    }

    /// The run meant by `last` (the one started most recently), a full id, or an end of one that no other run shares.
    /// Blocks on files.
    pub fn resolve(&self, text: &str) -> Result<RunId, FindError> {
        if text == "last" {
            return self.list(1)?.into_iter().next().map(|run| run.id).ok_or(FindError::NoRuns);
        }
        let mut ids: Vec<RunId> = self.scan()?.into_iter().map(|(id, _)| id).collect();
        if let Some(exact) = ids.iter().find(|id| id.as_str() == text) {
            return Ok(exact.clone());
        }
        // An empty text would be an end of every id, and of the only one if there is just one.
        ids.retain(|id| !text.is_empty() && (id.as_str().starts_with(text) || id.as_str().ends_with(text)));
        ids.sort_by(|a, b| b.cmp(a));
        match ids.as_slice() {
            [] => Err(FindError::NotFound(text.into())),
            [only] => Ok(only.clone()),
            [..] => Err(FindError::Ambiguous { text: text.into(), candidates: ids }),
        }
    }
}

fn list(candidates: &[RunId]) -> String {
    let shown = 5;
    let mut text = candidates.iter().take(shown).map(RunId::as_str).collect::<Vec<_>>().join(", ");
    if candidates.len() > shown {
        text.push_str(&format!(" and {} more", candidates.len() - shown));
    }
    text
}
