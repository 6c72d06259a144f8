//! The project as an archive, for a container that gets a copy: without git's own files, what builds have left behind,
//! and whatever the caller keeps back, such as secrets.

use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path};

/// Most bytes of a copy; it lives in the container's memory.
const MOST: usize = 160 << 20;
/// Folders and files that are no part of a copy, whatever the caller says. Which files hold secrets is not decided here.
const LEFT_OUT: &[&str] = &[".git", ".venv", "__pycache__", "node_modules", "target", "venv", "gimlet.toml"];
const BLOCK: usize = 512;
const LONG: &str = "its name is too long";

/// What an entry of an archive is.
enum Entry<'a> {
    File { contents: &'a [u8], runs: bool },
    Link { to: &'a str },
    Folder,
}

/// An archive in the format of `tar`.
#[derive(Debug, Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    /// What was left out although it is the project's, in words.
    pub(crate) gaps: Vec<String>,
}

impl Archive {
    /// A whole folder, as far as it fits and can be read. `may_copy` is asked about every file, by its path below the
    /// folder.
    pub(crate) fn of(root: &Path, may_copy: &dyn Fn(&Path) -> bool) -> io::Result<Self> {
        let mut archive = Archive::default();
        archive.folder(root, "", may_copy)?;
        Ok(archive)
    }

