//! The folder a store is in, and where things are in it.

use std::path::{Path, PathBuf};

use gimlet::ids::RunId;

/// Where everything is. What blocks on files takes a copy of it along.
#[derive(Debug, Clone)]
pub(crate) struct Home(pub(crate) PathBuf);

impl Home {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn runs(&self) -> PathBuf {
        self.0.join("runs")
    }

    pub(crate) fn blobs(&self) -> PathBuf {
        self.0.join("blobs")
    }

    pub(crate) fn run_dir(&self, run: &RunId) -> PathBuf {
        self.runs().join(run.as_str())
    }

    pub(crate) fn log_path(&self, run: &RunId) -> PathBuf {
        self.run_dir(run).join("log.jsonl")
    }
}
