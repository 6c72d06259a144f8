//! Folders that exist as long as one command: its `/tmp`, and the home it may scribble in.

use std::io;
use std::path::{Path, PathBuf};

use super::sys;

/// Removed when it is dropped, by the supervisor, which outlives the command.
pub(crate) struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    pub(crate) fn new() -> io::Result<Self> {
        let folder = sys::temporary_folder()?;
        let scratch = Scratch { folder };
        std::fs::create_dir(scratch.temporary())?;
        std::fs::create_dir(scratch.home())?;
        Ok(scratch)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn temporary(&self) -> PathBuf {
        self.folder.join("tmp")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.join("home")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if std::fs::remove_dir_all(&self.folder).is_err() {
            // The command may have taken its own rights away; they are its owner's to give back.
            loosen(&self.folder);
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

fn loosen(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let _ = std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700));
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            loosen(&entry.path());
        }
    }
}
