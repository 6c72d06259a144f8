//! What the index keeps of one file: hashes of its terms, of the names it defines and of the names it uses.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::path::Path;

use crate::language::Language;
use crate::scan;
use crate::tags::tags;
use crate::words::{each_term, each_word, hash, name_hash};

/// Larger files are known by their path only.
pub(crate) const MOST_BYTES: u64 = 256 * 1024;
/// Bits of a packed term that hold its frequency; the others are its hash.
const FREQUENCY_BITS: u32 = 6;
const MOST_FREQUENT: u32 = (1 << FREQUENCY_BITS) - 1;
const MOST_TERMS: usize = 4096;
const MOST_NAMES: usize = 2048;
/// How much more a term counts in a path and in the name of a definition than in the text.
const PATH_WEIGHT: u32 = 6;
const DEFINITION_WEIGHT: u32 = 3;
/// A line this long was written by a program.
const LONG_LINE: usize = 5_000;

/// How a repository is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Every source file is parsed.
    Parsed,
    /// Definitions are guessed from keywords, because parsing everything would take too long.
    Scanned,
}

/// What kind of file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Source code in a language that is parsed.
    Code,
    /// Other text.
    Text,
    /// Known by its path only: binary, too large, generated, vendored or unreadable.
    PathOnly,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) class: Class,
    /// Hash of the content.
    pub(crate) content: u64,
    /// Number of terms, with repetitions.
    pub(crate) length: u32,
    /// Packed terms, sorted.
    pub(crate) terms: Vec<u32>,
    /// Names it defines, sorted.
    pub(crate) definitions: Vec<u32>,
    /// Names it uses, sorted.
    pub(crate) references: Vec<u32>,
}

/// Maps that a thread uses for one file after another.
#[derive(Default)]
pub(crate) struct Scratch {
    words: HashMap<u64, (u32, usize, usize), BuildHasherDefault<Identity>>,
    terms: HashMap<u64, u32, BuildHasherDefault<Identity>>,
    text: String,
}

