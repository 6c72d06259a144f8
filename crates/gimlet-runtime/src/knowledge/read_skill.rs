//! `read_skill`: the text of a skill, or of a file beside it.

use std::path::{Component, Path};
use std::sync::Arc;

use gimlet::digest::digest;
use gimlet::effect::Effect;
use gimlet::tool::{ToolCx, ToolError, TypedTool};
use gimlet_config::read_inside;
use gimlet_tools::code;
use gimlet_tools::read_file::Page;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::skills::{FILE, Skill, files_beside};

/// The tool.
pub(super) struct ReadSkill {
    /// The skills that may be used.
    pub(super) skills: Arc<Vec<Skill>>,
    /// The project's root, to name folders as tools do.
    pub(super) root: std::path::PathBuf,
    /// What fits one result.
    pub(super) page: Page,
}

/// Read a skill: notes on how to do a kind of work. Leave name empty for a list of all skills.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// Name of the skill.
    #[serde(default)]
    name: String,
    /// A file of the skill, as files lists it. Leave out to read the skill itself.
    #[serde(default)]
    file: String,
    /// First line to read, counted from 1.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    start_line: usize,
}

fn one() -> usize {
    1
}

/// The result.
#[derive(Debug, Default, Serialize)]
pub(super) struct Output {
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    /// Where its files are, for commands; none for what is outside of the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    file: String,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_line: Option<usize>,
    /// The files beside it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<String>,
}

impl TypedTool for ReadSkill {
    const NAME: &'static str = super::SKILL_TOOL;
    type Input = Input;
    type Output = Output;

    fn effects(&self, _input: &Input) -> Result<Vec<Effect>, ToolError> {
        Ok(Vec::new())
    }

    async fn run(&self, input: Input, _cx: &ToolCx) -> Result<Output, ToolError> {
        let name = input.name.trim();
        if name.is_empty() {
            let lines = self.skills.iter().map(|skill| format!("{}: {}", skill.name, skill.description));
            return Ok(Output { text: lines.collect::<Vec<_>>().join("\n"), ..Output::default() });
        }
        let skill = self.skills.iter().find(|skill| skill.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.skills.iter().map(|skill| skill.name.as_str()).collect();
            ToolError::failed(code::FILE_NOT_FOUND, format!("there is no skill {name:?}"))
                .with("skills", names)
        })?;
        let file = input.file.trim();
        let is_skill = file.is_empty() || file == FILE;
        let text = if is_skill { skill.body.clone() } else { beside(skill, &self.root, Path::new(file))? };
        let (text, next_line) = page(&text, input.start_line, self.page);
        let folder = skill.folder().strip_prefix(&self.root).ok().map(|path| path.display().to_string());
        let files = match is_skill {
            true => files_beside(skill.folder()).iter().map(|path| path.display().to_string()).collect(),
            false => Vec::new(),
        };
        let file = if is_skill { String::new() } else { file.to_owned() };
        Ok(Output { name: skill.name.clone(), folder, file, text, next_line, files })
    }
}

/// A file beside a skill. A project's is as it was when the skill was trusted, or it is not read.
fn beside(skill: &Skill, root: &Path, file: &Path) -> Result<String, ToolError> {
    let named = file.display();
    let failed = |why: String| ToolError::failed(code::FILE_NOT_FOUND, why);
    let is_plain = file.components().all(|part| matches!(part, Component::Normal(_)));
    if !is_plain || !files_beside(skill.folder()).iter().any(|known| known == file) {
        return Err(failed(format!("the skill {} has no file {named}", skill.name)));
    }
    let path = skill.folder().join(file);
    let bytes = read_inside(&skill.base, &path).map_err(|error| failed(format!("{error:#}")))?;
    let bytes = bytes.ok_or_else(|| failed(format!("the skill {} has no file {named}", skill.name)))?;
    if let Some(pinned) = &skill.pinned {
        let (name, sha256) = (path.strip_prefix(root).unwrap_or(&path), digest(&bytes));
        if !pinned.iter().any(|known| known.path == name && known.sha256 == sha256) {
            return Err(ToolError::failed(
                gimlet::tool::code::DENIED,
                format!(
                    "{named} has changed since the person trusted the skill; only they can trust it again"
                ),
            ));
        }
    }
    String::from_utf8(bytes).map_err(|_| failed(format!("{named} is not text")))
}

/// Whole lines from one on, as many as fit a page and at least one, and where to go on.
fn page(text: &str, start: usize, page: Page) -> (String, Option<usize>) {
    let mut chars = 0;
    let mut kept: Vec<&str> = Vec::new();
    for line in text.lines().skip(start.saturating_sub(1)) {
        chars += line.chars().count() + 1;
        if !kept.is_empty() && (chars > page.chars || kept.len() >= page.lines) {
            return (kept.join("\n"), Some(start.max(1) + kept.len()));
        }
        kept.push(line);
    }
    (kept.join("\n"), None)
}
