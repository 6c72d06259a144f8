//! Reading a cell's source before it runs: what its last expression is, which names it binds, how deep it nests.
//!
//! The parent asks the same questions to name what a replay lost, so nothing here needs an interpreter.

use std::collections::BTreeSet;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Comprehension, ExceptHandler, Expr, ExprContext, Pattern, Stmt};
use ruff_python_parser::parse_module;
use ruff_text_size::Ranged;

use crate::limits::NESTING;

/// The name the value of the last expression is kept under while a cell runs.
pub const VALUE: &str = "__gimlet_value__";

/// The source with its last expression turned into an assignment to [`VALUE`], if it ends in one. Lines stay where
/// they were, so tracebacks stay true. Source that does not parse comes back unchanged: the compiler explains it.
pub fn keep_last_value(code: &str) -> Option<String> {
    let parsed = parse_module(code).ok()?;
    let Stmt::Expr(last) = parsed.suite().last()? else { return None };
    // A star alone is no expression; it is left as it is, so that the compiler says so in its own words.
    if last.value.is_starred_expr() {
        return None;
    }
    let (start, end) = (last.value.start().to_usize(), last.value.end().to_usize());
    Some(format!("{}{VALUE} = ({}){}", &code[..start], &code[start..end], &code[end..]))
}

/// A name bound at the top level of a cell, and where.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Binding {
    /// The name.
    pub name: String,
    /// The line, counted from 1.
    pub line: u32,
}

/// Every name the code binds at its top level (or declares `global` in a function).
pub fn bindings(code: &str) -> BTreeSet<Binding> {
    let Ok(parsed) = parse_module(code) else { return BTreeSet::new() };
    let mut finder = Finder { code, scope: Scope::Module, found: BTreeSet::new() };
    finder.visit_body(parsed.suite());
    finder.found
}

/// Names that the code binds on or after a line, or anywhere if there is none: what is lost when it stopped there.
///
/// The parent asks this of code whose worker may have died before it looked, so the depth is looked at here too: what is
/// too deep never ran and bound nothing.
pub fn bound_from(code: &str, line: Option<u32>) -> Vec<String> {
    if check_depth(code, NESTING).is_err() {
        return Vec::new();
    }
    let names: BTreeSet<String> = bindings(code)
        .into_iter()
        .filter(|binding| line.is_none_or(|line| binding.line >= line))
        .map(|binding| binding.name)
        .collect();
    names.into_iter().collect()
}

#[derive(Clone, Copy, PartialEq)]
enum Scope {
    Module,
    /// Inside a function, class or lambda: only `global` reaches out.
    Inner,
    /// The target of a comprehension.
    Comprehension,
}

struct Finder<'a> {
    code: &'a str,
    scope: Scope,
    found: BTreeSet<Binding>,
}

impl Finder<'_> {
    fn bind(&mut self, name: &str, at: usize) {
        let line = 1 + self.code.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() as u32;
        self.found.insert(Binding { name: name.into(), line });
    }

    fn within(&mut self, scope: Scope, walk: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.scope, scope);
        walk(self);
        self.scope = outer;
    }
}

