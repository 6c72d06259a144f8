//! Bytes kept under the hash of their content: `blobs/ab/abcd…`.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use gimlet::store::{BlobId, StoreError};

use crate::files::{create_dir, io_error, sync_dir};

/// Stores bytes once. They are durable when this returns, and never seen half-written.
pub(crate) fn put(blobs: &Path, bytes: &[u8]) -> Result<BlobId, StoreError> {
    let blob = BlobId::of(bytes);
    let path = path_of(blobs, &blob);
    // A damaged copy under the name is written anew: these are the bytes it should have held.
    if fs::read(&path).is_ok_and(|found| found == bytes) {
        return Ok(blob);
    }
    write(blobs, &path, bytes).map_err(io_error("writing", &path))?;
    Ok(blob)
}

/// The bytes at an address, checked against it.
pub(crate) fn get(blobs: &Path, blob: &BlobId) -> Result<Vec<u8>, StoreError> {
    let path = path_of(blobs, blob);
    let bytes = fs::read(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => StoreError::NoSuchBlob(blob.clone()),
        _ => io_error("reading", &path)(error),
    })?;
    if BlobId::of(&bytes) != *blob {
        return Err(StoreError::Backend(format!(
            "{}: what is stored is not what was put there",
            path.display()
        )));
    }
    Ok(bytes)
}

fn path_of(blobs: &Path, blob: &BlobId) -> PathBuf {
    let hex = blob.hex();
    blobs.join(&hex[..2]).join(hex)
}

fn write(blobs: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let dir = path.parent().unwrap_or(blobs);
    create_dir(dir)?;
    // Owner-only by default, and removed again should anything below fail.
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    sync_dir(dir)?;
    sync_dir(blobs)
}
