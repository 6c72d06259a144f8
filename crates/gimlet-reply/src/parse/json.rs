//! Reads the JSON of a call: strictly first, then with repairs that cannot change its meaning.
//!
//! Repaired: trailing commas, single and triple quotes, Python's `True`/`False`/`None`, raw line breaks in strings,
//! lone backslashes, missing closing brackets at the very end. A value that ends inside a string is never completed:
//! its text is cut, and half a file is worse than no file.

use serde_json::Value;

use super::call::{self, FINAL_ANSWER};

/// What a text that should be JSON turned out to be.
#[derive(Debug)]
pub(super) enum Reading {
    /// One or more values, in sequence.
    Values(Vec<Value>),
    /// Not JSON; says why in words for the model.
    Broken(String),
}

/// Where the object or array that starts at `at` ends. Strings are stepped over; brackets are only counted.
pub(super) fn value_end(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut i, mut depth, mut before) = (at, 0usize, b'{');
    while let Some(&byte) = bytes.get(i) {
        match byte {
            b'"' | b'\'' if opens_string(byte, before) => {
                i = string_end(bytes, i)?;
                before = b'"';
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        i += 1;
        if depth == 0 {
            return Some(i);
        }
        if !byte.is_ascii_whitespace() {
            before = byte;
        }
    }
    None
}

/// Reads a text that begins with `{` or `[`: values with nothing but space, commas or semicolons between them.
pub(super) fn read(text: &str) -> Reading {
    let mut values = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let end = value_end(rest, 0).filter(|_| rest.starts_with(['{', '['])).unwrap_or(rest.len());
        match read_one(&rest[..end]) {
            Ok(value) => values.push(value),
            Err(problem) => return Reading::Broken(problem),
        }
        // A closing bracket too many is a slip of the pen.
        rest =
            rest[end..].trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '}' | ']'));
    }
    if values.is_empty() { Reading::Broken("it is empty".into()) } else { Reading::Values(values) }
}

/// Reads one value.
pub(super) fn read_one(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).or_else(|strict| {
        let repaired = repair(text).map_err(|problem| match problem {
            Problem::CutString => "it ends inside a string".to_owned(),
            Problem::Other => strict.to_string(),
        })?;
        serde_json::from_str(&repaired).map_err(|_| strict.to_string())
    })
}

/// Whether a broken text names a tool where a call names it.
pub(super) fn names_tool(text: &str, known: &[&str]) -> bool {
    let is_tool = |name: &str| name == FINAL_ANSWER || known.contains(&name);
    let bytes = text.as_bytes();
    let (mut i, mut key, mut first, mut before) = (0, "", true, b'{');
    while let Some(&byte) = bytes.get(i) {
        if !(matches!(byte, b'"' | b'\'') && opens_string(byte, before)) {
            before = if byte.is_ascii_whitespace() { before } else { byte };
            i += 1;
            continue;
        }
        let Some(end) = string_end(bytes, i) else { return false };
        let string = text[i..end].trim_matches(['"', '\'']);
        let is_key = text[end..].trim_start_matches([' ', '\t']).starts_with(':');
        if is_key && first && is_tool(string) || !is_key && call::NAME_KEYS.contains(&key) && is_tool(string)
        {
            return true;
        }
        key = if is_key { string } else { "" };
        (i, before, first) = (end, b'"', false);
    }
    false
}

enum Problem {
    CutString,
    Other,
}

/// Rewrites nearly-JSON as JSON.
fn repair(text: &str) -> Result<String, Problem> {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len() + 8);
    let mut open = Vec::new();
    let mut i = 0;
    while let Some(&byte) = bytes.get(i) {
        match byte {
            b'"' | b'\'' => {
                let end = string_end(bytes, i).ok_or(Problem::CutString)?;
                let quotes = quotes_at(bytes, i);
                push_string(&mut out, &text[i + quotes..end - quotes]);
                i = end;
                continue;
            }
            b'{' => open.push('}'),
            b'[' => open.push(']'),
            b'}' | b']' => {
                drop_comma(&mut out);
                if open.pop() != Some(char::from(byte)) {
                    return Err(Problem::Other);
                }
            }
            byte if byte.is_ascii_alphabetic() => {
                let length = bytes[i..].iter().take_while(|b| b.is_ascii_alphanumeric()).count();
                out.push_str(match &text[i..i + length] {
                    "True" => "true",
                    "False" => "false",
                    "None" => "null",
                    other => other,
                });
                i += length;
                continue;
            }
            byte if !byte.is_ascii() => return Err(Problem::Other),
            _ => {}
        }
        out.push(char::from(byte));
        i += 1;
    }
    drop_comma(&mut out);
    out.extend(open.iter().rev());
    Ok(out)
}

fn drop_comma(out: &mut String) {
    let kept = out.trim_end();
    if kept.ends_with(',') {
        out.truncate(kept.len() - 1);
    }
}

/// Appends what is between a string's quotes as a JSON string.
fn push_string(out: &mut String, inner: &str) {
    out.push('"');
    let mut chars = inner.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some((_, '\'')) => out.push('\''),
                Some((_, 'u')) if is_unicode_escape(&inner[at..]) => out.push_str("\\u"),
                Some((_, escape @ ('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't'))) => {
                    out.extend(['\\', escape])
                }
                Some((_, '\n')) => out.push_str("\\n"),
                Some((_, other)) => out.extend(['\\', '\\', other]),
                None => out.push_str("\\\\"),
            },
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

fn is_unicode_escape(text: &str) -> bool {
    text.as_bytes().get(2..6).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit))
}

/// An apostrophe opens a string only where a value or key may stand.
fn opens_string(quote: u8, before: u8) -> bool {
    quote == b'"' || matches!(before, b'{' | b'[' | b',' | b':')
}

/// Three quotes in a row are no JSON, so they can only mean Python's long string.
fn quotes_at(bytes: &[u8], at: usize) -> usize {
    if bytes[at..].starts_with(&[bytes[at]; 3]) { 3 } else { 1 }
}

fn string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let (quote, quotes) = (bytes[at], quotes_at(bytes, at));
    let mut i = at + quotes;
    while let Some(&byte) = bytes.get(i) {
        match byte {
            b'\\' => i += 2,
            _ if byte == quote && (quotes == 1 || bytes[i..].starts_with(&[quote; 3])) => {
                return Some(i + quotes);
            }
            _ => i += 1,
        }
    }
    None
}
