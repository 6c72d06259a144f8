//! From what a person types to the run they mean.

use std::path::Path;

use gimlet::ids::RunId;
use gimlet::store::FindError;

use crate::home::Home;

impl Home {
    /// The run meant by `last` (the one of this folder that was started most recently), a full id, or an end of one that
    /// no other run shares. Blocks on files.
    pub(crate) fn find(&self, text: &str, folder: &Path) -> Result<RunId, FindError> {
        if text == "last" {
            let all = self.list(usize::MAX)?;
            let none = if all.is_empty() { FindError::NoRuns } else { FindError::NoneHere };
            return all.into_iter().find(|run| Path::new(&run.root) == folder).map(|run| run.id).ok_or(none);
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
