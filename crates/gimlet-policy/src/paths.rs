//! Paths as text: where a word would point, and whether that is inside the root. Which of them are secret or protected is
//! the list of path rules in the core.

use std::path::Path;

pub(crate) use gimlet::paths::{Base, Reading, Spot};
pub use gimlet::paths::{PathRules, Secrecy};

/// An absolute folder, taken apart.
pub(crate) type Folder = Vec<String>;

/// The components of an absolute path, `.` and `..` resolved by text.
pub(crate) fn components<'a>(cwd: &'a [String], text: &'a str) -> Vec<&'a str> {
    let mut found: Vec<&str> = Vec::with_capacity(cwd.len() + 4);
    if !text.starts_with('/') {
        found.extend(cwd.iter().map(String::as_str));
    }
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                found.pop();
            }
            name => found.push(name),
        }
    }
    found
}

/// The components of a path, to keep.
pub(crate) fn folder(cwd: &[String], text: &str) -> Folder {
    components(cwd, text).into_iter().map(str::to_owned).collect()
}

/// The components of an absolute folder.
pub(crate) fn absolute(path: &Path) -> Folder {
    folder(&[], &path.to_string_lossy())
}

/// Whether a path lies in or below a folder.
pub(crate) fn is_below(path: &[&str], folder: &[String]) -> bool {
    path.len() >= folder.len() && folder.iter().zip(path).all(|(a, b)| a == b)
}

/// Where a path is, as the list of path rules asks.
pub(crate) fn spot<'a>(path: &'a [&'a str], root: &[String]) -> Spot<'a> {
    let base = if is_below(path, root) { Base::Inside(root.len()) } else { Base::Outside };
    Spot { names: path, base }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_judged_by_component() {
        let (repo, src) = (absolute(Path::new("/repo/")), absolute(Path::new("/repo/src")));
        let at = |text: &str| components(&src, text).join("/");
        assert_eq!(at("a..b"), "repo/src/a..b");
        assert_eq!(at("../x"), "repo/x");
        assert_eq!(at("../../../../x"), "x");
        assert_eq!(at("//dev/./sda"), "dev/sda");
        assert!(is_below(&components(&repo, "a/../b"), &repo));
        assert!(!is_below(&components(&repo, "/repository"), &repo));
    }
}
