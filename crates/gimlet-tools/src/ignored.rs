//! Ignore files that must not be read: the walker reads whole files and follows links, so a `.gitignore` that is a device,
//! a pipe, a huge file or a link out of the project would hang it or fill the memory.

use std::fs::Metadata;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Largest ignore file that is read.
const MAX_BYTES: u64 = 1 << 20;
/// Longest file that says where a worktree's repository is.
const MAX_POINTER: u64 = 4096;

/// Looks at the ignore files of folders before a walker reads them. Clones remember together.
#[derive(Debug, Clone)]
pub(crate) struct Trap {
    root: PathBuf,
    met: Arc<AtomicBool>,
}

impl Trap {
    pub(crate) fn new(root: &Path) -> Self {
        Trap { root: root.to_owned(), met: Arc::default() }
    }

    /// Whether a folder was met that a walker must not enter.
    pub(crate) fn was_met(&self) -> bool {
        self.met.load(Ordering::Relaxed)
    }

    /// Whether a walker that enters this folder would read something it must not.
    pub(crate) fn is_set_in(&self, folder: &Path) -> bool {
        let set = [".gitignore", ".ignore"].iter().any(|name| self.is_unfit(&folder.join(name)))
            || self.is_unfit_repository(&folder.join(".git"));
        if set {
            self.met.store(true, Ordering::Relaxed);
        }
        set
    }

    /// Whether something is there that is no small file of the project.
    fn is_unfit(&self, path: &Path) -> bool {
        match std::fs::symlink_metadata(path) {
            Err(_) => false,
            Ok(known) if known.is_symlink() => {
                let inside = path.canonicalize().is_ok_and(|real| real.starts_with(&self.root));
                !inside || !std::fs::metadata(path).is_ok_and(|known| is_small_file(&known))
            }
            Ok(known) => !is_small_file(&known),
        }
    }

    /// A walker reads a repository's own list, and where a worktree's repository is.
    fn is_unfit_repository(&self, git: &Path) -> bool {
        let Ok(known) = std::fs::symlink_metadata(git) else { return false };
        if known.is_symlink() {
            return true;
        }
        if known.is_dir() {
            return self.is_unfit(&git.join("info/exclude"));
        }
        if !known.is_file() {
            return true;
        }
        let mut text = String::new();
        let read = std::fs::File::open(git).and_then(|file| file.take(MAX_POINTER).read_to_string(&mut text));
        let folder = text.strip_prefix("gitdir:").and_then(|rest| rest.lines().next());
        let (Ok(_), Some(folder)) = (read, folder) else { return true };
        let folder = git.parent().unwrap_or(git).join(folder.trim());
        let is_fit =
            |path: &Path| std::fs::symlink_metadata(path).map_or(true, |known| is_small_file(&known));
        let shared = || -> Option<PathBuf> {
            let mut text = String::new();
            let file = std::fs::File::open(folder.join("commondir")).ok()?;
            file.take(MAX_POINTER).read_to_string(&mut text).ok()?;
            Some(folder.join(text.lines().next()?.trim()))
        };
        !is_fit(&folder.join("commondir"))
            || !is_fit(&folder.join("info/exclude"))
            || !is_fit(&shared().unwrap_or_else(|| folder.clone()).join("info/exclude"))
    }
}

fn is_small_file(known: &Metadata) -> bool {
    known.is_file() && known.len() <= MAX_BYTES
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_small_files_of_the_project_are_read() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap().join("project");
        fs::create_dir_all(root.join("sub/.git")).unwrap();
        fs::write(temp.path().join("outside"), "*").unwrap();
        fs::write(root.join("shared"), "*.log\n").unwrap();
        let is_set = || Trap::new(&root).is_set_in(&root);
        assert!(!is_set());
        symlink("shared", root.join(".gitignore")).unwrap();
        assert!(!is_set(), "a link inside of the project is a file of the project");
        for target in ["/dev/zero", "../outside", "nowhere", "sub"] {
            fs::remove_file(root.join(".gitignore")).unwrap();
            symlink(target, root.join(".gitignore")).unwrap();
            assert!(is_set(), "{target}");
        }
        fs::remove_file(root.join(".gitignore")).unwrap();
        fs::write(root.join(".git"), "gitdir: fake\n").unwrap();
        fs::create_dir(root.join("fake")).unwrap();
        assert!(!is_set());
        symlink("/dev/zero", root.join("fake/commondir")).unwrap();
        assert!(is_set());
    }
}
