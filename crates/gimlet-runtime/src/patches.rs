//! Keeps a run's patches beside its log, so that a resumed run still knows what was proposed and what was applied.

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet_tools::patch::{PatchEntry, PatchLog};

/// A file with one entry a line.
#[derive(Debug, Default)]
pub(crate) struct PatchFile {
    /// Where; known once the run has begun.
    path: OnceLock<PathBuf>,
}

impl PatchFile {
    /// Says where the run's files are.
    pub(crate) fn keep_in(&self, folder: &Path) {
        // A run begins once: a second word changes nothing.
        let _ = self.path.set(folder.join("patches.jsonl"));
    }

    /// The entries of an earlier process. A torn last line was never acted on.
    pub(crate) fn entries(folder: &Path) -> io::Result<Vec<PatchEntry>> {
        let file = match std::fs::File::open(folder.join("patches.jsonl")) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut entries = Vec::new();
        for line in io::BufReader::new(file).lines() {
            match serde_json::from_str(&line?) {
                Ok(entry) => entries.push(entry),
                Err(_) => break,
            }
        }
        Ok(entries)
    }

    /// Adds an entry; returns when it is on the disk.
    pub(crate) fn write(&self, entry: &PatchEntry) -> io::Result<()> {
        let Some(path) = self.path.get() else { return Ok(()) };
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        let mut options = std::fs::OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        file.write_all(&line)?;
        file.sync_data()
    }
}

impl PatchLog for PatchFile {
    fn record<'a>(&'a self, entry: &'a PatchEntry) -> BoxFuture<'a, io::Result<()>> {
        std::future::ready(self.write(entry)).boxed()
    }
}
