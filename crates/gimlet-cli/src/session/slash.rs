//! The commands of an interactive session: a word behind a slash, and what it is for.

/// A command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slash {
    Help,
    Model,
    Mode,
    Tools,
    Skills,
    Approve,
    Deny,
    Resume,
    Plan,
    Diff,
    Undo,
    Compact,
    State,
    Cost,
    Context,
    Copy,
    Save,
    Clear,
    Quit,
}

/// Every command: its name, what follows it, and what it does.
pub(super) const ALL: &[(&str, Slash, &str, &str)] = &[
    ("/help", Slash::Help, "", "these commands"),
    ("/model", Slash::Model, "[ID]", "the model; with an id, another one from here on"),
    (
        "/mode",
        Slash::Mode,
        "[MODE]",
        "the approval mode: ask, edits, auto, plan, never or all; Shift-Tab switches",
    ),
    ("/tools", Slash::Tools, "", "what the agent can do"),
    ("/skills", Slash::Skills, "", "the skills that the agent can read"),
    ("/approve", Slash::Approve, "[session|always]", "say yes to the open question and carry on"),
    ("/deny", Slash::Deny, "[TEXT]", "say no to the open question, with what to do instead"),
    ("/resume", Slash::Resume, "", "carry on what was interrupted"),
    ("/plan", Slash::Plan, "[now]", "the plan; with now, a new one before the next step"),
    ("/diff", Slash::Diff, "", "what has changed in the files"),
    ("/undo", Slash::Undo, "[PATCH]", "take back what patches did, all of them or one"),
    ("/compact", Slash::Compact, "", "let old results give way and sum old steps up, to make room"),
    ("/state", Slash::State, "", "where the conversation stands"),
    ("/cost", Slash::Cost, "", "steps, tokens and seconds so far"),
    ("/context", Slash::Context, "", "what fills the model's window"),
    ("/copy", Slash::Copy, "", "put the last answer into the clipboard, where the terminal allows it"),
    ("/save", Slash::Save, "[FILE]", "write the conversation as Markdown; so does /export"),
    ("/export", Slash::Save, "[FILE]", "the same as /save"),
    ("/clear", Slash::Clear, "", "begin a new conversation"),
    ("/quit", Slash::Quit, "", "end; so do quit, exit, q and Ctrl-D"),
];

/// What a line is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// Nothing.
    Empty,
    /// The end of the session.
    Quit,
    /// A command and what follows it.
    Command(Slash, &'a str),
    /// Looks like a command, and may be one of the person's or the project's own.
    Custom(&'a str),
    /// A command of the person's own.
    Shell(&'a str),
    /// Something to say to the model.
    Task(&'a str),
}

/// Reads a line.
pub(super) fn read(line: &str) -> Line<'_> {
    let line = line.trim();
    match line {
        "" => return Line::Empty,
        "quit" | "exit" | "q" => return Line::Quit,
        _ => {}
    }
    if let Some(command) = line.strip_prefix('!').map(str::trim).filter(|command| !command.is_empty()) {
        return Line::Shell(command);
    }
    // A path such as /etc/hosts begins with a slash, too.
    let word = line.split_whitespace().next().unwrap_or_default();
    if !line.starts_with('/') || word[1..].contains('/') {
        return Line::Task(line);
    }
    match ALL.iter().find(|(name, ..)| *name == word) {
        Some((_, Slash::Quit, ..)) => Line::Quit,
        Some((_, command, ..)) => Line::Command(*command, line[word.len()..].trim()),
        None => Line::Custom(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_apart() {
        assert_eq!(read("  "), Line::Empty);
        assert_eq!(read("q"), Line::Quit);
        assert_eq!(read("/quit"), Line::Quit);
        assert_eq!(read("/deny use rg "), Line::Command(Slash::Deny, "use rg"));
        assert_eq!(read("/nope x"), Line::Custom("/nope x"));
        assert_eq!(read("/etc/hosts is wrong"), Line::Task("/etc/hosts is wrong"));
        assert_eq!(read("! git status"), Line::Shell("git status"));
        assert_eq!(read("!"), Line::Task("!"));
        assert_eq!(read("quit smoking"), Line::Task("quit smoking"));
    }
}
