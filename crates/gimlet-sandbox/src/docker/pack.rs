//! The project as an archive, for a container that gets a copy: without git's own files, links, what builds have left
//! behind, and whatever the caller keeps back, such as secrets.

use std::io::{self, Read};
use std::path::Path;

/// Most bytes of a copy; it lives in the container's memory.
const MOST: usize = 160 << 20;
/// Folders and files that are no part of a copy, whatever the caller says. Which files hold secrets is not decided here.
const LEFT_OUT: &[&str] = &[".git", ".venv", "__pycache__", "node_modules", "target", "venv", "gimlet.toml"];
const BLOCK: usize = 512;

/// An archive in the format of `tar`.
#[derive(Debug, Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    /// What was left out although it is the project's, in words.
    pub(crate) gaps: Vec<String>,
}

impl Archive {
    /// A whole folder, as far as it fits. `may_copy` is asked about every file, by its path below the folder.
    pub(crate) fn of(root: &Path, may_copy: &dyn Fn(&Path) -> bool) -> io::Result<Self> {
        let mut archive = Archive::default();
        archive.folder(root, "", may_copy)?;
        Ok(archive)
    }

    /// Adds a folder's files, in a stable order.
    fn folder(&mut self, folder: &Path, name: &str, may_copy: &dyn Fn(&Path) -> bool) -> io::Result<()> {
        let mut entries = std::fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let own = entry.file_name().to_string_lossy().into_owned();
            if LEFT_OUT.contains(&own.as_str()) {
                continue;
            }
            let path = if name.is_empty() { own } else { format!("{name}/{own}") };
            let kind = entry.file_type()?;
            if kind.is_dir() {
                self.folder(&entry.path(), &path, may_copy)?;
            } else if kind.is_file() && may_copy(Path::new(&path)) {
                self.file(&entry.path(), &path);
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, name: &str) {
        let mut bytes = Vec::new();
        let room = MOST.saturating_sub(self.bytes.len());
        let read =
            std::fs::File::open(path).and_then(|file| file.take(room as u64 + 1).read_to_end(&mut bytes));
        let gap = match read {
            Ok(_) if bytes.len() > room => Some("too large"),
            Ok(_) if self.add(name, &bytes) => None,
            Ok(_) => Some("its name is too long"),
            Err(_) => Some("it cannot be read"),
        };
        if let Some(gap) = gap {
            self.gaps.push(format!("{name}: {gap}"));
        }
    }

    /// Adds a file; false if its name does not fit the format.
    pub(crate) fn add(&mut self, name: &str, contents: &[u8]) -> bool {
        let mut header = [0u8; BLOCK];
        let Some((prefix, rest)) = split(name) else { return false };
        header[..rest.len()].copy_from_slice(rest.as_bytes());
        let mut field = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
        field(100, "0000644\0");
        field(108, "0177776\0");
        field(116, "0177776\0");
        field(124, &format!("{:011o}\0", contents.len()));
        field(136, "00000000000\0");
        field(148, "        ");
        field(156, "0");
        field(257, "ustar\x0000");
        field(345, prefix);
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.bytes.extend_from_slice(&header);
        self.bytes.extend_from_slice(contents);
        self.bytes.resize(self.bytes.len().next_multiple_of(BLOCK), 0);
        true
    }

    /// The finished archive.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.bytes.resize(self.bytes.len() + 2 * BLOCK, 0);
        self.bytes
    }
}

/// A name as the format keeps it: up to 155 bytes of folders, up to 100 of the rest.
fn split(name: &str) -> Option<(&str, &str)> {
    if name.len() <= 100 {
        return Some(("", name));
    }
    name.match_indices('/')
        .map(|(at, _)| (&name[..at], &name[at + 1..]))
        .find(|(prefix, rest)| prefix.len() <= 155 && rest.len() <= 100)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn tar_itself_reads_it_and_what_is_kept_back_is_not_in_it() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let long = format!("{}/{}", "d".repeat(90), "f".repeat(90));
        for (name, text) in
            [("a.txt", "one"), ("src/b.py", ""), (".env", "x"), ("k/id", "x"), (long.as_str(), "long")]
        {
            let path = from.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::create_dir(from.path().join(".git")).unwrap();
        fs::write(from.path().join(".git/config"), "x").unwrap();
        let kept_back = [".env", "k/id"].map(Path::new);
        let archive = Archive::of(from.path(), &|path: &Path| !kept_back.contains(&path)).unwrap();
        assert_eq!(archive.gaps, Vec::<String>::new());
        let file = to.path().join("x.tar");
        fs::write(&file, archive.finish()).unwrap();
        let status =
            std::process::Command::new("tar").arg("xf").arg(&file).arg("-C").arg(to.path()).status().unwrap();
        assert!(status.success());
        assert_eq!(fs::read_to_string(to.path().join("a.txt")).unwrap(), "one");
        assert_eq!(fs::read_to_string(to.path().join(&long)).unwrap(), "long");
        assert!(to.path().join("src/b.py").exists());
        for absent in [".env", "k", ".git"] {
            assert!(!to.path().join(absent).exists(), "{absent}");
        }
    }
}