/// The keys are hashes already.
#[derive(Default)]
pub(crate) struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        self.0 = hash(bytes);
    }
    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
    fn write_u32(&mut self, key: u32) {
        self.0 = u64::from(key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// The key of a term without its frequency.
pub(crate) fn term_key(term: &str) -> u32 {
    name_hash(term) >> FREQUENCY_BITS
}

/// Splits a packed term into key and frequency.
pub(crate) fn unpack(term: u32) -> (u32, u32) {
    (term >> FREQUENCY_BITS, term & MOST_FREQUENT)
}

impl Record {
    /// A file of which only the path is known.
    pub(crate) fn path_only(path: &Path, scratch: &mut Scratch) -> Self {
        scratch.terms.clear();
        let length = add_path(path, scratch);
        Record {
            class: Class::PathOnly,
            content: 0,
            length,
            terms: packed(scratch),
            definitions: Vec::new(),
            references: Vec::new(),
        }
    }

    /// Reads a file's content.
    pub(crate) fn of(path: &Path, bytes: &[u8], depth: Depth, scratch: &mut Scratch) -> Self {
        let content = hash(bytes);
        if is_binary(bytes) || is_generated(path) || has_long_line(bytes) {
            return Record { content, ..Record::path_only(path, scratch) };
        }
        let text = String::from_utf8_lossy(bytes);
        let language = Language::of(path);
        scratch.words.clear();
        scratch.terms.clear();
        let mut length = add_path(path, scratch);
        let tagged = match depth {
            Depth::Parsed => language.and_then(|language| tags(language, &text)),
            Depth::Scanned => None,
        };
        let mut found = Vec::new();
        let words = &mut scratch.words;
        let guess = language.is_some() && tagged.is_none();
        each_word(&text, |word, at| {
            if let Some(name) = guess.then(|| scan::defined(&text, word, at + word.len())).flatten() {
                found.push(name);
            }
            words.entry(hash(word.as_bytes())).or_insert((0, at, word.len())).0 += 1;
        });
        for (count, at, bytes) in scratch.words.values() {
            let word = text.get(*at..*at + *bytes).unwrap_or_default();
            length = length.saturating_add(*count);
            each_term(word, &mut scratch.text, |term| {
                *scratch.terms.entry(u64::from(term_key(term))).or_default() += count;
            });
        }
        let (names, uses): (Vec<&str>, Vec<u32>) = match &tagged {
            Some(tags) => (
                tags.definitions.clone(),
                tags.references.iter().filter(|name| is_name(name)).map(|name| name_hash(name)).collect(),
            ),
            None if guess => {
                let words = scratch.words.values();
                let words = words.filter_map(|(_, at, bytes)| text.get(*at..*at + *bytes));
                let uses = words.filter(|word| is_name(word)).map(name_hash).collect();
                (found, uses)
            }
            None => (Vec::new(), Vec::new()),
        };
        for name in &names {
            each_term(name, &mut scratch.text, |term| {
                *scratch.terms.entry(u64::from(term_key(term))).or_default() += DEFINITION_WEIGHT;
            });
        }
        let definitions =
            unique(names.iter().filter(|name| is_name(name)).map(|name| name_hash(name)).collect());
        Record {
            class: if language.is_some() { Class::Code } else { Class::Text },
            content,
            length,
            terms: packed(scratch),
            definitions,
            references: unique(uses),
        }
    }
}

/// Shorter names are everywhere and lead nowhere.
fn is_name(name: &str) -> bool {
    name.len() >= 3 && !name.starts_with(|c: char| c.is_ascii_digit()) && name.len() <= 80
}

fn add_path(path: &Path, scratch: &mut Scratch) -> u32 {
    let shown = path.to_string_lossy();
    let mut count = 0;
    each_word(&shown, |word, _| {
        count += 1;
        each_term(word, &mut scratch.text, |term| {
            *scratch.terms.entry(u64::from(term_key(term))).or_default() += PATH_WEIGHT;
        });
    });
    count
}

fn packed(scratch: &Scratch) -> Vec<u32> {
    let pack = |(key, count): (&u64, &u32)| {
        let key = u32::try_from(*key).unwrap_or_default();
        (key << FREQUENCY_BITS) | (*count).clamp(1, MOST_FREQUENT)
    };
    let mut terms: Vec<u32> = scratch.terms.iter().map(pack).collect();
    terms.sort_unstable();
    terms.truncate(MOST_TERMS);
    terms
}

fn unique(mut names: Vec<u32>) -> Vec<u32> {
    names.sort_unstable();
    names.dedup();
    names.truncate(MOST_NAMES);
    names
}

fn is_binary(bytes: &[u8]) -> bool {
    bytes.iter().take(8192).any(|byte| *byte == 0)
}

fn has_long_line(bytes: &[u8]) -> bool {
    bytes.len() > LONG_LINE && bytes.split(|byte| *byte == b'\n').any(|line| line.len() > LONG_LINE)
}

/// Whether a file was written by a program or by another project, by its path.
pub(crate) fn is_generated(path: &Path) -> bool {
    const FOLDERS: &[&str] = &[
        "vendor",
        "third_party",
        "node_modules",
        "bower_components",
        "site-packages",
        "__pycache__",
        ".venv",
        "venv",
    ];
    const NAMES: &[&str] = &[
        "package-lock.json",
        "yarn.lock",
        "pnpm-lock.yaml",
        "go.sum",
        "Cargo.lock",
        "poetry.lock",
        "uv.lock",
        "Gemfile.lock",
        "composer.lock",
    ];
    const ENDINGS: &[&str] =
        &[".min.js", ".min.css", ".map", ".svg", ".lock", ".snap", "_pb2.py", ".pb.go", ".pb.cc", ".pb.h"];
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    NAMES.contains(&name.as_ref())
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
        || path.parent().is_some_and(|parent| {
            parent.components().any(|part| FOLDERS.iter().any(|folder| part.as_os_str() == *folder))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(path: &str, bytes: &[u8], depth: Depth) -> Record {
        Record::of(Path::new(path), bytes, depth, &mut Scratch::default())
    }

    fn frequency(record: &Record, term: &str) -> u32 {
        record
            .terms
            .iter()
            .map(|term| unpack(*term))
            .find(|(key, _)| *key == term_key(term))
            .map_or(0, |found| found.1)
    }

    #[test]
    fn names_and_paths_count_more_than_text() {
        let record = record("src/cart.py", b"def total(items):\n    return sum(items)\n", Depth::Parsed);
        assert_eq!(record.class, Class::Code);
        assert_eq!(record.definitions, [name_hash("total")]);
        assert!(record.references.contains(&name_hash("items")));
        assert_eq!(frequency(&record, "cart"), 6);
        assert_eq!(frequency(&record, "total"), 4);
        assert_eq!(frequency(&record, "item"), 2);
    }

    #[test]
    fn scanning_finds_the_same_definitions_in_plain_code() {
        let text = b"class Cart:\n    def total(self):\n        return 1\n";
        assert_eq!(
            record("a.py", text, Depth::Parsed).definitions,
            record("a.py", text, Depth::Scanned).definitions
        );
    }

    #[test]
    fn binary_generated_and_minified_files_are_known_by_path() {
        assert_eq!(record("a.py", b"a\0b", Depth::Parsed).class, Class::PathOnly);
        assert_eq!(record("a.min.js", b"x", Depth::Parsed).class, Class::PathOnly);
        assert_eq!(record("vendor/a.go", b"package a", Depth::Parsed).class, Class::PathOnly);
        assert_eq!(record("a.js", "a;".repeat(10_000).as_bytes(), Depth::Parsed).class, Class::PathOnly);
        let invalid = record("a.py", b"def f\xff\xfe():\n  pass\ndef good(): pass\n", Depth::Parsed);
        assert!(invalid.definitions.contains(&name_hash("good")));
    }
}
