//! Looking at and reading files below a folder, without following links: a link put in a file's place is not read.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, statat};

/// The folder that everything is read from.
#[derive(Debug)]
pub(crate) struct Folder {
    fd: OwnedFd,
}

/// When and how a file was last changed, as far as the system tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) size: u64,
    /// Different after every change that the system notices.
    pub(crate) mark: u64,
    /// Nanoseconds since 1970 of the last change to content or status.
    pub(crate) newest: u64,
}

impl Folder {
    pub(crate) fn open(root: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Folder { fd: rustix::fs::open(root, flags, Mode::empty())? })
    }

    /// The stamp of a regular file.
    pub(crate) fn stamp(&self, path: &Path) -> Option<Stamp> {
        let found = statat(&self.fd, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return None;
        }
        let nanos = |seconds: i64, nanos: i64| {
            u64::try_from(seconds.saturating_mul(1_000_000_000).saturating_add(nanos)).unwrap_or_default()
        };
        let (modified, changed) = (
            nanos(found.st_mtime as i64, found.st_mtime_nsec as i64),
            nanos(found.st_ctime as i64, found.st_ctime_nsec as i64),
        );
        let size = u64::try_from(found.st_size).unwrap_or_default();
        let mut words = [0u8; 32];
        let inode = found.st_ino as u64;
        for (place, word) in words.chunks_exact_mut(8).zip([modified, changed, size, inode]) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        Some(Stamp { size, mark: crate::words::hash(&words), newest: modified.max(changed) })
    }

    /// The bytes of a regular file of at most `limit` bytes; `None` for anything else.
    pub(crate) fn read(&self, path: &Path, limit: u64) -> Option<Vec<u8>> {
        let mut file = self.open_file(path).ok()?;
        let found = file.metadata().ok()?;
        if !found.is_file() || found.len() > limit {
            return None;
        }
        let mut bytes = Vec::with_capacity(usize::try_from(found.len()).unwrap_or_default() + 1);
        // It may have grown since.
        (&mut file).take(limit + 1).read_to_end(&mut bytes).ok()?;
        (bytes.len() as u64 <= limit).then_some(bytes)
    }

    /// The text of a file, with a replacement for what is not UTF-8.
    pub(crate) fn text(&self, path: &Path, limit: u64) -> Option<String> {
        let bytes = self.read(path, limit)?;
        Some(
            String::from_utf8(bytes)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        )
    }

    /// Opened without blocking, so that a pipe in a file's place cannot hang the program.
    fn open_file(&self, path: &Path) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{ResolveFlags, openat2};
            use rustix::io::Errno;
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            for _ in 0..8 {
                match openat2(&self.fd, path, flags, Mode::empty(), resolve) {
                    Ok(fd) => return Ok(File::from(fd)),
                    // The kernel saw a rename elsewhere and could not be sure.
                    Err(Errno::AGAIN | Errno::INTR) => {}
                    // Old kernels and some container filters do not have the call.
                    Err(Errno::NOSYS | Errno::PERM) => break,
                    Err(error) => return Err(error.into()),
                }
            }
        }
        let mut folder: Option<OwnedFd> = None;
        let mut components = path.components().peekable();
        while let Some(component) = components.next() {
            let Component::Normal(name) = component else { return Err(io::ErrorKind::InvalidInput.into()) };
            let at = folder.as_ref().unwrap_or(&self.fd);
            if components.peek().is_none() {
                return Ok(File::from(openat(at, name, flags, Mode::empty())?));
            }
            let steps = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            folder = Some(openat(at, name, steps, Mode::empty())?);
        }
        Err(io::ErrorKind::InvalidInput.into())
    }
}

/// Applies `work` to every item on all cores; the results are in the order of the items. `make` builds what a thread needs.
pub(crate) fn parallel<T: Sync, S, R: Send>(
    items: &[T],
    make: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &T) -> R + Sync,
) -> Vec<R> {
    const BLOCK: usize = 64;
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(16);
    if threads == 1 || items.len() <= BLOCK {
        let mut state = make();
        return items.iter().map(|item| work(&mut state, item)).collect();
    }
    let next = std::sync::atomic::AtomicUsize::new(0);
    let run = || {
        let mut state = make();
        let mut done = Vec::new();
        loop {
            let block = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let Some(items) = items.get(block * BLOCK..).filter(|rest| !rest.is_empty()) else { return done };
            let results: Vec<R> = items.iter().take(BLOCK).map(|item| work(&mut state, item)).collect();
            done.push((block, results));
        }
    };
    let mut blocks: Vec<(usize, Vec<R>)> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
        let mut blocks = run();
        for other in others {
            match other.join() {
                Ok(more) => blocks.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        blocks
    });
    blocks.sort_unstable_by_key(|(block, _)| *block);
    blocks.into_iter().flat_map(|(_, results)| results).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_large_files_are_not_read() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir(temp.path().join("a")).unwrap();
        std::fs::write(temp.path().join("a/b"), "text").unwrap();
        std::os::unix::fs::symlink("a", temp.path().join("link")).unwrap();
        std::os::unix::fs::symlink("a/b", temp.path().join("file")).unwrap();
        let folder = Folder::open(temp.path()).unwrap();
        assert_eq!(folder.text(Path::new("a/b"), 10).as_deref(), Some("text"));
        assert_eq!(folder.text(Path::new("a/b"), 3), None);
        for path in ["link/b", "file", "a", "../x", "/etc/passwd", "missing"] {
            assert_eq!(folder.text(Path::new(path), 1 << 20), None, "{path}");
        }
        assert!(folder.stamp(Path::new("file")).is_none());
        assert_eq!(folder.stamp(Path::new("a/b")).map(|stamp| stamp.size), Some(4));
    }

    #[test]
    fn work_keeps_its_order() {
        let items: Vec<usize> = (0..1000).collect();
        assert_eq!(
            parallel(&items, || (), |(), item| item * 2),
            items.iter().map(|i| i * 2).collect::<Vec<_>>()
        );
    }
}
