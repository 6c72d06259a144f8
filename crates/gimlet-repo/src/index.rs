//! The index of a repository: made once, brought up to date from its cache after that.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use crate::cache::{self, Cache};
use crate::files::{Folder, Stamp, parallel};
use crate::graph;
use crate::language::Language;
use crate::record::{Class, Depth, MOST_BYTES, Record, Scratch, is_generated};

/// Files beyond this many are left out.
const MOST_FILES: usize = 250_000;
/// A repository with more source code than this is scanned instead of parsed: parsing takes a second for about so much.
const PARSED_BYTES: u64 = 6 * 1024 * 1024;
/// Words of memory for all files together; files beyond it are known by their path.
const MOST_WORDS: usize = 128 * 1024 * 1024;
/// The cache is written when more than one file in this many has changed: reading a few again costs less than writing all.
const WORTH_SAVING: usize = 500;

/// Why a repository cannot be indexed.
#[derive(Debug, thiserror::Error)]
pub enum RepoError {
    /// The folder cannot be opened.
    #[error("cannot open the folder {path}")]
    Open {
        /// The folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// Where the data of a file lie in the index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) mark: u64,
    pub(crate) content: u64,
    /// First word in the arena.
    pub(crate) start: usize,
    /// Number of terms with repetitions.
    pub(crate) length: u32,
    /// How many words of each kind follow one another.
    pub(crate) terms: u32,
    pub(crate) definitions: u32,
    pub(crate) references: u32,
    pub(crate) class: Class,
}

impl Entry {
    pub(crate) fn end(&self) -> Option<usize> {
        let words = u64::from(self.terms) + u64::from(self.definitions) + u64::from(self.references);
        self.start.checked_add(usize::try_from(words).ok()?)
    }
}

/// The files of a repository and what they hold.
#[derive(Debug)]
pub struct Index {
    pub(crate) folder: Folder,
    /// Sorted.
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) entries: Vec<Entry>,
    arena: Vec<u32>,
    depth: Depth,
    reread: usize,
    /// Filled from the cache, or when it is first asked for.
    centrality: OnceLock<Vec<f32>>,
}

/// What happens to a file on the way into the index.
enum Source {
    /// It is in the cache at this place.
    Cached(usize),
    /// It was read.
    Read(Stamp, Record),
    /// It is not there or no regular file.
    Gone,
}

impl Index {
    /// Indexes files. `files` are relative to `root` and are the only ones that are read. The cache is a folder that the
    /// caller keeps out of the repository; without one, everything is read each time.
    pub fn open(root: &Path, cache: Option<&Path>, files: Vec<PathBuf>) -> Result<Index, RepoError> {
        let failed = |source| RepoError::Open { path: root.into(), source };
        let real = root.canonicalize().map_err(failed)?;
        let folder = Folder::open(&real).map_err(failed)?;
        let mut paths = files;
        paths.retain(|path| {
            !path.as_os_str().is_empty() && path.components().all(|part| matches!(part, Component::Normal(_)))
        });
        if !paths.is_sorted_by(|a, b| a.as_os_str() < b.as_os_str()) {
            paths.sort_unstable_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
            paths.dedup();
        }
        paths.truncate(MOST_FILES);
        let place = cache.map(|cache| cache::file(cache, &real));
        let mut known = place.as_deref().and_then(cache::load);
        let stamps = parallel(&paths, || (), |(), path| folder.stamp(path));
        let source_bytes: u64 = paths
            .iter()
            .zip(&stamps)
            .filter(|(path, _)| Language::of(path).is_some() && !is_generated(path))
            .filter_map(|(_, stamp)| stamp.map(|stamp| stamp.size).filter(|size| *size <= MOST_BYTES))
            .sum();
        let depth = if source_bytes <= PARSED_BYTES { Depth::Parsed } else { Depth::Scanned };
        known = known.filter(|known| known.depth == depth);
        let sources = gather(&folder, &paths, &stamps, known.as_ref(), depth);
        let mut index = Index {
            folder,
            paths,
            entries: Vec::new(),
            arena: Vec::new(),
            depth,
            reread: 0,
            centrality: OnceLock::new(),
        };
        let is_same = index.assemble(sources, known);
        let changed = index.reread * WORTH_SAVING > index.paths.len();
        if let Some(place) = place
            && !is_same
            && (changed || !place.exists())
        {
            // Without a cache the next opening is slow; that is no reason to fail this one.
            let _ =
                cache::save(&place, depth, &index.paths, &index.entries, index.centrality(), &index.arena);
        }
        Ok(index)
    }

