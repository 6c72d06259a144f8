//! Commands a person types in place of a task. They are announced to the client, and every announced one works.

use std::sync::Arc;

use gimlet_runtime::Session;
use serde_json::{Value, json};

use crate::chat::Chat;
use crate::updates::chunk;
use crate::wire::RpcError;

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Command {
    /// Takes patches back: all, or one.
    Undo(Option<String>),
    /// Makes room in the conversation.
    Compact,
    /// Asks for a plan before the next step.
    Plan,
    /// Lists the tools.
    Tools,
}

/// Every command as the client shows it: name, what it does, what may follow.
const ALL: [(&str, &str, Option<&str>); 4] = [
    ("undo", "Take back the changes to files that this session made", Some("a patch id, or nothing for all")),
    ("compact", "Make room in the conversation", None),
    ("plan", "Ask for a plan before the next step", None),
    ("tools", "List the tools of this session", None),
];

/// The update that announces them.
pub(crate) fn announced() -> Value {
    let command = |(name, description, input): &(&str, &str, Option<&str>)| json!({ "name": name, "description": description, "input": input.map(|hint| json!({ "hint": hint })) });
    let commands: Vec<Value> = ALL.iter().map(command).collect();
    json!({ "sessionUpdate": "available_commands_update", "availableCommands": commands })
}

/// The command that a text is.
pub(crate) fn read(text: &str) -> Option<Command> {
    let mut words = text.trim().strip_prefix('/')?.split_whitespace();
    let command = match (words.next()?, words.next()) {
        ("undo", patch) => Command::Undo(patch.map(str::to_owned)),
        ("compact", None) => Command::Compact,
        ("plan", None) => Command::Plan,
        ("tools", None) => Command::Tools,
        _ => return None,
    };
    words.next().is_none().then_some(command)
}

/// Does what a command says. The client shows what comes of it as words of the agent.
pub(crate) async fn perform(
    chat: &Arc<Chat>,
    session: &Session,
    command: Command,
) -> Result<Value, RpcError> {
    let said = match command {
        Command::Undo(_) | Command::Compact | Command::Plan if session.id().is_none() => {
            "Nothing has been done in this session yet.".to_owned()
        }
        Command::Undo(patch) => {
            let undone = session.undo(patch.as_deref()).await?;
            let lines: Vec<String> = undone
                .outcomes
                .iter()
                .map(|outcome| match &outcome.error {
                    None => format!("Undone {}: {}", outcome.patch, outcome.done()),
                    Some(error) => format!("Not undone {}: {error}", outcome.patch),
                })
                .collect();
            if lines.is_empty() { "There is nothing to undo.".to_owned() } else { lines.join("\n") }
        }
        Command::Compact => match session.make_room().await? {
            true => "The conversation was compacted.".to_owned(),
            false => "There is nothing to compact yet.".to_owned(),
        },
        Command::Plan => {
            session.replan().await?;
            "The next step begins with a plan.".to_owned()
        }
        Command::Tools => {
            let tools = session.tools();
            let lines: Vec<String> = tools
                .iter()
                .map(|tool| {
                    format!("- `{}`: {}", tool.name, tool.description.lines().next().unwrap_or_default())
                })
                .collect();
            lines.join("\n")
        }
    };
    chat.view.update(chunk("agent_message_chunk", &said));
    Ok(json!({ "stopReason": "end_turn" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_announced_command_is_understood() {
        for (name, _, _) in ALL {
            assert!(read(&format!("/{name}")).is_some(), "{name}");
        }
        assert_eq!(read("/undo patch_1"), Some(Command::Undo(Some("patch_1".into()))));
        for task in ["undo", "/home/me is full", "/plan the week", "/", "fix /undo"] {
            assert_eq!(read(task), None, "{task}");
        }
    }
}