impl<'a> Visitor<'a> for Finder<'_> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        let module = self.scope == Scope::Module;
        match stmt {
            Stmt::FunctionDef(def) => {
                if module {
                    self.bind(&def.name, def.name.start().to_usize());
                }
                self.within(Scope::Inner, |finder| finder.visit_body(&def.body));
            }
            Stmt::ClassDef(def) => {
                if module {
                    self.bind(&def.name, def.name.start().to_usize());
                }
                self.within(Scope::Inner, |finder| finder.visit_body(&def.body));
            }
            Stmt::Global(global) => {
                for name in &global.names {
                    self.bind(name, global.start().to_usize());
                }
            }
            Stmt::Import(import) if module => {
                for alias in &import.names {
                    let name = match &alias.asname {
                        Some(name) => name.as_str(),
                        None => alias.name.split('.').next().unwrap_or_default(),
                    };
                    self.bind(name, alias.start().to_usize());
                }
            }
            Stmt::ImportFrom(import) if module => {
                for alias in &import.names {
                    let name = alias.asname.as_ref().unwrap_or(&alias.name);
                    if name.as_str() != "*" {
                        self.bind(name, alias.start().to_usize());
                    }
                }
            }
            other => visitor::walk_stmt(self, other),
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(name) if self.scope == Scope::Module && name.ctx != ExprContext::Load => {
                self.bind(&name.id, name.start().to_usize());
            }
            Expr::Lambda(lambda) => {
                self.within(Scope::Inner, |finder| visitor::walk_expr(finder, &lambda.body));
            }
            other => visitor::walk_expr(self, other),
        }
    }

    fn visit_comprehension(&mut self, comprehension: &'a Comprehension) {
        if self.scope == Scope::Module {
            self.within(Scope::Comprehension, |finder| finder.visit_expr(&comprehension.target));
            self.visit_expr(&comprehension.iter);
            for condition in &comprehension.ifs {
                self.visit_expr(condition);
            }
        }
    }

    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        let ExceptHandler::ExceptHandler(inner) = handler;
        if let (Scope::Module, Some(name)) = (self.scope, &inner.name) {
            self.bind(name, name.start().to_usize());
        }
        visitor::walk_except_handler(self, handler);
    }

    fn visit_pattern(&mut self, pattern: &'a Pattern) {
        let name = match pattern {
            Pattern::MatchAs(inner) => inner.name.as_ref(),
            Pattern::MatchStar(inner) => inner.name.as_ref(),
            Pattern::MatchMapping(inner) => inner.rest.as_ref(),
            Pattern::MatchValue(_)
            | Pattern::MatchSingleton(_)
            | Pattern::MatchSequence(_)
            | Pattern::MatchClass(_)
            | Pattern::MatchOr(_) => None,
        };
        if let (Scope::Module, Some(name)) = (self.scope, name) {
            self.bind(name, name.start().to_usize());
        }
        visitor::walk_pattern(self, pattern);
    }
}

/// Why a source is too deep to be parsed safely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooDeep {
    /// As Python would say it.
    pub message: &'static str,
    /// The line, counted from 1.
    pub line: u32,
}

