//! Commands that a person or a project defines: `/NAME arguments` in place of a task.

use gimlet_runtime::knowledge::{Knowledge, off};

use crate::exit::UsageError;

/// Where a command is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    /// In a session, where a word behind a slash is always a command.
    Session,
    /// In a shell, where it may be the beginning of a task.
    Shell,
}

/// The task that a line stands for; none where it is no command.
pub(crate) fn called(line: &str, known: &Knowledge, at: At) -> Result<Option<String>, UsageError> {
    let line = line.trim();
    let Some(typed) = line.strip_prefix('/') else { return Ok(None) };
    let name = typed.split_whitespace().next().unwrap_or_default();
    let Some(command) = known.command(name) else {
        let far = if name.chars().count() < 6 { 1 } else { 2 };
        let mut known = known.commands.iter();
        let near = known.find(|known| strsim::damerau_levenshtein(&known.name, name) <= far);
        let unknown = || UsageError::new(format!("there is no command /{name}"));
        return match (at, near) {
            (_, Some(near)) => Err(unknown().hint(format!("did you mean /{}?", near.name))),
            (At::Session, None) => Err(unknown().hint("see /help")),
            (At::Shell, None) => Ok(None),
        };
    };
    if let Some((why, hint)) = off(command.standpoint, &command.path) {
        return Err(UsageError::new(format!("the command /{name} is off: {why}")).hint(hint));
    }
    Ok(Some(command.task(&typed[name.len()..])))
}
