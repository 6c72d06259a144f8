//! The only way to standard output and standard error. What is written for people passes a filter that keeps our own
//! colours and makes everything else visible that a terminal would obey; JSON is written with such characters escaped.
//! `clippy.toml` forbids every other way, so text from elsewhere cannot reach a terminal raw.
#![expect(clippy::disallowed_methods, reason = "this file is the one way to the streams")]

use std::io::{self, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use gimlet::text::{self, Printable};
use serde::Serialize;

/// A stream for people: what is written to it is made visible first.
#[derive(Debug, Clone, Copy)]
pub enum Visible {
    /// Standard output.
    Answer,
    /// Standard error.
    Talk,
}

/// Standard output, for people.
pub fn stdout() -> Visible {
    Visible::Answer
}

/// Standard error, for people.
pub fn stderr() -> Visible {
    Visible::Talk
}

/// Writes a value as a line of JSON to standard output.
pub fn json(value: &impl Serialize) -> io::Result<()> {
    let text = escaped(&serde_json::to_string(value)?);
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{text}")?;
    stdout.flush()
}

/// Writes bytes as they are, for another program; a terminal is shown them made visible.
pub fn data(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.is_terminal() {
        true => stdout.write_all(Printable::block(&String::from_utf8_lossy(bytes)).as_str().as_bytes())?,
        false => stdout.write_all(bytes)?,
    }
    stdout.flush()
}

/// Writes an answer for another program: what a terminal would obey is made visible, everything else is as it is.
pub fn answer(text: &str) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{}", Printable::piped(text))
}

/// The same as [`data`] for standard error.
pub fn error_data(bytes: &[u8]) -> io::Result<()> {
    let mut stderr = io::stderr().lock();
    match stderr.is_terminal() {
        true => stderr.write_all(Printable::block(&String::from_utf8_lossy(bytes)).as_str().as_bytes()),
        false => stderr.write_all(bytes),
    }
}

/// Takes back so many characters of the line that is being typed on standard error.
pub fn erase(characters: usize) -> io::Result<()> {
    let mut stderr = io::stderr().lock();
    stderr.write_all("\u{8} \u{8}".repeat(characters).as_bytes())?;
    stderr.flush()
}

/// Puts a text into the clipboard of the terminal, as far as the terminal allows that (OSC 52).
pub fn copy(text: &str) -> io::Result<()> {
    let mut stderr = io::stderr().lock();
    write!(stderr, "\u{1b}]52;c;{}\u{7}", base64(text.as_bytes()))?;
    stderr.flush()
}

/// Rings the terminal's bell and shows a notification where the terminal knows how (OSC 9). The words are our own.
pub fn notify(words: &'static str) -> io::Result<()> {
    let mut stderr = io::stderr().lock();
    write!(stderr, "\u{1b}]9;{words}\u{7}\u{7}")?;
    stderr.flush()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for part in bytes.chunks(3) {
        let byte = |at: usize| u32::from(part.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let value = (bits >> (18 - 6 * digit)) & 63;
            text.push(if digit <= part.len() { char::from(DIGITS[value as usize]) } else { '=' });
        }
    }
    text
}

/// Whether standard output is a terminal.
pub fn answers_on_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether standard error is a terminal.
pub fn talks_on_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Whether somebody can be asked: they read standard error and type into standard input.
pub fn can_ask() -> bool {
    io::stdin().is_terminal() && talks_on_terminal()
}

/// Whether standard error is to have colours.
pub fn is_coloured() -> bool {
    !matches!(AutoStream::choice(&io::stderr()), ColorChoice::Never)
}

impl Write for Visible {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = visible(&String::from_utf8_lossy(bytes));
        match self {
            Visible::Answer => anstream::stdout().lock().write_all(text.as_bytes())?,
            Visible::Talk => anstream::stderr().lock().write_all(text.as_bytes())?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Visible::Answer => io::stdout().flush(),
            Visible::Talk => io::stderr().flush(),
        }
    }

    /// All of a message at once, so that no sequence is seen in two halves.
    fn write_fmt(&mut self, message: std::fmt::Arguments<'_>) -> io::Result<()> {
        self.write_all(message.to_string().as_bytes())
    }
}

/// The text with our own colours as they are, and everything else made visible.
fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        out.push_str(Printable::block(&rest[..at]).as_str());
        let length = style_length(&rest[at..]);
        let end = at + length.unwrap_or(1);
        match length {
            Some(_) => out.push_str(&rest[at..end]),
            None => out.push_str(&text::shown('\u{1b}')),
        }
        rest = &rest[end..];
    }
    out.push_str(Printable::block(rest).as_str());
    out
}

/// Bytes of the sequence that sets one of the few styles used here, if the text begins with one. None of them can hide
/// text: no concealing, no background, no black.
fn style_length(text: &str) -> Option<usize> {
    const STYLES: &[&str] =
        &["", "0", "1", "2", "3", "4", "9", "22", "23", "24", "29", "31", "32", "33", "36", "39", "38;5;14"];
    let (codes, _) = text.strip_prefix("\u{1b}[")?.split_once('m')?;
    STYLES.contains(&codes).then_some(codes.len() + 3)
}

/// JSON whose strings hold nothing that a terminal would obey or a reader would not see. The value stays the same.
fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match Printable::prose(c.encode_utf8(&mut [0; 4])).as_str().starts_with(c)
            || c.is_ascii() && c != '\u{7f}'
        {
            true => out.push(c),
            false => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::{DIM, ERROR, NAME};

    #[test]
    fn our_colours_stay_and_other_sequences_are_shown() {
        let ours = format!("{NAME}a{NAME:#} {DIM}b{DIM:#} {ERROR}c{ERROR:#}\n");
        assert_eq!(visible(&ours), ours);
        assert_eq!(visible("\u{1b}[8mx\u{1b}[2Jy\u{1b}]52;c;eA==\u{7}\r"), "␛[8mx␛[2Jy␛]52;c;eA==␇␍");
        assert_eq!(visible("\u{1b}[40m\u{1b}"), "␛[40m␛");
    }

    #[test]
    fn base64_is_padded() {
        let told = ["", "f", "fo", "foo", "foob"].map(|text| base64(text.as_bytes()));
        assert_eq!(told, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]);
    }

    #[test]
    fn json_keeps_its_value() {
        let value = "\u{9b}2J \u{202e} \u{7f} é 日 \u{1f600} \u{e0001} \u{1b}";
        let text = escaped(&serde_json::to_string(value).unwrap());
        assert!(!text.chars().any(|c| c.is_control() || c == '\u{202e}'), "{text}");
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), value);
        assert!(text.contains("é 日"), "{text}");
    }
}
