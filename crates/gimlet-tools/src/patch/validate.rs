//! A second opinion before a patch is offered: git's own.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::plan::FileChange;
use crate::command::{Capture, End, Environment, Process, execute};

/// Longest check.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Why a patch is not valid, or could not be checked.
#[derive(Debug, thiserror::Error)]
pub enum ValidationError {
    /// It does not apply.
    #[error("git does not accept the patch: {0}")]
    Refused(String),
    /// The check could not be made.
    #[error("the patch could not be checked: {0}")]
    Unavailable(String),
}

/// Checks that a diff applies to the files it was made for, somewhere they cannot be harmed.
pub trait PatchValidator: Send + Sync {
    /// Where it checks; said in every result.
    fn name(&self) -> &str;

    /// Checks.
    fn validate<'a>(
        &'a self,
        changes: &'a [FileChange],
        diff: &'a str,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), ValidationError>>;
}

/// Runs `git apply --check` in a scratch folder that holds copies of the files the patch touches, and nothing of the
/// repository: no settings, hooks or filters of it are seen.
#[derive(Debug, Clone)]
pub struct ScratchValidator {
    /// What git sees of the environment.
    pub environment: Environment,
}

impl PatchValidator for ScratchValidator {
    fn name(&self) -> &str {
        "git apply --check in a scratch folder"
    }

    fn validate<'a>(
        &'a self,
        changes: &'a [FileChange],
        diff: &'a str,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), ValidationError>> {
        async move {
            let unavailable = |error: io::Error| ValidationError::Unavailable(error.to_string());
            let scratch = tempfile::Builder::new().prefix("gimlet-patch-").tempdir().map_err(unavailable)?;
            let (files, patch) = (scratch.path().join("files"), scratch.path().join("patch.diff"));
            copy(&files, changes).map_err(unavailable)?;
            fs::write(&patch, diff).map_err(unavailable)?;
            let process = Process {
                program: "git".into(),
                arguments: ["apply", "--check", "--whitespace=nowarn"]
                    .iter()
                    .map(Into::into)
                    .chain([patch.into_os_string()])
                    .collect(),
                cwd: files,
                environment: self
                    .environment
                    .clone()
                    .with("GIT_CEILING_DIRECTORIES", scratch.path())
                    .with("GIT_CONFIG_NOSYSTEM", "1")
                    .with("GIT_CONFIG_GLOBAL", "/dev/null")
                    .with("LC_ALL", "C.UTF-8"),
                timeout: TIMEOUT,
                capture: Capture::Head(64 * 1024),
            };
            let finished = execute(&process, cancel).await.map_err(unavailable)?;
            match finished.end {
                End::Exited(0) => Ok(()),
                End::Exited(_) => Err(ValidationError::Refused(finished.stderr.text().trim().into())),
                End::Signalled(_) => Err(ValidationError::Unavailable("git was killed".into())),
                End::TimedOut => Err(ValidationError::Unavailable("git took too long".into())),
                End::Cancelled => Err(ValidationError::Unavailable("stopped".into())),
            }
        }
        .boxed()
    }
}

/// Writes the files as they are before the patch.
fn copy(folder: &Path, changes: &[FileChange]) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::create_dir(folder)?;
    for change in changes {
        let Some(before) = &change.before else { continue };
        let path = folder.join(change.old_path());
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, &before.text)?;
        let mode = if before.git_mode() == 0o100_755 { 0o755 } else { 0o644 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}
