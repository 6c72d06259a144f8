//! Writing below the root: a new file is finished beside its place and then moved there in one step.

use std::ffi::OsString;
use std::io::{self, Write};

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, OpenOptions, Permissions};

use super::open;
use super::{PathError, Root, RootPath};

/// A finished file beside its place. Dropping it removes it.
pub(crate) struct Staged {
    dir: Dir,
    temporary: OsString,
    name: OsString,
    moved: bool,
}

impl Staged {
    /// Moves the file to its place, replacing what is there.
    pub(crate) fn commit(mut self) -> io::Result<()> {
        self.dir.rename(&self.temporary, &self.dir, &self.name)?;
        self.moved = true;
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.moved {
            // Nothing more can be done about a leftover here; its name says what it is.
            let _ = self.dir.remove_file(&self.temporary);
        }
    }
}

impl Root {
    /// Writes a file beside its place. Folders on the way are made; the mode is the old file's unless one is given.
    pub(crate) fn stage(
        &self,
        path: &RootPath,
        bytes: &[u8],
        mode: Option<u32>,
    ) -> Result<Staged, PathError> {
        let failed = |error| PathError::io(path.as_path(), error);
        let (Some(parent), Some(name)) = (path.as_path().parent(), path.as_path().file_name()) else {
            return Err(PathError::NotAFile { path: path.display(), what: "a folder" });
        };
        let dir = self.folder_for_writing(parent)?;
        let temporary = OsString::from(format!(".gimlet-{}.tmp", random_word().map_err(failed)?));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).follow(FollowSymlinks::No);
        let mut file = dir.open_with(&temporary, &options).map_err(failed)?;
        let staged = Staged { dir, temporary, name: name.into(), moved: false };
        file.write_all(bytes).map_err(failed)?;
        if let Some(mode) = mode {
            file.set_permissions(permissions(mode)).map_err(failed)?;
        }
        file.sync_all().map_err(failed)?;
        Ok(staged)
    }

    /// Removes a file, never what a link points to.
    pub(crate) fn remove(&self, path: &RootPath) -> Result<(), PathError> {
        let (Some(parent), Some(name)) = (path.as_path().parent(), path.as_path().file_name()) else {
            return Err(PathError::NotAFile { path: path.display(), what: "a folder" });
        };
        open::folder(self.dir(), parent)?
            .remove_file(name)
            .map_err(|error| PathError::io(path.as_path(), error))
    }

    /// Removes a folder if it is empty; used to take back folders a new file needed.
    pub(crate) fn remove_empty_folder(&self, path: &std::path::Path) {
        if let (Some(parent), Some(name)) = (path.parent(), path.file_name())
            && let Ok(dir) = open::folder(self.dir(), parent)
        {
            let _ = dir.remove_dir(name);
        }
    }

    /// The mode bits of a regular file.
    pub(crate) fn mode(&self, path: &RootPath) -> Result<u32, PathError> {
        use std::os::unix::fs::PermissionsExt;
        let file = open::file(self.dir(), path.as_path())?;
        let metadata = file.metadata().map_err(|error| PathError::io(path.as_path(), error))?;
        Ok(metadata.permissions().mode() & 0o7777)
    }

    fn folder_for_writing(&self, path: &std::path::Path) -> Result<Dir, PathError> {
        match open::folder(self.dir(), path) {
            Err(PathError::NotFound(_)) => {}
            done => return done,
        }
        let mut dir = self.dir().try_clone().map_err(|error| PathError::io(path, error))?;
        for name in path.components() {
            let name = std::path::Path::new(name.as_os_str());
            match dir.create_dir(name) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(PathError::io(path, error)),
            }
            dir = open::folder(&dir, name)?;
        }
        Ok(dir)
    }
}

fn permissions(mode: u32) -> Permissions {
    use cap_std::fs::PermissionsExt;
    Permissions::from_mode(mode)
}

fn random_word() -> io::Result<String> {
    let mut bytes = [0u8; 8];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
