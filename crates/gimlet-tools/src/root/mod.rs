//! The path jail: every path a tool is given becomes a [`RootPath`], and only a [`Root`] makes and opens those.
//!
//! Resolving a path follows its links once, by name, and judges where they end. Opening then follows none at all, from a
//! handle on the root, so a link swapped in afterwards is refused instead of followed: a race cannot be won.

mod buffers;
mod open;
mod rules;
mod write;

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use gimlet::tool::{ToolError, code as core};

use crate::code;
pub use buffers::Buffers;
pub(crate) use open::{Found, Kind};
use rules::Compiled;
pub use rules::Rules;
pub(crate) use write::Staged;

/// A folder that tools may touch, and nothing beside it. Cheap to clone.
#[derive(Clone)]
pub struct Root {
    inner: Arc<Inner>,
    /// What an editor has open; owned by the front end.
    buffers: Option<Arc<dyn Buffers>>,
}

struct Inner {
    /// Canonical, for git, for walking and for absolute paths inside it.
    path: PathBuf,
    /// As the caller wrote it, which is how a model may have read it.
    given: PathBuf,
    /// What everything is opened from; closed with the last clone.
    dir: Dir,
    rules: Compiled,
    /// Folders inside the root that do not exist for tools, relative to it.
    hidden: Vec<PathBuf>,
}

impl fmt::Debug for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Root").field(&self.inner.path).finish()
    }
}

/// The root itself cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// It cannot be opened.
    #[error("cannot open the folder {path}")]
    Open {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It lies in a folder that no tool may reach.
    #[error("{0} is not for tools; choose another folder")]
    Hidden(PathBuf),
}

/// A path inside the root: relative, without `.`, `..` or links. Empty for the root itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RootPath(PathBuf);

impl RootPath {
    /// The path relative to the root.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// The path as a model reads it.
    pub fn display(&self) -> String {
        if self.0.as_os_str().is_empty() { ".".into() } else { self.0.to_string_lossy().into_owned() }
    }
}

/// Why a path is refused or cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// Nothing was named.
    #[error("the path is empty")]
    Empty,
    /// A character no path has.
    #[error("the path {0:?} has a NUL character")]
    Nul(String),
    /// It leads out of the root.
    #[error("{0} is outside the project; use a path relative to the project's root")]
    Outside(String),
    /// It holds secrets.
    #[error("{0} may hold secrets and is not available")]
    Sensitive(String),
    /// It is never written.
    #[error("{0} is protected and is never changed by a tool")]
    Protected(String),
    /// Nothing is there.
    #[error("no such file: {0}")]
    NotFound(String),
    /// A folder, device, pipe or link where a file was expected.
    #[error("{path} is {what}, not a file")]
    NotAFile {
        /// The path.
        path: String,
        /// What it is.
        what: &'static str,
    },
    /// The system refused.
    #[error("{path}: {source}")]
    Io {
        /// The path.
        path: String,
        /// Why.
        source: io::Error,
    },
}

impl PathError {
    fn io(path: &Path, source: io::Error) -> Self {
        let path = path.to_string_lossy().into_owned();
        match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => PathError::NotFound(path),
            _ => PathError::Io { path, source },
        }
    }
}

impl From<PathError> for ToolError {
    fn from(error: PathError) -> Self {
        let message = error.to_string();
        let (word, path) = match error {
            PathError::Empty => return ToolError::failed(core::VALIDATION_FAILED, message),
            PathError::Nul(path) => (core::VALIDATION_FAILED, path),
            PathError::Outside(path) => (code::PATH_OUTSIDE_ROOT, path),
            PathError::Sensitive(path) => (code::SENSITIVE_FILE, path),
            PathError::Protected(path) => (code::PROTECTED_FILE, path),
            PathError::NotFound(path) => (code::FILE_NOT_FOUND, path),
            PathError::NotAFile { path, .. } => (code::NOT_A_FILE, path),
            PathError::Io { path, .. } => (code::READ_FAILED, path),
        };
        ToolError::failed(word, message).with("path", path)
    }
}

