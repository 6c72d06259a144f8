//! Files that an editor has open: what it has not saved yet counts before what is on the disk, and it is told of every
//! file that a tool writes.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::Path;

use super::{PathError, Root, RootPath, open};

/// Largest file an editor is asked about.
const MAX_BYTES: u64 = 4 << 20;

/// The files an editor has open. Both calls may take as long as the editor needs, and may be made on any thread.
pub trait Buffers: Send + Sync {
    /// The text of a file as the editor has it. `None` where it has none, or does not say.
    fn text(&self, path: &Path) -> Option<String>;

    /// Tells the editor what a file holds now, so that an open buffer takes it up.
    fn written(&self, path: &Path, text: &str);
}

/// A file as the editor has it, where that is another text than the disk's.
pub(super) fn opened(
    buffers: &dyn Buffers,
    root: &Path,
    path: &Path,
    mut file: File,
) -> Result<File, PathError> {
    let failed = |error| PathError::io(path, error);
    let metadata = file.metadata().map_err(failed)?;
    if metadata.len() > MAX_BYTES {
        return Ok(file);
    }
    let Some(text) = buffers.text(&root.join(path)) else { return Ok(file) };
    let mut saved = Vec::new();
    file.read_to_end(&mut saved).map_err(failed)?;
    if saved == text.as_bytes() {
        file.rewind().map_err(failed)?;
        return Ok(file);
    }
    let mut unsaved = tempfile::tempfile().map_err(failed)?;
    unsaved.write_all(text.as_bytes()).map_err(failed)?;
    unsaved.set_permissions(metadata.permissions()).map_err(failed)?;
    unsaved.rewind().map_err(failed)?;
    Ok(unsaved)
}

impl Root {
    /// Tells the editor of a file that was written. An editor may save more than it was told, such as a formatted text;
    /// then the file does not hold what was agreed to, and this says so.
    pub(crate) fn tell_buffers(&self, path: &RootPath, text: &str) -> Result<(), String> {
        let Some(buffers) = &self.buffers else { return Ok(()) };
        buffers.written(&self.path().join(path.as_path()), text);
        let mut saved = Vec::new();
        let read = open::file(self.dir(), path.as_path()).and_then(|mut file| {
            file.read_to_end(&mut saved).map_err(|error| PathError::io(path.as_path(), error))
        });
        match read {
            Ok(_) if saved == text.as_bytes() => Ok(()),
            Ok(_) => Err(format!("{}: the editor saved another text than it was given", path.display())),
            Err(error) => Err(error.to_string()),
        }
    }
}
