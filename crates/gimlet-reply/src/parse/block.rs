//! Finds the places in a reply that may hold an action: fences, tags and JSON. Says nothing about what they mean.
//!
//! Time is linear: every search either moves on past what it read or uses up one of a fixed number of misses.

use std::ops::Range;

use gimlet_event::event::ActionFormat;

use super::literal::{Literals, Place, line_end};
use super::{function, json, program};

/// A place that may hold an action.
#[derive(Debug, Clone)]
pub(super) struct Block {
    /// With its marks.
    pub(super) outer: Range<usize>,
    /// Without them.
    pub(super) body: Range<usize>,
    pub(super) kind: Kind,
    pub(super) end: End,
}

/// What marks a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A markdown fence.
    Fence(Language),
    /// `<code>`.
    CodeTag,
    /// `<tool_call>` and its relatives.
    CallTag,
    /// Nothing: JSON in the open.
    Json,
}

/// What a fence says it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    /// Python, under any of its names.
    Python,
    /// It does not say.
    Unsaid,
    /// Anything else.
    Other,
}

/// How a block ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// With its closing mark.
    Closed,
    /// With the next block or the reply.
    Open,
}

/// Marks that say "this is a call", with what closes them.
const CALL_TAGS: [(&str, &str); 5] = [
    ("<tool_call>", "</tool_call>"),
    ("<function_call>", "</function_call>"),
    ("<|tool_call|>", "<|/tool_call|>"),
    ("[TOOL_CALLS]", "[/TOOL_CALLS]"),
    (function::OPEN, "</function>"),
];

/// How many searches may run to the end of the reply in vain.
const MISSES: u32 = 32;

/// Walks a reply from block to block.
pub(super) struct Finder<'t> {
    text: &'t str,
    format: ActionFormat,
    misses_left: u32,
    /// Where JSON begins that nothing closes.
    pub(super) dangling: Option<usize>,
}

impl<'t> Finder<'t> {
    pub(super) fn new(text: &'t str, format: ActionFormat) -> Self {
        Finder { text, format, misses_left: MISSES, dangling: None }
    }

    /// Every block.
    pub(super) fn all(&mut self) -> Vec<Block> {
        let (mut blocks, mut at) = (Vec::new(), 0);
        while let Some(block) = self.next(at, self.text.len()) {
            at = block.outer.end;
            blocks.push(block);
        }
        blocks
    }

    /// The first block that begins in `from..limit`.
    pub(super) fn next(&mut self, from: usize, limit: usize) -> Option<Block> {
        let bytes = self.text.as_bytes();
        let mut at = from;
        while at < limit && self.misses_left > 0 {
            let byte = bytes[at];
            let run = if matches!(byte, b'`' | b'~') { run(bytes, at) } else { 1 };
            let found = match byte {
                b'`' | b'~' if run >= 3 && (byte == b'`' || indent(bytes, at).is_some()) => {
                    self.fence(at, run)
                }
                b'<' => self.code_tag(at).or_else(|| self.call_tag(at)),
                b'[' => self.call_tag(at).or_else(|| self.json(at)),
                b'{' => self.json(at),
                _ => None,
            };
            if found.is_some() {
                return found;
            }
            at += run;
        }
        None
    }

    /// To be called when a block is given up and its text searched again.
    pub(super) fn miss(&mut self) {
        self.misses_left = self.misses_left.saturating_sub(1);
    }