    /// Adds what is in a folder, in a stable order.
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
            let gap = if kind.is_dir() {
                match (self.put(&path, &Entry::Folder), self.folder(&entry.path(), &path, may_copy)) {
                    (false, _) => Some(LONG),
                    (true, Ok(())) => None,
                    (true, Err(_)) => Some("it cannot be read"),
                }
            } else if !may_copy(Path::new(&path)) {
                None
            } else if kind.is_symlink() {
                self.link(&entry.path(), &path)
            } else if kind.is_file() {
                self.file(&entry.path(), &path)
            } else {
                Some("it is no file")
            };
            if let Some(gap) = gap {
                self.gaps.push(format!("{path}: {gap}"));
            }
        }
        Ok(())
    }

    /// Adds a link, unless it leads out of the project; why it is left out.
    fn link(&mut self, path: &Path, name: &str) -> Option<&'static str> {
        let Ok(to) = std::fs::read_link(path) else { return Some("it cannot be read") };
        let inside = Path::new(name).parent().is_some_and(|folder| stays_inside(&folder.join(&to)));
        match to.to_str() {
            Some(to) if inside => (!self.put(name, &Entry::Link { to })).then_some(LONG),
            _ => Some("it leads out of the project"),
        }
    }

    /// Adds a file; why it is left out.
    fn file(&mut self, path: &Path, name: &str) -> Option<&'static str> {
        let mut contents = Vec::new();
        let room = MOST.saturating_sub(self.bytes.len());
        let read = std::fs::File::open(path).and_then(|file| {
            let runs = file.metadata()?.permissions().mode() & 0o111 != 0;
            file.take(room as u64 + 1).read_to_end(&mut contents)?;
            Ok(runs)
        });
        match read {
            Ok(_) if contents.len() > room => Some("too large"),
            Ok(runs) => (!self.put(name, &Entry::File { contents: &contents, runs })).then_some(LONG),
            Err(_) => Some("it cannot be read"),
        }
    }

    /// Adds a file; false if its name does not fit the format.
    pub(crate) fn add(&mut self, name: &str, contents: &[u8]) -> bool {
        self.put(name, &Entry::File { contents, runs: false })
    }

    /// Adds an entry; false if a name does not fit the format.
    fn put(&mut self, name: &str, entry: &Entry<'_>) -> bool {
        let (kind, mode, contents, to) = match entry {
            Entry::File { contents, runs: false } => ("0", "0000644\0", *contents, ""),
            Entry::File { contents, runs: true } => ("0", "0000755\0", *contents, ""),
            Entry::Link { to } => ("2", "0000777\0", &[][..], *to),
            Entry::Folder => ("5", "0000755\0", &[][..], ""),
        };
        let Some((prefix, rest)) = split(name) else { return false };
        if to.len() > 100 {
            return false;
        }
        let mut header = [0u8; BLOCK];
        let mut field = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
        field(0, rest);
        field(100, mode);
        field(108, "0177776\0");
        field(116, "0177776\0");
        field(124, &format!("{:011o}\0", contents.len()));
        field(136, "00000000000\0");
        field(148, "        ");
        field(156, kind);
        field(157, to);
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

/// Whether a path below a folder stays there, by its words.
fn stays_inside(path: &Path) -> bool {
    let mut depth = 0usize;
    path.components().all(|part| match part {
        Component::Normal(_) => {
            depth += 1;
            true
        }
        Component::CurDir => true,
        Component::ParentDir => {
            let above = depth > 0;
            depth = depth.saturating_sub(1);
            above
        }
        Component::RootDir | Component::Prefix(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// An archive as tar itself unpacks it.
    fn unpacked(archive: Archive) -> tempfile::TempDir {
        let to = tempfile::tempdir().unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, archive.finish()).unwrap();
        let mut tar = std::process::Command::new("tar");
        let status = tar.arg("xf").arg(file.path()).arg("-C").arg(to.path()).status().unwrap();
        assert!(status.success());
        to
    }

    #[test]
    fn tar_itself_reads_it_and_what_is_kept_back_is_not_in_it() {
        let from = tempfile::tempdir().unwrap();
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
        let to = unpacked(archive);
        assert_eq!(fs::read_to_string(to.path().join("a.txt")).unwrap(), "one");
        assert_eq!(fs::read_to_string(to.path().join(&long)).unwrap(), "long");
        assert!(to.path().join("src/b.py").exists());
        for absent in [".env", "k/id", ".git"] {
            assert!(!to.path().join(absent).exists(), "{absent}");
        }
    }

    #[test]
    fn programs_links_and_empty_folders_are_what_they_were() {
        let from = tempfile::tempdir().unwrap();
        let place = |name: &str| from.path().join(name);
        fs::create_dir_all(place("bin/empty")).unwrap();
        fs::write(place("bin/run"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(place("bin/run"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("bin/run", place("run")).unwrap();
        symlink("../run", place("bin/again")).unwrap();
        symlink("/etc/passwd", place("out")).unwrap();
        symlink("../../x", place("bin/up")).unwrap();
        symlink("kept.back", place("secret")).unwrap();
        let archive = Archive::of(from.path(), &|path: &Path| path != Path::new("secret")).unwrap();
        assert_eq!(archive.gaps, ["bin/up: it leads out of the project", "out: it leads out of the project"]);
        let to = unpacked(archive);
        assert!(to.path().join("bin/empty").is_dir());
        assert_eq!(fs::metadata(to.path().join("bin/run")).unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::read_to_string(to.path().join("bin/again")).unwrap(), "#!/bin/sh\n");
        assert!(fs::symlink_metadata(to.path().join("secret")).is_err());
    }

    #[test]
    fn a_folder_that_cannot_be_read_is_a_gap() {
        let from = tempfile::tempdir().unwrap();
        fs::create_dir(from.path().join("closed")).unwrap();
        for name in ["before.txt", "open.txt"] {
            fs::write(from.path().join(name), "x").unwrap();
        }
        // Nothing is closed to root, so the folder goes between being seen and being read.
        let may_copy = |path: &Path| {
            if path == Path::new("before.txt") {
                fs::remove_dir(from.path().join("closed")).unwrap();
            }
            true
        };
        let archive = Archive::of(from.path(), &may_copy).unwrap();
        assert_eq!(archive.gaps, ["closed: it cannot be read"]);
        assert!(unpacked(archive).path().join("open.txt").exists());
    }
}
