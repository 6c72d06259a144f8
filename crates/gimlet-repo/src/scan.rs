//! Definitions without a parser, for repositories too large to parse and for other languages: a name behind a word such
//! as `def` or `class`.

/// Words after which a name is defined, in the languages that people write.
const KEYWORDS: &[&str] = &[
    "def",
    "class",
    "fn",
    "struct",
    "enum",
    "trait",
    "interface",
    "function",
    "func",
    "type",
    "record",
    "module",
    "namespace",
    "union",
    "macro_rules",
    "object",
    "protocol",
    "fun",
    "sub",
    "defn",
    "defmodule",
    "defp",
];
/// Longest receiver of a Go method that is skipped.
const RECEIVER: usize = 120;

/// The name that a keyword defines; `end` is where the keyword ends.
pub(crate) fn defined<'t>(text: &'t str, keyword: &str, end: usize) -> Option<&'t str> {
    if !matches!(keyword.len(), 2..=11) || !KEYWORDS.contains(&keyword) {
        return None;
    }
    let mut rest = text.get(end..)?;
    if keyword == "macro_rules" {
        rest = rest.strip_prefix('!')?;
    }
    rest = rest.strip_prefix([' ', '\t'])?.trim_start_matches([' ', '\t']);
    if keyword == "func" && rest.starts_with('(') {
        let close = rest.as_bytes().iter().take(RECEIVER).position(|byte| *byte == b')')?;
        rest = rest.get(close + 1..)?.trim_start_matches([' ', '\t']);
    }
    let length = rest.bytes().take_while(|byte| *byte == b'_' || byte.is_ascii_alphanumeric()).count();
    rest.get(..length).filter(|name| name.len() > 1 && !name.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after<'t>(text: &'t str, keyword: &str) -> Option<&'t str> {
        defined(text, keyword, text.find(keyword).unwrap() + keyword.len())
    }

    #[test]
    fn the_name_behind_a_keyword_is_a_definition() {
        assert_eq!(after("def total(self):", "def"), Some("total"));
        assert_eq!(after("func (s *Server) Serve() {", "func"), Some("Serve"));
        assert_eq!(after("func Serve() {", "func"), Some("Serve"));
        assert_eq!(after("macro_rules! check {", "macro_rules"), Some("check"));
        assert_eq!(after("class = 1", "class"), None);
        assert_eq!(after("type", "type"), None);
        assert_eq!(after("let total", "let"), None);
    }
}
