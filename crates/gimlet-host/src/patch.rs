//! What a patch does to files, and who checks it before a person is asked. Reading, matching and applying patches is the
//! business of the tools; a checker needs only this.

use std::path::Path;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use gimlet_text::digest::digest;

/// A text file as it is or is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    /// The contents.
    pub text: String,
    /// The permission bits; none for whatever a new file usually gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
}

impl FileState {
    /// SHA-256 of the contents.
    pub fn digest(&self) -> String {
        digest(self.text.as_bytes())
    }

    /// The mode as git knows it.
    pub fn git_mode(&self) -> u32 {
        if self.mode.unwrap_or(0) & 0o111 == 0 { 0o100_644 } else { 0o100_755 }
    }
}

/// What happens to one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Where it is, relative to the root; after a rename, where it will be.
    pub path: String,
    /// Where it was, if it is renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
    /// What it was; none for a new file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<FileState>,
    /// What it will be; none for a removed file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<FileState>,
}

impl FileChange {
    /// The path before the change.
    pub fn old_path(&self) -> &str {
        self.renamed_from.as_deref().unwrap_or(&self.path)
    }

    /// The change that takes this one back.
    #[must_use]
    pub fn reversed(&self) -> FileChange {
        FileChange {
            path: self.old_path().into(),
            renamed_from: self.renamed_from.is_some().then(|| self.path.clone()),
            before: self.after.clone(),
            after: self.before.clone(),
        }
    }
}

/// A patch to be checked.
#[derive(Debug, Clone, Copy)]
pub struct Draft<'a> {
    /// The project, as an absolute path.
    pub root: &'a Path,
    /// What it would do, with the files as they were read.
    pub changes: &'a [FileChange],
    /// The same as a unified diff that git understands.
    pub diff: &'a str,
}

/// A patch was found to apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validated {
    /// What checked it and where; said in every result.
    pub by: String,
}

/// Why a patch is not valid, or could not be checked.
#[derive(Debug, thiserror::Error)]
pub enum ValidationError {
    /// It does not apply.
    #[error("git does not accept the patch: {said}")]
    Refused {
        /// What checked it and where.
        by: String,
        /// What git said.
        said: String,
    },
    /// It applies, and the tests fail with it.
    #[error("the tests fail with the patch: {how}")]
    TestsFailed {
        /// What checked it and where.
        by: String,
        /// What was run and how it ended.
        how: String,
        /// The end of what it said.
        said: String,
    },
    /// The check could not be made.
    #[error("the patch could not be checked: {why}")]
    Unavailable {
        /// What was to check it and where.
        by: String,
        /// What stood in the way.
        why: String,
    },
}

impl ValidationError {
    /// What checked the patch, or was to.
    pub fn by(&self) -> &str {
        match self {
            ValidationError::Refused { by, .. }
            | ValidationError::TestsFailed { by, .. }
            | ValidationError::Unavailable { by, .. } => by,
        }
    }

    /// The same with more said about what checked the patch.
    #[must_use]
    pub fn checked_by(mut self, tell: impl FnOnce(&str) -> String) -> Self {
        match &mut self {
            ValidationError::Refused { by, .. }
            | ValidationError::TestsFailed { by, .. }
            | ValidationError::Unavailable { by, .. } => *by = tell(by.as_str()),
        }
        self
    }
}

/// Checks that a diff applies to the files it was made for, somewhere they cannot be harmed.
pub trait PatchValidator: Send + Sync {
    /// What is said about it before it has checked; what it did is in its result.
    fn name(&self) -> &str {
        "git apply --check"
    }

    /// Checks.
    fn validate<'a>(
        &'a self,
        draft: Draft<'a>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Validated, ValidationError>>;
}
