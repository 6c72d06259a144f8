//! Options of a program, written the way a help text writes them: `-n`, `-A <n>`, `--color[=when]`, `-f <path>`.

use crate::shell::Word;

/// Whether an option takes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    /// Only attached, `--color=always`.
    Maybe,
    /// Attached or as the next word.
    Text,
    /// The same, and it names a file to be read.
    Path,
    /// The same, and it is a pattern of names of files to be read.
    Files,
}

/// One known option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flag {
    name: String,
    takes: Takes,
}

impl Flag {
    /// Reads `-A <n>`; an error says what is wrong with the text.
    pub(crate) fn parse(text: &str) -> Result<Flag, String> {
        let (name, takes) = if let Some((name, _)) = text.split_once("[=") {
            (name, Takes::Maybe)
        } else if let Some((name, value)) = text.split_once(' ') {
            match value {
                "<path>" => (name, Takes::Path),
                "<files>" => (name, Takes::Files),
                _ if value.starts_with('<') && value.ends_with('>') => (name, Takes::Text),
                _ => return Err(format!("`{text}` should read like `-A <n>`, `--color[=when]` or `-n`")),
            }
        } else {
            (text, Takes::Nothing)
        };
        if !name.starts_with(['-', '+']) || name.len() < 2 || name.contains('=') {
            return Err(format!("`{text}` is not an option"));
        }
        Ok(Flag { name: name.to_owned(), takes })
    }
}

/// Arguments sorted into options and operands.
#[derive(Debug, Default)]
pub(crate) struct Arguments<'a> {
    /// Names of the options that are on the list.
    pub(crate) known: Vec<&'a str>,
    /// Options that are not.
    pub(crate) unknown: Vec<&'a Word>,
    /// Values of options that name files.
    pub(crate) files: Vec<Word>,
    /// Values of options that are patterns of file names.
    pub(crate) patterns: Vec<Word>,
    /// Everything else.
    pub(crate) operands: Vec<&'a Word>,
    /// How many words come before the first operand, or all of them.
    pub(crate) leading: usize,
}

/// Whether options may come after operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Mixed,
    OptionsFirst,
}

/// Sorts a program's arguments by its list of options.
pub(crate) fn sort<'a>(flags: &'a [Flag], words: &'a [Word], order: Order) -> Arguments<'a> {
    let mut found = Arguments::default();
    let mut index = 0;
    let mut only_operands = false;
    while let Some(word) = words.get(index) {
        index += 1;
        let text = word.text.as_str();
        if only_operands || !(text.starts_with('-') && text.len() > 1) {
            // `+x` is an operand unless it is listed.
            match flags.iter().find(|flag| flag.name == text && !only_operands) {
                Some(flag) => found.known.push(&flag.name),
                None => {
                    if order == Order::OptionsFirst {
                        found.leading = index - 1;
                        found.operands.extend(words.get(index - 1..).unwrap_or_default());
                        return found;
                    }
                    found.operands.push(word);
                }
            }
            continue;
        }
        if text == "--" {
            only_operands = true;
            continue;
        }
        match read(flags, word, words.get(index)) {
            Some(Read { names, value, takes, next }) => {
                found.known.extend(names);
                index += usize::from(next);
                match takes {
                    Takes::Path => found.files.extend(value),
                    Takes::Files => found.patterns.extend(value),
                    Takes::Nothing | Takes::Maybe | Takes::Text => {}
                }
            }
            None => found.unknown.push(word),
        }
    }
    found.leading = index;
    found
}

struct Read<'a> {
    names: Vec<&'a str>,
    value: Option<Word>,
    takes: Takes,
    /// The value is the next word.
    next: bool,
}