/// Looks for nesting that would overflow the parser's stack, without parsing: brackets, indentation, and runs of
/// operators that nest to the right.
pub fn check_depth(code: &str, most: usize) -> Result<(), TooDeep> {
    let mut line = 1;
    let (mut brackets, mut prefixes, mut indents) = (0usize, 0usize, vec![0usize]);
    let bytes = code.as_bytes();
    let mut at = 0;
    let mut fresh = true;
    while at < bytes.len() {
        if fresh && brackets == 0 {
            let width = bytes[at..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
            at += width;
            if at < bytes.len() && !matches!(bytes[at], b'\n' | b'\r' | b'#') {
                while indents.last().is_some_and(|last| *last > width) {
                    indents.pop();
                }
                if indents.last() != Some(&width) {
                    indents.push(width);
                }
                if indents.len() > most {
                    return Err(TooDeep { message: "too many levels of indentation", line });
                }
                prefixes = 0;
            }
        }
        fresh = false;
        let Some(&byte) = bytes.get(at) else { break };
        match byte {
            b'\n' => {
                line += 1;
                fresh = true;
                at += 1;
            }
            b'#' => at += bytes[at..].iter().take_while(|byte| **byte != b'\n').count(),
            b'"' | b'\'' => {
                let end = string_end(bytes, at);
                // What stands between the braces of an f-string nests too; counting every brace is near enough.
                line += bytes[at..end].iter().filter(|byte| **byte == b'\n').count() as u32;
                at = end;
            }
            b'(' | b'[' | b'{' => {
                brackets += 1;
                if brackets > most {
                    return Err(TooDeep { message: "too many nested parentheses", line });
                }
                at += 1;
            }
            b')' | b']' | b'}' => {
                brackets = brackets.saturating_sub(1);
                at += 1;
            }
            b'-' | b'+' | b'~' | b'*' => {
                prefixes += 1;
                at += 1;
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => {
                let length = bytes[at..]
                    .iter()
                    .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_' || **byte >= 0x80)
                    .count();
                if matches!(
                    &bytes[at..at + length],
                    b"not" | b"lambda" | b"await" | b"else" | b"elif" | b"if"
                ) {
                    prefixes += 1;
                }
                at += length;
            }
            _ => at += 1,
        }
        // A thousand terms of a sum nest to the left, which is harmless up to the compiler's own limit.
        if prefixes > most * 50 {
            return Err(TooDeep { message: "too many nested operators", line });
        }
    }
    Ok(())
}

/// Where a string literal ends that starts at a quote.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let quote = bytes[start];
    let triple = bytes[start..].starts_with(&[quote; 3]);
    let mut at = start + if triple { 3 } else { 1 };
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'\n' if !triple => return at,
            byte if byte == quote && (!triple || bytes[at..].starts_with(&[quote; 3])) => {
                return at + if triple { 3 } else { 1 };
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_too_deep_to_parse_binds_nothing() {
        assert_eq!(bound_from(&format!("x = {}1", "(".repeat(100_000)), None), Vec::<String>::new());
    }

    #[test]
    fn only_a_last_expression_is_kept() {
        assert_eq!(
            keep_last_value("x = 1\nx + 1  # more").unwrap(),
            "x = 1\n__gimlet_value__ = (x + 1)  # more"
        );
        assert_eq!(keep_last_value("a; b").unwrap(), "a; __gimlet_value__ = (b)");
        assert_eq!(keep_last_value("x = 1"), None);
        assert_eq!(keep_last_value("x: int = 1"), None);
        assert_eq!(keep_last_value("x +"), None);
        assert_eq!(keep_last_value(""), None);
        assert_eq!(keep_last_value("for i in x:\n    i"), None);
    }

    #[test]
    fn bindings_are_those_of_the_top_level() {
        let names = |code: &str| bound_from(code, None);
        assert_eq!(names("a = b = 1\nc: int = 2\nd += 1\n(e, *f) = g"), ["a", "b", "c", "d", "e", "f"]);
        assert_eq!(names("import os.path, json as j\nfrom x import y as z, w"), ["j", "os", "w", "z"]);
        assert_eq!(names("def f(a):\n    b = 1\nclass C:\n    d = 1"), ["C", "f"]);
        assert_eq!(names("def f():\n    global g\n    g = 1"), ["f", "g"]);
        assert_eq!(names("[i for i in range(3) if (last := i)]"), ["last"]);
        assert_eq!(names("for i in x:\n    with y as z:\n        pass\ndel q"), ["i", "q", "z"]);
        assert_eq!(names("try:\n    pass\nexcept E as e:\n    pass"), ["e"]);
        assert_eq!(
            names("match x:\n    case [a, *b]:\n        pass\n    case {'k': v, **r}:\n        pass"),
            ["a", "b", "r", "v"]
        );
        assert_eq!(names("lambda q: (w := q)"), Vec::<String>::new());
        assert_eq!(names("not python ("), Vec::<String>::new());
    }

    #[test]
    fn what_comes_after_a_line_is_lost() {
        assert_eq!(bound_from("a = 1\nb = call()\nc = 3", Some(2)), ["b", "c"]);
    }

    #[test]
    fn depth_is_found_without_parsing() {
        assert_eq!(check_depth(&"(".repeat(101), 100).unwrap_err().message, "too many nested parentheses");
        assert_eq!(check_depth(&format!("x = '{}'", "(".repeat(500)), 100), Ok(()));
        assert_eq!(check_depth(&format!("# {}\n", "(".repeat(500)), 100), Ok(()));
        let deep: String = (0..200).map(|n| format!("{}if x:\n", " ".repeat(n))).collect();
        assert_eq!(check_depth(&deep, 100).unwrap_err().message, "too many levels of indentation");
        assert!(check_depth(&format!("x = {}1", "-".repeat(100_000)), 100).is_err());
        assert!(check_depth(&format!("x = {}1", "not ".repeat(100_000)), 100).is_err());
        assert_eq!(check_depth("def f():\n    return [(1, 2), {3: 4}]\n", 100), Ok(()));
    }
}
