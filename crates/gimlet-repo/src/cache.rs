//! The index on disk: one file per repository, little-endian 32-bit words with a checksum. A file that is damaged, of
//! another version or of another repository is not used; it is written anew.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{Mode, OFlags};

use crate::files::Stamp;
use crate::index::Entry;
use crate::record::{Class, Depth};
use crate::words::hash;

/// Changed with the format, and with anything that changes what is stored of a file.
const MAGIC: u32 = 0x676d_0001;
const HEADER: usize = 9;
const ENTRY: usize = 12;
/// Largest cache that is read.
const MOST_BYTES: u64 = 1 << 30;
/// Caches of other repositories that are kept beside this one.
const MOST_FILES: usize = 32;
/// Bytes of all caches together, the newest one in any case.
const MOST_TOGETHER: u64 = 2 << 30;
/// A file that was begun so long ago will not be finished.
const STALE: Duration = Duration::from_secs(3600);
/// A file changed this shortly before the cache was written may have changed again without a new time.
const UNSURE_NANOS: u64 = 1_000_000_000;

/// A cache that was read.
pub(crate) struct Cache {
    pub(crate) depth: Depth,
    pub(crate) entries: Vec<Entry>,
    pub(crate) arena: Vec<u32>,
    /// Rank of every file in the whole graph.
    pub(crate) centrality: Vec<f32>,
    paths: Vec<u8>,
    ends: Vec<u32>,
    written: u64,
}

impl Cache {
    pub(crate) fn path(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let end = self.ends.get(index).copied().unwrap_or(start);
        self.paths.get(start as usize..end as usize).unwrap_or_default()
    }

    /// Whether a file with this stamp is the one that was read.
    pub(crate) fn is_current(&self, index: usize, stamp: Stamp) -> bool {
        self.entries.get(index).is_some_and(|entry| entry.mark == stamp.mark)
            && stamp.newest.saturating_add(UNSURE_NANOS) < self.written
    }
}

/// The file for a repository.
pub(crate) fn file(folder: &Path, root: &Path) -> PathBuf {
    folder.join(format!("{:016x}.index", hash(root.as_os_str().as_bytes())))
}

/// Reads a cache; `None` if there is none that can be used.
pub(crate) fn load(file: &Path) -> Option<Cache> {
    // A link in its place is not followed, and a pipe does not block.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let opened = fs::File::from(rustix::fs::open(file, flags, Mode::empty()).ok()?);
    let found = opened.metadata().ok().filter(|found| found.is_file() && found.len() <= MOST_BYTES)?;
    let since = found.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    let mut bytes = Vec::with_capacity(usize::try_from(found.len()).ok()?);
    opened.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    decode(&bytes, u64::try_from(since.as_nanos()).ok()?)
}

fn decode(bytes: &[u8], written: u64) -> Option<Cache> {
    if !bytes.len().is_multiple_of(4) {
        return None;
    }
    let header: Vec<u32> = words(bytes.get(..HEADER * 4)?);
    let body = bytes.get(HEADER * 4..)?;
    let [magic, low, high, depth, files, path_words, path_bytes, arena, _] = header.as_slice() else {
        return None;
    };
    if *magic != MAGIC || (u64::from(*high) << 32 | u64::from(*low)) != sum(&header, body) {
        return None;
    }
    let depth = match depth {
        0 => Depth::Parsed,
        1 => Depth::Scanned,
        _ => return None,
    };
    let (files, path_words, arena_words) = (*files as usize, *path_words as usize, *arena as usize);
    let mut rest = body;
    let mut take = |count: usize| {
        let (head, tail) = rest.split_at_checked(count.checked_mul(4)?)?;
        rest = tail;
        Some(head)
    };
    let raw = words(take(files.checked_mul(ENTRY)?)?);
    let centrality = words(take(files)?).into_iter().map(f32::from_bits).collect();
    let ends = words(take(files)?);
    let paths = take(path_words)?.get(..*path_bytes as usize)?.to_vec();
    let arena = words(take(arena_words)?);
    let entries: Vec<Entry> = raw.chunks_exact(ENTRY).map(read_entry).collect::<Option<_>>()?;
    // Everything that is indexed later must lie inside.
    let fits = entries.iter().all(|entry| entry.end().is_some_and(|end| end <= arena.len()));
    let ordered =
        ends.windows(2).all(|pair| pair[0] <= pair[1]) && ends.last().is_none_or(|end| *end <= *path_bytes);
    (fits && ordered).then_some(Cache { depth, entries, arena, centrality, paths, ends, written })
}

/// The checksum of the numbers behind it and of the body.
fn sum(header: &[u32], body: &[u8]) -> u64 {
    let numbers: Vec<u8> = header.iter().skip(3).flat_map(|word| word.to_le_bytes()).collect();
    hash(body) ^ hash(&numbers).rotate_left(17)
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}

fn read_entry(raw: &[u32]) -> Option<Entry> {
    let wide = |at: usize| Some(u64::from(*raw.get(at + 1)?) << 32 | u64::from(*raw.get(at)?));
    let class = match raw.get(11)? {
        0 => Class::Code,
        1 => Class::Text,
        2 => Class::PathOnly,
        _ => return None,
    };
    Some(Entry {
        mark: wide(0)?,
        content: wide(2)?,
        start: usize::try_from(wide(4)?).ok()?,
        length: *raw.get(6)?,
        terms: *raw.get(7)?,
        definitions: *raw.get(8)?,
        references: *raw.get(9)?,
        class,
    })
}

