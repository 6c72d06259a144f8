//! Which files are tests, and which of them test a file.

use std::path::{Path, PathBuf};

use crate::graph::{Direction, neighbours};
use crate::index::Index;

/// Most tests named for one file.
const MOST: usize = 10;

/// Whether a file holds tests, by the conventions of its language.
pub fn is_test(path: &Path) -> bool {
    let Some(name) = path.file_name().map(|name| name.to_string_lossy()) else { return false };
    subject(&name).is_some()
        || name.ends_with(".bats")
        || path.parent().is_some_and(|parent| {
            let is_folder = |part: &str| matches!(part, "tests" | "test" | "__tests__" | "spec" | "testing");
            parent.components().any(|part| part.as_os_str().to_str().is_some_and(is_folder))
        }) && !matches!(
            path.extension().and_then(|ending| ending.to_str()),
            None | Some("json" | "txt" | "md" | "toml" | "yml" | "yaml")
        )
}

/// What a test is about, by its name: `test_cart.py`, `cart_test.go`, `cart.spec.ts` and `CartTest.java` test `cart`.
fn subject(name: &str) -> Option<String> {
    let (stem, ending) = name.rsplit_once('.')?;
    if matches!(ending, "json" | "md" | "txt" | "toml" | "yml" | "yaml") {
        return None;
    }
    let cut = ["_test", "-test", ".test", "_spec", "-spec", ".spec", "Tests", "Test", "Spec", "_tests"]
        .iter()
        .find_map(|ending| stem.strip_suffix(ending))
        .or_else(|| ["test_", "test-", "spec_"].iter().find_map(|start| stem.strip_prefix(start)))
        .or_else(|| stem.strip_prefix("Test").filter(|rest| rest.starts_with(|c: char| c.is_uppercase())))?;
    (!cut.is_empty()).then(|| plain(cut))
}

/// A name without the style it is written in.
pub(crate) fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

impl Index {
    /// The tests of a file: those named after it first, then those that use what it defines.
    pub fn tests_of(&self, path: &Path) -> Vec<PathBuf> {
        let stem = path.file_stem().map(|stem| plain(&stem.to_string_lossy())).unwrap_or_default();
        let file = self.find(path);
        let near = file.map(|file| neighbours(self, &[(file, 1.0)]).files).unwrap_or_default();
        let mut found: Vec<(f64, usize)> = Vec::new();
        for (at, candidate) in self.paths.iter().enumerate() {
            if Some(at) == file || !is_test(candidate) {
                continue;
            }
            let name = candidate.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
            let is_named = !stem.is_empty() && subject(&name).is_some_and(|subject| subject == stem);
            let is_same_language = candidate.extension() == path.extension();
            let mut score = near
                .get(&at)
                .filter(|link| link.direction == Direction::UsesSeed)
                .map_or(0.0, |link| link.strength);
            if is_named && is_same_language {
                // The one in the nearest folder comes first.
                score += 100.0 + shared(candidate, path) as f64;
            } else if is_named {
                score += 0.1;
            }
            if score > 0.0 {
                found.push((score, at));
            }
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        found.into_iter().take(MOST).filter_map(|(_, at)| self.paths.get(at).cloned()).collect()
    }
}

/// How many folders two paths have in common.
fn shared(a: &Path, b: &Path) -> usize {
    a.components().zip(b.components()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_known_by_their_names() {
        for path in [
            "test_cart.py",
            "cart_test.py",
            "a/cart_test.go",
            "cart.test.ts",
            "cart.spec.js",
            "CartTest.java",
            "cart_spec.rb",
            "tests/cart.rs",
            "test/run.bats",
            "x.bats",
            "src/__tests__/cart.js",
        ] {
            assert!(is_test(Path::new(path)), "{path}");
        }
        for path in [
            "cart.py",
            "contest.py",
            "latest.rs",
            "src/attest.go",
            "test.md",
            "tests/data.json",
            "testify.py",
        ] {
            assert!(!is_test(Path::new(path)), "{path}");
        }
    }
}
