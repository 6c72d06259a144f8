//! One word under construction: characters that remember whether they were quoted, so that globs, braces and
//! field splitting see only what a shell would see.

use super::ast::{Certainty, Origin, Word};

/// More alternatives than this in one word are not worth listing; the word becomes unknown.
const MAX_ALTERNATIVES: usize = 256;
/// Words longer than this are not searched for braces.
const MAX_BRACED: usize = 4096;
/// Values longer than this are not propagated: it keeps `X=$X$X` from growing without end.
pub(super) const MAX_VALUE: usize = 16 * 1024;

#[derive(Debug, Clone, Copy)]
struct Letter {
    char: char,
    /// Not quoted, so a shell may give it a meaning.
    active: bool,
}

/// Collects a word piece by piece; unquoted expansions may split it into several.
#[derive(Debug, Clone)]
pub(super) struct Builder {
    letters: Vec<Letter>,
    certainty: Certainty,
    origin: Origin,
    /// Fields already split off by an unquoted expansion.
    done: Vec<Word>,
    /// Something was quoted, so even an empty word is a word.
    solid: bool,
}

impl Builder {
    pub(super) fn new() -> Self {
        Builder {
            // Room for most words, so that they are not moved while they grow.
            letters: Vec::with_capacity(24),
            certainty: Certainty::Literal,
            origin: Origin::Local,
            done: Vec::new(),
            solid: false,
        }
    }

    pub(super) fn is_start(&self) -> bool {
        self.letters.is_empty() && self.done.is_empty() && !self.solid && self.certainty == Certainty::Literal
    }

    pub(super) fn push(&mut self, char: char, active: bool) {
        self.solid = true;
        self.letters.push(Letter { char, active });
    }

    pub(super) fn quoted(&mut self, text: &str) {
        self.solid = true;
        self.letters.extend(text.chars().map(|char| Letter { char, active: false }));
    }

    pub(super) fn mark_quoted(&mut self) {
        self.solid = true;
    }

    pub(super) fn unknown(&mut self, origin: Origin) {
        self.certainty = Certainty::Unknown;
        self.origin = self.origin.max(origin);
    }

    /// The value of an expansion; unquoted ones are split at blanks.
    pub(super) fn expand(&mut self, value: &Word, quoted: bool) {
        self.certainty = self.certainty.max(value.certainty).max(Certainty::Resolved);
        self.origin = self.origin.max(value.origin);
        if value.text.len() + self.letters.len() > MAX_VALUE {
            self.unknown(value.origin);
            return;
        }
        if quoted {
            self.quoted(&value.text);
            return;
        }
        for char in value.text.chars() {
            if matches!(char, ' ' | '\t' | '\n') {
                self.split();
            } else {
                self.push(char, matches!(char, '*' | '?' | '[' | ']'));
            }
        }
    }

    /// Ends a field, as an unquoted blank in an expansion does.
    pub(super) fn split(&mut self) {
        self.certainty = self.certainty.max(Certainty::Resolved);
        if !self.letters.is_empty() {
            let (certainty, origin) = (self.certainty, self.origin);
            let letters = std::mem::take(&mut self.letters);
            self.done.push(finish_field(&letters, certainty, origin));
            self.solid = false;
        }
    }

    /// `NAME` if the word so far reads `NAME=` or `NAME+=` without quotes, with the length of that prefix.
    pub(super) fn assignment(&self) -> Option<(String, usize)> {
        if !self.done.is_empty() {
            return None;
        }
        let equals = self.letters.iter().position(|letter| letter.active && letter.char == '=')?;
        let name_end = if equals > 0 && self.letters[equals - 1].char == '+' { equals - 1 } else { equals };
        let name = &self.letters[..name_end];
        let valid = name.iter().enumerate().all(|(index, letter)| {
            letter.active
                && (letter.char == '_'
                    || letter.char.is_ascii_alphabetic()
                    || (index > 0 && letter.char.is_ascii_digit()))
        });
        (valid && !name.is_empty()).then(|| (name.iter().map(|letter| letter.char).collect(), equals + 1))
    }

    /// The word without its first letters: an assignment's value, which is never split.
    pub(super) fn value_from(self, skip: usize) -> Word {
        let letters = self.letters.get(skip..).unwrap_or_default();
        Word { text: text_of(letters), certainty: self.certainty, origin: self.origin }
    }

