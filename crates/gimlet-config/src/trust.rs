//! Which project files the user trusts: each by its path and the hash of its bytes, so that a changed file asks again.
//! The list lives in the data directory, which no tool and no project file can reach.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use gimlet::digest::digest;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What the user thinks of a file's present bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Pinned as it is.
    Trusted,
    /// Pinned once, and different now.
    Changed,
    /// Never pinned.
    Unknown,
}

/// A file that was pinned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pin {
    /// Where it is, links resolved.
    pub path: PathBuf,
    /// SHA-256 of its bytes.
    pub sha256: String,
    /// When.
    pub time: Timestamp,
}

/// The list of pinned files.
#[derive(Debug, Clone, Default)]
pub struct TrustList {
    file: Option<PathBuf>,
    pins: Vec<Pin>,
}

impl TrustList {
    /// The list in a data directory. Without one nothing is trusted.
    pub fn open(home: Option<&Path>) -> anyhow::Result<Self> {
        let Some(home) = home else { return Ok(TrustList::default()) };
        let file = home.join("trust.json");
        let pins = match std::fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .with_context(|| format!("{} is damaged; remove it and trust files again", file.display()))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", file.display())),
        };
        Ok(TrustList { file: Some(file), pins })
    }

    /// What the user thinks of these bytes at this path.
    pub fn standing(&self, path: &Path, bytes: &[u8]) -> Standing {
        let Ok(path) = path.canonicalize() else { return Standing::Unknown };
        match self.pins.iter().find(|pin| pin.path == path) {
            Some(pin) if pin.sha256 == digest(bytes) => Standing::Trusted,
            Some(_) => Standing::Changed,
            None => Standing::Unknown,
        }
    }

    /// The pinned files.
    pub fn pins(&self) -> &[Pin] {
        &self.pins
    }

    /// Trusts a file with these bytes.
    pub fn pin(&mut self, path: &Path, bytes: &[u8], time: Timestamp) -> anyhow::Result<()> {
        let path = path.canonicalize().with_context(|| format!("cannot find {}", path.display()))?;
        self.pins.retain(|pin| pin.path != path);
        self.pins.push(Pin { path, sha256: digest(bytes), time });
        self.write()
    }

    /// Takes trust away. Says whether there was any. The file itself may be gone already.
    pub fn revoke(&mut self, path: &Path) -> anyhow::Result<bool> {
        let path = path.canonicalize().or_else(|_| std::path::absolute(path))?;
        let before = self.pins.len();
        self.pins.retain(|pin| pin.path != path);
        if self.pins.len() == before {
            return Ok(false);
        }
        self.write()?;
        Ok(true)
    }

    /// Replaces the file as a whole; a temporary file is readable by its owner alone from the start.
    fn write(&self) -> anyhow::Result<()> {
        let file = self.file.as_deref().context("there is no data directory; set GIMLET_HOME to a folder")?;
        let home = file.parent().unwrap_or(Path::new("."));
        crate::create(home)?;
        let mut temporary = tempfile::NamedTempFile::new_in(home)
            .with_context(|| format!("cannot write in {}", home.display()))?;
        serde_json::to_writer_pretty(&mut temporary, &self.pins)?;
        temporary.flush()?;
        temporary.as_file().sync_all()?;
        temporary.persist(file).with_context(|| format!("cannot write {}", file.display()))?;
        Ok(())
    }
}
