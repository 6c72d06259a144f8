//! Folders that exist as long as one command: its `/tmp`, and the home it may scribble in.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::sys;
use crate::jail::masks::Masks;

/// What the names of these folders begin with.
pub(crate) const PREFIX: &str = "gimlet-jail-";
/// A folder that is younger may have been made, and not been locked yet.
const YOUNG: Duration = Duration::from_secs(60);

/// Removed when it is dropped, by the supervisor, which outlives the command.
pub(crate) struct Scratch {
    temporary: Folder,
    home: Option<Folder>,
    covers: Option<Covers>,
}

/// What stands in the place of secrets.
struct Covers {
    /// Kept for as long as a command may see what is in it.
    _folder: Folder,
    /// A file that nobody may read: a program says so, instead of working with an empty one.
    file: PathBuf,
    /// An empty folder.
    folder: PathBuf,
    /// In the order of what they replace.
    texts: Vec<PathBuf>,
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
        Ok(Scratch { temporary: Folder::new()?, home: None, covers: None })
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

impl Scratch {
    /// Makes what secrets are covered with, and says with what each.
    pub(crate) fn cover<'a>(
        &'a mut self,
        masks: &'a Masks,
    ) -> io::Result<impl Iterator<Item = (&'a Path, &'a Path)>> {
        use std::os::unix::fs::PermissionsExt;
        let made = Folder::new()?;
        let (file, folder) = (made.path.join("file"), made.path.join("folder"));
        std::fs::write(&file, "")?;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o000))?;
        std::fs::create_dir(&folder)?;
        let mut texts = Vec::new();
        for (number, (_, text)) in masks.replaced.iter().enumerate() {
            let path = made.path.join(number.to_string());
            std::fs::write(&path, text)?;
            texts.push(path);
        }
        self.covers = Some(Covers { _folder: made, file, folder, texts });
        Ok(self.covers(masks))
    }

    /// What covers each path; nothing before it was made.
    pub(crate) fn covers<'a>(&'a self, masks: &'a Masks) -> impl Iterator<Item = (&'a Path, &'a Path)> {
        self.covers.iter().flat_map(move |covers| {
            let files = masks.files.iter().map(|path| (covers.file.as_path(), path.as_path()));
            let folders = masks.folders.iter().map(|path| (covers.folder.as_path(), path.as_path()));
            let replaced = masks.replaced.iter().map(|(path, _)| path.as_path());
            files.chain(folders).chain(covers.texts.iter().map(PathBuf::as_path).zip(replaced))
        })
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
