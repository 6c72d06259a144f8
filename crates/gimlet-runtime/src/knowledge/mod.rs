//! What a person and a project keep for agents beside instructions: skills and commands. A project's are off until they
//! are trusted as they are, file by file; the user's own, in the data directory, are on.

mod commands;
mod document;
mod read_skill;
mod skills;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gimlet::tool::{Tool, tool};
use gimlet_config::{CodeFile, Process, Settings, shown};
use gimlet_tools::read_file::Page;

pub use commands::{Command, joined};
pub use document::Standpoint;
pub use skills::Skill;

use crate::mcp;
use read_skill::ReadSkill;

/// The tool that reads skills.
pub const SKILL_TOOL: &str = "read_skill";

/// What is kept for agents.
#[derive(Debug, Default)]
pub struct Knowledge {
    /// Skills by name, those that are off included.
    pub skills: Vec<Skill>,
    /// Commands by name, those that are off included.
    pub commands: Vec<Command>,
    /// What the user should know.
    pub warnings: Vec<String>,
    root: PathBuf,
}

impl Knowledge {
    /// What there is for a project.
    pub fn of(settings: &Settings) -> Knowledge {
        let mut warnings = Vec::new();
        let skills = skills::find(settings, &mut warnings);
        let commands = commands::find(settings, &mut warnings);
        Knowledge { skills, commands, warnings, root: settings.root.clone() }
    }

    /// The list of skills as a model with such a window reads it; none where there are none.
    pub fn prompt(&self, window: Option<u32>) -> Option<String> {
        skills::prompt(&self.skills, window)
    }

    /// The tool that reads skills; none where there are none.
    pub(crate) fn tool(&self, page: Page) -> Option<Arc<dyn Tool>> {
        let on: Vec<Skill> = self.skills.iter().filter(|skill| skill.standpoint.is_on()).cloned().collect();
        if on.is_empty() {
            return None;
        }
        Some(tool(ReadSkill { skills: Arc::new(on), root: self.root.clone(), page }))
    }

    /// The command of a name, without its slash, whether it may be used or not.
    pub fn command(&self, name: &str) -> Option<&Command> {
        self.commands.iter().find(|command| command.name == name)
    }

    /// What is off, in a line for the person; none where nothing is.
    pub fn off(&self) -> Option<String> {
        let skills = self.skills.iter().filter(|skill| !skill.standpoint.is_on()).count();
        let commands = self.commands.iter().filter(|command| !command.standpoint.is_on()).count();
        let counted = |count: usize, what: &str| match count {
            0 => None,
            1 => Some(format!("1 {what}")),
            count => Some(format!("{count} {what}s")),
        };
        let parts: Vec<String> =
            [counted(skills, "skill"), counted(commands, "command")].into_iter().flatten().collect();
        let verb = if skills + commands == 1 { "is" } else { "are" };
        (!parts.is_empty())
            .then(|| format!("{} of this project {verb} off; to use them: gimlet trust", parts.join(" and ")))
    }
}

/// Why something is off, in words, and what to do about it; none where it is on.
pub fn off(standpoint: Standpoint, path: &Path) -> Option<(String, String)> {
    let file = shown(path);
    let why = match standpoint {
        Standpoint::Yours | Standpoint::Trusted => return None,
        Standpoint::NotTrusted => format!("{file} is not trusted"),
        Standpoint::Changed => format!("{file}, or a file beside it, is not as it was trusted"),
    };
    Some((why, format!("read it, then run: gimlet trust {file}")))
}

/// Files of a project that can be trusted, beside its settings: skills and commands.
pub fn trustable(root: &Path) -> Vec<PathBuf> {
    skills::files(root).into_iter().chain(commands::files(root)).collect()
}

/// The files of a project that one of its files makes use of, as they are now: what servers run, and what lies beside a
/// skill.
pub fn code_behind(
    process: &Process,
    root: &Path,
    file: &Path,
    bytes: &[u8],
) -> anyhow::Result<Vec<CodeFile>> {
    match file.file_name().is_some_and(|name| name == skills::FILE) {
        true => skills::code_beside(root, &std::path::absolute(file)?),
        false => mcp::code_behind(process, root, file, bytes),
    }
}
