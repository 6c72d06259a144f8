//! Skills: folders with a `SKILL.md` that says how to do a kind of work, and files beside it. The model is told their names
//! and a line each; it reads the rest when it needs it.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use gimlet::digest::digest;
use gimlet::paths::PathRules;
use gimlet_config::{CodeFile, Settings, read_inside};

use super::document::{Document, Owner, Shelf, Standpoint, is_name};
use crate::text::clip;

/// The file that makes a folder a skill.
pub(super) const FILE: &str = "SKILL.md";
/// Folders of a project that hold skills, the first of a name counts.
const PROJECT_FOLDERS: [&str; 3] = [".gimlet/skills", ".agents/skills", ".claude/skills"];
/// Most files of a skill, and how deep they may lie.
const MOST_FILES: usize = 100;
const DEEPEST: usize = 4;
/// Characters for the list of skills in a prompt: where the window is not known, least, and most.
const USUAL_CHARS: usize = 2_000;
const LEAST_CHARS: usize = 300;
const MOST_CHARS: usize = 6_000;

/// A skill.
#[derive(Debug, Clone)]
pub struct Skill {
    /// What it is called.
    pub name: String,
    /// What it is for, in a line.
    pub description: String,
    /// Its `SKILL.md`.
    pub path: PathBuf,
    /// Whether it may be used.
    pub standpoint: Standpoint,
    /// What `SKILL.md` says behind its front matter.
    pub body: String,
    /// The folder that no link may lead out of.
    pub(super) base: PathBuf,
    /// The files beside `SKILL.md` as they were trusted; none for the user's own, which may be as they are.
    pub(super) pinned: Option<Vec<CodeFile>>,
}

impl Skill {
    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }
}

/// All skills, and what is wrong with others.
pub(super) fn find(settings: &Settings, warnings: &mut Vec<String>) -> Vec<Skill> {
    let mut skills: Vec<Skill> = Vec::new();
    for shelf in shelves(settings) {
        for folder in shelf.entries(warnings) {
            let path = folder.join(FILE);
            let Some(document) = shelf.read(settings, &path, warnings) else { continue };
            let Some(skill) = skill(settings, &shelf, document, warnings) else { continue };
            if skills.iter().all(|known| known.name != skill.name) {
                skills.push(skill);
            }
        }
    }
    skills.sort_by(|a, b| a.name.cmp(&b.name));
    skills
}

fn shelves(settings: &Settings) -> Vec<Shelf<'_>> {
    let own = settings.process().home().map(|home| Shelf {
        base: home.path(),
        folder: home.path().join("skills"),
        owner: Owner::User,
    });
    let root = &settings.root;
    let project = PROJECT_FOLDERS.iter();
    let project = project.map(|name| Shelf { base: root, folder: root.join(name), owner: Owner::Project });
    own.into_iter().chain(project).collect()
}

fn skill(
    settings: &Settings,
    shelf: &Shelf<'_>,
    document: Document,
    warnings: &mut Vec<String>,
) -> Option<Skill> {
    let folder = document.path.parent()?;
    let folder_name = folder.file_name()?.to_string_lossy().into_owned();
    let name = document.fields.get("name").filter(|name| is_name(name)).cloned().unwrap_or(folder_name);
    if !is_name(&name) {
        let path = document.path.display();
        warnings.push(format!("{path} is not used: a skill's name has letters, digits, `-` and `_` only"));
        return None;
    }
    let mut standpoint = document.standpoint;
    let pinned = match shelf.owner {
        Owner::User => None,
        Owner::Project => Some(settings.trust().code(&settings.root, &document.path).to_vec()),
    };
    if let Some(pinned) = pinned.as_ref().filter(|_| standpoint == Standpoint::Trusted) {
        // What lies beside it is part of what was agreed to.
        if code_beside(&settings.root, &document.path).ok().as_ref() != Some(pinned) {
            standpoint = Standpoint::Changed;
        }
    }
    Some(Skill {
        description: document.description(),
        name,
        standpoint,
        base: shelf.base.to_owned(),
        pinned,
        path: document.path,
        body: document.body,
    })
}

/// The `SKILL.md` files of a project.
pub(super) fn files(root: &Path) -> Vec<PathBuf> {
    let shelves = PROJECT_FOLDERS.iter().map(|name| Shelf {
        base: root,
        folder: root.join(name),
        owner: Owner::Project,
    });
    let folders = shelves.flat_map(|shelf| shelf.entries(&mut Vec::new()));
    folders
        .map(|folder| folder.join(FILE))
        .filter(|path| path.symlink_metadata().is_ok_and(|kind| kind.is_file()))
        .collect()
}

