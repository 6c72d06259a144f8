//! Decides whether text without a language tag is a Python program.
//!
//! There is no Python parser here, and none is needed: two words side by side, as in every sentence, are never valid
//! Python. So the text is split into tokens, and what has prose in it is prose.

use super::call::FINAL_ANSWER;
use super::literal::{Literals, Piece};

/// What the tokens of a text say about it.
#[derive(Debug, Default)]
struct Look {
    prose: bool,
    statements: usize,
    assignments: usize,
    /// `import`, `def`, `for …:` and the like.
    compound: bool,
    /// Calls anything.
    calls: bool,
    /// Calls a tool, `final_answer` or `print`.
    acts: bool,
}

/// Whether a whole reply is a program. Strict: a one-line formula or a word is an answer.
pub(super) fn is_program(text: &str, known: &[&str]) -> bool {
    let look = look(text, known);
    !look.prose && (look.compound || look.acts || (look.assignments > 0 && look.statements > 1))
}

/// Whether the text of a fence without a language is a program. Looser: somebody fenced it.
pub(super) fn is_fenced_program(text: &str) -> bool {
    let look = look(text, &[]);
    !look.prose && (look.compound || look.calls || look.assignments > 0)
}

/// Whether what follows the language on a fence's first line is code and no attribute such as `title="a.py"`.
pub(super) fn is_code_line(line: &str) -> bool {
    let look = look(line, &[]);
    !look.prose && (look.compound || look.calls)
}

/// The tool that a line calls, when the line is nothing but that call.
pub(super) fn stray_call<'t>(line: &'t str, known: &[&str]) -> Option<&'t str> {
    let name = &line[..line.find('(')?];
    let acts = name == FINAL_ANSWER || known.contains(&name);
    (acts && line.trim_end().ends_with(')') && !look(line, known).prose).then_some(name)
}

/// The kind of the token before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Prev {
    Start,
    Name,
    Text,
    Value,
    Operator,
    Dot,
}

/// The statement being read.
struct Statement<'t> {
    prev: Prev,
    first: &'t str,
    column: usize,
    colon: bool,
    assigns: bool,
    lambda: bool,
    imports: bool,
}

impl Statement<'_> {
    fn new(column: usize) -> Self {
        let (colon, assigns, lambda, imports) = (false, false, false, false);
        Statement { prev: Prev::Start, first: "", column, colon, assigns, lambda, imports }
    }

    fn end(&self, look: &mut Look) {
        if self.prev == Prev::Start {
            return;
        }
        look.statements += 1;
        look.assignments += usize::from(self.assigns);
        match self.first {
            "import" | "@" => look.compound = true,
            "from" => look.compound |= self.imports,
            "def" | "class" | "for" | "while" | "if" | "with" | "try" | "async" => {
                look.compound |= self.colon
            }
            "elif" | "else" | "except" | "finally" | "match" | "case" => {}
            // `Answer: 42` has the shape of an annotation; a program for an agent has none outside a class.
            _ => look.prose |= self.colon && !self.assigns && !self.lambda && self.column == 0,
        }
        look.prose |= self.prev == Prev::Dot;
    }
}

fn look(text: &str, known: &[&str]) -> Look {
    let bytes = text.as_bytes();
    let mut literals = Literals::new(text);
    let mut look = Look::default();
    let mut statement = Statement::new(0);
    let (mut at, mut depth, mut line) = (0usize, 0usize, 0usize);
    while at < bytes.len() && !look.prose {
        let operand = matches!(statement.prev, Prev::Name | Prev::Value);
        match literals.piece(at) {
            Piece::Comment(end) => {
                at = end;
                continue;
            }
            Piece::Literal(end) => {
                look.prose |= operand;
                statement.prev = Prev::Text;
                at = end;
                continue;
            }
            Piece::Plain(_) => {}
        }
        let byte = bytes[at];
        let rest = &text[at..];
        let mut next = at + 1;
        match byte {
            b'\n' | b';' if depth == 0 => {
                statement.end(&mut look);
                line = if byte == b'\n' { next } else { line };
                statement = Statement::new(0);
            }
            b' ' | b'\t' | b'\r' | b'\n' | b'\x0c' => {}
            b'\\' if rest[1..].starts_with(['\n', '\r']) => next += 1,
            _ => {
                if statement.prev == Prev::Start {
                    statement.column = at - line;
                }
                next = at + token(rest, &mut statement, &mut look, &mut depth, known);
            }
        }
        at = next;
    }
    statement.end(&mut look);
    look
}

