//! The repository a task begins in: made anew for every try, always the same down to its hashes, so that what changed
//! can be told by comparing with one that nobody touched.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use gimlet::digest::digest;

use crate::repository::Repository;

/// How a repository came to be.
#[derive(Debug, Default)]
pub(crate) struct Fixture {
    /// Its history, oldest first.
    pub(crate) commits: Vec<Commit>,
    /// What lies in it and is not committed.
    pub(crate) uncommitted: Layer,
}

/// One step of its history.
#[derive(Debug)]
pub(crate) struct Commit {
    pub(crate) message: String,
    pub(crate) author: String,
    pub(crate) layer: Layer,
}

/// Files that come and go.
#[derive(Debug, Default)]
pub(crate) struct Layer {
    pub(crate) files: BTreeMap<PathBuf, Vec<u8>>,
    pub(crate) remove: Vec<PathBuf>,
}

impl Fixture {
    /// Makes it in a folder, which must not exist or be empty.
    pub(crate) fn make(&self, folder: &Path) -> anyhow::Result<()> {
        let mut repository = Repository::init(folder)?;
        for commit in &self.commits {
            commit.layer.write(folder)?;
            repository.commit(&commit.message, &commit.author)?;
        }
        self.uncommitted.write(folder)
    }

    /// What a folder of it holds as long as nobody touched it.
    pub(crate) fn untouched(&self) -> anyhow::Result<Snapshot> {
        let folder = tempfile::Builder::new().prefix("gimlet-eval-").tempdir()?;
        self.make(folder.path())?;
        Snapshot::of(folder.path())
    }
}

impl Layer {
    fn write(&self, folder: &Path) -> anyhow::Result<()> {
        for path in &self.remove {
            let full = folder.join(path);
            std::fs::remove_file(&full).with_context(|| format!("cannot remove {}", path.display()))?;
        }
        for (path, bytes) in &self.files {
            let full = folder.join(path);
            if let Some(parent) = full.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(&full, bytes).with_context(|| format!("cannot write {}", full.display()))?;
        }
        Ok(())
    }
}

/// Folders that programs fill beside their work.
const CACHES: &[&str] = &["__pycache__", ".pytest_cache", "node_modules", "target"];
/// What of `.git` says which commits there are and where one is.
const REFERENCES: &[&str] = &["HEAD", "refs"];

/// What a folder holds: the hash of every file, and the tips of its history.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Snapshot(BTreeMap<PathBuf, String>);

impl Snapshot {
    pub(crate) fn of(folder: &Path) -> anyhow::Result<Self> {
        let mut files = BTreeMap::new();
        walk(folder, Path::new(""), &mut files)
            .with_context(|| format!("cannot look through {}", folder.display()))?;
        Ok(Snapshot(files))
    }

    /// The hash of a file.
    pub(crate) fn file(&self, path: &Path) -> Option<&str> {
        self.0.get(path).map(String::as_str)
    }

    /// The first path at which another one differs.
    pub(crate) fn difference<'a>(&'a self, other: &'a Snapshot) -> Option<&'a Path> {
        let missing = self.0.iter().find(|(path, hash)| other.0.get(*path) != Some(hash));
        missing
            .or_else(|| other.0.iter().find(|(path, _)| !self.0.contains_key(*path)))
            .map(|(path, _)| path.as_path())
    }
}

fn walk(folder: &Path, below: &Path, files: &mut BTreeMap<PathBuf, String>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder.join(below))? {
        let entry = entry?;
        let name = entry.file_name();
        let path = below.join(&name);
        let in_git = below.as_os_str() == ".git";
        if CACHES.iter().any(|cache| name == *cache)
            || (in_git && !REFERENCES.iter().any(|kept| name == *kept))
        {
            continue;
        }
        // Links are told by where they lead; nothing behind them belongs to the folder.
        let kind = entry.file_type()?;
        if kind.is_dir() {
            walk(folder, &path, files)?;
        } else if kind.is_symlink() {
            let target = std::fs::read_link(entry.path())?;
            files.insert(path, format!("-> {}", target.display()));
        } else if kind.is_file() {
            files.insert(path, digest(&std::fs::read(entry.path())?));
        } else {
            files.insert(path, "special".into());
        }
    }
    Ok(())
}