/// The files beside a `SKILL.md`, from its folder on, sorted. Links, hidden names and what may hold secrets are left out.
pub(super) fn files_beside(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = VecDeque::from([(folder.to_owned(), 1)]);
    while let Some((at, depth)) = folders.pop_front() {
        let Ok(entries) = std::fs::read_dir(&at) else { continue };
        let mut entries: Vec<_> = entries.flatten().collect();
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let (path, name) = (entry.path(), entry.file_name());
            let is_hidden = name.to_string_lossy().starts_with('.');
            let (Ok(kind), Ok(below)) = (entry.file_type(), path.strip_prefix(folder)) else { continue };
            if is_hidden || PathRules::shipped().is_secret(below) || below == Path::new(FILE) {
                continue;
            }
            if kind.is_dir() && depth < DEEPEST {
                folders.push_back((path, depth + 1));
            } else if kind.is_file() && found.len() < MOST_FILES {
                found.push(below.to_owned());
            }
        }
    }
    found.sort();
    found
}

/// The files beside a project's `SKILL.md` as they are now.
pub(super) fn code_beside(root: &Path, file: &Path) -> anyhow::Result<Vec<CodeFile>> {
    let folder = file.parent().unwrap_or(file);
    let mut found = Vec::new();
    for name in files_beside(folder) {
        let path = folder.join(name);
        if let Some(bytes) = read_inside(root, &path)? {
            let path = path.strip_prefix(root).unwrap_or(&path).to_owned();
            found.push(CodeFile { path, sha256: digest(&bytes) });
        }
    }
    found.sort();
    Ok(found)
}

/// The list of skills as a model reads it before its task; none where there are none. Lines are shortened, then left
/// out, where the window is small.
pub(super) fn prompt(skills: &[Skill], window: Option<u32>) -> Option<String> {
    let on: Vec<&Skill> = skills.iter().filter(|skill| skill.standpoint.is_on()).collect();
    if on.is_empty() {
        return None;
    }
    let room = match window {
        Some(tokens) => usize::try_from(tokens / 16).unwrap_or(MOST_CHARS).clamp(LEAST_CHARS, MOST_CHARS),
        None => USUAL_CHARS,
    };
    let lines = |width: usize| -> Vec<String> {
        let about = |skill: &&Skill| match width {
            0 => format!("- {}", skill.name),
            width => format!("- {}: {}", skill.name, clip(&skill.description, width)),
        };
        on.iter().map(about).collect()
    };
    let fits = |lines: &Vec<String>| lines.iter().map(|line| line.chars().count() + 1).sum::<usize>() <= room;
    let mut lines = [240, 100, 40].into_iter().map(lines).find(fits).unwrap_or_else(|| lines(0));
    let mut chars = 0;
    let kept = lines.iter().take_while(|line| {
        chars += line.chars().count() + 1;
        chars <= room
    });
    let kept = kept.count();
    if kept < lines.len() {
        let more = lines.len() - kept;
        lines.truncate(kept);
        lines.push(format!("[{more} more; read_skill with an empty name lists all]"));
    }
    Some(format!(
        "Skills are notes on how to do a kind of work here. Before work that one is about, read it with read_skill.\n{}",
        lines.join("\n")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(name: &str) -> Skill {
        Skill {
            name: name.into(),
            description: "How to do something that takes quite a few words to tell of. ".repeat(3),
            path: PathBuf::new(),
            standpoint: Standpoint::Yours,
            body: String::new(),
            base: PathBuf::new(),
            pinned: None,
        }
    }

    #[test]
    fn a_small_window_has_shorter_lines_and_then_fewer() {
        let few: Vec<Skill> = ["a", "b", "c"].map(skill).into();
        let many: Vec<Skill> = (0..100).map(|n| skill(&format!("skill-{n:03}"))).collect();
        let chars = |skills: &[Skill], window| prompt(skills, Some(window)).unwrap().chars().count();
        assert!(chars(&few, 32_768) > chars(&few, 4_096));
        let text = prompt(&many, Some(4_096)).unwrap();
        assert!(text.chars().count() < 500, "{text}");
        assert!(text.ends_with("more; read_skill with an empty name lists all]"), "{text}");
        assert_eq!(prompt(&[], None), None);
        let off = Skill { standpoint: Standpoint::NotTrusted, ..skill("off") };
        assert_eq!(prompt(&[off], None), None);
    }
}
