//! A Markdown file with front matter that a person or a project keeps for agents, and whether it may be used: a person's
//! own may, a project's once it is trusted as it is. Files are found and read without following links.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gimlet_config::{Settings, Standing, leads_through_link, read_inside};

/// Most entries of a folder that are looked at.
const MOST_ENTRIES: usize = 500;

/// Whether a file may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standpoint {
    /// It is the user's own.
    Yours,
    /// It is the project's, and trusted as it is.
    Trusted,
    /// It is the project's, and not trusted.
    NotTrusted,
    /// It is the project's, and different from what was trusted.
    Changed,
}

impl Standpoint {
    /// Whether the file may be used.
    pub fn is_on(self) -> bool {
        match self {
            Standpoint::Yours | Standpoint::Trusted => true,
            Standpoint::NotTrusted | Standpoint::Changed => false,
        }
    }
}

/// A file.
#[derive(Debug, Clone)]
pub(super) struct Document {
    pub(super) path: PathBuf,
    pub(super) standpoint: Standpoint,
    /// What its front matter says.
    pub(super) fields: BTreeMap<String, String>,
    /// Everything behind the front matter.
    pub(super) body: String,
}

impl Document {
    /// Its one line for people and models: what the front matter says, or else its first words.
    pub(super) fn description(&self) -> String {
        let said = self.fields.get("description").map(String::as_str).filter(|text| !text.is_empty());
        let first = || {
            self.body.lines().map(|line| line.trim_start_matches('#').trim()).find(|line| !line.is_empty())
        };
        said.or_else(first).unwrap_or_default().to_owned()
    }
}

/// Where files are kept, and by whom.
pub(super) struct Shelf<'a> {
    /// The folder that no link may lead out of: the data directory, or the project's root.
    pub(super) base: &'a Path,
    /// The folder below it.
    pub(super) folder: PathBuf,
    pub(super) owner: Owner,
}

/// Whose folder it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    User,
    Project,
}

impl Shelf<'_> {
    /// The entries of the folder, sorted. Links are left out, and so is a folder that is reached through one.
    pub(super) fn entries(&self, warnings: &mut Vec<String>) -> Vec<PathBuf> {
        if leads_through_link(self.base, &self.folder) {
            warnings.push(format!("{} is a symbolic link, so it is not used", self.folder.display()));
            return Vec::new();
        }
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return Vec::new() };
        let kept = entries.flatten().take(MOST_ENTRIES);
        let kept = kept.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
        let mut paths: Vec<PathBuf> = kept.map(|entry| entry.path()).collect();
        paths.sort();
        paths
    }

    /// A file, if it is there. What is wrong with it becomes a warning.
    pub(super) fn read(
        &self,
        settings: &Settings,
        path: &Path,
        warnings: &mut Vec<String>,
    ) -> Option<Document> {
        let bytes = match read_inside(self.base, path) {
            Ok(bytes) => bytes?,
            Err(error) => {
                warnings.push(format!("{error:#}"));
                return None;
            }
        };
        let standpoint = match self.owner {
            Owner::User => Standpoint::Yours,
            Owner::Project => match settings.trust().standing(&settings.root, path, &bytes) {
                Standing::Trusted => Standpoint::Trusted,
                Standing::Changed => Standpoint::Changed,
                Standing::Unknown => Standpoint::NotTrusted,
            },
        };
        let Ok(text) = String::from_utf8(bytes) else {
            warnings.push(format!("{} is not text in UTF-8", path.display()));
            return None;
        };
        let (fields, body) = front_matter(&text);
        Some(Document { path: path.to_owned(), standpoint, fields, body: body.to_owned() })
    }
}

/// Whether a word can be the name of a skill or a command.
pub(super) fn is_name(word: &str) -> bool {
    (1..=64).contains(&word.len())
        && word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
        && !word.starts_with('-')
}

/// The fields between two lines `---` at the beginning of a text, and the rest. Of YAML that is as much as people use
/// there: `key: value`, quotes, and texts of several indented lines.
pub(super) fn front_matter(text: &str) -> (BTreeMap<String, String>, &str) {
    let none = (BTreeMap::new(), text);
    let Some(inner) = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n")) else {
        return none;
    };
    let mut at = 0;
    let end = inner.split_inclusive('\n').find_map(|line| {
        let here = at;
        at += line.len();
        (line.trim_end() == "---").then_some((here, at))
    });
    let Some((end, behind)) = end else { return none };
    let mut fields: BTreeMap<String, String> = BTreeMap::new();
    let mut last: Option<String> = None;
    for line in inner[..end].lines() {
        let is_indented = line.starts_with([' ', '\t']);
        match (is_indented, line.split_once(':')) {
            (false, Some((key, value))) => {
                let value = value.trim();
                let value = if is_block(value) { "" } else { unquoted(value) };
                fields.insert(key.trim().to_lowercase(), value.to_owned());
                last = Some(key.trim().to_lowercase());
            }
            (true, _) => {
                if let Some(value) = last.as_ref().and_then(|key| fields.get_mut(key)) {
                    if !value.is_empty() {
                        value.push(' ');
                    }
                    value.push_str(line.trim());
                }
            }
            (false, None) => last = None,
        }
    }
    (fields, inner[behind..].trim_start_matches(['\n', '\r']))
}

fn is_block(value: &str) -> bool {
    matches!(value, ">" | "|" | ">-" | "|-" | ">+" | "|+")
}

fn unquoted(value: &str) -> &str {
    let inside = |quote: char| value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    inside('"').or_else(|| inside('\'')).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_is_read_as_people_write_it() {
        let text = "---\nname: release\ndescription: >-\n  How to release.\n  Step by step.\nargument-hint: \"[VERSION]\"\n---\n\nBody\n---\n";
        let (fields, body) = front_matter(text);
        assert_eq!(fields["name"], "release");
        assert_eq!(fields["description"], "How to release. Step by step.");
        assert_eq!(fields["argument-hint"], "[VERSION]");
        assert_eq!(body, "Body\n---\n");
        for plain in ["Body\n", "---\nnever closed\n", ""] {
            assert_eq!(front_matter(plain), (BTreeMap::new(), plain));
        }
    }

    #[test]
    fn names_are_words() {
        assert!(is_name("release-notes_2"));
        for word in ["", "a/b", "..", "-x", "a b", "é"] {
            assert!(!is_name(word), "{word}");
        }
    }
}
