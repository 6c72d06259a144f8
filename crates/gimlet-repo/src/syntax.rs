//! Syntax errors, found before anything is written: the first place that the parser could not make sense of.

use std::path::Path;

use tree_sitter::{Node, Tree};

use crate::language::{Language, MOST_BYTES};

/// Longest quoted line.
const QUOTED: usize = 120;

/// A place that is not valid in the file's language.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct SyntaxProblem {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong, with the line quoted.
    pub text: String,
}

/// The first syntax error of a file; `None` if there is none or the language is not known. JSON is checked, too.
pub fn problem(path: &Path, text: &str) -> Option<SyntaxProblem> {
    if path.extension().is_some_and(|ending| ending == "json") {
        return json(text);
    }
    let tree = parsed(path, text)?;
    first(&tree).map(|node| describe(node, text))
}

/// A syntax error that a change brings: one in `after`, while `before` had none, or fewer. An empty `before` is a new file.
/// Files with macros of C are judged only if the parser understood them before.
pub fn new_problem(path: &Path, before: &str, after: &str) -> Option<SyntaxProblem> {
    let found = problem(path, after)?;
    if problem(path, before).is_none() {
        return Some(found);
    }
    match Language::of(path)? {
        Language::C | Language::Cpp | Language::Bash => None,
        Language::Python
        | Language::Rust
        | Language::JavaScript
        | Language::TypeScript
        | Language::Tsx
        | Language::Go
        | Language::Java
        | Language::Ruby => {
            let (old, new) = (parsed(path, before)?, parsed(path, after)?);
            (count(&new) > count(&old)).then_some(found)
        }
    }
}

/// Whether two texts of a file differ in comments and in the space around tokens only. In a language that is not known,
/// and where the parser does not understand a text, they do not.
pub fn is_same_code(path: &Path, before: &str, after: &str) -> bool {
    let Some(language) = Language::of(path) else { return false };
    let shebang = |text: &str| text.lines().next().filter(|line| line.starts_with("#!")).map(str::to_owned);
    if before.len().max(after.len()) as u64 > MOST_BYTES || shebang(before) != shebang(after) {
        return false;
    }
    let tree = |text| language.parse(text).filter(|tree: &Tree| !tree.root_node().has_error());
    let (Some(old), Some(new)) = (tree(before), tree(after)) else { return false };
    tokens(&old, before) == tokens(&new, after)
}

/// The tokens of a tree without comments, each with its depth: that is how indentation counts where it has a meaning.
fn tokens<'a>(tree: &Tree, text: &'a str) -> Vec<(u32, &'a str)> {
    let mut cursor = tree.walk();
    let mut found = Vec::new();
    loop {
        let node = cursor.node();
        let is_comment = node.is_extra() && node.kind().contains("comment");
        // A string may be one token with spaces in it that count, or several with spaces between them that do too.
        let is_whole = node.child_count() == 0 || node.kind().contains("string");
        if is_whole && !is_comment {
            found.push((cursor.depth(), text.get(node.byte_range()).unwrap_or_default()));
        }
        if !is_whole && !is_comment && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return found;
            }
        }
    }
}

fn parsed(path: &Path, text: &str) -> Option<Tree> {
    if text.len() as u64 > MOST_BYTES {
        return None;
    }
    Language::of(path)?.parse(text).filter(|tree| tree.root_node().has_error())
}

/// Comments are not JSON, but some programs read them; a file that has them is not checked.
fn json(text: &str) -> Option<SyntaxProblem> {
    if text.lines().any(|line| line.trim_start().starts_with("//") || line.trim_start().starts_with("/*")) {
        return None;
    }
    let error = serde_json::from_str::<serde::de::IgnoredAny>(text).err()?;
    // A file of JSON lines has one value on each.
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    if lines().count() > 1 && lines().all(|line| serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok())
    {
        return None;
    }
    let line = error.line().max(1);
    let quoted = quote(text, line - 1);
    Some(SyntaxProblem {
        line,
        column: error.column().max(1),
        text: format!("line {line}: not valid JSON: {error}\n{quoted}"),
    })
}

/// The first error or missing token, in the order of the text. Only branches with an error are entered, without recursion.
fn first(tree: &Tree) -> Option<Node<'_>> {
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        if node.is_missing() {
            return Some(node);
        }
        if node.is_error() {
            return Some(deepest(node));
        }
        if node.has_error() && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return None;
            }
        }
    }
}

/// An error node can hold half the file; a missing token or an error inside of it is the better place.
fn deepest(error: Node<'_>) -> Node<'_> {
    let mut cursor = error.walk();
    let mut best = error;
    loop {
        let children: Vec<Node<'_>> = best.children(&mut cursor).take(1000).collect();
        match children.into_iter().find(|child| child.is_missing() || child.is_error()) {
            Some(inner) => best = inner,
            None => return best,
        }
    }
}

fn count(tree: &Tree) -> usize {
    let mut cursor = tree.walk();
    let mut found = 0;
    loop {
        let node = cursor.node();
        if node.is_missing() || node.is_error() {
            found += 1;
        }
        if node.has_error() && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return found;
            }
        }
    }
}

