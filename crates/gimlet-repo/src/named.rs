//! Files that a task names: whole paths, bare names, names without ending, in the wrong case, in another style, as a
//! module (`shop.cart`, `shop::cart`), or with a typing error.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::tests_of::plain;
use crate::words::weight;

/// Most words of a task that are compared with file names.
const MOST_WORDS: usize = 400;

/// How sure it is that a file is meant, from 0 to 1, for every file that is named at all.
pub(crate) fn named(task: &str, paths: &[PathBuf]) -> HashMap<usize, f64> {
    let words = mentions(task);
    let mut found: HashMap<usize, f64> = HashMap::new();
    if words.is_empty() {
        return found;
    }
    let mut by_plain: HashMap<&str, Vec<&Mention>> = HashMap::new();
    for word in &words {
        by_plain.entry(word.last.as_str()).or_default().push(word);
        by_plain.entry(word.stem.as_str()).or_default().push(word);
    }
    let mut hit: Vec<&str> = Vec::new();
    for (at, path) in paths.iter().enumerate() {
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let stem = path.file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
        let keys = [plain(&name), plain(&stem)];
        for word in keys.iter().filter_map(|key| by_plain.get(key.as_str())).flatten() {
            let sure = word.fits(path, &name, &stem);
            if sure > 0.0 {
                hit.push(&word.text);
                let best = found.entry(at).or_default();
                *best = best.max(sure);
            }
        }
    }
    let missed = words.iter().filter(|word| word.ending.is_some() && !hit.contains(&word.text.as_str()));
    for word in missed.take(8) {
        for (at, path) in paths.iter().enumerate() {
            let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
            let meant = word.file_name.to_lowercase();
            let near = name.len().abs_diff(meant.len()) <= 2
                && strsim::osa_distance(&name, &meant) <= 1 + meant.len() / 10;
            if near && meant.len() >= 6 {
                let best = found.entry(at).or_default();
                *best = best.max(0.5);
            }
        }
    }
    found
}

/// A word of the task that may name a file.
struct Mention {
    text: String,
    /// With `/` between its parts.
    path: String,
    file_name: String,
    /// The last part, with and without ending, without style.
    last: String,
    stem: String,
    ending: Option<String>,
    looks_like_code: bool,
}

impl Mention {
    fn fits(&self, path: &Path, name: &str, stem: &str) -> f64 {
        let shown = path.to_string_lossy();
        let has_folder = self.path.contains('/');
        let is_suffix = |whole: &str, part: &str| {
            whole == part || whole.strip_suffix(part).is_some_and(|before| before.ends_with('/'))
        };
        if has_folder {
            if is_suffix(&shown, &self.path) {
                return if *shown == self.path { 1.0 } else { 0.95 };
            }
            let (lower, part) = (shown.to_lowercase(), self.path.to_lowercase());
            if is_suffix(&lower, &part) {
                return 0.9;
            }
            let without = lower.strip_suffix(&format!(
                ".{}",
                path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default()
            ));
            if without.is_some_and(|without| is_suffix(without, &part)) {
                return 0.85;
            }
            // `pkg.module` or an import path whose first part is not a folder: the name alone is a weak hint.
            return if self.ending.is_some() && name.eq_ignore_ascii_case(&self.file_name) {
                0.6
            } else {
                0.15
            };
        }
        if name == self.file_name {
            return 0.95;
        }
        if self.ending.is_some() && plain(name) == self.last {
            return 0.85;
        }
        if self.ending.is_none() && (stem == self.text || plain(stem) == self.last) {
            return match (self.looks_like_code, stem == self.text) {
                (true, true) => 0.7,
                (true, false) => 0.6,
                // A short word is more likely one of the language than a name.
                (false, _) => 0.25 * weight(&self.text),
            };
        }
        // `Cart.total` names the file `cart.py` and something in it.
        0.0
    }
}

fn mentions(task: &str) -> Vec<Mention> {
    let is_part =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':' | '\\' | '@' | '+');
    let mut words: Vec<&str> = task
        .split(|c: char| !is_part(c))
        .map(|word| word.trim_matches(['.', ':', '-', '/', '\\', '@', '+']))
        .filter(|word| word.len() > 1 && word.len() < 300)
        .collect();
    // A test runner's `file::name` and a compiler's `file:12:3` name a file, too.
    let cut: Vec<&str> = words
        .iter()
        .filter_map(|word| word.split(':').next().filter(|cut| cut != word && cut.contains('.')))
        .collect();
    words.extend(cut);
    // Files whose names are not ASCII.
    words.extend(task.split_whitespace().filter(|word| !word.is_ascii() && word.contains('.')));
    let mut seen = std::collections::HashSet::new();
    words.retain(|word| seen.insert(*word));
    words.truncate(MOST_WORDS);
    words.iter().flat_map(|word| readings(word)).collect()
}

/// A word as a path, and, if it has dots or colons, as a module.
fn readings(word: &str) -> Vec<Mention> {
    let as_path = word.replace('\\', "/");
    let mut readings = vec![mention(word, as_path.trim_start_matches("./"))];
    let modules = word.replace("::", "/").replace('.', "/");
    if modules != word && !word.contains('/') && modules.split('/').all(|part| !part.is_empty()) {
        readings.push(mention(word, modules.trim_start_matches("crate/")));
    }
    readings
}

fn mention(text: &str, path: &str) -> Mention {
    let file_name = path.rsplit('/').next().unwrap_or(path);
    let (stem, ending) = match file_name.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() && ending.len() <= 6 => (stem, Some(ending.to_owned())),
        Some(_) | None => (file_name, None),
    };
    let has_hump = text.chars().zip(text.chars().skip(1)).any(|(a, b)| a.is_lowercase() && b.is_uppercase());
    Mention {
        text: text.into(),
        path: path.into(),
        file_name: file_name.into(),
        last: plain(file_name),
        stem: plain(stem),
        looks_like_code: has_hump
            || text.contains(['_', '.', '/', ':', '-'])
            || text.chars().any(|c| c.is_ascii_digit()),
        ending,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(task: &str) -> Option<&'static str> {
        const PATHS: &[&str] =
            &["src/shop/cart.py", "src/shop/user_store.py", "tests/cart_test.py", "README.md", "src/main.rs"];
        let paths: Vec<PathBuf> = PATHS.iter().map(PathBuf::from).collect();
        let found = named(task, &paths);
        let mut best: Vec<_> = found.into_iter().collect();
        best.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        best.first().map(|(at, _)| PATHS[*at])
    }

    #[test]
    fn files_are_named_in_many_ways() {
        for (task, expected) in [
            ("fix src/shop/cart.py please", Some("src/shop/cart.py")),
            ("fix ./src/shop/cart.py:12:4", Some("src/shop/cart.py")),
            ("in cart.py stimmt die Summe nicht", Some("src/shop/cart.py")),
            ("在cart.py中修复总和", Some("src/shop/cart.py")),
            ("CART.PY crashes", Some("src/shop/cart.py")),
            ("shop/cart is wrong", Some("src/shop/cart.py")),
            ("the module shop.cart is wrong", Some("src/shop/cart.py")),
            ("UserStore loses users", Some("src/shop/user_store.py")),
            ("user-store.py loses users", Some("src/shop/user_store.py")),
            ("usr_store.py loses users", Some("src/shop/user_store.py")),
            ("tests/cart_test.py::test_total fails", Some("tests/cart_test.py")),
            ("the cart is wrong", Some("src/shop/cart.py")),
            ("update the readme", Some("README.md")),
            ("make it faster", None),
        ] {
            assert_eq!(best(task), expected, "{task}");
        }
    }
}
