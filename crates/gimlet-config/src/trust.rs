//! Which project files the user trusts: each by its project, its path and the hash of its bytes. A changed file asks
//! again, and so does the same file in another project, where the programs that it names are others.
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
    /// The project, links resolved. Older lists do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<PathBuf>,
    /// Where it is: the folder with links resolved, and its name.
    pub path: PathBuf,
    /// SHA-256 of its bytes.
    pub sha256: String,
    /// Files of the project that the pinned one has run, as they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub code: Vec<CodeFile>,
    /// When.
    pub time: Timestamp,
}

/// A file of a project that a trusted file has run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CodeFile {
    /// As it is named, from the project's root on.
    pub path: PathBuf,
    /// SHA-256 of its bytes.
    pub sha256: String,
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

    /// What the user thinks of these bytes at this path in a project.
    pub fn standing(&self, root: &Path, path: &Path, bytes: &[u8]) -> Standing {
        let Ok(place) = Place::of(root, path) else { return Standing::Unknown };
        match self.pins.iter().find(|pin| place.is_of(pin)) {
            Some(pin) if pin.sha256 == digest(bytes) => Standing::Trusted,
            Some(_) => Standing::Changed,
            None => Standing::Unknown,
        }
    }

    /// The pinned files.
    pub fn pins(&self) -> &[Pin] {
        &self.pins
    }

    /// The files that a pinned one has run, as they were when it was pinned.
    pub fn code(&self, root: &Path, path: &Path) -> &[CodeFile] {
        let Ok(place) = Place::of(root, path) else { return &[] };
        self.pins.iter().find(|pin| place.is_of(pin)).map_or(&[], |pin| &pin.code)
    }

    /// Trusts a file with these bytes, and the files that it has run.
    pub fn pin(
        &mut self,
        root: &Path,
        path: &Path,
        bytes: &[u8],
        code: Vec<CodeFile>,
        time: Timestamp,
    ) -> anyhow::Result<()> {
        let place = Place::of(root, path).with_context(|| format!("cannot find {}", path.display()))?;
        self.pins.retain(|pin| !place.is_of(pin));
        let Place { root, path } = place;
        self.pins.push(Pin { root: Some(root), path, sha256: digest(bytes), code, time });
        self.write()
    }

    /// Takes trust away, in every project. Says whether there was any. The file itself may be gone already.
    pub fn revoke(&mut self, root: &Path, path: &Path) -> anyhow::Result<bool> {
        let path = match Place::of(root, path) {
            Ok(place) => place.path,
            Err(_) => std::path::absolute(path)?,
        };
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

/// What a pin is about, beside the bytes.
struct Place {
    root: PathBuf,
    path: PathBuf,
}

impl Place {
    /// A file of a project; for one that is not below its root, the folder it lies in counts as the project.
    fn of(root: &Path, path: &Path) -> std::io::Result<Self> {
        let absolute = std::path::absolute(path)?;
        let folder = absolute.parent().unwrap_or(&absolute).canonicalize()?;
        let path = folder.join(absolute.file_name().unwrap_or_default());
        let root = root.canonicalize()?;
        let root = if path.starts_with(&root) { root } else { folder };
        Ok(Place { root, path })
    }

    /// Whether a pin is about this file. An older one is about a file at the top of its project.
    fn is_of(&self, pin: &Pin) -> bool {
        let root = pin.root.as_deref().or_else(|| pin.path.parent());
        pin.path == self.path && root == Some(&self.root)
    }
}
