//! Syntax colours, by the grammars that the repository's index uses. Colours only add classes: every character of the text
//! is escaped and shown whether or not its language is known.

use std::sync::OnceLock;

use maud::{Markup, PreEscaped, Render};
use tree_sitter_highlight::{HighlightConfiguration, HighlightEvent, Highlighter};

/// Longer texts are shown without colours, so that no page waits for its colours.
const MOST_BYTES: usize = 100_000;

/// What is coloured, and its class in the style sheet. The longest name that a grammar's own name begins with counts.
const KINDS: [(&str, &str); 12] = [
    ("attribute", "hn"),
    ("comment", "hc"),
    ("constant", "hn"),
    ("escape", "hn"),
    ("function", "hf"),
    ("keyword", "hk"),
    ("number", "hn"),
    ("operator", "ho"),
    ("property", "hp"),
    ("string", "hs"),
    ("tag", "hk"),
    ("type", "ht"),
];

/// A language whose grammar is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Bash,
    C,
    Cpp,
    Go,
    Java,
    JavaScript,
    Python,
    Ruby,
    Rust,
    TypeScript,
}

impl Language {
    /// The language of a file by its name, or of a fence by its word.
    pub(crate) fn of(name: &str) -> Option<Language> {
        let end = name.rsplit(['.', '/']).next().unwrap_or(name).to_ascii_lowercase();
        Some(match end.as_str() {
            "sh" | "bash" | "shell" | "zsh" => Language::Bash,
            "c" | "h" => Language::C,
            "cc" | "cpp" | "cxx" | "hpp" | "hh" | "c++" => Language::Cpp,
            "go" => Language::Go,
            "java" => Language::Java,
            "js" | "jsx" | "mjs" | "cjs" | "javascript" => Language::JavaScript,
            "py" | "pyi" | "python" => Language::Python,
            "rb" | "ruby" => Language::Ruby,
            "rs" | "rust" => Language::Rust,
            "ts" | "tsx" | "mts" | "typescript" => Language::TypeScript,
            _ => return None,
        })
    }

    /// The grammar with its colours; none if the two do not fit each other, which a test rules out.
    fn grammar(self) -> Option<&'static HighlightConfiguration> {
        static GRAMMARS: [OnceLock<Option<HighlightConfiguration>>; 10] = [const { OnceLock::new() }; 10];
        GRAMMARS[self as usize].get_or_init(|| self.load()).as_ref()
    }

    fn load(self) -> Option<HighlightConfiguration> {
        let (language, queries): (tree_sitter::Language, &[&str]) = match self {
            Language::Bash => (tree_sitter_bash::LANGUAGE.into(), &[tree_sitter_bash::HIGHLIGHT_QUERY]),
            Language::C => (tree_sitter_c::LANGUAGE.into(), &[tree_sitter_c::HIGHLIGHT_QUERY]),
            Language::Cpp => (
                tree_sitter_cpp::LANGUAGE.into(),
                &[tree_sitter_c::HIGHLIGHT_QUERY, tree_sitter_cpp::HIGHLIGHT_QUERY],
            ),
            Language::Go => (tree_sitter_go::LANGUAGE.into(), &[tree_sitter_go::HIGHLIGHTS_QUERY]),
            Language::Java => (tree_sitter_java::LANGUAGE.into(), &[tree_sitter_java::HIGHLIGHTS_QUERY]),
            Language::JavaScript => (
                tree_sitter_javascript::LANGUAGE.into(),
                &[tree_sitter_javascript::HIGHLIGHT_QUERY, tree_sitter_javascript::JSX_HIGHLIGHT_QUERY],
            ),
            Language::Python => {
                (tree_sitter_python::LANGUAGE.into(), &[tree_sitter_python::HIGHLIGHTS_QUERY])
            }
            Language::Ruby => (tree_sitter_ruby::LANGUAGE.into(), &[tree_sitter_ruby::HIGHLIGHTS_QUERY]),
            Language::Rust => (tree_sitter_rust::LANGUAGE.into(), &[tree_sitter_rust::HIGHLIGHTS_QUERY]),
            Language::TypeScript => (
                tree_sitter_typescript::LANGUAGE_TSX.into(),
                &[tree_sitter_javascript::HIGHLIGHT_QUERY, tree_sitter_typescript::HIGHLIGHTS_QUERY],
            ),
        };
        let mut grammar = HighlightConfiguration::new(language, "code", &queries.concat(), "", "").ok()?;
        grammar.configure(&KINDS.map(|(name, _)| name));
        Some(grammar)
    }
}

