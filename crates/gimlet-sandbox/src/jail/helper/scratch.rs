//! Folders that exist as long as one command: its `/tmp`, and the home it may scribble in.

use std::io;
use std::path::{Path, PathBuf};

use super::sys;

/// Removed when it is dropped, by the supervisor, which outlives the command.
pub(crate) struct Scratch {
    temporary: PathBuf,
    home: Option<PathBuf>,
}

impl Scratch {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Scratch { temporary: sys::temporary_folder()?, home: None })
    }

    pub(crate) fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Made when it is asked for: making a folder and removing it take longer than anything else here.
    pub(crate) fn home(&mut self) -> io::Result<&Path> {
        let home = match self.home.take() {
            Some(home) => home,
            None => sys::temporary_folder()?,
        };
        Ok(self.home.insert(home))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for folder in self.home.iter().chain([&self.temporary]) {
            if std::fs::remove_dir_all(folder).is_err() {
                // The command may have taken its own rights away; they are its owner's to give back.
                loosen(folder);
                let _ = std::fs::remove_dir_all(folder);
            }
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
