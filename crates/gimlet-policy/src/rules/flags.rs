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
    /// The same, and it is a script in the program's own language.
    Script,
    /// One or two words in a row, of which nothing is opened: `--arg name value`.
    Pair,
}

impl Takes {
    /// How many words after the option belong to it when no value is attached.
    fn words(self) -> usize {
        match self {
            Takes::Nothing | Takes::Maybe => 0,
            Takes::Text | Takes::Path | Takes::Files | Takes::Script => 1,
            Takes::Pair => 2,
        }
    }
}

/// One known option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flag {
    name: String,
    takes: Takes,
}

/// How a program reads its options.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Style {
    /// `-rn` is `-r` and `-n`.
    #[default]
    Clusters,
    /// `-run` is one option, as in `go` and `find`.
    Words,
}

/// The options of a program: those before `--`, and those after it where they are options of another program.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Known<'a> {
    pub(crate) flags: &'a [Flag],
    pub(crate) passed: Option<&'a [Flag]>,
    pub(crate) style: Style,
}

impl Flag {
    /// Reads `-A <n>`; an error says what is wrong with the text.
    pub(crate) fn parse(text: &str) -> Result<Flag, String> {
        let (name, takes) = if text.starts_with('-') && !text.contains(['[', ' ']) && text.contains('=') {
            // One value of an option, such as `--cov-report=term`.
            return Ok(Flag { name: text.to_owned(), takes: Takes::Nothing });
        } else if let Some((name, _)) = text.split_once("[=") {
            (name, Takes::Maybe)
        } else if let Some((name, value)) = text.split_once(' ') {
            match value {
                "<path>" => (name, Takes::Path),
                "<files>" => (name, Takes::Files),
                "<script>" => (name, Takes::Script),
                "<name> <value>" => (name, Takes::Pair),
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
    /// Values of options that are scripts.
    pub(crate) scripts: Vec<Word>,
    /// Everything else.
    pub(crate) operands: Vec<&'a Word>,
    /// How many operands came before `--`, if it was there.
    pub(crate) before_dashes: Option<usize>,
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
    sort_by(Known { flags, ..Known::default() }, words, order)
}

/// Sorts a program's arguments by all that is known of its options.
pub(crate) fn sort_by<'a>(known: Known<'a>, words: &'a [Word], order: Order) -> Arguments<'a> {
    let mut flags = known.flags;
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
            found.before_dashes.get_or_insert(found.operands.len());
            match known.passed {
                Some(passed) => flags = passed,
                None => only_operands = true,
            }
            continue;
        }
        let following = words.get(index..).unwrap_or_default();
        match read(flags, known.style, word, following) {
            Some(Read { names, value, takes, next }) => {
                found.known.extend(names);
                index += next;
                match takes {
                    Takes::Path => found.files.extend(value),
                    Takes::Files => found.patterns.extend(value),
                    Takes::Script => found.scripts.extend(value),
                    Takes::Nothing | Takes::Maybe | Takes::Text | Takes::Pair => {}
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
    /// How many of the following words are the value.
    next: usize,
}

fn read<'a>(flags: &'a [Flag], style: Style, word: &Word, following: &[Word]) -> Option<Read<'a>> {
    let text = word.text.as_str();
    let find = |name: &str| flags.iter().find(|flag| flag.name == name);
    if let Some(flag) = find(text) {
        let next = flag.takes.words();
        let value = following.get(..next)?.first().cloned();
        return Some(Read { names: vec![&flag.name], value, takes: flag.takes, next });
    }
    if let Some((name, value)) = text.split_once('=')
        && let Some(flag) = find(name)
        && !matches!(flag.takes, Takes::Nothing | Takes::Pair)
    {
        return Some(Read {
            names: vec![&flag.name],
            value: Some(word.part(value)),
            takes: flag.takes,
            next: 0,
        });
    }
    if text.starts_with("--") {
        return None;
    }
    // `-20` is a count where `-<n>` is listed.
    let number = text[1..].bytes().all(|byte| byte.is_ascii_digit());
    let count = || {
        find("-<n>").filter(|_| number).map(|flag| Read {
            names: vec![&flag.name],
            value: None,
            takes: Takes::Nothing,
            next: 0,
        })
    };
    if style == Style::Words {
        return count();
    }
    // A cluster such as `-rn`, or a short option with its value attached such as `-A3`.
    let mut names = Vec::new();
    for (at, char) in text.char_indices().skip(1) {
        let rest = &text[at + char.len_utf8()..];
        let Some(flag) = find(&format!("-{char}")) else {
            return count().filter(|_| at == 1);
        };
        names.push(flag.name.as_str());
        match flag.takes {
            Takes::Nothing => {}
            Takes::Maybe if rest.is_empty() => {}
            Takes::Maybe => return Some(Read { names, value: None, takes: flag.takes, next: 0 }),
            Takes::Pair => return None,
            Takes::Text | Takes::Path | Takes::Files | Takes::Script if rest.is_empty() => {
                let value = Some(following.first()?.clone());
                return Some(Read { names, value, takes: flag.takes, next: 1 });
            }
            Takes::Text | Takes::Path | Takes::Files | Takes::Script => {
                return Some(Read { names, value: Some(word.part(rest)), takes: flag.takes, next: 0 });
            }
        }
    }
    Some(Read { names, value: None, takes: Takes::Nothing, next: 0 })
}

/// Whether any argument switches on one of the options of a group like `-r|-R|--recursive`, read generously:
/// clusters, abbreviations and values attached all count.
pub(crate) fn has_any(group: &str, words: &[Word]) -> bool {
    let options = words.iter().take_while(|word| word.text != "--");
    options.into_iter().any(|word| {
        let text = word.text.as_str();
        group.split('|').any(|name| match name.strip_prefix("--") {
            Some(long) => {
                text.strip_prefix("--").map(|given| given.split('=').next().unwrap_or_default()).is_some_and(
                    |given| !given.is_empty() && long.to_lowercase().starts_with(&given.to_lowercase()),
                )
            }
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
        assert!(has_any("--noEmit", &words("--noEmit")) && has_any("--noEmit", &words("--noemit")));
    }
}
