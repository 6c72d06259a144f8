//! What the kernel does not keep: files of the project that a command may not write, where no mount and no rule can stand
//! in its way. They are as they were when the command has ended, and what it made of them lies beside.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use gimlet::command::{GitFolder, Profile};

use crate::jail::detect::Mechanism;
use crate::jail::order::Order;
use crate::jail::places::{self, is_folder, is_reached, is_real};

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
    /// A project in which a git command could have made folders submodules, and which were.
    modules: Option<(PathBuf, BTreeSet<PathBuf>)>,
}

impl Watched {
    /// What is to be as it is now when the command has ended.
    pub(crate) fn before(order: &Order) -> io::Result<Self> {
        let mut watched = Watched::default();
        if order.permissions.profile == Profile::ReadOnly {
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
        Ok(watched)
    }

    /// Puts aside what is not as it was, and back what was there; what was done, in words.
    pub(crate) fn restore(self) -> Vec<String> {
        let mut news = Vec::new();
        for folder in self.folders.iter().filter(|path| !is_folder(path) && is_there(path)) {
            news.push(restored(folder, &Is::Nothing));
        }
        for (path, was) in &self.paths {
            if is_reached(path) && !is_still(path, was) {
                news.push(restored(path, was));
            }
        }
        if let Some((path, was)) = self.head.filter(|(path, _)| is_reached(path) && !is_there(path)) {
            news.push(restored(&path, &was));
        }
        // Git would look into a new one, and do what its settings say.
        if let Some((root, known)) = self.modules {
            let new = places::repositories(&root).into_iter().filter(|module| !known.contains(module));
            for git in new.map(|module| module.join(".git")).filter(|git| is_reached(git) && is_there(git)) {
                news.push(restored(&git, &Is::Nothing));
            }
        }
        news
    }
}

fn is_there(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}

fn look(path: &Path) -> io::Result<Is> {
    let known = match std::fs::symlink_metadata(path) {
        Ok(known) => known,
        Err(_) => return Ok(Is::Nothing),
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
        Is::Nothing => known.is_err(),
        Is::Link(to) => std::fs::read_link(path).is_ok_and(|now| now == *to),
        Is::File { bytes, mode } => {
            known.is_ok_and(|known| {
                known.is_file() && known.permissions().mode() == *mode && known.len() == bytes.len() as u64
            }) && std::fs::read(path).is_ok_and(|now| now == *bytes)
        }
        Is::Folder(entries) => {
            let count =
                |path| std::fs::read_dir(path).map_or(0, |found| found.take(entries.len() + 1).count());
            known.is_ok_and(|known| known.is_dir())
                && count(path) == entries.len()
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
