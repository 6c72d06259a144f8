//! Folders that exist as long as one command: its `/tmp`, and the home it may scribble in.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::sys;

/// What the names of these folders begin with.
pub(crate) const PREFIX: &str = "gimlet-jail-";
/// A folder that is younger may have been made, and not been locked yet.
const YOUNG: Duration = Duration::from_secs(60);

/// Removed when it is dropped, by the supervisor, which outlives the command.
pub(crate) struct Scratch {
    temporary: Folder,
    home: Option<Folder>,
}

/// One folder, locked for as long as somebody will remove it: a supervisor that was killed leaves it without a lock.
struct Folder {
    path: PathBuf,
    /// Closed by the kernel with its process, and when that becomes another program.
    _lock: File,
}

impl Folder {
    fn new() -> io::Result<Self> {
        let path = sys::temporary_folder()?;
        let lock = File::open(&path)?;
        lock.lock()?;
        Ok(Folder { path, _lock: lock })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Removes what supervisors of this user that were killed have left in the folder for temporary files.
pub(crate) fn sweep(temporary: &Path) {
    use std::os::unix::fs::MetadataExt;
    for entry in std::fs::read_dir(temporary).into_iter().flatten().flatten() {
        let is_ours = || {
            let known = entry.metadata().ok()?;
            let age = known.modified().ok()?.elapsed().ok()?;
            Some(known.is_dir() && known.uid() == sys::user() && age > YOUNG)
        };
        if entry.file_name().to_string_lossy().starts_with(PREFIX)
            && is_ours() == Some(true)
            && let Ok(folder) = File::open(entry.path())
            && folder.try_lock().is_ok()
        {
            remove(&entry.path());
        }
    }
}

impl Scratch {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Scratch { temporary: Folder::new()?, home: None })
    }

    pub(crate) fn temporary(&self) -> &Path {
        &self.temporary.path
    }

    /// Made when it is asked for: making a folder and removing it take longer than anything else here.
    pub(crate) fn home(&mut self) -> io::Result<&Path> {
        let home = match self.home.take() {
            Some(home) => home,
            None => Folder::new()?,
        };
        Ok(&self.home.insert(home).path)
    }
}

fn remove(folder: &Path) {
    if std::fs::remove_dir_all(folder).is_err() {
        // The command may have taken its own rights away; they are its owner's to give back.
        loosen(folder);
        let _ = std::fs::remove_dir_all(folder);
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
