//! Opening below the root without following a single link.
//!
//! On Linux the kernel walks the path in one call; elsewhere, and where that call is missing, we walk it component by
//! component. Files are opened without blocking, so that a pipe put in a file's place cannot hang the program.

use std::fs::File;
use std::io;
use std::path::{Component, Path};
use std::time::SystemTime;

use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::fs::{Dir, FileType, OpenOptions};

use super::PathError;

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) kind: Kind,
    pub(crate) size: u64,
    pub(crate) modified: Option<SystemTime>,
}

/// What kind of thing it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Folder,
    Link,
    Other,
}

impl Kind {
    fn of(kind: FileType) -> Self {
        if kind.is_file() {
            Kind::File
        } else if kind.is_dir() {
            Kind::Folder
        } else if kind.is_symlink() {
            Kind::Link
        } else {
            Kind::Other
        }
    }

    /// For a message that a file was expected.
    pub(crate) fn what(self) -> &'static str {
        match self {
            Kind::File => "a file",
            Kind::Folder => "a folder",
            Kind::Link => "a symbolic link",
            Kind::Other => "a device, pipe or socket",
        }
    }
}

/// Opens a regular file.
pub(super) fn file(root: &Dir, path: &Path) -> Result<File, PathError> {
    // Looked at first because opening some devices has effects, and again once open because only that is certain.
    let found = look(root, path)?;
    require_file(path, found.kind)?;
    file_of_walk(root, path)
}

/// Opens a regular file that a walk has looked at just before.
pub(super) fn file_of_walk(root: &Dir, path: &Path) -> Result<File, PathError> {
    let file = open(root, path).map_err(|error| refused(path, error))?;
    let kind = file.metadata().map_err(|error| PathError::io(path, error))?.file_type();
    if !kind.is_file() {
        return Err(PathError::NotAFile { path: shown(path), what: "something else now" });
    }
    Ok(file)
}

/// Refuses what is no regular file.
fn require_file(path: &Path, kind: Kind) -> Result<(), PathError> {
    match kind {
        Kind::File => Ok(()),
        Kind::Folder | Kind::Link | Kind::Other => {
            Err(PathError::NotAFile { path: shown(path), what: kind.what() })
        }
    }
}

/// What is at a path, the path's last link included.
pub(super) fn look(root: &Dir, path: &Path) -> Result<Found, PathError> {
    let metadata = match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => folder(root, parent)?.symlink_metadata(name),
        _ => root.dir_metadata(),
    };
    let metadata = metadata.map_err(|error| PathError::io(path, error))?;
    Ok(Found {
        kind: Kind::of(metadata.file_type()),
        size: metadata.len(),
        modified: metadata.modified().ok().map(cap_std::time::SystemTime::into_std),
    })
}

/// Opens a folder.
pub(super) fn folder(root: &Dir, path: &Path) -> Result<Dir, PathError> {
    if path.as_os_str().is_empty() {
        return root.try_clone().map_err(|error| PathError::io(path, error));
    }
    #[cfg(target_os = "linux")]
    match linux::open(root, path, linux::FOLDER) {
        Ok(file) => return Ok(Dir::from_std_file(file)),
        Err(error) if linux::is_missing(&error) => {}
        Err(error) => return Err(refused(path, error)),
    }
    walk(root, path).map_err(|error| refused(path, error))
}

fn open(root: &Dir, path: &Path) -> io::Result<File> {
    #[cfg(target_os = "linux")]
    match linux::open(root, path, linux::FILE) {
        Err(error) if linux::is_missing(&error) => {}
        done => return done,
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::IsADirectory.into());
    };
    let mut options = OpenOptions::new();
    options.read(true).follow(FollowSymlinks::No).nonblock(true);
    Ok(walk(root, parent)?.open_with(name, &options)?.into_std())
}

/// Opens folder after folder, none of them through a link.
fn walk(root: &Dir, path: &Path) -> io::Result<Dir> {
    let mut dir = root.try_clone()?;
    for component in path.components() {
        match component {
            Component::Normal(name) => dir = dir.open_dir_nofollow(name)?,
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(io::ErrorKind::InvalidInput.into());
            }
        }
    }
    Ok(dir)
}

/// A link on the way can only have been put there after the path was resolved, or found by a walk: either way it is not
/// followed.
fn refused(path: &Path, error: io::Error) -> PathError {
    let link = rustix::io::Errno::from_io_error(&error).is_some_and(|errno| {
        [rustix::io::Errno::LOOP, rustix::io::Errno::XDEV, rustix::io::Errno::MLINK].contains(&errno)
    });
    if link { PathError::Outside(shown(path)) } else { PathError::io(path, error) }
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(target_os = "linux")]
mod linux {
    use super::{Dir, File, Path, io};
    use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
    use rustix::io::Errno;

    pub(super) const FILE: OFlags =
        OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
    pub(super) const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::DIRECTORY);

    pub(super) fn open(root: &Dir, path: &Path, flags: OFlags) -> io::Result<File> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        loop {
            match openat2(root, path, flags, Mode::empty(), resolve) {
                Ok(fd) => return Ok(File::from(fd)),
                // The kernel saw a rename elsewhere and could not be sure: ask again.
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Old kernels and some container filters do not have the call.
    pub(super) fn is_missing(error: &io::Error) -> bool {
        matches!(Errno::from_io_error(error), Some(Errno::NOSYS | Errno::PERM))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The portable way must refuse what the kernel's way refuses.
    #[test]
    fn walking_follows_no_link() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(temp.path().join("a/b")).unwrap();
        std::os::unix::fs::symlink("a", temp.path().join("link")).unwrap();
        let root = Dir::open_ambient_dir(temp.path(), cap_std::ambient_authority()).unwrap();
        assert!(walk(&root, Path::new("a/b")).is_ok());
        assert!(walk(&root, Path::new("link/b")).is_err());
        assert!(walk(&root, Path::new("link")).is_err());
        assert!(walk(&root, Path::new("a/../a")).is_err());
        assert!(folder(&root, Path::new("a/b")).is_ok());
        assert!(matches!(
            folder(&root, Path::new("link/b")),
            Err(PathError::Outside(_) | PathError::NotFound(_))
        ));
    }
}