fn describe(node: Node<'_>, text: &str) -> SyntaxProblem {
    let (row, bytes) = (node.start_position().row, node.start_position().column);
    let line = text.lines().nth(row).unwrap_or_default();
    let column = line.get(..bytes).map_or(bytes, |before| before.chars().count()) + 1;
    let what = if node.is_missing() {
        format!("`{}` is missing", node.kind())
    } else {
        match text.get(node.byte_range()).and_then(|found| found.split_whitespace().next()) {
            Some(word) => format!("`{}` is not expected here", word.chars().take(40).collect::<String>()),
            None => "something is missing here".into(),
        }
    };
    let number = row + 1;
    SyntaxProblem { line: number, column, text: format!("line {number}: {what}\n{}", quote(text, row)) }
}

fn quote(text: &str, row: usize) -> String {
    let line = text.lines().nth(row).unwrap_or_default();
    format!("{:>4} | {}", row + 1, line.chars().take(QUOTED).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(path: &str, text: &str) -> Option<usize> {
        problem(Path::new(path), text).map(|found| found.line)
    }

    #[test]
    fn errors_are_found_in_every_language() {
        for (path, good, bad) in [
            ("a.py", "def f(x):\n    return x\n", "def f(x:\n    return x\n"),
            ("a.rs", "fn f() -> u8 { 1 }\n", "fn f() -> u8 { 1 \n"),
            ("a.js", "const f = () => 1;\n", "const f = ( => 1;\n"),
            ("a.ts", "let x: number = 1;\n", "let x: = 1;\n"),
            ("a.tsx", "const a = <b>x</b>;\n", "const a = <b>x</c;\n"),
            ("a.go", "package a\n\nfunc F() int { return 1 }\n", "package a\n\nfunc F( int { return 1 }\n"),
            ("A.java", "class A { int f() { return 1; } }\n", "class A { int f( { return 1; } }\n"),
            ("a.c", "int f(void) { return 1; }\n", "int f(void) { return 1; \n"),
            ("a.cpp", "class A { int x; };\n", "class A { int x; \n"),
            ("a.rb", "def f\n  1\nend\n", "def f\n  1\n"),
            ("a.sh", "if true; then echo x; fi\n", "if true; then echo x\n"),
            ("a.json", "{\"a\": [1]}", "{\"a\": [1}"),
        ] {
            assert_eq!(at(path, good), None, "{path}");
            let found = problem(Path::new(path), bad).unwrap_or_else(|| panic!("{path} has an error"));
            assert!(found.line >= 1 && found.column >= 1 && found.text.contains(" | "), "{path}: {found:?}");
        }
        assert_eq!(at("notes.txt", "((("), None);
        assert_eq!(at("tsconfig.json", "// comment\n{}"), None);
        assert_eq!(at("rows.json", "{\"a\":1}\n{\"a\":2}\n"), None);
    }

    #[test]
    fn prose_in_front_of_code_is_an_error() {
        assert!(at("a.py", "Here is the code:\n\n```python\ndef f():\n    pass\n```\n").is_some());
    }

    #[test]
    fn only_new_errors_count() {
        let path = Path::new("a.py");
        let (good, bad) = ("x = 1\n", "x = (\n");
        assert!(new_problem(path, good, bad).is_some());
        assert!(new_problem(path, "", bad).is_some());
        assert!(new_problem(path, bad, bad).is_none());
        assert!(new_problem(path, bad, good).is_none());
        assert!(new_problem(Path::new("a.c"), "FOO(x) { BAR", "FOO(x) { BAR BAZ(").is_none());
    }

    #[test]
    fn comments_are_no_code() {
        for (path, before, after, same) in [
            ("a.py", "x = 1\n", "# One.\nx = 1  # Here.\n", true),
            ("a.py", "x = 1\n", "x = 2  # Here.\n", false),
            ("a.py", "if a:\n    b()\nc()\n", "if a:\n    b()\n    c()\n", false),
            ("a.py", "s = 'a b'\n", "s = 'a  b'\n", false),
            ("a.py", "s = '# a'\n", "s = '# b'\n", false),
            ("a.rs", "fn f() {}\n", "/// Does nothing.\nfn f() {}\n", true),
            ("a.rs", "fn f() {}\n", "fn g() {}\n", false),
            ("a.js", "f(1)\n", "/* one */ f(1)\n", true),
            ("a.go", "package a\n", "// Package a.\npackage a\n", true),
            ("a.sh", "#!/bin/sh\nls\n", "#!/bin/sh\n# List.\nls\n", true),
            ("a.sh", "#!/bin/sh\nls\n", "#!/bin/bash\nls\n", false),
            ("a.unknown", "x", "x", false),
        ] {
            assert_eq!(is_same_code(Path::new(path), before, after), same, "{path}: {before} {after}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_text_is_survived(text in "[a-z(){}\\[\\]:;\"'<>=\n\t /*#]{0,300}", language in 0usize..EXTENSIONS.len()) {
            let name = format!("a.{}", EXTENSIONS[language].0);
            if let Some(found) = problem(Path::new(&name), &text) {
                prop_assert!(found.line <= text.lines().count() + 1);
            }
        }
    }
    use crate::language::EXTENSIONS;
}
