//! Folders for copies of a project's files: closed to other users, gone with their owner, and cleared away by the next one
//! if that was killed.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;

/// Nobody needs longer from making a folder to locking it.
const YOUNG: Duration = Duration::from_secs(60);

/// A folder that is removed when this is dropped.
pub(crate) struct Scratch {
    folder: TempDir,
    /// Locked as long as the folder is in use.
    _lock: File,
}

impl Scratch {
    /// A folder whose name begins so, among the system's temporary ones.
    pub(crate) fn new(prefix: &str) -> io::Result<Scratch> {
        Scratch::among(&std::env::temp_dir(), prefix)
    }

    fn among(place: &Path, prefix: &str) -> io::Result<Scratch> {
        let closed = Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new().prefix(prefix).permissions(closed).tempdir_in(place)?;
        let lock = File::open(folder.path())?;
        flock(&lock, FlockOperation::NonBlockingLockShared)?;
        clear(place, prefix, folder.path());
        Ok(Scratch { folder, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes what others of this user have left. What cannot be removed stays for the next time.
fn clear(place: &Path, prefix: &str, own: &Path) {
    let Ok(user) = fs::symlink_metadata(own).map(|own| own.uid()) else { return };
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(prefix) {
            continue;
        }
        // Not through links: the folder is everybody's.
        let Ok(known) = entry.metadata() else { continue };
        let age = known.modified().ok().and_then(|then| SystemTime::now().duration_since(then).ok());
        let is_old = known.is_dir() && known.uid() == user && age.is_some_and(|age| age > YOUNG);
        let is_free = |file: File| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        if is_old && File::open(entry.path()).is_ok_and(is_free) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_cannot_look_and_left_overs_are_cleared_away() {
        let place = tempfile::tempdir().unwrap();
        let lives = Scratch::among(place.path(), "own-").unwrap();
        assert_eq!(fs::metadata(lives.path()).unwrap().permissions().mode() & 0o777, 0o700);
        let make = |name: &str| {
            let folder = place.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("file"), "x").unwrap();
            folder
        };
        let (left, fresh, other) = (make("own-left"), make("own-fresh"), make("other"));
        let hour_ago = SystemTime::now() - Duration::from_secs(3600);
        for old in [lives.path(), &left, &other] {
            File::open(old).unwrap().set_modified(hour_ago).unwrap();
        }
        drop(Scratch::among(place.path(), "own-").unwrap());
        assert!(!left.exists());
        assert!(lives.path().exists() && fresh.exists() && other.exists());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 3);
    }
}
