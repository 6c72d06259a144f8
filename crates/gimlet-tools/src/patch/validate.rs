//! A second opinion before a patch is offered: git's own.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::command::{End, Environment};
use gimlet::patch::{Draft, FileChange, PatchValidator, Validated, ValidationError};
use tokio_util::sync::CancellationToken;

use super::scratch::Scratch;
use crate::command::{Capture, Process, execute};
use crate::git::{NOT_FOUND, guarded};

/// Longest check.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What is said about a check.
const NAME: &str = "git apply --check in a scratch folder";

/// Runs `git apply --check` in a scratch folder that holds copies of the files the patch touches, and nothing of the
/// repository: no settings, hooks or filters of it are seen.
#[derive(Debug, Clone)]
pub struct ScratchValidator {
    /// What git sees of the environment: that [outside](Environment::outside) of the project.
    pub environment: Environment,
}

impl PatchValidator for ScratchValidator {
    fn name(&self) -> &str {
        NAME
    }

    fn validate<'a>(
        &'a self,
        draft: Draft<'a>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Validated, ValidationError>> {
        async move {
            let unavailable = |error: io::Error| no_check(error.to_string());
            let scratch = Scratch::new("gimlet-patch-").map_err(unavailable)?;
            let (files, patch) = (scratch.path().join("files"), scratch.path().join("patch.diff"));
            copy(&files, draft.changes).map_err(unavailable)?;
            fs::write(&patch, draft.diff).map_err(unavailable)?;
            let process = Process {
                program: "git".into(),
                arguments: ["apply", "--check", "--whitespace=nowarn"]
                    .iter()
                    .map(Into::into)
                    .chain([patch.into_os_string()])
                    .collect(),
                cwd: files,
                environment: guarded(self.environment.clone(), &[])
                    .with("GIT_CEILING_DIRECTORIES", scratch.path())
                    .with("GIT_CONFIG_NOSYSTEM", "1")
                    .with("GIT_CONFIG_GLOBAL", "/dev/null")
                    .with("LC_ALL", "C.UTF-8"),
                timeout: TIMEOUT,
                capture: Capture::Head(64 * 1024),
            };
            let finished = execute(&process, cancel).await.map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => no_check(NOT_FOUND),
                _ => unavailable(error),
            })?;
            match finished.end {
                End::Exited(0) => Ok(Validated { by: NAME.into() }),
                End::Exited(_) => Err(ValidationError::Refused {
                    by: NAME.into(),
                    said: finished.stderr.text().trim().into(),
                }),
                End::Signalled(_) => Err(no_check("git was killed")),
                End::TimedOut => Err(no_check("git took too long")),
                End::Cancelled => Err(no_check("stopped")),
            }
        }
        .boxed()
    }
}

fn no_check(why: impl Into<String>) -> ValidationError {
    ValidationError::Unavailable { by: NAME.into(), why: why.into() }
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