    /// Whether the word is one unquoted run of digits: a file descriptor when a redirection follows.
    pub(super) fn is_descriptor(&self) -> bool {
        self.done.is_empty()
            && !self.letters.is_empty()
            && self.letters.iter().all(|l| l.active && l.char.is_ascii_digit())
    }

    /// The words this one stands for, after splitting and brace expansion.
    pub(super) fn finish(mut self) -> Vec<Word> {
        if self.letters.is_empty() && !self.solid && self.certainty < Certainty::Variable {
            return self.done;
        }
        let active = |char| self.letters.iter().any(|letter| letter.active && letter.char == char);
        if active('{')
            && active('}')
            && (self.letters.len() > MAX_BRACED || text_of(&self.letters).contains(".."))
        {
            self.certainty = Certainty::Unknown;
        }
        let found = if self.letters.len() > MAX_BRACED { None } else { braces(&self.letters) };
        match found {
            None => self.done.push(finish_field(&self.letters, self.certainty, self.origin)),
            Some(alternatives) if alternatives.len() > MAX_ALTERNATIVES => self.done.push(Word::unknown()),
            // Unknown, because only some shells expand braces: both readings are possible.
            Some(alternatives) => self.done.extend(
                alternatives.iter().map(|letters| finish_field(letters, Certainty::Unknown, self.origin)),
            ),
        }
        self.done
    }
}

fn text_of(letters: &[Letter]) -> String {
    letters.iter().map(|letter| letter.char).collect()
}

fn finish_field(letters: &[Letter], certainty: Certainty, origin: Origin) -> Word {
    let active = |char| letters.iter().any(|letter| letter.active && letter.char == char);
    let glob = active('*') || active('?') || (active('[') && active(']'));
    let certainty = if glob { certainty.max(Certainty::Glob) } else { certainty };
    Word { text: text_of(letters), certainty, origin }
}

/// Brace expansion of unquoted `{a,b}`; none when there is nothing to expand. `{1..3}` is left to the caller, who
/// marks the word as unknown: it only makes numbers and letters.
fn braces(letters: &[Letter]) -> Option<Vec<Vec<Letter>>> {
    let is = |index: usize, char| letters.get(index).is_some_and(|l: &Letter| l.active && l.char == char);
    for open in (0..letters.len()).filter(|index| is(*index, '{')) {
        let (mut depth, mut commas, mut close) = (0usize, Vec::new(), None);
        for index in open..letters.len() {
            if is(index, '{') {
                depth += 1;
            } else if is(index, '}') {
                depth -= 1;
                if depth == 0 {
                    close = Some(index);
                    break;
                }
            } else if depth == 1 && is(index, ',') {
                commas.push(index);
            }
        }
        let (Some(close), false) = (close, commas.is_empty()) else { continue };
        let bounds: Vec<usize> = std::iter::once(open).chain(commas).chain(std::iter::once(close)).collect();
        let mut found = Vec::new();
        for pair in bounds.windows(2) {
            let mut whole = letters[..open].to_vec();
            whole.extend_from_slice(&letters[pair[0] + 1..pair[1]]);
            whole.extend_from_slice(&letters[close + 1..]);
            match braces(&whole) {
                Some(more) => found.extend(more),
                None => found.push(whole),
            }
            if found.len() > MAX_ALTERNATIVES {
                break;
            }
        }
        return Some(found);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn active(text: &str) -> Vec<Letter> {
        text.chars().map(|char| Letter { char, active: true }).collect()
    }

    #[test]
    fn braces_expand_like_a_shell() {
        let all = |text: &str| {
            braces(&active(text))
                .map(|found| found.iter().map(|letters| text_of(letters)).collect::<Vec<_>>())
        };
        assert_eq!(all("{rm,-rf,/}"), Some(vec!["rm".into(), "-rf".into(), "/".into()]));
        assert_eq!(all("a{b,c{d,e}}f"), Some(vec!["abf".into(), "acdf".into(), "acef".into()]));
        assert_eq!(all("{}"), None);
        assert_eq!(all("{a"), None);
        assert_eq!(all("}{"), None);
    }

    #[test]
    fn many_alternatives_stop_early() {
        let text = "{a,b}".repeat(40);
        assert!(braces(&active(&text)).is_some_and(|found| found.len() <= MAX_ALTERNATIVES * 3));
    }
}
