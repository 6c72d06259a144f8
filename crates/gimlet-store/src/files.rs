//! Files and folders only their owner can read, and the syncs that make their names survive a power cut.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

use gimlet::store::StoreError;

/// Names what was being done when the file system said no.
pub(crate) fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError + use<> {
    let path = path.display().to_string();
    move |source| StoreError::Io { doing, path, source }
}

/// Makes a folder and its parents, for the owner alone. One that exists keeps its mode.
pub(crate) fn create_dir(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Options that create files for the owner alone.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Makes the names in a folder durable.
pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    // Elsewhere a folder cannot be opened as a file; the file's own sync has to do.
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}
