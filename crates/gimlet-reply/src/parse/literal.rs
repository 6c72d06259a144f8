//! Steps over string literals and comments in Python source, so that a fence, a closing tag or an `Observation:` inside
//! a string does not cut the program that prints it.
//!
//! A quote that is never closed is no literal: prose has apostrophes, and a broken string must not swallow the reply.

/// Walks Python source byte by byte. One walker sees each byte a constant number of times.
pub(super) struct Literals<'t> {
    text: &'t [u8],
    /// Up to where a quote of each kind (`'`, `"`, `'''`, `"""`) is known to be unclosed.
    dead: [usize; 4],
}

/// What stands at a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece {
    /// A string literal that ends before this position.
    Literal(usize),
    /// A comment that ends before this position.
    Comment(usize),
    /// Anything else, up to this position.
    Plain(usize),
}

/// Where in the source a byte is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In code.
    Code,
    /// In a comment.
    Comment,
}

impl<'t> Literals<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Literals { text: text.as_bytes(), dead: [0; 4] }
    }

    /// What stands at `at`. Positions must be asked for in rising order.
    pub(super) fn piece(&mut self, at: usize) -> Piece {
        match self.text.get(at) {
            Some(b'#') => Piece::Comment(line_end(self.text, at)),
            Some(&quote @ (b'\'' | b'"')) => {
                let triple = self.text[at..].starts_with(&[quote; 3]);
                match self.close(at, quote, triple) {
                    Some(end) => Piece::Literal(end),
                    None => Piece::Plain(at + if triple { 3 } else { 1 }),
                }
            }
            _ => Piece::Plain(at + 1),
        }
    }

    /// Offers every position from `from` on that is outside literals to `found`, until it returns something.
    pub(super) fn find<T>(
        &mut self,
        from: usize,
        mut found: impl FnMut(usize, Place) -> Option<T>,
    ) -> Option<T> {
        let mut at = from;
        while at < self.text.len() {
            let (place, next) = match self.piece(at) {
                Piece::Literal(end) => {
                    at = end;
                    continue;
                }
                Piece::Comment(end) => (Place::Comment, end),
                Piece::Plain(end) => (Place::Code, end),
            };
            if let Some(hit) = (at..next).find_map(|position| found(position, place)) {
                return Some(hit);
            }
            at = next;
        }
        None
    }

    fn close(&mut self, at: usize, quote: u8, triple: bool) -> Option<usize> {
        let kind = usize::from(quote == b'"') + 2 * usize::from(triple);
        if at < self.dead[kind] {
            return None;
        }
        let mut i = at + if triple { 3 } else { 1 };
        while let Some(&byte) = self.text.get(i) {
            match byte {
                // Also in raw strings: `r"\""` is one literal.
                b'\\' => i += 1,
                b'\n' if !triple => break,
                _ if byte == quote && !triple => return Some(i + 1),
                _ if byte == quote && self.text[i..].starts_with(&[quote; 3]) => return Some(i + 3),
                _ => {}
            }
            i += 1;
        }
        self.dead[kind] = i.min(self.text.len());
        None
    }
}

/// Where the line that holds `at` ends, its newline excluded.
pub(super) fn line_end(text: &[u8], at: usize) -> usize {
    text[at..].iter().position(|&byte| byte == b'\n').map_or(text.len(), |n| at + n)
}
