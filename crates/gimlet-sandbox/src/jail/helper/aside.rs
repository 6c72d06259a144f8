//! What the kernel does not keep: files of the project that a command may not write, where no mount and no rule can stand
//! in its way. They are as they were when the command has ended, and what it made of them lies beside.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use gimlet::command::{GitFolder, Profile};
use rustix::fs::{Mode, OFlags};

use crate::jail::detect::Mechanism;
use crate::jail::order::{self, Order};
use crate::jail::places::{self, is_folder, is_real};

/// What is at a path.
enum Is {
    Nothing,
    Link(PathBuf),
    File { bytes: Vec<u8>, mode: u32 },
    Folder(BTreeMap<OsString, Is>),
}

/// Protected paths as they were.
#[derive(Default)]
pub(crate) struct Watched {
    /// Folders above them that could be taken away to have something else in their place, outermost first.
    folders: BTreeSet<PathBuf>,
    paths: Vec<(PathBuf, Is)>,
    /// What git knows a repository by, if the command may write that.
    head: Option<(PathBuf, Is)>,
    /// The folders on the way to all of these, outermost first, and the rights on those that are there.
    above: BTreeMap<PathBuf, Option<u32>>,
    /// A project in which a git command could have made folders submodules, and which were.
    modules: Option<(PathBuf, BTreeSet<PathBuf>)>,
}

impl Watched {
    /// What is to be as it is now when the command has ended.
    pub(crate) fn before(order: &Order) -> io::Result<Self> {
        let mut watched = Watched::default();
        if order.permissions.profile == Profile::ReadOnly || order.purpose != order::Purpose::Command {
            return Ok(watched);
        }
        let git = order.permissions.git == GitFolder::Writable;
        // With Landlock, whoever may write at the top of a folder may write all of it.
        let all = git && matches!(order.mechanism, Mechanism::Landlock(_));
        let protected = places::protected(order);
        if all {
            watched.folders = places::between(order, &protected);
        }
        for path in protected {
            // What is there is kept by the kernel, or else by a copy; only whole repositories would be too much for that.
            let is_large =
                is_folder(&path) && path.file_name().is_some_and(|name| name == "modules" || name == ".git");
            if (all && !is_large) || !is_real(&path) {
                let is = look(&path)?;
                watched.paths.push((path, is));
            }
        }
        let head = order.root.join(".git/HEAD");
        if git && is_real(&head) {
            watched.head = Some((head.clone(), look(&head)?));
        }
        if git {
            watched.modules = Some((order.root.clone(), places::repositories(&order.root)));
        }
        let bases: Vec<&PathBuf> = order.write.iter().chain([&order.root]).collect();
        let guarded = watched.paths.iter().chain(&watched.head).map(|(path, _)| path.clone());
        for path in guarded.collect::<Vec<_>>() {
            let above = path.ancestors().skip(1);
            for folder in above.take_while(|above| bases.iter().any(|base| above.starts_with(base))) {
                let mode = std::fs::symlink_metadata(folder).ok().filter(std::fs::Metadata::is_dir);
                watched
                    .above
                    .entry(folder.to_owned())
                    .or_insert_with(|| mode.map(|known| known.permissions().mode()));
            }
        }
        Ok(watched)
    }

    /// Puts aside what is not as it was, and back what was there; what was done, in words.
    pub(crate) fn restore(&self) -> Vec<String> {
        if self.changed().is_empty() && self.folders.iter().all(|path| is_folder(path) || !is_there(path)) {
            return Vec::new();
        }
        let _rights = self.take_back_rights(Purpose::Change);
        let mut news = Vec::new();
        for folder in self.folders.iter().filter(|path| !is_folder(path) && is_there(path)) {
            news.push(restored(folder, &Is::Nothing));
        }
        for (path, was) in &self.paths {
            if is_reached(path) && !is_still(path, was) {
                news.push(restored(path, was));
            }
        }
        if let Some((path, was)) = self.head.as_ref().filter(|(path, _)| is_reached(path) && !is_there(path))
        {
            news.push(restored(path, was));
        }
        for git in self.new_modules() {
            news.push(restored(&git, &Is::Nothing));
        }
        news
    }

    /// What is not as it was.
    pub(crate) fn changed(&self) -> Vec<PathBuf> {
        let _rights = self.take_back_rights(Purpose::Look);
        let paths = self.paths.iter().filter(|(path, was)| is_reached(path) && !is_still(path, was));
        let head = self.head.iter().filter(|(path, _)| is_reached(path) && !is_there(path));
        paths.chain(head).map(|(path, _)| path.clone()).chain(self.new_modules()).collect()
    }

    /// Repositories in folders that were none: git would look into them, and do what their settings say.
    fn new_modules(&self) -> Vec<PathBuf> {
        let Some((root, known)) = &self.modules else { return Vec::new() };
        let new = places::repositories(root).into_iter().filter(|module| !known.contains(module));
        new.map(|module| module.join(".git")).filter(|git| is_reached(git) && is_there(git)).collect()
    }

    /// Gives this process back what a command took from it: the rights on its own folders. They end as they were before
    /// the command.
    fn take_back_rights(&self, purpose: Purpose) -> Vec<Rights> {
        // Outermost first: nobody reaches a folder in one that is closed.
        self.above.iter().filter_map(|(folder, mode)| Rights::take_back(folder, *mode, purpose)).collect()
    }
}

