//! Finding files below the root with ripgrep's walker: `.gitignore` honoured, hidden files left out, links not followed.
//!
//! The walker goes by names and could be led astray by a folder swapped for a link. So its finds are only candidates:
//! whatever is reported is looked at, or opened, through the [`Root`] first.

use std::cmp::Ordering;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use gimlet::paths::list::HIDDEN;
use gimlet::tool::{ToolError, code as core};
use globset::{GlobBuilder, GlobMatcher};
use ignore::{WalkBuilder, WalkState};

use crate::blocking::cancelled;
use crate::code;
use crate::ignored::Trap;
use crate::root::Root;

/// Which files are meant, as a model writes it: `*.py` in any folder, `src/*.py` only there, `src` all below it.
#[derive(Debug, Clone)]
pub(crate) struct FileGlob {
    matcher: Option<GlobMatcher>,
    /// A hidden name is spelled out, so hidden files are meant too.
    hidden: bool,
}

impl FileGlob {
    /// Every file, hidden ones too.
    pub(crate) fn everything() -> Self {
        FileGlob { matcher: None, hidden: true }
    }

    pub(crate) fn new(root: &Root, glob: &str) -> Result<Self, ToolError> {
        let refuse = |word, message: String| ToolError::failed(word, message).with("glob", glob);
        if glob.contains('\0') {
            return Err(refuse(core::VALIDATION_FAILED, "the glob has a NUL character".into()));
        }
        let mut text = glob.trim();
        let absolute = root.path().to_str().and_then(|path| text.strip_prefix(path));
        if let Some(inside) = absolute.filter(|rest| rest.is_empty() || rest.starts_with('/')) {
            text = inside.trim_start_matches('/');
        }
        while let Some(rest) = text.strip_prefix("./") {
            text = rest;
        }
        if text.starts_with('/') || text.split('/').any(|part| part == "..") {
            let message =
                format!("{glob} leads outside the project; use a glob relative to the project's root");
            return Err(refuse(code::PATH_OUTSIDE_ROOT, message));
        }
        let text = text.trim_end_matches('/');
        let hidden = text.split('/').any(|part| part.starts_with('.') && part.len() > 1);
        if matches!(text, "" | "." | "*" | "**" | "**/*") {
            return Ok(FileGlob { matcher: None, hidden });
        }
        let is_folder = root.path().join(text).is_dir();
        let pattern = match (text.contains('/'), is_folder) {
            (_, true) => format!("{}/**", globset::escape(text)),
            (true, false) => text.to_owned(),
            (false, false) => format!("**/{text}"),
        };
        let matcher = GlobBuilder::new(&pattern)
            .literal_separator(true)
            .build()
            .map_err(|error| refuse(code::GLOB_FAILED, format!("the glob cannot be understood: {error}")))?
            .compile_matcher();
        Ok(FileGlob { matcher: Some(matcher), hidden })
    }

    fn matches(&self, path: &Path) -> bool {
        self.matcher.as_ref().is_none_or(|matcher| matcher.is_match(path))
    }
}

/// All files that are meant, relative to the root, in order of their names.
pub(crate) fn files(
    root: &Root,
    glob: &FileGlob,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<PathBuf>, ToolError> {
    // Ignore files above the root count only where a repository reaches down to it; any other is not about this project.
    let inside_repository = !root.path().join(".git").exists()
        && root.path().ancestors().skip(1).any(|folder| folder.join(".git").exists());
    let trap = Trap::new(root.path());
    let above = root.path().ancestors().skip(1).take_while(|_| inside_repository);
    if !trap.is_set_in(root.path()) && !above.into_iter().any(|folder| trap.is_set_in(folder)) {
        let found = walk(root, glob, stop, Ignoring::As { inside_repository, trap: &trap })?;
        if !trap.was_met() {
            return Ok(found);
        }
    }
    walk(root, glob, stop, Ignoring::Nothing)
}

/// Whether ignore files count.
#[derive(Clone, Copy)]
enum Ignoring<'a> {
    /// They do, unless one is met that must not be read.
    As { inside_repository: bool, trap: &'a Trap },
    /// None is read.
    Nothing,
}

fn walk(
    root: &Root,
    glob: &FileGlob,
    stop: &(dyn Fn() -> bool + Sync),
    ignoring: Ignoring<'_>,
) -> Result<Vec<PathBuf>, ToolError> {
    let shown = root.clone();
    let mut builder = WalkBuilder::new(root.path());
    let trap = match ignoring {
        Ignoring::As { inside_repository, trap } => {
            builder.parents(inside_repository).require_git(inside_repository);
            Some(trap.clone())
        }
        Ignoring::Nothing => {
            builder.parents(false).ignore(false).git_ignore(false).git_exclude(false);
            None
        }
    };
    let walker = builder
        .hidden(!glob.hidden)
        .git_global(false)
        .follow_links(false)
        .filter_entry(move |entry| {
            entry.depth() == 0
                || (!HIDDEN.iter().any(|name| entry.file_name() == *name)
                    && below(&shown, entry.path()).is_some_and(|path| shown.may_show_entry(path))
                    && !(entry.file_type().is_some_and(|kind| kind.is_dir())
                        && trap.as_ref().is_some_and(|trap| trap.is_set_in(entry.path()))))
        })
        .build_parallel();
    let all = Mutex::new(Vec::new());
    walker.run(|| {
        let mut batch = Batch { found: Vec::new(), all: &all };
        let mut seen = 0u32;
        Box::new(move |entry| {
            seen = seen.wrapping_add(1);
            if seen.is_multiple_of(256) && stop() {
                return WalkState::Quit;
            }
            // What cannot be read, such as a folder without permission, is not there for the model.
            if let Ok(entry) = entry
                && entry.file_type().is_some_and(|kind| kind.is_file())
                && let Some(path) = below(root, entry.path())
                && glob.matches(path)
                && root.may_show_file(path)
            {
                batch.found.push(path.to_path_buf());
            }
            WalkState::Continue
        })
    });
    if stop() {
        return Err(cancelled());
    }
    let mut files = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    files.sort_by(|a, b| by_letters(a, b));
    Ok(files)
}

/// What one thread of a walk found; handed over, sorted, when the thread is done.
struct Batch<'a> {
    found: Vec<PathBuf>,
    all: &'a Mutex<Vec<PathBuf>>,
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        self.found.sort_unstable_by(|a, b| by_letters(a, b));
        self.all.lock().unwrap_or_else(PoisonError::into_inner).append(&mut self.found);
    }
}

/// By letters, not by components: the order only has to be the same every time, and this is much faster.
fn by_letters(a: &Path, b: &Path) -> Ordering {
    a.as_os_str().cmp(b.as_os_str())
}

/// The part of a walked path below the root. The walker puts names behind the root's own path, so bytes can be cut off
/// instead of comparing components a hundred thousand times.
fn below<'a>(root: &Root, path: &'a Path) -> Option<&'a Path> {
    let below = path.as_os_str().as_bytes().strip_prefix(root.path().as_os_str().as_bytes())?;
    Some(Path::new(OsStr::from_bytes(below.strip_prefix(b"/").unwrap_or(below))))
}
