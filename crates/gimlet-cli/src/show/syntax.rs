//! Colours for a line of code: comments, texts, numbers and the words that a language keeps for itself. A line is read on
//! its own, so a comment or a text over several lines keeps its colour only on the first.

use anstyle::{AnsiColor, Style};

use crate::style::{DIM, ERROR, GOOD, NAME, WARNING};

/// Code of which nothing is known.
const CODE: Style = AnsiColor::Cyan.on_default();

/// What is known of a language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    /// Nothing: one colour for all of it.
    Unknown,
    /// A patch.
    Diff,
    /// Code whose comments begin like this.
    Code(&'static str),
}

impl Language {
    /// The language that a fence names.
    pub(crate) fn named(name: &str) -> Language {
        let name = name.split_whitespace().next().unwrap_or_default().to_lowercase();
        match name.as_str() {
            "diff" | "patch" => Language::Diff,
            "python" | "py" | "sh" | "bash" | "shell" | "zsh" | "toml" | "yaml" | "yml" | "ruby" | "rb"
            | "perl" | "make" | "makefile" | "dockerfile" | "r" | "elixir" | "ini" | "console" => {
                Language::Code("#")
            }
            "rust" | "rs" | "js" | "javascript" | "jsx" | "ts" | "typescript" | "tsx" | "c" | "h" | "cpp"
            | "c++" | "cc" | "java" | "go" | "golang" | "swift" | "kotlin" | "kt" | "scala" | "php"
            | "cs" | "csharp" | "json" | "jsonc" | "css" | "zig" | "dart" => Language::Code("//"),
            "sql" | "lua" | "haskell" | "hs" => Language::Code("--"),
            _ => Language::Unknown,
        }
    }
}

/// Words that most languages keep for themselves.
const WORDS: &[&str] = &[
    "and",
    "as",
    "async",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "def",
    "default",
    "del",
    "do",
    "done",
    "elif",
    "else",
    "enum",
    "esac",
    "except",
    "export",
    "extends",
    "false",
    "False",
    "fi",
    "finally",
    "fn",
    "for",
    "from",
    "func",
    "function",
    "go",
    "if",
    "impl",
    "implements",
    "import",
    "in",
    "interface",
    "is",
    "lambda",
    "let",
    "local",
    "loop",
    "match",
    "mod",
    "mut",
    "new",
    "nil",
    "None",
    "not",
    "null",
    "or",
    "package",
    "pass",
    "private",
    "pub",
    "public",
    "raise",
    "return",
    "self",
    "Self",
    "static",
    "struct",
    "super",
    "switch",
    "then",
    "this",
    "throw",
    "trait",
    "true",
    "True",
    "try",
    "type",
    "typeof",
    "unsafe",
    "use",
    "var",
    "void",
    "where",
    "while",
    "with",
    "yield",
    "SELECT",
    "FROM",
    "WHERE",
    "INSERT",
    "UPDATE",
    "DELETE",
    "CREATE",
    "JOIN",
];

/// A line of code with its colours.
pub(crate) fn highlighted(line: &str, language: Language) -> String {
    match language {
        Language::Unknown => format!("{CODE}{line}{CODE:#}"),
        Language::Diff => {
            let style = match line.as_bytes().first() {
                Some(b'+') => GOOD,
                Some(b'-') => ERROR,
                Some(b'@') => NAME,
                _ => DIM,
            };
            format!("{style}{line}{style:#}")
        }
        Language::Code(comment) => code(line, comment),
    }
}

fn code(line: &str, comment: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        // `#` in the middle of a word, as in `$#`, begins no comment.
        let is_apart = out.is_empty() || out.ends_with([' ', '\t', ';', ')', '}', 'm']);
        let (part, style) = if rest.starts_with(comment) && is_apart {
            (rest, Some(DIM))
        } else if matches!(first, '"' | '\'' | '`') {
            match text_length(rest, first) {
                Some(length) => (&rest[..length], Some(GOOD)),
                None => (&rest[..1], None),
            }
        } else if first.is_ascii_digit() {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '_'));
            (&rest[..end.unwrap_or(rest.len())], Some(WARNING))
        } else if first.is_alphabetic() || first == '_' {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let word = &rest[..end];
            (word, WORDS.contains(&word).then_some(NAME))
        } else {
            (&rest[..first.len_utf8()], None)
        };
        match style {
            Some(style) => out.push_str(&format!("{style}{part}{style:#}")),
            None => out.push_str(part),
        }
        rest = &rest[part.len()..];
    }
    out
}

/// How long a text is that begins here, its quotes included. None where it does not end on the line, as `'` in Rust.
fn text_length(rest: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return Some(at + c.len_utf8()),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(line: &str, language: &str) -> String {
        let text = highlighted(line, Language::named(language));
        let mut out = text;
        for (style, name) in [(DIM, "c"), (GOOD, "t"), (WARNING, "n"), (NAME, "w"), (ERROR, "e"), (CODE, "u")]
        {
            out = out.replace(&style.render().to_string(), &format!("<{name}>"));
        }
        out.replace("\u{1b}[0m", "</>")
    }

    #[test]
    fn words_texts_numbers_and_comments_are_told_apart() {
        assert_eq!(marked("return 'a#b' # c", "python"), "<w>return</> <t>'a#b'</> <c># c</>");
        assert_eq!(marked("let x = 0x1f; // \"y\"", "rust"), "<w>let</> x = <n>0x1f</>; <c>// \"y\"</>");
        assert_eq!(
            marked("fn f<'a>(x: &'a str)", "rust").matches("<t>").count(),
            1,
            "what looks like a text"
        );
        assert_eq!(marked("echo $#", "sh"), "echo $#");
        assert_eq!(marked("+new", "diff"), "<t>+new</>");
        assert_eq!(marked("anything", ""), "<u>anything</>");
    }

    #[test]
    fn nothing_is_lost() {
        for line in ["", "\"open", "ünïcode = 'ä' # ö", "a\\\"b\"c", "``` x"] {
            let text = highlighted(line, Language::Code("#"));
            assert_eq!(anstream::adapter::strip_str(&text).to_string(), line);
        }
    }
}
