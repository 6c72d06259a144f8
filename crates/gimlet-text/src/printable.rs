//! Text that may be shown to a person.
//!
//! Models, files, commands and servers write text that a terminal would obey and that a reader would not see: escape
//! sequences, control characters, bidirectional overrides, characters without width, spaces that are not spaces.
//! [`Printable`] makes all of it visible. Every front end shows foreign text through it.

use std::fmt;

/// Text whose every character is visible. Colours and other styling are added outside of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Printable(String);

impl Printable {
    /// Text for one line, such as a name, a command or a message: a line break is shown as `⏎`.
    pub fn line(text: &str) -> Self {
        Printable(rewrite(text, |c, near| match c {
            '\n' => Some("⏎".into()),
            '\t' => None,
            other => strict(other, near),
        }))
    }

    /// Text of several lines, such as a diff or a command's output: line breaks and tabs stay.
    pub fn block(text: &str) -> Self {
        Printable(rewrite(text, |c, near| match c {
            '\n' | '\t' => None,
            other => strict(other, near),
        }))
    }

    /// Text that was written to be read, such as an answer: like [`block`](Self::block), but the spaces of typography
    /// become plain spaces.
    pub fn prose(text: &str) -> Self {
        Printable(rewrite(text, |c, near| match c {
            '\n' | '\t' => None,
            space if is_unusual_space(space) => Some(" ".into()),
            other => strict(other, near),
        }))
    }

    /// Text for another program: only what a terminal would obey is replaced.
    pub fn piped(text: &str) -> Self {
        Printable(rewrite(text, |c, _| is_control(c).then(|| shown(c))))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text.
    pub fn into_string(self) -> String {
        self.0
    }
}

impl fmt::Display for Printable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // By way of `pad`, so that widths in a format string count.
        f.pad(&self.0)
    }
}

impl AsRef<str> for Printable {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// Whether a terminal obeys the character instead of showing it. A line break and a tab are not meant.
pub fn is_control(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
}

/// The first control character of a text that has no business in a command, a file name or a line of source code.
/// The carriage return of a Windows line end is allowed.
pub fn first_control(text: &str) -> Option<char> {
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let ends_line = c == '\r' && matches!(rest.peek(), Some('\n') | None);
        if is_control(c) && !ends_line {
            return Some(c);
        }
    }
    None
}

/// How an invisible character is written: `␛` for one that has a picture, `⟨U+202E⟩` for any other.
pub fn shown(c: char) -> String {
    match u32::from(c) {
        code @ 0..=0x1f => char::from_u32(0x2400 + code).unwrap_or('\u{fffd}').into(),
        0x7f => "␡".into(),
        code => format!("⟨U+{code:04X}⟩"),
    }
}

/// The characters beside the one at hand.
#[derive(Clone, Copy)]
struct Near {
    before: Option<char>,
    after: Option<char>,
}

fn rewrite(text: &str, replace: impl Fn(char, Near) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = None;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match replace(c, Near { before, after: rest.peek().copied() }) {
            Some(visible) => out.push_str(&visible),
            None => out.push(c),
        }
        before = Some(c);
    }
    out
}

/// What stands for a character that cannot be seen or would do something; none for one that is shown as it is.
fn strict(c: char, near: Near) -> Option<String> {
    let hidden = c.is_control()
        || is_unusual_space(c)
        || (is_invisible(c) && !joins_emoji(c, near))
        || is_noncharacter(c);
    hidden.then(|| shown(c))
}

fn is_unusual_space(c: char) -> bool {
    matches!(
        c,
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{2800}' | '\u{3000}'
    )
}

/// Characters without width, bidirectional controls, separators of lines, tags and selectors.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Whether the character only shapes an emoji, which stays as it is: it hides nothing there.
fn joins_emoji(c: char, Near { before, after }: Near) -> bool {
    let is_picture = |c: char| {
        matches!(c, '\u{203c}' | '\u{2049}' | '\u{2100}'..='\u{2bff}' | '\u{3030}' | '\u{303d}'
            | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
    };
    match c {
        '\u{fe0f}' => {
            before.is_some_and(is_picture)
                || (before.is_some_and(|c| matches!(c, '0'..='9' | '#' | '*')) && after == Some('\u{20e3}'))
        }
        '\u{200d}' => {
            before.is_some_and(|c| is_picture(c) || c == '\u{fe0f}') && after.is_some_and(is_picture)
        }
        _ => false,
    }
}

fn is_noncharacter(c: char) -> bool {
    let code = u32::from(c);
    (0xfdd0..=0xfdef).contains(&code) || code & 0xfffe == 0xfffe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_shown() {
        assert_eq!(Printable::line("make test\u{1b}[2K\r").as_str(), "make test␛[2K␍");
        assert_eq!(Printable::line("a\nb\tc").as_str(), "a⏎b\tc");
        assert_eq!(Printable::block("a\nb\tc\u{7}\u{7f}\u{9b}2J").as_str(), "a\nb\tc␇␡⟨U+009B⟩2J");
        assert_eq!(Printable::block("\u{202e}txt.exe\u{200b}").as_str(), "⟨U+202E⟩txt.exe⟨U+200B⟩");
        assert_eq!(Printable::line("rm\u{a0}-rf").as_str(), "rm⟨U+00A0⟩-rf");
        assert_eq!(Printable::prose("12\u{a0}000").as_str(), "12 000");
        assert_eq!(Printable::piped("\u{1b}]52;c;eA==\u{7}\u{a0}\n").as_str(), "␛]52;c;eA==␇\u{a0}\n");
    }

    #[test]
    fn writing_of_every_kind_stays_as_it_is() {
        for text in
            ["naïve – “quotes” … →", "日本語", "עברית", "⚠\u{fe0f} 👩\u{200d}💻 1\u{fe0f}\u{20e3}", "│ ├─"]
        {
            assert_eq!(Printable::block(text).as_str(), text);
        }
        assert_eq!(Printable::line("a\u{200d}b\u{fe0f}").as_str(), "a⟨U+200D⟩b⟨U+FE0F⟩");
    }

    #[test]
    fn control_characters_are_found_and_line_ends_are_none() {
        assert_eq!(first_control("a\tb\r\nc\r"), None);
        assert_eq!(first_control("a\rb"), Some('\r'));
        assert_eq!(first_control("make test\u{1b}[2K"), Some('\u{1b}'));
        assert_eq!(first_control("\u{85}"), Some('\u{85}'));
    }

    #[test]
    fn nothing_invisible_is_left_of_any_character() {
        for c in (0..=0x10_ffff).filter_map(char::from_u32) {
            let text = format!("a{c}b");
            for printable in [Printable::line(&text), Printable::block(&text), Printable::prose(&text)] {
                assert!(!printable.as_str().chars().any(is_control), "{c:?}");
                assert_eq!(Printable::block(printable.as_str()), printable, "{c:?}: it is stable");
            }
            assert!(!Printable::line(&text).as_str().contains('\n'));
        }
    }
}
