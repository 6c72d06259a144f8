//! Where Gimlet keeps its own files: runs, blobs, approvals. No tool or command can reach it.

use std::path::{Path, PathBuf};

use anyhow::Context;
use gimlet_store::{Approvals, FileStore};

use crate::exit::UsageError;

/// The data directory: `GIMLET_HOME`, else the user's own data directory.
pub(crate) fn path() -> anyhow::Result<PathBuf> {
    let from = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = from("GIMLET_HOME")
        .or_else(|| from("XDG_DATA_HOME").map(|data| data.join("gimlet")))
        .or_else(|| from("HOME").map(|home| home.join(".local/share/gimlet")));
    let Some(home) = home else {
        return Err(UsageError::new("there is no place for runs and approvals")
            .hint("set GIMLET_HOME to a folder")
            .into());
    };
    std::path::absolute(&home).with_context(|| format!("cannot find {}", home.display()))
}

/// Makes a folder for the owner alone. One that exists keeps its mode.
pub(crate) fn create(folder: &Path) -> anyhow::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).with_context(|| format!("cannot make {}", folder.display()))
}

/// The store of runs.
pub(crate) fn store() -> anyhow::Result<FileStore> {
    let home = path()?;
    FileStore::open(&home)
        .with_context(|| format!("cannot use {} (set GIMLET_HOME to another folder)", home.display()))
}

/// The decisions given outside of runs.
pub(crate) fn approvals() -> anyhow::Result<Approvals> {
    Ok(Approvals::open(&path()?)?)
}