    /// Puts the data of all files together. True if the cache had all of it.
    fn assemble(&mut self, sources: Vec<Source>, known: Option<Cache>) -> bool {
        let all_cached = known.as_ref().is_some_and(|known| {
            known.entries.len() == sources.len()
                && sources
                    .iter()
                    .enumerate()
                    .all(|(at, source)| matches!(source, Source::Cached(place) if *place == at))
        });
        if all_cached && let Some(known) = known {
            (self.entries, self.arena) = (known.entries, known.arena);
            // Set once, here or never.
            let _ = self.centrality.set(known.centrality);
            return true;
        }
        let (old_entries, old_arena) = known.map(|known| (known.entries, known.arena)).unwrap_or_default();
        let mut paths = Vec::with_capacity(sources.len());
        let mut scratch = Scratch::default();
        for (path, source) in std::mem::take(&mut self.paths).into_iter().zip(sources) {
            match source {
                Source::Cached(place) => {
                    let Some(entry) = old_entries.get(place) else { continue };
                    let words =
                        entry.end().and_then(|end| old_arena.get(entry.start..end)).unwrap_or_default();
                    self.entries.push(Entry { start: self.arena.len(), ..*entry });
                    self.arena.extend_from_slice(words);
                }
                Source::Read(stamp, mut record) => {
                    self.reread += 1;
                    if self.arena.len() > MOST_WORDS {
                        record = Record::path_only(&path, &mut scratch);
                    }
                    let count = |words: &[u32]| u32::try_from(words.len()).unwrap_or_default();
                    self.entries.push(Entry {
                        mark: stamp.mark,
                        content: record.content,
                        start: self.arena.len(),
                        length: record.length,
                        terms: count(&record.terms),
                        definitions: count(&record.definitions),
                        references: count(&record.references),
                        class: record.class,
                    });
                    for words in [&record.terms, &record.definitions, &record.references] {
                        self.arena.extend_from_slice(words);
                    }
                }
                Source::Gone => continue,
            }
            paths.push(path);
        }
        self.paths = paths;
        false
    }

    /// The files, sorted.
    pub fn files(&self) -> &[PathBuf] {
        &self.paths
    }

    /// How many files were read again because the cache did not have them.
    pub fn reread(&self) -> usize {
        self.reread
    }

    /// Whether every source file was parsed; a very large repository is scanned for keywords instead.
    pub fn is_parsed(&self) -> bool {
        self.depth == Depth::Parsed
    }

    /// The place of a file.
    pub(crate) fn find(&self, path: &Path) -> Option<usize> {
        self.paths.binary_search_by(|known| known.as_os_str().cmp(path.as_os_str())).ok()
    }

    pub(crate) fn terms(&self, file: usize) -> &[u32] {
        let Some(entry) = self.entries.get(file) else { return &[] };
        self.words(entry.start, entry.terms)
    }

    pub(crate) fn definitions(&self, file: usize) -> &[u32] {
        let Some(entry) = self.entries.get(file) else { return &[] };
        self.words(entry.start + entry.terms as usize, entry.definitions)
    }

    pub(crate) fn references(&self, file: usize) -> &[u32] {
        let Some(entry) = self.entries.get(file) else { return &[] };
        self.words(entry.start + entry.terms as usize + entry.definitions as usize, entry.references)
    }

    fn words(&self, start: usize, count: u32) -> &[u32] {
        self.arena.get(start..start + count as usize).unwrap_or_default()
    }

    /// Rank of every file in the graph of references.
    pub(crate) fn centrality(&self) -> &[f32] {
        self.centrality.get_or_init(|| graph::centrality(self))
    }
}

/// Takes every file from the cache, or reads it.
fn gather(
    folder: &Folder,
    paths: &[PathBuf],
    stamps: &[Option<Stamp>],
    known: Option<&Cache>,
    depth: Depth,
) -> Vec<Source> {
    // Both lists are sorted: one pass finds each path's place in the cache.
    let mut place = 0;
    let mut items = Vec::with_capacity(paths.len());
    for (path, stamp) in paths.iter().zip(stamps) {
        let bytes = path.as_os_str().as_bytes();
        let cached = known.and_then(|known| {
            while place < known.entries.len() && known.path(place) < bytes {
                place += 1;
            }
            (place < known.entries.len() && known.path(place) == bytes).then_some(place)
        });
        items.push((path, *stamp, cached));
    }
    parallel(&items, Scratch::default, |scratch, (path, stamp, cached)| {
        let Some(stamp) = stamp else { return Source::Gone };
        if let (Some(known), Some(place)) = (known, cached)
            && known.is_current(*place, *stamp)
        {
            return Source::Cached(*place);
        }
        let bytes = if stamp.size <= MOST_BYTES { folder.read(path, MOST_BYTES) } else { None };
        let Some(bytes) = bytes else { return Source::Read(*stamp, Record::path_only(path, scratch)) };
        let same = known.zip(*cached).filter(|(known, place)| {
            known
                .entries
                .get(*place)
                .is_some_and(|entry| entry.mark == stamp.mark && entry.content == crate::words::hash(&bytes))
        });
        match same {
            Some((_, place)) => Source::Cached(place),
            None => Source::Read(*stamp, Record::of(path, &bytes, depth, scratch)),
        }
    })
}