/// What rights are taken back for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// A folder on which nothing has changed can be looked into as before.
    Look,
    Change,
}

/// All rights of an owner.
const OWNER: u32 = 0o700;

/// Rights on a folder that were taken back for as long as this lives.
struct Rights {
    folder: OwnedFd,
    after: u32,
}

impl Rights {
    /// None where nothing was missing. A link is not followed: the folder that it leads to is another.
    fn take_back(path: &Path, before: Option<u32>, purpose: Purpose) -> Option<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = rustix::fs::open(path, flags, Mode::empty()).ok()?;
        let mode = rustix::fs::fstat(&folder).ok()?.st_mode & 0o7777;
        let before = before.map(|before| before & 0o7777);
        if mode & OWNER == OWNER || (purpose == Purpose::Look && before == Some(mode)) {
            return None;
        }
        let rights = Rights { folder, after: before.unwrap_or(mode | OWNER) };
        rights.set(mode | OWNER);
        Some(rights)
    }

    /// By descriptor. Where it fails, what was to be restored is found to be changed.
    fn set(&self, mode: u32) {
        let path = format!("/proc/self/fd/{}", self.folder.as_raw_fd());
        let _ = std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode));
    }
}

impl Drop for Rights {
    fn drop(&mut self) {
        self.set(self.after);
    }
}

/// Whether a path leads through no link. One that nobody can tell about counts as reached.
fn is_reached(path: &Path) -> bool {
    let Some(above) = path.parent() else { return false };
    match above.canonicalize() {
        Ok(real) => real == above,
        Err(error) => !is_missing(&error),
    }
}

/// Whether something is at a path, or nobody can tell.
fn is_there(path: &Path) -> bool {
    match std::fs::symlink_metadata(path) {
        Ok(_) => true,
        Err(error) => !is_missing(&error),
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn look(path: &Path) -> io::Result<Is> {
    let known = match std::fs::symlink_metadata(path) {
        Ok(known) => known,
        Err(error) if is_missing(&error) => return Ok(Is::Nothing),
        Err(error) => return Err(error),
    };
    if known.is_symlink() {
        Ok(Is::Link(std::fs::read_link(path)?))
    } else if known.is_dir() {
        let entries = std::fs::read_dir(path)?.map(|entry| {
            let entry = entry?;
            Ok((entry.file_name(), look(&entry.path())?))
        });
        Ok(Is::Folder(entries.collect::<io::Result<_>>()?))
    } else if known.is_file() {
        Ok(Is::File { bytes: std::fs::read(path)?, mode: known.permissions().mode() })
    } else {
        Err(io::Error::other(format!("{} is neither a file nor a folder", path.display())))
    }
}

/// Whether a path is as it was. Reads no more than was there: what has become of it can be of any size.
fn is_still(path: &Path, was: &Is) -> bool {
    let known = std::fs::symlink_metadata(path);
    match was {
        Is::Nothing => !is_there(path),
        Is::Link(to) => std::fs::read_link(path).is_ok_and(|now| now == *to),
        Is::File { bytes, mode } => {
            known.is_ok_and(|known| {
                known.is_file() && known.permissions().mode() == *mode && known.len() == bytes.len() as u64
            }) && std::fs::read(path).is_ok_and(|now| now == *bytes)
        }
        Is::Folder(entries) => {
            let count = |path| std::fs::read_dir(path).map(|found| found.take(entries.len() + 1).count());
            known.is_ok_and(|known| known.is_dir())
                && count(path).is_ok_and(|count| count == entries.len())
                && entries.iter().all(|(name, was)| is_still(&path.join(name), was))
        }
    }
}

fn restored(path: &Path, was: &Is) -> String {
    let restore = || -> io::Result<Option<PathBuf>> {
        let moved = if is_there(path) { Some(put_aside(path)?) } else { None };
        make(path, was)?;
        Ok(moved)
    };
    let name = path.display();
    match restore() {
        Ok(Some(moved)) if matches!(was, Is::Nothing) => {
            format!("commands may not make {name}: what this one made is {} now", moved.display())
        }
        Ok(Some(moved)) => {
            let moved = moved.display();
            format!("commands may not change {name}: it is as before, and what this one made is {moved}")
        }
        Ok(None) => format!("commands may not remove {name}: it is back"),
        Err(error) => {
            format!("commands may not change {name}, and this one did; it cannot be restored: {error}")
        }
    }
}

/// Moves something out of the way; where to.
fn put_aside(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default();
    for number in 0..u32::MAX {
        let mut aside = name.to_owned();
        aside.push(".from-a-command");
        if number > 0 {
            aside.push(format!("-{number}"));
        }
        let to = path.with_file_name(aside);
        if std::fs::symlink_metadata(&to).is_err() {
            std::fs::rename(path, &to)?;
            return Ok(to);
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn make(path: &Path, was: &Is) -> io::Result<()> {
    match was {
        Is::Nothing => Ok(()),
        Is::Link(to) => symlink(to, path),
        Is::File { bytes, mode } => {
            std::fs::write(path, bytes)?;
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(*mode))
        }
        Is::Folder(entries) => {
            std::fs::create_dir(path)?;
            entries.iter().try_for_each(|(name, was)| make(&path.join(name), was))
        }
    }
}
