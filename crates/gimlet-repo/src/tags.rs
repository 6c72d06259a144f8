//! Definitions and references of a parsed file: the names it gives and the names it uses.

use tree_sitter::Node;

use crate::language::Language;
use crate::outline::counts;

/// The names of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tags<'t> {
    /// Names it defines.
    pub(crate) definitions: Vec<&'t str>,
    /// Names it uses, with repetitions. Comments and strings do not count.
    pub(crate) references: Vec<&'t str>,
}

/// Reads the tags of a file; `None` if it cannot be parsed within the parser's limit.
pub(crate) fn tags(language: Language, text: &str) -> Option<Tags<'_>> {
    let tree = language.parse(text)?;
    let mut tags = Tags::default();
    let mut named = Vec::new();
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        if node.is_named() {
            let kind = node.kind();
            if language.defines(kind).is_some_and(|kind| counts(kind, node))
                && let Some(name) = name_of(node)
                && let Some(name_text) = text.get(name.byte_range())
            {
                named.push(name.id());
                tags.definitions.push(name_text);
            }
            if node.child_count() == 0
                && (kind.ends_with("identifier") || kind == "constant" || kind == "word")
                && named.last() != Some(&node.id())
                && let Some(name) = text.get(node.byte_range())
            {
                tags.references.push(name);
            }
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return Some(tags);
            }
        }
    }
}

/// The node of a definition's name. C hides it below declarators.
pub(crate) fn name_of(node: Node<'_>) -> Option<Node<'_>> {
    if let Some(name) = node.child_by_field_name("name") {
        return Some(innermost(name));
    }
    let mut declarator = node.child_by_field_name("declarator")?;
    while let Some(inner) = declarator.child_by_field_name("declarator") {
        declarator = inner;
    }
    Some(innermost(declarator))
}

/// `C::method` is called `method`.
fn innermost(name: Node<'_>) -> Node<'_> {
    let mut name = name;
    while let Some(inner) = name.child_by_field_name("name") {
        name = inner;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definitions(language: Language, text: &str) -> Vec<&str> {
        tags(language, text).unwrap().definitions
    }

    #[test]
    fn names_are_found_in_every_language() {
        use Language as L;
        assert_eq!(definitions(L::Python, "class A:\n  def b(self): pass\n"), ["A", "b"]);
        assert_eq!(
            definitions(L::Rust, "struct S;\nimpl S { fn new() {} }\nconst X: u8 = 1;"),
            ["S", "new", "X"]
        );
        assert_eq!(definitions(L::JavaScript, "function f() {}\nconst g = () => 1;\nlet n = 1;"), ["f", "g"]);
        assert_eq!(definitions(L::TypeScript, "interface I { m(): void }\ntype T = I;"), ["I", "m", "T"]);
        assert_eq!(definitions(L::Go, "package p\nfunc (s *S) M() {}\ntype S struct{}"), ["M", "S"]);
        assert_eq!(definitions(L::Java, "class A { A() {} int b() { return 1; } }"), ["A", "A", "b"]);
        assert_eq!(definitions(L::C, "int f(void) { return 1; }\nstruct s { int x; };"), ["f", "s"]);
        assert_eq!(definitions(L::Cpp, "void A::go() {}\nclass B {};"), ["go", "B"]);
        assert_eq!(definitions(L::Ruby, "module M\n  class C\n    def d; end\n  end\nend"), ["M", "C", "d"]);
        assert_eq!(definitions(L::Bash, "go() { echo hi; }\n"), ["go"]);
    }

    #[test]
    fn references_leave_out_comments_and_strings() {
        let tags = tags(Language::Python, "# alpha\nx = beta('gamma', y.delta)\n").unwrap();
        assert_eq!(tags.references, ["x", "beta", "y", "delta"]);
    }
}
