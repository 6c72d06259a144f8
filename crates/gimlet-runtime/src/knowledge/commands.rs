//! Commands of a person's or a project's own: `commands/NAME.md` is a task with places for arguments, called by `/NAME`.

use std::path::{Path, PathBuf};

use gimlet_config::Settings;

use super::document::{Owner, Shelf, Standpoint, is_name};

/// The folder of a project that holds commands.
const PROJECT_FOLDER: &str = ".gimlet/commands";

/// A command.
#[derive(Debug, Clone)]
pub struct Command {
    /// What it is called, without the slash.
    pub name: String,
    /// What it does, in a line.
    pub description: String,
    /// What may follow it, as its author says.
    pub arguments: String,
    /// Its file.
    pub path: PathBuf,
    /// Whether it may be used.
    pub standpoint: Standpoint,
    body: String,
}

impl Command {
    /// The task, with the arguments in their places: `$ARGUMENTS` is all of them, `$1` to `$9` are single ones. A task
    /// without a place for arguments has them at its end.
    pub fn task(&self, arguments: &str) -> String {
        let arguments = arguments.trim();
        let words = words(arguments);
        let mut out = String::new();
        let mut rest = self.body.trim();
        let mut placed = false;
        while let Some(at) = rest.find('$') {
            out.push_str(&rest[..at]);
            let behind = &rest[at + 1..];
            let number = behind.chars().next().and_then(|c| c.to_digit(10)).filter(|digit| *digit > 0);
            let is_longer = behind.chars().nth(1).is_some_and(|c| c.is_ascii_digit());
            if let Some(after) = behind.strip_prefix("ARGUMENTS") {
                out.push_str(arguments);
                (rest, placed) = (after, true);
            } else if let Some(number) = number.filter(|_| !is_longer) {
                out.push_str(words.get(number as usize - 1).map_or("", String::as_str));
                (rest, placed) = (&behind[1..], true);
            } else {
                out.push('$');
                rest = behind;
            }
        }
        out.push_str(rest);
        if !placed && !arguments.is_empty() {
            out.push_str("\n\n");
            out.push_str(arguments);
        }
        out
    }
}

/// The words of a line, where quotes keep several together.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut letters = line.chars();
    while let Some(c) = letters.next() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\\', Some('"')) => word.get_or_insert_default().extend(letters.next()),
            (c, Some(_)) => word.get_or_insert_default().push(c),
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, None) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Words as one line that [`Command::task`] takes apart again.
pub fn joined<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let quoted = words.into_iter().map(|word| {
        let is_plain =
            !word.is_empty() && !word.contains(|c: char| c.is_whitespace() || matches!(c, '"' | '\''));
        match is_plain {
            true => word.to_owned(),
            false => format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\"")),
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// All commands, and what is wrong with others.
pub(super) fn find(settings: &Settings, warnings: &mut Vec<String>) -> Vec<Command> {
    let own = settings.process().home().map(|home| Shelf {
        base: home.path(),
        folder: home.path().join("commands"),
        owner: Owner::User,
    });
    let mut commands: Vec<Command> = Vec::new();
    for shelf in own.into_iter().chain([shelf(&settings.root)]) {
        for path in shelf.entries(warnings) {
            let Some(name) = name_of(&path) else { continue };
            let Some(document) = shelf.read(settings, &path, warnings) else { continue };
            if commands.iter().any(|known| known.name == name) {
                warnings
                    .push(format!("{} is not used: you have a command /{name} of your own", path.display()));
                continue;
            }
            commands.push(Command {
                description: document.description(),
                arguments: document.fields.get("argument-hint").cloned().unwrap_or_default(),
                name,
                path,
                standpoint: document.standpoint,
                body: document.body,
            });
        }
    }
    commands.sort_by(|a, b| a.name.cmp(&b.name));
    commands
}

fn shelf(root: &Path) -> Shelf<'_> {
    Shelf { base: root, folder: root.join(PROJECT_FOLDER), owner: Owner::Project }
}

/// The files of a project's commands.
pub(super) fn files(root: &Path) -> Vec<PathBuf> {
    shelf(root).entries(&mut Vec::new()).into_iter().filter(|path| name_of(path).is_some()).collect()
}

fn name_of(path: &Path) -> Option<String> {
    let is_markdown = path.extension().is_some_and(|extension| extension == "md");
    let name = path.file_stem()?.to_str()?;
    (is_markdown && is_name(name)).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(body: &str, arguments: &str) -> String {
        let command = Command {
            name: "x".into(),
            description: String::new(),
            arguments: String::new(),
            path: PathBuf::new(),
            standpoint: Standpoint::Yours,
            body: body.into(),
        };
        command.task(arguments)
    }

    #[test]
    fn arguments_are_put_where_they_belong() {
        for (body, arguments, expected) in [
            ("Fix $1 in $2.", "bug src/a.rs", "Fix bug in src/a.rs."),
            ("Fix $1 in $2.", "'a b' \"c \\\" d\"", "Fix a b in c \" d."),
            ("Fix $1.", "", "Fix ."),
            ("Do: $ARGUMENTS!", "$1 \"x  y\"", "Do: $1 \"x  y\"!"),
            ("Costs $5 or $10 or $x", "", "Costs  or $10 or $x"),
            ("No place.", "more words", "No place.\n\nmore words"),
            ("No place.", " ", "No place."),
        ] {
            assert_eq!(task(body, arguments), expected, "{body} {arguments}");
        }
    }

    #[test]
    fn joined_words_are_taken_apart_again() {
        let all = ["a", "b c", "", "d\"e", "f'g", "h\\i"];
        assert_eq!(words(&joined(all)), all);
    }
}