    fn fence(&mut self, at: usize, run: usize) -> Option<Block> {
        let (text, bytes) = (self.text, self.text.as_bytes());
        let mark = bytes[at];
        let start = at + run;
        let stop = (start..bytes.len())
            .find(|&i| {
                bytes[i] == b'\n' || bytes[i] == mark && bytes[i - 1] != mark && self::run(bytes, i) >= run
            })
            .unwrap_or(bytes.len());
        let head = text[start..stop].trim_start();
        let word = &head[..head.find(|c: char| !is_language_char(c)).unwrap_or(head.len())];
        let rest = head[word.len()..].trim_start();
        // ````print(1)` and ````{"name": …}`: what follows the fence is no language.
        let glued = !rest.is_empty() && head[word.len()..].starts_with(rest);
        let language = if glued { Language::Unsaid } else { Language::named(word) };
        if bytes.get(stop).is_some_and(|&byte| byte != b'\n') {
            let body = if glued { start..stop } else { stop - rest.len()..stop };
            let outer = at..stop + self::run(bytes, stop);
            return Some(Block { outer, body, kind: Kind::Fence(language), end: End::Closed });
        }
        let code_follows = match language {
            Language::Python => program::is_code_line(rest) || rest.starts_with(['{', '[']),
            Language::Unsaid | Language::Other => rest.starts_with(['{', '[']),
        };
        let body = match (glued, code_follows) {
            (true, _) => start,
            (false, true) => stop - rest.len(),
            (false, false) => (stop + 1).min(bytes.len()),
        };
        let from = self.past_json(body);
        let close = match language {
            Language::Python | Language::Unsaid => code_fence_end(text, from, mark, run),
            Language::Other => text_fence_end(bytes, from, mark, run),
        };
        let (body_end, outer_end, end) = close.unwrap_or_else(|| {
            self.miss();
            (bytes.len(), bytes.len(), End::Open)
        });
        Some(Block { outer: at..outer_end, body: body..body_end, kind: Kind::Fence(language), end })
    }

    fn code_tag(&mut self, at: usize) -> Option<Block> {
        let (text, bytes) = (self.text, self.text.as_bytes());
        let open = has_prefix(bytes, at, "<code>")?;
        // To a model that calls tools the tag is HTML.
        if self.format == ActionFormat::Tools || is_mention(bytes, at..open) {
            return None;
        }
        let close = Literals::new(text).find(open, |i, _| Some((i, has_prefix(bytes, i, "</code>")?)));
        let (body_end, outer_end, end) = match close {
            Some((body_end, outer_end)) => (body_end, outer_end, End::Closed),
            None => {
                self.miss();
                (bytes.len() - cut_mark(&bytes[open..], b"</code>"), bytes.len(), End::Open)
            }
        };
        Some(Block { outer: at..outer_end, body: open..body_end, kind: Kind::CodeTag, end })
    }

    fn call_tag(&mut self, at: usize) -> Option<Block> {
        let (text, bytes) = (self.text, self.text.as_bytes());
        let (tag, close, start) =
            CALL_TAGS.iter().find_map(|(open, close)| Some((*open, *close, has_prefix(bytes, at, open)?)))?;
        if is_mention(bytes, at..start) {
            return None;
        }
        // The name is part of what is to be read.
        let body = if tag == function::OPEN { at } else { start };
        let json_end = Some(self.past_json(start)).filter(|&end| end > start);
        let from = json_end.unwrap_or(start);
        let closing = (from..bytes.len()).find_map(|i| match bytes[i] {
            b'<' | b'[' => has_prefix(bytes, i, close).map(|end| (i, end, End::Closed)).or_else(|| {
                has_prefix(bytes, i, tag).map(|_| (json_end.unwrap_or(i), json_end.unwrap_or(i), End::Open))
            }),
            _ => None,
        });
        let (body_end, outer_end, end) = closing.unwrap_or_else(|| {
            self.miss();
            let end = json_end.unwrap_or(text.len());
            let cut = if json_end.is_none() { cut_mark(&bytes[start..], close.as_bytes()) } else { 0 };
            (end - cut, end, End::Open)
        });
        Some(Block { outer: at..outer_end, body: body..body_end, kind: Kind::CallTag, end })
    }

