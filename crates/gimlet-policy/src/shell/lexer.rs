//! Reads words, redirections and separators the way a POSIX shell does, and resolves quoting on the way.
//!
//! The grammar says where commands are; this lexer says what their words mean. It also reads a whole text on its own:
//! a command is only ever allowed when both readers see the same segments.

use std::collections::HashMap;
use std::rc::Rc;

use super::ast::{Assignment, Certainty, Direction, Origin, Redirection, Segment, Word};
use super::quoting::{ansi_c, matching_brace};
use super::word::Builder;

/// What is known about variables while a script is read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Variables {
    /// What every script starts with; shared, because a text is read more than once.
    given: Rc<[(&'static str, Word)]>,
    /// What this one sets.
    set: HashMap<String, Word>,
    /// `$0`, `$1`, …; `$@` is all but the first.
    positional: Vec<Word>,
}

impl Variables {
    pub(crate) fn new(given: Rc<[(&'static str, Word)]>, positional: Vec<Word>) -> Self {
        Variables { given, set: HashMap::new(), positional }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Word> {
        let given = || self.given.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
        self.set.get(name).or_else(given)
    }

    pub(super) fn set(&mut self, name: String, value: Word) {
        self.set.insert(name, value);
    }
}

/// A part of a word that the grammar recognised as a substitution.
#[derive(Debug, Clone)]
pub(super) struct Hole {
    pub(super) start: usize,
    pub(super) end: usize,
    /// What it prints, when that can be told.
    pub(super) value: Option<Word>,
    pub(super) origin: Origin,
}

/// What the lexer made of a stretch of text.
#[derive(Debug, Default)]
pub(super) struct Lexed {
    pub(super) segments: Vec<Segment>,
    /// Where the text left the subset in which this lexer is certain.
    pub(super) odd: Option<&'static str>,
    /// Separators and redirections seen: what makes a text expensive to parse. Here-documents count tenfold.
    pub(super) operators: usize,
}

pub(super) struct Lexer<'a> {
    source: &'a str,
    position: usize,
    end: usize,
    holes: &'a [Hole],
    variables: &'a mut Variables,
    segment: Segment,
    /// The words after `for`, while its header is read.
    header: Option<Vec<Word>>,
    lexed: Lexed,
}

/// Words that start a construct of the shell instead of naming a program.
const RESERVED: &[&str] =
    &["{", "}", "[[", "]]", "while", "until", "case", "esac", "select", "function", "coproc", "in"];

/// Reserved words after which a command follows as if they were not there.
const TRANSPARENT: &[&str] = &["!", "if", "then", "elif", "else", "fi", "do", "done"];

/// Reads `source[start..end]`.
pub(super) fn lex(
    source: &str,
    start: usize,
    end: usize,
    holes: &[Hole],
    variables: &mut Variables,
) -> Lexed {
    let lexer = Lexer {
        source,
        position: start,
        end,
        holes,
        variables,
        segment: Segment::default(),
        header: None,
        lexed: Lexed::default(),
    };
    lexer.run()
}

impl<'a> Lexer<'a> {
    fn run(mut self) -> Lexed {
        let mut word: Option<Builder> = None;
        while let Some(char) = self.peek() {
            match char {
                ' ' | '\t' => {
                    self.bump();
                    self.end_word(word.take());
                }
                '\n' | ';' => {
                    self.bump();
                    self.end_word(word.take());
                    if char == ';' && matches!(self.peek(), Some(';' | '&')) {
                        self.odd("a case separator");
                    }
                    self.end_segment();
                }
                '&' if self.rest().starts_with("&>") => {
                    self.end_word(word.take());
                    self.bump();
                    self.redirect();
                }
                '&' | '|' => {
                    self.end_word(word.take());
                    self.bump();
                    let next = self.peek();
                    if next == Some(char) || (char == '|' && next == Some('&')) {
                        self.bump();
                    } else if char == '&' {
                        self.odd("a command in the background");
                    }
                    self.end_segment();
                }
                '<' | '>' if self.hole().is_some() => {
                    let builder = word.get_or_insert_with(Builder::new);
                    self.fill_hole(builder, false);
                }
                '<' | '>' => {
                    // Digits right before a redirection are its descriptor, not an argument.
                    match word.take() {
                        Some(builder) if builder.is_descriptor() => {}
                        other => self.end_word(other),
                    }
                    self.redirect();
                }
                '(' | ')' => {
                    self.bump();
                    self.end_word(word.take());
                    self.odd("a group");
                    self.end_segment();
                }
                '#' if word.is_none() => {
                    while self.peek().is_some_and(|char| char != '\n') {
                        self.bump();
                    }
                }
                _ => {
                    let mut builder = word.take().unwrap_or_else(Builder::new);
                    self.piece(&mut builder);
                    word = Some(builder);
                }
            }
        }
        self.end_word(word.take());
        self.end_segment();
        self.lexed
    }

    fn rest(&self) -> &'a str {
        self.source.get(self.position..self.end).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let char = self.peek()?;
        self.position += char.len_utf8();
        Some(char)
    }

    fn odd(&mut self, why: &'static str) {
        self.lexed.odd.get_or_insert(why);
    }

    fn hole(&self) -> Option<&Hole> {
        let index = self.holes.binary_search_by_key(&self.position, |hole| hole.start).ok()?;
        self.holes.get(index)
    }

    /// Steps over a substitution, putting in what is known about what it prints.
    fn fill_hole(&mut self, builder: &mut Builder, quoted: bool) {
        let Some(hole) = self.hole().cloned() else { return };
        self.position = hole.end.min(self.end).max(self.position + 1);
        builder.unknown(hole.origin);
        if let Some(value) = &hole.value {
            builder.expand(value, quoted);
        }
    }

    fn end_word(&mut self, word: Option<Builder>) {
        let Some(builder) = word else { return };
        if let Some(header) = &mut self.header {
            header.extend(builder.finish());
            return;
        }
        if self.segment.argv.is_empty()
            && let Some((name, skip)) = builder.assignment()
        {
            let value = builder.value_from(skip);
            self.variables.set(name.clone(), value.clone());
            self.segment.assignments.push(Assignment { name, value });
            return;
        }
        let words = builder.finish();
        if self.segment.argv.is_empty()
            && let Some(first) = words.first()
            && first.certainty == Certainty::Literal
        {
            let text = first.text.as_str();
            if RESERVED.contains(&text) {
                self.odd("a shell construct");
                return;
            }
            if TRANSPARENT.contains(&text) || text == "for" {
                if !self.segment.is_empty() {
                    self.odd("a shell construct");
                }
                self.header = (text == "for").then(Vec::new);
                return;
            }
        }
        self.segment.argv.extend(words);
    }

    /// `for NAME in WORDS`: the variable stands for each of the words.
    fn end_header(&mut self, header: &[Word]) {
        let [name, within, words @ ..] = header else {
            self.odd("a loop without words");
            return;
        };
        let plain = [name, within].iter().all(|word| word.certainty == Certainty::Literal);
        if !plain || within.text != "in" || !self.segment.is_empty() {
            self.odd("a loop without words");
        }
        let value = match words {
            [] => Word::unknown(),
            [only] => only.clone(),
            [first, ..] => {
                let known = words.iter().all(Word::is_known);
                let certainty = if known { Certainty::Variable } else { Certainty::Unknown };
                let origin = words.iter().map(|word| word.origin).max().unwrap_or(first.origin);
                Word { text: first.text.clone(), certainty, origin }
            }
        };
        self.variables.set(name.text.clone(), value);
    }

    fn end_segment(&mut self) {
        self.lexed.operators += 1;
        if let Some(header) = self.header.take() {
            self.end_header(&header);
        }
        let segment = std::mem::take(&mut self.segment);
        if !segment.is_empty() {
            self.lexed.segments.push(segment);
        }
    }

    /// Reads an operator starting with `<` or `>` and its target.
    fn redirect(&mut self) {
        const OPERATORS: &[(&str, Direction)] = &[
            ("<<<", Direction::Text),
            ("<<", Direction::Duplicate),
            ("<>", Direction::Write),
            (">>", Direction::Write),
            (">|", Direction::Write),
            ("<&", Direction::Duplicate),
            (">&", Direction::Duplicate),
            ("<", Direction::Read),
            (">", Direction::Write),
        ];
        let Some((operator, direction)) =
            OPERATORS.iter().find(|(operator, _)| self.rest().starts_with(operator)).copied()
        else {
            self.bump();
            return;
        };
        self.position += operator.len();
        self.lexed.operators += if operator == "<<" { 10 } else { 1 };
        if operator == "<<" {
            self.odd("a here-document");
            if self.peek() == Some('-') {
                self.bump();
            }
        }
        while matches!(self.peek(), Some(' ' | '\t')) || self.rest().starts_with("\\\n") {
            self.bump();
        }
        let mut builder = Builder::new();
        while let Some(char) = self.peek() {
            let hole = self.hole().is_some();
            if matches!(char, '<' | '>') && hole {
                self.fill_hole(&mut builder, false);
                continue;
            }
            if matches!(char, ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')') {
                break;
            }
            self.piece(&mut builder);
        }
        let mut words = builder.finish();
        if words.len() != 1 {
            self.odd("a redirection without one target");
        }
        if operator == "<<" {
            return;
        }
        let target = if words.is_empty() { Word::unknown() } else { words.swap_remove(0) };
        let descriptor = target.certainty == Certainty::Literal
            && !target.text.is_empty()
            && target.text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        let direction = match (direction, descriptor) {
            // `>&file` writes a file; `<&word` can only be a descriptor.
            (Direction::Duplicate, false) if operator == ">&" => Direction::Write,
            (other, _) => other,
        };
        self.segment.redirections.push(Redirection { direction, target });
    }

    /// One piece of a word: a character, an escape, a quoted string or an expansion.
    fn piece(&mut self, builder: &mut Builder) {
        let Some(char) = self.bump() else { return };
        match char {
            '\\' => match self.bump() {
                Some('\n') => {}
                Some(next) => builder.push(next, false),
                None => builder.push('\\', false),
            },
            '\'' => {
                let text = self.rest();
                match text.find('\'') {
                    Some(length) => {
                        builder.quoted(&text[..length]);
                        self.position += length + 1;
                    }
                    None => {
                        self.odd("an unfinished quote");
                        builder.quoted(text);
                        self.position = self.end;
                    }
                }
            }
            '"' => self.double_quoted(builder),
            '$' | '`' => {
                self.position -= 1;
                self.dollar(builder, false);
            }
            '~' if builder.is_start() => self.tilde(builder),
            other => builder.push(other, true),
        }
    }

    fn double_quoted(&mut self, builder: &mut Builder) {
        builder.mark_quoted();
        loop {
            match self.peek() {
                None => {
                    self.odd("an unfinished quote");
                    return;
                }
                Some('"') => {
                    self.bump();
                    return;
                }
                Some('\\') => {
                    self.bump();
                    match self.bump() {
                        Some('\n') | None => {}
                        Some(next @ ('$' | '`' | '"' | '\\')) => builder.push(next, false),
                        Some(next) => {
                            builder.push('\\', false);
                            builder.push(next, false);
                        }
                    }
                }
                Some('$' | '`') => self.dollar(builder, true),
                Some(char) => {
                    self.bump();
                    builder.push(char, false);
                }
            }
        }
    }

    fn tilde(&mut self, builder: &mut Builder) {
        let rest = self.rest();
        let length = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '.')))
            .unwrap_or(rest.len());
        match self.variables.get("HOME") {
            Some(home) if length == 0 => builder.expand(&home.clone(), true),
            // Keep the text, so that `~root/.ssh/id_rsa` still looks like what it is.
            _ => {
                builder.unknown(Origin::Local);
                builder.push('~', false);
            }
        }
    }

    /// An expansion at `$` or a backtick.
    fn dollar(&mut self, builder: &mut Builder, quoted: bool) {
        if self.hole().is_some() {
            self.fill_hole(builder, quoted);
            return;
        }
        let start = self.bump();
        if start == Some('`') {
            self.substitution_unseen(builder);
            return;
        }
        match self.peek() {
            Some('\'') if !quoted => {
                self.bump();
                let (text, used, finished) = ansi_c(self.rest());
                if !finished {
                    self.odd("an unfinished quote");
                }
                self.position += used;
                // Dash knows no such quoting and would see a literal dollar, so two readings exist.
                builder.expand(&Word { text, certainty: Certainty::Unknown, origin: Origin::Local }, true);
                builder.mark_quoted();
            }
            Some('"') if !quoted => {
                self.bump();
                self.double_quoted(builder);
                builder.unknown(Origin::Local);
            }
            Some('(' | '[') => self.substitution_unseen(builder),
            Some('{') => self.braced(builder, quoted),
            Some(char) if char == '_' || char.is_ascii_alphabetic() => {
                let rest = self.rest();
                let length =
                    rest.find(|c: char| !(c == '_' || c.is_ascii_alphanumeric())).unwrap_or(rest.len());
                let name = rest[..length].to_owned();
                self.position += length;
                self.variable(builder, &name, quoted);
            }
            Some(char)
                if char.is_ascii_digit() || matches!(char, '?' | '$' | '#' | '!' | '@' | '*' | '-') =>
            {
                self.bump();
                self.variable(builder, char.encode_utf8(&mut [0; 4]), quoted);
            }
            _ => builder.push('$', false),
        }
    }

    /// A substitution the grammar did not show. In a broken text its inside is read as commands of their own.
    fn substitution_unseen(&mut self, builder: &mut Builder) {
        self.odd("a substitution");
        builder.unknown(Origin::Local);
    }

    fn braced(&mut self, builder: &mut Builder, quoted: bool) {
        let rest = self.rest();
        let Some(close) = matching_brace(rest) else {
            self.odd("an unfinished expansion");
            builder.unknown(Origin::Local);
            self.position = self.end;
            return;
        };
        let inner = rest[1..close].to_owned();
        self.position += close + 1;
        if inner.chars().all(|c| c == '_' || c.is_ascii_alphanumeric()) {
            self.variable(builder, &inner, quoted);
            return;
        }
        builder.unknown(Origin::Local);
        // `${x:-rm}` and `${x-rm}` most often mean their default.
        if let Some((name, default)) = inner.split_once(":-").or_else(|| inner.split_once('-'))
            && !default.contains(['$', '`', '\\', '"', '\''])
            && self.variables.get(name).is_none()
        {
            builder.expand(
                &Word { text: default.to_owned(), certainty: Certainty::Unknown, origin: Origin::Local },
                quoted,
            );
        } else {
            // A value bent by an operator still carries where it came from.
            let name: String = inner.chars().filter(|c| *c == '_' || c.is_ascii_alphanumeric()).collect();
            if let Some(value) = self.variables.get(&name) {
                builder.unknown(value.origin);
            }
        }
    }

    fn variable(&mut self, builder: &mut Builder, name: &str, quoted: bool) {
        match name {
            "IFS" if self.variables.get("IFS").is_none() => {
                builder.unknown(Origin::Local);
                if !quoted {
                    builder.split();
                }
            }
            // Always a number.
            "?" | "$" | "#" => builder.expand(&Word::literal("0"), true),
            "@" | "*" => {
                let words: Vec<Word> = self.variables.positional.iter().skip(1).cloned().collect();
                builder.unknown(Origin::Local);
                for (index, word) in words.iter().enumerate() {
                    if index > 0 {
                        builder.split();
                    }
                    builder.expand(word, true);
                }
            }
            _ if name.bytes().all(|byte| byte.is_ascii_digit()) => {
                builder.unknown(Origin::Local);
                let index: usize = name.parse().unwrap_or(usize::MAX);
                if let Some(word) = self.variables.positional.get(index).cloned() {
                    builder.expand(&word, quoted);
                }
            }
            _ => match self.variables.get(name).cloned() {
                Some(value) => builder.expand(&value, quoted),
                None => builder.unknown(Origin::Local),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut variables = Variables::default();
        let lexed = lex(text, 0, text.len(), &[], &mut variables);
        lexed.segments.iter().flat_map(|s| s.argv.iter().map(|w| w.text.clone())).collect()
    }

    #[test]
    fn every_quoting_of_a_name_reads_the_same() {
        for text in [
            "rm",
            "r''m",
            "\"rm\"",
            "\\rm",
            "r\\m",
            "'r'm",
            "$'\\x72m'",
            "$'\\162\\155'",
            "$'\\u0072m'",
            "r\\\nm",
            "$\"rm\"",
            "r$@m",
            "r${nothing}m",
            "X=rm; $X",
            "${x:-rm}",
        ] {
            assert_eq!(words(text), ["rm"], "{text}");
        }
    }

    #[test]
    fn fields_are_split_where_a_shell_splits() {
        assert_eq!(words("rm$IFS-rf${IFS}/"), ["rm", "-rf", "/"]);
        assert_eq!(words("X='rm -rf /'; $X"), ["rm", "-rf", "/"]);
        assert_eq!(words("X='rm -rf /'; \"$X\""), ["rm -rf /"]);
        assert_eq!(words("echo 2>x a>b c2>d"), ["echo", "a", "c2"]);
        assert_eq!(words("ls # rm -rf"), ["ls"]);
        assert_eq!(words("ls a#b ''"), ["ls", "a#b", ""]);
    }

    #[test]
    fn a_growing_value_stops_growing() {
        let text = format!("X=aaaaaaaaaaaaaaaa; {} echo $X", "X=$X$X;".repeat(60));
        assert!(words(&text).iter().all(|word| word.len() < 64 * 1024));
    }
}