/// The lines of a text, each coloured by itself, so that a line can stand in a table.
pub(crate) fn lines(text: &str, language: Option<Language>) -> Vec<Markup> {
    let grammar = language.filter(|_| text.len() <= MOST_BYTES).and_then(Language::grammar);
    grammar.and_then(|grammar| coloured(text, grammar)).unwrap_or_else(|| plain(text))
}

/// A text of several lines in one piece.
pub(crate) fn block(text: &str, language: Option<Language>) -> Markup {
    let lines: Vec<String> = lines(text, language).into_iter().map(|line| line.0).collect();
    PreEscaped(lines.join("\n"))
}

fn plain(text: &str) -> Vec<Markup> {
    text.split('\n').map(|line| line.render()).collect()
}

fn coloured(text: &str, grammar: &HighlightConfiguration) -> Option<Vec<Markup>> {
    let mut highlighter = Highlighter::new();
    let events = highlighter.highlight(grammar, text.as_bytes(), None, None, |_| None).ok()?;
    let mut lines = vec![String::new()];
    let mut open: Vec<&str> = Vec::new();
    for event in events {
        match event.ok()? {
            HighlightEvent::HighlightStart(kind) => open.push(KINDS.get(kind.0)?.1),
            HighlightEvent::HighlightEnd => drop(open.pop()),
            HighlightEvent::Source { start, end } => {
                for (number, part) in text.get(start..end)?.split('\n').enumerate() {
                    if number > 0 {
                        lines.push(String::new());
                    }
                    let line = lines.last_mut()?;
                    match open.last() {
                        Some(class) if !part.is_empty() => {
                            line.push_str(&format!("<span class=\"{class}\">{}</span>", part.render().0));
                        }
                        Some(_) | None => line.push_str(&part.render().0),
                    }
                }
            }
        }
    }
    Some(lines.into_iter().map(PreEscaped).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_colours_and_keeps_its_text() {
        let samples = [
            ("a.sh", "# note\nif true; then echo \"hi\"; fi\n"),
            ("a.c", "// note\nint main(void) { return 1; }\n"),
            ("a.cpp", "// note\nclass A { int x = 1; };\n"),
            ("a.go", "// note\nfunc main() { return }\n"),
            ("a.java", "// note\nclass A { int x = 1; }\n"),
            ("a.js", "// note\nconst a = \"<b>\";\n"),
            ("a.py", "# note\ndef add(a, b):\n    return \"<i>\"\n"),
            ("a.rb", "# note\ndef add\n  1\nend\n"),
            ("a.rs", "// note\nfn main() { let x = 1; }\n"),
            ("a.tsx", "// note\nconst a: number = 1;\n"),
        ];
        for (name, text) in samples {
            let language = Language::of(name);
            assert!(language.is_some(), "{name}");
            let shown = block(text, language).0;
            assert!(shown.contains("class=\"hc\""), "{name}: {shown}");
            let tags = regex_free_text(&shown);
            assert_eq!(tags, text, "{name}");
            assert_eq!(lines(text, language).len(), text.split('\n').count(), "{name}");
        }
    }

    /// The text between the tags, with entities resolved.
    fn regex_free_text(markup: &str) -> String {
        let mut text = String::new();
        let mut rest = markup;
        while let Some(at) = rest.find('<') {
            text.push_str(&rest[..at]);
            rest = rest[at..].split_once('>').map_or("", |(_, after)| after);
        }
        text.push_str(rest);
        text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
    }

    #[test]
    fn an_unknown_language_is_plain_text() {
        assert_eq!(Language::of("notes.txt"), None);
        assert_eq!(block("<b>\nx", None).0, "&lt;b&gt;\nx");
    }
}