fn read<'a>(flags: &'a [Flag], word: &Word, following: Option<&Word>) -> Option<Read<'a>> {
    let text = word.text.as_str();
    let find = |name: &str| flags.iter().find(|flag| flag.name == name);
    if let Some(flag) = find(text) {
        let next = matches!(flag.takes, Takes::Text | Takes::Path | Takes::Files);
        let value = if next { Some(following?.clone()) } else { None };
        return Some(Read { names: vec![&flag.name], value, takes: flag.takes, next });
    }
    if let Some((name, value)) = text.split_once('=')
        && let Some(flag) = find(name)
        && flag.takes != Takes::Nothing
    {
        return Some(Read {
            names: vec![&flag.name],
            value: Some(word.part(value)),
            takes: flag.takes,
            next: false,
        });
    }
    if text.starts_with("--") {
        return None;
    }
    // A cluster such as `-rn`, or a short option with its value attached such as `-A3`.
    let mut names = Vec::new();
    for (at, char) in text.char_indices().skip(1) {
        let rest = &text[at + char.len_utf8()..];
        let Some(flag) = find(&format!("-{char}")) else {
            // `-20` is a count where `-<n>` is listed.
            let number = at == 1 && text[1..].bytes().all(|byte| byte.is_ascii_digit());
            return find("-<n>").filter(|_| number).map(|flag| Read {
                names: vec![&flag.name],
                value: None,
                takes: Takes::Nothing,
                next: false,
            });
        };
        names.push(flag.name.as_str());
        match flag.takes {
            Takes::Nothing => {}
            Takes::Maybe if rest.is_empty() => {}
            Takes::Maybe => return Some(Read { names, value: None, takes: flag.takes, next: false }),
            Takes::Text | Takes::Path | Takes::Files if rest.is_empty() => {
                return Some(Read { names, value: Some(following?.clone()), takes: flag.takes, next: true });
            }
            Takes::Text | Takes::Path | Takes::Files => {
                return Some(Read { names, value: Some(word.part(rest)), takes: flag.takes, next: false });
            }
        }
    }
    Some(Read { names, value: None, takes: Takes::Nothing, next: false })
}

/// Whether any argument switches on one of the options of a group like `-r|-R|--recursive`, read generously:
/// clusters, abbreviations and values attached all count.
pub(crate) fn has_any(group: &str, words: &[Word]) -> bool {
    let options = words.iter().take_while(|word| word.text != "--");
    options.into_iter().any(|word| {
        let text = word.text.as_str();
        group.split('|').any(|name| match name.strip_prefix("--") {
            Some(long) => text
                .strip_prefix("--")
                .map(|given| given.split('=').next().unwrap_or_default())
                .is_some_and(|given| !given.is_empty() && long.starts_with(&given.to_lowercase())),
            None if name.len() == 2 => {
                text.starts_with('-') && !text.starts_with("--") && text[1..].contains(&name[1..])
            }
            None => text == name,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Word> {
        text.split(' ').map(Word::literal).collect()
    }

    #[test]
    fn options_are_sorted_by_their_list() {
        let flags: Vec<Flag> =
            ["-r", "-n", "-A <n>", "--include <glob>", "--color[=when]", "-f <path>", "-<n>"]
                .iter()
                .map(|f| Flag::parse(f).unwrap())
                .collect();
        let args = words("-rnA3 --include=*.py --include *.rs --color=always --color x -f list -20 -- -z");
        let found = sort(&flags, &args, Order::Mixed);
        assert!(found.unknown.is_empty(), "{:?}", found.unknown);
        assert_eq!(found.operands.iter().map(|w| w.text.as_str()).collect::<Vec<_>>(), ["x", "-z"]);
        assert_eq!(found.files[0].text, "list");
        for bad in ["-x", "-rx", "--inc=1", "--recursive", "-A", "-n=3"] {
            let args = words(bad);
            assert_eq!(sort(&flags, &args, Order::Mixed).unknown.len(), 1, "{bad}");
        }
    }

    #[test]
    fn generous_reading_for_denials() {
        for text in
            ["-rf", "-fr", "-r -f", "-vRf", "--recursive --force", "--rec --fo", "x -r y -f", "-r --f"]
        {
            let words = words(text);
            assert!(has_any("-r|-R|--recursive", &words) && has_any("-f|--force", &words), "{text}");
        }
        assert!(!has_any("-f|--force", &words("-- -f")));
    }
}
