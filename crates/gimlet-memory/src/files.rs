//! Where a project's memory is kept: a file of its own below the data directory, for its owner alone.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use gimlet::digest::digest;

/// The file of a project: its folder's name for people, and a hash of its whole path so that no two share one.
pub(crate) fn of_project(home: &Path, root: &Path) -> PathBuf {
    let name = root.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let name: String = name.chars().filter(|c| c.is_ascii_alphanumeric()).take(24).collect();
    let hash = digest(root.as_os_str().as_encoded_bytes());
    home.join("memory").join(format!("{name}-{}.sqlite", &hash[..16]))
}

/// Makes the file's folder, and the file itself if there is none, which SQLite would let others read. Its journals take
/// over the mode.
pub(crate) fn prepare(path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
    }
    private().open(path).map(drop)
}

/// Holds other processes off while a database is opened: two that begin one at once would be in each other's way.
pub(crate) fn door(path: &Path) -> io::Result<File> {
    let file = private().open(path.with_extension("lock"))?;
    file.lock()?;
    Ok(file)
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