/// Reads one token of `rest`, which starts with it, and returns its length.
fn token<'t>(
    rest: &'t str,
    statement: &mut Statement<'t>,
    look: &mut Look,
    depth: &mut usize,
    known: &[&str],
) -> usize {
    let Some(head) = rest.chars().next() else { return 1 };
    let operand = matches!(statement.prev, Prev::Name | Prev::Value | Prev::Text);
    if head.is_alphabetic() || head == '_' {
        let word = leading(rest, |c| c.is_alphanumeric() || c == '_');
        name(word, &rest[word.len()..], statement, look, known);
        return word.len();
    }
    if head.is_ascii_digit() {
        let word = leading(rest, |c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
        look.prose |= operand || !is_number(word);
        statement.prev = Prev::Value;
        return word.len();
    }
    let starts = statement.prev == Prev::Start;
    let next = rest.as_bytes().get(1).copied().unwrap_or(b' ');
    statement.prev = match head {
        '(' | '[' | '{' => {
            *depth += 1;
            Prev::Operator
        }
        ')' | ']' | '}' => {
            look.prose |= *depth == 0;
            *depth = depth.saturating_sub(1);
            Prev::Value
        }
        '.' if rest.starts_with("...") => {
            statement.prev = Prev::Value;
            return 3;
        }
        '.' if next.is_ascii_digit() && !operand => Prev::Operator,
        '.' => {
            look.prose |= !operand || !rest[1..].starts_with(|c: char| c.is_alphabetic() || c == '_');
            Prev::Dot
        }
        '=' | '!' | '<' | '>' if next == b'=' && !starts => {
            statement.prev = Prev::Operator;
            return 2;
        }
        '=' => {
            look.prose |= starts;
            statement.assigns |= *depth == 0;
            Prev::Operator
        }
        ':' if next == b'=' => {
            statement.prev = Prev::Operator;
            return 2;
        }
        ':' => {
            statement.colon |= *depth == 0;
            Prev::Operator
        }
        '@' if starts => {
            statement.first = "@";
            Prev::Operator
        }
        '~' | '@' | ',' | '+' | '-' | '*' | '/' | '%' | '&' | '|' | '^' | '<' | '>' => {
            // A line that begins with an operator is a list item or a quotation.
            look.prose |= starts;
            Prev::Operator
        }
        _ => {
            look.prose = true;
            Prev::Operator
        }
    };
    head.len_utf8()
}

fn name<'t>(word: &'t str, after: &str, statement: &mut Statement<'t>, look: &mut Look, known: &[&str]) {
    let before = statement.prev;
    if before == Prev::Start {
        statement.first = word;
    }
    if is_string_prefix(word) && after.starts_with(['\'', '"']) {
        look.prose |= matches!(before, Prev::Name | Prev::Value);
        statement.prev = Prev::Operator;
        return;
    }
    if is_keyword(word) {
        statement.lambda |= word == "lambda";
        statement.imports |= word == "import";
        statement.prev = Prev::Operator;
        return;
    }
    let soft = matches!(statement.first, "match" | "case" | "type") && before == Prev::Name;
    look.prose |= matches!(before, Prev::Name | Prev::Value | Prev::Text) && !soft;
    if after.starts_with('(') {
        look.calls = true;
        look.acts |= before != Prev::Dot && (matches!(word, FINAL_ANSWER | "print") || known.contains(&word));
    }
    statement.prev = Prev::Name;
}

fn leading(text: &str, belongs: impl Fn(char) -> bool) -> &str {
    &text[..text.find(|c| !belongs(c)).unwrap_or(text.len())]
}

fn is_number(word: &str) -> bool {
    let plain = word.replace('_', "").to_ascii_lowercase();
    let radix = |prefix, radix| {
        plain
            .strip_prefix(prefix)
            .is_some_and(|digits| !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix)))
    };
    let decimal = plain.strip_suffix('j').unwrap_or(&plain);
    // `1e` is the head of `1e-5`, whose sign is a token of its own here.
    radix("0x", 16)
        || radix("0o", 8)
        || radix("0b", 2)
        || decimal.trim_end_matches('e').parse::<f64>().is_ok()
}

fn is_string_prefix(word: &str) -> bool {
    matches!(
        word.to_ascii_lowercase().as_str(),
        "r" | "b" | "f" | "u" | "t" | "rb" | "br" | "rf" | "fr" | "rt" | "tr"
    )
}

fn is_keyword(word: &str) -> bool {
    matches!(
        word,
        "and"
            | "as"
            | "assert"
            | "async"
            | "await"
            | "break"
            | "class"
            | "continue"
            | "def"
            | "del"
            | "elif"
            | "else"
            | "except"
            | "finally"
            | "for"
            | "from"
            | "global"
            | "if"
            | "import"
            | "in"
            | "is"
            | "lambda"
            | "nonlocal"
            | "not"
            | "or"
            | "pass"
            | "raise"
            | "return"
            | "try"
            | "while"
            | "with"
            | "yield"
    )
}
