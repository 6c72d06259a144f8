//! Which files of a project a command must not read: those that the list of path rules calls secret, found by a walk just
//! before the command starts, and other names of the same files.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};

use gimlet::paths::list::GENERATED;
use gimlet::paths::{Entry, PathRules};

/// Most entries of folders that are looked at.
const MAX_ENTRIES: usize = 200_000;
/// Most secret files; more mounts than this make a command too slow to start.
const MAX_MASKS: usize = 4096;

/// What a walk found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Masks {
    pub(crate) files: BTreeSet<PathBuf>,
    pub(crate) folders: BTreeSet<PathBuf>,
    /// Files of which a command reads another text.
    pub(crate) replaced: Vec<(PathBuf, String)>,
    pub(crate) reach: Reach,
}

/// How much of the project a walk has seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Reach {
    #[default]
    Whole,
    /// The project has more entries than are looked at.
    Part,
}

impl Masks {
    /// Walks a project. Links are not followed, and folders of generated files are not entered.
    pub(crate) fn find(root: &Path, rules: &PathRules) -> io::Result<Self> {
        let mut walk =
            Walk { root, rules, masks: Masks::default(), inodes: Vec::new(), linked: BTreeSet::new() };
        walk.run();
        if walk.masks.folders.contains(root) {
            return Err(io::Error::other("the project's folder cannot be read"));
        }
        walk.add_hard_links();
        let masks = walk.masks;
        if masks.files.len() + masks.folders.len() > MAX_MASKS {
            let why = format!("the project has more than {MAX_MASKS} files that may hold secrets");
            return Err(io::Error::other(why));
        }
        Ok(masks)
    }

    /// Whether anything is to be covered.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.folders.is_empty() && self.replaced.is_empty()
    }

    /// All paths that are not to be read.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.files.iter().chain(&self.folders)
    }
}

struct Walk<'a> {
    root: &'a Path,
    rules: &'a PathRules,
    masks: Masks,
    /// Every file that is not secret by its name, by its number on the disk.
    inodes: Vec<(u64, PathBuf)>,
    /// Device and number of secret files that have other names.
    linked: BTreeSet<(u64, u64)>,
}

impl Walk<'_> {
    fn run(&mut self) {
        let mut open = vec![self.root.to_owned()];
        let mut seen = 0;
        while let Some(folder) = open.pop() {
            let entries = match std::fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                // Nobody can tell what is in it, and a command could open what is closed for its own user.
                Err(_) => {
                    self.masks.folders.insert(folder);
                    continue;
                }
            };
            for entry in entries.flatten() {
                seen += 1;
                if seen > MAX_ENTRIES {
                    self.masks.reach = Reach::Part;
                    return;
                }
                let Ok(kind) = entry.file_type() else { continue };
                let path = entry.path();
                let Ok(below) = path.strip_prefix(self.root) else { continue };
                if kind.is_dir() {
                    if self.rules.is_secret_entry(below, Entry::Folder) {
                        self.masks.folders.insert(path);
                    } else if !GENERATED.iter().any(|name| entry.file_name() == *name) {
                        open.push(path);
                    }
                } else if self.rules.is_secret_entry(below, Entry::File) {
                    self.secret(path, kind);
                } else if kind.is_file() {
                    self.inodes.push((entry.ino(), path));
                }
            }
        }
    }

    /// Adds a secret file, or what a link of that name leads to inside of the project.
    fn secret(&mut self, path: PathBuf, kind: std::fs::FileType) {
        let target = if kind.is_symlink() { path.canonicalize().ok() } else { Some(path) };
        let Some(target) = target.filter(|target| self.is_inside(target)) else { return };
        let known = match std::fs::symlink_metadata(&target) {
            Ok(known) => known,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            // Its folder lists names and lets nobody in; a command could change that.
            Err(_) => {
                self.masks.folders.extend(target.parent().map(Path::to_owned));
                return;
            }
        };
        if known.is_file() {
            if known.nlink() > 1 {
                self.linked.insert((known.dev(), known.ino()));
            }
            self.masks.files.insert(target);
        }
    }

    /// Git could not work without its own files.
    fn is_inside(&self, target: &Path) -> bool {
        target.strip_prefix(self.root).is_ok_and(|below| !below.starts_with(".git"))
    }

    /// Adds the other names of secret files.
    fn add_hard_links(&mut self) {
        if self.linked.is_empty() {
            return;
        }
        for (inode, path) in std::mem::take(&mut self.inodes) {
            if self.linked.iter().any(|(_, secret)| *secret == inode)
                && std::fs::symlink_metadata(&path)
                    .is_ok_and(|known| self.linked.contains(&(known.dev(), known.ino())))
            {
                self.masks.files.insert(path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn secrets_are_found_by_every_name() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        for name in [
            ".env",
            ".git/config",
            "app/prod.tfvars",
            "app/main.py",
            "config/real",
            ".aws/config",
            "node_modules/x/ca.pem",
            "plain.txt",
            "credentials/login.py",
        ] {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), "x").unwrap();
        }
        fs::hard_link(root.join(".env"), root.join("app/notes.txt")).unwrap();
        symlink("../config/real", root.join("app/.env")).unwrap();
        symlink("/etc/passwd", root.join("id_rsa")).unwrap();
        symlink(".git/config", root.join("server.key")).unwrap();
        let masks = Masks::find(&root, PathRules::shipped()).unwrap();
        let files: Vec<_> = masks.files.iter().map(|path| path.strip_prefix(&root).unwrap()).collect();
        assert_eq!(files, [".env", "app/notes.txt", "app/prod.tfvars", "config/real"].map(Path::new));
        assert_eq!(masks.folders, [root.join(".aws")].into());
        assert_eq!(masks.reach, Reach::Whole);
    }
}
