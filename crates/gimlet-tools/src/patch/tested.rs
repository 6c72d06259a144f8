//! A third opinion before a patch is offered: the tests'. They run on a copy of the project that has the patch in it, by
//! whoever runs commands, so that nothing they do reaches the project itself.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::command::{
    Captured, Command, CommandRunner, End, Environment, Finished, Invocation, Permissions,
};
use gimlet::patch::{Draft, FileChange, PatchValidator, Validated, ValidationError};
use tokio_util::sync::CancellationToken;

use super::scratch::Scratch;
use crate::root::Root;
use crate::walk::{FileGlob, files};

/// Longest run of the tests; a runner may have less.
pub(crate) const TESTS_TIMEOUT: Duration = Duration::from_secs(300);
/// Most bytes kept of each stream; the end survives, which is where tests say what failed.
const KEEP: usize = 16 * 1024;

/// Checks patches by another validator first, then by a command that must succeed.
pub struct TestedValidator {
    /// The project; says what of it may be copied.
    root: Root,
    inner: Arc<dyn PatchValidator>,
    /// Must confine what it runs: nobody is asked about the command.
    runner: Arc<dyn CommandRunner>,
    command: String,
    environment: Environment,
    name: String,
}

impl TestedValidator {
    /// A validator that also runs a command.
    pub fn new(
        root: Root,
        inner: Arc<dyn PatchValidator>,
        runner: Arc<dyn CommandRunner>,
        command: String,
        environment: Environment,
    ) -> Self {
        let name = format!("{} and `{command}` in {}", inner.name(), runner.name());
        TestedValidator { root, inner, runner, command, environment, name }
    }

    async fn test(&self, folder: &Path, cancel: &CancellationToken) -> io::Result<Finished> {
        let command = Command {
            text: self.command.clone(),
            invocation: Invocation::Shell(self.command.clone()),
            root: folder.to_owned(),
            cwd: folder.to_owned(),
            environment: self.environment.clone(),
            timeout: TESTS_TIMEOUT,
            keep: KEEP,
            permissions: Permissions::default(),
        };
        self.runner.run(&command, cancel).await
    }
}

impl PatchValidator for TestedValidator {
    fn name(&self) -> &str {
        &self.name
    }

    fn validate<'a>(
        &'a self,
        draft: Draft<'a>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Validated, ValidationError>> {
        async move {
            let checked = self.inner.validate(draft, cancel).await?;
            let unavailable = |why: String| ValidationError::Unavailable { by: self.name.clone(), why };
            let scratch = Scratch::new("gimlet-tests-").map_err(|error| unavailable(error.to_string()))?;
            // The folder around it is closed to everybody else; a container gets this one alone.
            let folder = scratch.path().join("files");
            let (root, changes) = (self.root.clone(), draft.changes.to_vec());
            let (target, stop) = (folder.clone(), cancel.child_token());
            let _ends_with_the_future = stop.clone().drop_guard();
            let copied = tokio::task::spawn_blocking(move || {
                copy(&root, &target, &stop)?;
                changes
                    .iter()
                    .try_for_each(|change| write(&target, change))
                    .map_err(|error| error.to_string())
            });
            copied.await.map_err(|error| unavailable(error.to_string()))?.map_err(unavailable)?;
            let finished =
                self.test(&folder, cancel).await.map_err(|error| unavailable(error.to_string()))?;
            let (command, place) = (&self.command, &finished.isolation);
            let by = format!("{}; `{command}` in {place}", checked.by);
            let failed =
                |how: String| ValidationError::TestsFailed { by: by.clone(), how, said: said(&finished) };
            match finished.end {
                End::Exited(0) => Ok(Validated { by }),
                End::Exited(code) => Err(failed(format!("`{command}` ended with code {code}"))),
                End::Signalled(signal) => Err(failed(format!("`{command}` was killed by signal {signal}"))),
                End::TimedOut => Err(failed(format!("`{command}` took too long"))),
                End::Cancelled => Err(unavailable("stopped".into())),
            }
        }
        .boxed()
    }
}

/// The end of what the tests said.
fn said(finished: &Finished) -> String {
    let text = |stream: &Captured| stream.text().trim().to_owned();
    [text(&finished.stdout), text(&finished.stderr)].join("\n").trim().to_owned()
}

/// Copies what belongs to the project: neither what git ignores, nor git's own files, nor secrets.
fn copy(root: &Root, folder: &Path, stop: &CancellationToken) -> Result<(), String> {
    let found = files(root, &FileGlob::everything(), &|| stop.is_cancelled());
    make(folder).map_err(|error| error.to_string())?;
    for path in found.map_err(|error| error.to_string())? {
        if stop.is_cancelled() {
            return Err("stopped".into());
        }
        // What is gone or closed by now is not there for the tests.
        let Ok(mut from) = root.open_walked(&path) else { continue };
        let copied = (|| {
            let to = place(folder, &path)?;
            let mode = from.metadata()?.permissions().mode();
            io::copy(&mut from, &mut fs::File::create(&to)?)?;
            readable(&to, mode)
        })();
        copied.map_err(|error: io::Error| format!("{} cannot be copied: {error}", path.display()))?;
    }
    Ok(())
}

/// Does to the copy what the patch does.
fn write(folder: &Path, change: &FileChange) -> io::Result<()> {
    if change.before.is_some() && (change.after.is_none() || change.renamed_from.is_some()) {
        match fs::remove_file(folder.join(change.old_path())) {
            // What git ignores was not copied.
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    let Some(after) = &change.after else { return Ok(()) };
    let to = place(folder, Path::new(&change.path))?;
    fs::write(&to, &after.text)?;
    readable(&to, after.git_mode())
}

/// Where a file of the project is in the copy, with the folders above it.
fn place(folder: &Path, path: &Path) -> io::Result<std::path::PathBuf> {
    let mut above = folder.to_owned();
    for part in path.parent().into_iter().flat_map(Path::components) {
        above.push(part);
        if !above.is_dir() {
            make(&above)?;
        }
    }
    Ok(folder.join(path))
}

/// A folder that also the user of a container can enter.
fn make(folder: &Path) -> io::Result<()> {
    fs::create_dir(folder)?;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))
}

/// A file that also the user of a container can read, and run if its owner can.
fn readable(file: &Path, mode: u32) -> io::Result<()> {
    let mode = if mode & 0o100 == 0 { 0o644 } else { 0o755 };
    fs::set_permissions(file, fs::Permissions::from_mode(mode))
}
