//! Reads a project's own files without following links: a link could have one project read, or trust, another's file.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::file::{MAX_BYTES, shown};
use crate::UsageError;

/// Reads a file of a project that may be absent. A link, at its end or on the way below the project's root, is an error.
pub fn read_inside(root: &Path, path: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    let failed = |error: io::Error| UsageError::new(format!("cannot read {}: {error}", shown(path)));
    let (base, below) = split(root, path);
    let file = match open(&base, &below) {
        Ok(file) => file,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(_) if has_link(&base, &below) => {
            return Err(UsageError::new(format!(
                "{} is reached through a symbolic link, and a project's own files are not read through links",
                shown(path)
            ))
            .hint("put the file itself there")
            .into());
        }
        Err(error) => return Err(failed(error).into()),
    };
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(UsageError::new(format!("{} is not a file", shown(path))).into());
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(UsageError::new(format!("{} is larger than a megabyte", shown(path))).into());
    }
    Ok(Some(bytes))
}

/// Whether a link is at a path or on the way to it below the project's root.
pub fn leads_through_link(root: &Path, path: &Path) -> bool {
    let (base, below) = split(root, path);
    has_link(&base, &below)
}

/// The part of a path that may have links, and the part that may not: what is below the root, or else the last name.
fn split(root: &Path, path: &Path) -> (PathBuf, PathBuf) {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if let Ok(below) = path.strip_prefix(root) {
        return (root.to_owned(), below.to_owned());
    }
    let name = path.file_name().map(PathBuf::from).unwrap_or_default();
    (path.parent().map(Path::to_owned).unwrap_or_default(), name)
}

fn has_link(base: &Path, below: &Path) -> bool {
    let mut at = base.to_owned();
    below.components().any(|part| {
        at.push(part);
        std::fs::symlink_metadata(&at).is_ok_and(|known| known.is_symlink())
    })
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Opens without waiting for a pipe's other end.
#[cfg(target_os = "linux")]
fn open(base: &Path, below: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
    use rustix::io::Errno;
    let folder = File::open(base)?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    loop {
        match openat2(&folder, below, flags, Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS)
        {
            Ok(file) => return Ok(File::from(file)),
            // The kernel saw a rename elsewhere and could not be sure: ask again.
            Err(Errno::AGAIN | Errno::INTR) => {}
            // Old kernels and some filters do not have the call.
            Err(Errno::NOSYS | Errno::PERM) => return open_checked(base, below),
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn open(base: &Path, below: &Path) -> io::Result<File> {
    open_checked(base, below)
}

fn open_checked(base: &Path, below: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    if has_link(base, below) {
        return Err(rustix::io::Errno::LOOP.into());
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
    Ok(File::from(rustix::fs::open(base.join(below), flags, Mode::empty())?))
}