/// Writes a cache beside its place and moves it there, so that a reader never sees half of one.
pub(crate) fn save(
    file: &Path,
    depth: Depth,
    paths: &[PathBuf],
    entries: &[Entry],
    centrality: &[f32],
    arena: &[u32],
) -> io::Result<()> {
    let folder = file.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let mut builder = fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)?;
    let too_large = |_| io::Error::from(io::ErrorKind::FileTooLarge);
    let mut body: Vec<u8> = Vec::with_capacity((entries.len() * (ENTRY + 2) + arena.len()) * 4);
    let put = |body: &mut Vec<u8>, word: u32| body.extend_from_slice(&word.to_le_bytes());
    for entry in entries {
        for wide in [entry.mark, entry.content, entry.start as u64] {
            body.extend_from_slice(&wide.to_le_bytes());
        }
        let class = match entry.class {
            Class::Code => 0,
            Class::Text => 1,
            Class::PathOnly => 2,
        };
        for word in [entry.length, entry.terms, entry.definitions, entry.references, 0, class] {
            put(&mut body, word);
        }
    }
    for rank in centrality {
        put(&mut body, rank.to_bits());
    }
    let mut end = 0usize;
    for path in paths {
        end += path.as_os_str().len();
        put(&mut body, u32::try_from(end).map_err(too_large)?);
    }
    for path in paths {
        body.extend_from_slice(path.as_os_str().as_bytes());
    }
    body.resize(body.len().next_multiple_of(4), 0);
    for word in arena {
        put(&mut body, *word);
    }
    let size = |number: usize| u32::try_from(number).map_err(too_large);
    let depth = match depth {
        Depth::Parsed => 0,
        Depth::Scanned => 1,
    };
    let mut header =
        [MAGIC, 0, 0, depth, size(entries.len())?, size(end.div_ceil(4))?, size(end)?, size(arena.len())?, 0];
    let sum = sum(&header, &body);
    (header[1], header[2]) = (sum as u32, (sum >> 32) as u32);
    let mut written = tempfile::NamedTempFile::new_in(folder)?;
    let header: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
    written.write_all(&header)?;
    written.write_all(&body)?;
    written.persist(file).map_err(|error| error.error)?;
    forget_oldest(folder);
    Ok(())
}

/// Keeps the folder small: repositories that were not looked at for long lose their cache, and what a process that died
/// had begun to write goes.
fn forget_oldest(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    // The type and size of a link are its own: nothing outside of the folder counts or is touched.
    let (mut caches, others): (Vec<_>, Vec<_>) = entries
        .flatten()
        .filter_map(|entry| {
            let found = entry.metadata().ok().filter(|found| !found.is_dir())?;
            Some((found.modified().ok()?, found.len(), entry.path()))
        })
        .partition(|(_, _, path)| path.extension().is_some_and(|ending| ending == "index"));
    caches.sort();
    let mut bytes = 0u64;
    let kept = caches.iter().rev().take(MOST_FILES).take_while(|(_, size, _)| {
        bytes = bytes.saturating_add(*size);
        bytes <= MOST_TOGETHER
    });
    // The newest is the one that was just written.
    let kept = kept.count().max(1);
    let is_stale = |time: &SystemTime| time.elapsed().is_ok_and(|age| age > STALE);
    let stale = others.iter().filter(|(time, _, _)| is_stale(time));
    for (_, _, path) in caches.iter().rev().skip(kept).chain(stale) {
        // Another process may have been faster.
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn saved() -> Vec<u8> {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("x.index");
        let entry = Entry {
            mark: 7,
            content: 9,
            start: 1,
            length: 3,
            terms: 1,
            definitions: 1,
            references: 0,
            class: Class::Code,
        };
        let paths = [PathBuf::from("a.py"), PathBuf::from("b/c.rs")];
        save(&file, Depth::Scanned, &paths, &[entry, entry], &[0.5, 0.25], &[1, 2, 3]).unwrap();
        fs::read(file).unwrap()
    }

    #[test]
    fn what_was_saved_is_read() {
        let cache = decode(&saved(), 0).unwrap();
        assert_eq!((cache.path(0), cache.path(1), cache.path(2)), (&b"a.py"[..], &b"b/c.rs"[..], &b""[..]));
        assert_eq!((cache.arena.as_slice(), cache.centrality.as_slice()), (&[1, 2, 3][..], &[0.5, 0.25][..]));
        assert_eq!((cache.entries.len(), cache.depth), (2, Depth::Scanned));
    }

    proptest! {
        #[test]
        fn damage_is_noticed(at in 0usize..200, change in 1u8..=255, cut in 0usize..200) {
            let mut bytes = saved();
            let length = bytes.len();
            bytes[at % length] ^= change;
            prop_assert!(decode(&bytes, 0).is_none());
            prop_assert!(decode(&saved()[..length - 1 - cut % (length - 1)], 0).is_none());
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            prop_assert!(decode(&bytes, 0).is_none());
        }
    }
}