    fn json(&mut self, at: usize) -> Option<Block> {
        let rest = &self.text[at..];
        let object = rest.strip_prefix('[').unwrap_or(rest).trim_start();
        if !object.strip_prefix('{')?.trim_start().starts_with(['"', '\'']) {
            return None;
        }
        let Some(end) = json::value_end(self.text, at) else {
            self.miss();
            self.dangling = self.dangling.or(Some(at));
            return None;
        };
        Some(Block { outer: at..end, body: at..end, kind: Kind::Json, end: End::Closed })
    }

    /// Where the JSON that may stand at `at` ends; `at` itself if there is none.
    fn past_json(&mut self, at: usize) -> usize {
        let start = self.text.len() - self.text[at..].trim_start().len();
        if !self.text[start..].starts_with(['{', '[']) || self.misses_left == 0 {
            return at;
        }
        json::value_end(self.text, start).unwrap_or_else(|| {
            self.miss();
            at
        })
    }
}

impl Language {
    fn named(word: &str) -> Self {
        match word.to_ascii_lowercase().as_str() {
            "" => Language::Unsaid,
            "python" | "py" | "python3" | "py3" | "ipython" | "tool_code" | "code" => Language::Python,
            _ => Language::Other,
        }
    }
}

/// Whether a mark is only spoken of: `<think>` in quotes or backticks, and nothing else in them.
pub(super) fn is_mention(bytes: &[u8], mark: Range<usize>) -> bool {
    let before = mark.start.checked_sub(1).map(|i| bytes[i]);
    matches!(before, Some(b'`' | b'"' | b'\'')) && before == bytes.get(mark.end).copied()
}

/// The end of `prefix`, if it stands at `at` in any case.
pub(super) fn has_prefix(bytes: &[u8], at: usize, prefix: &str) -> Option<usize> {
    let end = at + prefix.len();
    bytes.get(at..end).is_some_and(|found| found.eq_ignore_ascii_case(prefix.as_bytes())).then_some(end)
}

/// Where a fence around code closes: body end, end of the mark, and how.
fn code_fence_end(text: &str, from: usize, mark: u8, run: usize) -> Option<(usize, usize, End)> {
    let bytes = text.as_bytes();
    Literals::new(text).find(from, |i, place| {
        if place == Place::Comment || bytes[i] != mark || bytes[i - 1] == mark || self::run(bytes, i) < run {
            return None;
        }
        let end = i + self::run(bytes, i);
        let word = bytes[end..].iter().take_while(|&&byte| is_language_char(char::from(byte))).count();
        let opens_next = word > 0
            && indent(bytes, i).is_some()
            && text[end + word..line_end(bytes, end)].trim().is_empty();
        Some(if opens_next { (i, i, End::Open) } else { (i, end, End::Closed) })
    })
}

/// Where a fence around anything else closes: at a mark with nothing behind it.
fn text_fence_end(bytes: &[u8], from: usize, mark: u8, run: usize) -> Option<(usize, usize, End)> {
    (from..bytes.len()).find_map(|i| {
        if bytes[i] != mark || bytes[i - 1] == mark || self::run(bytes, i) < run {
            return None;
        }
        let end = i + self::run(bytes, i);
        let blank = bytes[end..].iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r')).count();
        matches!(bytes.get(end + blank), None | Some(b'\n')).then_some((i, end, End::Closed))
    })
}

/// How many bytes at the end are the beginning of a closing mark that was cut off.
fn cut_mark(bytes: &[u8], mark: &[u8]) -> usize {
    (2..mark.len()).rev().find(|&n| bytes.ends_with(&mark[..n])).unwrap_or(0)
}

fn run(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().take_while(|&&byte| byte == bytes[at]).count()
}

/// How far `at` is indented, if only space stands before it on its line.
fn indent(bytes: &[u8], at: usize) -> Option<usize> {
    let spaces = bytes[..at].iter().rev().take(64).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    matches!(at.checked_sub(spaces + 1).map(|i| bytes[i]), None | Some(b'\n')).then_some(spaces)
}

fn is_language_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '+' | '-' | '#' | '.')
}
