//! Folders of a project that are repositories of their own. Git looks into those that `.gitmodules` or its index names when
//! it is asked about the project, and does there what their settings say.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Most that are looked at.
const MOST: usize = 256;
/// Largest index that is read.
const LARGEST: u64 = 64 << 20;
/// What is in an index: files, links, folders of a sparse one, other repositories.
const MODES: &[u32] = &[0o100_644, 0o100_755, 0o120_000, 0o040_000, LINK];
const LINK: u32 = 0o160_000;

/// Those that are named, whether they are there or not, but none that a link leads to.
pub(crate) fn submodules(root: &Path, index: &Path) -> BTreeSet<PathBuf> {
    let text = std::fs::read_to_string(root.join(".gitmodules")).unwrap_or_default();
    let named =
        text.lines().filter_map(|line| line.trim().strip_prefix("path")?.trim_start().strip_prefix('='));
    let named = named.map(|path| PathBuf::from(path.trim().trim_matches('"')));
    let is_inside = |path: &PathBuf| {
        let there = path.ancestors().find(|above| std::fs::symlink_metadata(above).is_ok());
        there.is_some_and(|there| there.canonicalize().is_ok_and(|real| real == there))
    };
    named
        .chain(linked(index))
        .filter(|path| path.components().all(|part| matches!(part, Component::Normal(_))))
        .map(|path| root.join(path))
        .filter(is_inside)
        .take(MOST)
        .collect()
}

/// What an index has as other repositories.
fn linked(index: &Path) -> Vec<PathBuf> {
    if std::fs::symlink_metadata(index).is_ok_and(|known| known.is_file() && known.len() <= LARGEST) {
        let bytes = std::fs::read(index).unwrap_or_default();
        // Names of objects have one of two lengths, and only one of them makes sense of the file.
        [20, 32].iter().find_map(|hash| parse(&bytes, *hash)).unwrap_or_default()
    } else {
        Vec::new()
    }
}

/// Reads git's format of an index, versions 2 to 4.
fn parse(index: &[u8], hash: usize) -> Option<Vec<PathBuf>> {
    let number = |at: usize| Some(u32::from_be_bytes(index.get(at..at + 4)?.try_into().ok()?));
    if index.get(..4)? != b"DIRC" {
        return None;
    }
    let version = number(4)?;
    let (mut at, mut name, mut found) = (12, Vec::new(), Vec::new());
    for _ in 0..number(8)? {
        let (start, mode, flags) = (at, number(at + 24)?, at + 40 + hash);
        if !MODES.contains(&mode) {
            return None;
        }
        at = flags + if version > 2 && index.get(flags)? & 0x40 != 0 { 4 } else { 2 };
        let shared = if version < 4 { 0 } else { name.len().checked_sub(varint(index, &mut at)?)? };
        name.truncate(shared);
        let rest = index.get(at..)?;
        let length = rest.iter().position(|byte| *byte == 0)?;
        name.extend_from_slice(&rest[..length]);
        at += length + 1;
        if version < 4 {
            at = start + (at - start).next_multiple_of(8);
        }
        if mode == LINK {
            found.push(PathBuf::from(OsStr::from_bytes(&name)));
        }
    }
    Some(found)
}

/// A number in as many bytes as it needs, as git writes offsets.
fn varint(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut value = 0usize;
    loop {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value = value.checked_mul(128)?.checked_add(usize::from(byte & 127))?;
        if byte & 128 == 0 {
            return Some(value);
        }
        value += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    #[test]
    fn submodules_are_found_inside_the_project_only() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap().join("project");
        fs::create_dir_all(root.join("vendor/a b")).unwrap();
        fs::create_dir_all(temp.path().join("home")).unwrap();
        std::os::unix::fs::symlink("../home", root.join("link")).unwrap();
        let text = "[submodule \"x\"]\n\tpath = vendor/a b\n\turl = u\n[submodule \"y\"]\n  path=../home\n\tpath = link\n\tpath = link/x\n\tpath = not/yet\n";
        fs::write(root.join(".gitmodules"), text).unwrap();
        let found = submodules(&root, &root.join("none"));
        assert_eq!(found, ["not/yet", "vendor/a b"].map(|name| root.join(name)).into());
    }

    #[test]
    fn links_are_found_in_every_kind_of_index() {
        for format in ["sha1", "sha256"] {
            let temp = tempfile::tempdir().unwrap();
            let git = |words: &[&str]| {
                let git = Command::new("git").args(words).current_dir(temp.path()).output().unwrap();
                assert!(git.status.success(), "{words:?}: {}", String::from_utf8_lossy(&git.stderr));
            };
            git(&["init", "--quiet", "--object-format", format]);
            fs::create_dir_all(temp.path().join("a/much/longer/name")).unwrap();
            for name in ["a/b", "a/much/longer/name/c", "z"] {
                fs::write(temp.path().join(name), name).unwrap();
            }
            git(&["add", "a", "--intent-to-add", "z"]);
            let object = "1".repeat(if format == "sha1" { 40 } else { 64 });
            for name in ["a/much/sub", "sub"] {
                git(&["update-index", "--add", "--cacheinfo", &format!("160000,{object},{name}")]);
            }
            for version in ["2", "3", "4"] {
                git(&["update-index", "--index-version", version]);
                let found = linked(&temp.path().join(".git/index"));
                assert_eq!(found, ["a/much/sub", "sub"].map(PathBuf::from), "{format} {version}");
            }
        }
    }
}