impl Root {
    /// Opens a folder as the root, with the built-in rules.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, RootError> {
        Root::with_rules(path, &Rules::default(), &[])
    }

    /// Opens a folder as the root. `hidden` are folders that no tool may reach even if they lie inside it, such as the
    /// program's own home; those outside are out of reach anyway.
    pub fn with_rules(path: impl AsRef<Path>, rules: &Rules, hidden: &[PathBuf]) -> Result<Self, RootError> {
        let given = path.as_ref();
        let failed = |source| RootError::Open { path: given.into(), source };
        let path = given.canonicalize().map_err(failed)?;
        let dir = Dir::open_ambient_dir(&path, ambient_authority()).map_err(failed)?;
        let hidden: Vec<PathBuf> =
            hidden.iter().map(|folder| folder.canonicalize().unwrap_or_else(|_| folder.clone())).collect();
        if hidden.iter().any(|folder| path.starts_with(folder)) {
            return Err(RootError::Hidden(path));
        }
        let hidden = hidden
            .iter()
            .filter_map(|folder| folder.strip_prefix(&path).ok().map(Path::to_path_buf))
            .collect();
        let given = std::path::absolute(given).map_err(failed)?;
        Ok(Root {
            inner: Arc::new(Inner { path, given, dir, rules: Compiled::new(rules), hidden }),
            buffers: None,
        })
    }

    /// The root's canonical path.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Whether its path still leads to the folder that was opened; one that was removed or replaced does not.
    pub fn is_there(&self) -> bool {
        use cap_std::fs::MetadataExt as _;
        use std::os::unix::fs::MetadataExt as _;
        let (Ok(opened), Ok(now)) = (self.inner.dir.dir_metadata(), std::fs::metadata(&self.inner.path))
        else {
            return false;
        };
        (opened.dev(), opened.ino()) == (now.dev(), now.ino())
    }

    /// Where a path leads: inside the root, readable by rule. The file need not exist.
    pub fn resolve(&self, text: &str) -> Result<RootPath, PathError> {
        let lexical = self.lexical(text)?;
        let real = self.real(&lexical)?;
        self.check(&lexical)?;
        self.check(&real)?;
        Ok(RootPath(real))
    }

    /// Where a path leads, if it may be written as well.
    pub fn resolve_for_writing(&self, text: &str) -> Result<RootPath, PathError> {
        let lexical = self.lexical(text)?;
        let path = self.resolve(text)?;
        if self.inner.rules.is_read_only(&lexical) || self.inner.rules.is_read_only(&path.0) {
            return Err(PathError::Protected(text.into()));
        }
        if path.0.as_os_str().is_empty() {
            return Err(PathError::NotAFile { path: ".".into(), what: "a folder" });
        }
        Ok(path)
    }

    /// Whether a tool may know of a path relative to the root.
    pub fn may_show(&self, path: &Path) -> bool {
        !self.inner.rules.is_sensitive(path) && !self.is_hidden(path)
    }

    /// The same for a walker, which asked about the folders on the way before it entered them.
    pub(crate) fn may_show_entry(&self, path: &Path) -> bool {
        !self.inner.rules.names_secret(path) && !self.inner.hidden.iter().any(|folder| path == folder)
    }

    /// The same for a file that a walker found.
    pub(crate) fn may_show_file(&self, path: &Path) -> bool {
        !self.inner.rules.names_secret_file(path)
    }

    /// The same folder where an editor may have files open: their texts count before those on the disk.
    #[must_use]
    pub fn with_buffers(&self, buffers: Arc<dyn Buffers>) -> Root {
        Root { inner: self.inner.clone(), buffers: Some(buffers) }
    }

    /// Opens a regular file for reading.
    pub fn open_file(&self, path: &RootPath) -> Result<File, PathError> {
        let file = open::file(&self.inner.dir, &path.0)?;
        match self.buffers.as_deref() {
            Some(buffers) => buffers::opened(buffers, &self.inner.path, &path.0, file),
            None => Ok(file),
        }
    }

    /// What is at a path.
    pub(crate) fn look(&self, path: &RootPath) -> Result<Found, PathError> {
        open::look(&self.inner.dir, &path.0)
    }

    /// The names in a folder.
    pub(crate) fn names_in(&self, folder: &str) -> Result<Vec<String>, PathError> {
        let path = if folder.is_empty() { RootPath(PathBuf::new()) } else { self.resolve(folder)? };
        let failed = |error| PathError::io(&path.0, error);
        let entries = open::folder(&self.inner.dir, &path.0)?.entries().map_err(failed)?;
        entries
            .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()).map_err(failed))
            .collect()
    }

    /// Whether something is at a path that a walk found, with no link on the way to it.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        open::look(&self.inner.dir, path).is_ok()
    }

    /// Opens a file that a walk found and was allowed to show. No link is followed, so it is the file of that name.
    pub(crate) fn open_walked(&self, path: &Path) -> Result<File, PathError> {
        open::file_of_walk(&self.inner.dir, path)
    }

    pub(crate) fn dir(&self) -> &Dir {
        &self.inner.dir
    }

    fn check(&self, path: &Path) -> Result<(), PathError> {
        let shown = || path.to_string_lossy().into_owned();
        if self.is_hidden(path) {
            return Err(PathError::Outside(shown()));
        }
        if self.inner.rules.is_sensitive(path) {
            return Err(PathError::Sensitive(shown()));
        }
        Ok(())
    }

    pub(crate) fn is_hidden(&self, path: &Path) -> bool {
        self.inner.hidden.iter().any(|folder| path.starts_with(folder))
    }

    /// The path by its letters: `..` goes up one component and never above the root.
    fn lexical(&self, text: &str) -> Result<PathBuf, PathError> {
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Err(PathError::Empty);
        }
        if trimmed.contains('\0') {
            return Err(PathError::Nul(text.into()));
        }
        let outside = || PathError::Outside(text.into());
        let path = Path::new(trimmed);
        let relative = if path.is_absolute() {
            path.strip_prefix(&self.inner.path)
                .or_else(|_| path.strip_prefix(&self.inner.given))
                .map_err(|_| outside())?
        } else {
            path
        };
        let mut clean = PathBuf::new();
        for component in relative.components() {
            match component {
                Component::Normal(part) => clean.push(part),
                Component::CurDir => {}
                Component::ParentDir => {
                    if !clean.pop() {
                        return Err(outside());
                    }
                }
                Component::RootDir | Component::Prefix(_) => return Err(outside()),
            }
        }
        Ok(clean)
    }

    /// The path with its links followed. What does not exist yet keeps its letters below what does.
    fn real(&self, lexical: &Path) -> Result<PathBuf, PathError> {
        let mut existing = lexical;
        let mut missing = Vec::new();
        loop {
            match self.inner.path.join(existing).canonicalize() {
                Ok(real) => {
                    let inside = real
                        .strip_prefix(&self.inner.path)
                        .map_err(|_| PathError::Outside(lexical.to_string_lossy().into_owned()))?;
                    let mut path = inside.to_path_buf();
                    path.extend(missing.iter().rev());
                    return Ok(path);
                }
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
                {
                    let (Some(parent), Some(name)) = (existing.parent(), existing.file_name()) else {
                        return Err(PathError::io(lexical, error));
                    };
                    missing.push(name);
                    existing = parent;
                }
                Err(error) => return Err(PathError::io(lexical, error)),
            }
        }
    }
}
