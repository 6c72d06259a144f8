//! What a file defines: signatures and first doc lines, no bodies.

use tree_sitter::{Node, Tree};

use crate::language::{Kind, Language};

/// Longest signature or doc line.
const LINE_CHARS: usize = 160;

/// A parsed file.
pub struct Outline {
    tree: Tree,
    /// In order of their beginnings.
    pub definitions: Vec<Definition>,
}

/// A definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// The line that names it, from 1.
    pub line: usize,
    /// First line, which an annotation may have for itself.
    pub start_line: usize,
    /// Last line.
    pub end_line: usize,
    /// The definition up to its body.
    pub signature: String,
    /// The first line of its documentation.
    pub doc: Option<String>,
    /// Index of the definition around it.
    pub parent: Option<usize>,
    /// Whether it lies inside a function.
    pub is_local: bool,
}

/// What part of the code a place is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The first line of a definition.
    Definition,
    /// A comment.
    Comment,
    /// A string.
    String,
    /// Anything else.
    Code,
}

impl Outline {
    /// Parses a file.
    pub fn of(language: Language, text: &str) -> Option<Self> {
        let tree = language.parse(text)?;
        let definitions = collect(language, &tree, text);
        Some(Outline { tree, definitions })
    }

    /// The definitions around a line, outermost first. The one that begins on the line counts.
    pub fn around(&self, line: usize) -> Vec<&Definition> {
        let innermost = self
            .definitions
            .iter()
            .enumerate()
            .filter(|(_, found)| found.start_line <= line && line <= found.end_line)
            .min_by_key(|(index, found)| (found.end_line - found.start_line, std::cmp::Reverse(*index)))
            .map(|(index, _)| index);
        let mut around: Vec<&Definition> =
            std::iter::successors(innermost, |index| self.definitions[*index].parent)
                .map(|index| &self.definitions[index])
                .collect();
        around.reverse();
        around
    }

    /// What a place belongs to; the column counts bytes from 0.
    pub fn part(&self, line: usize, column: usize) -> Part {
        if self.definitions.iter().any(|found| found.line == line) {
            return Part::Definition;
        }
        let point = tree_sitter::Point { row: line.saturating_sub(1), column };
        let mut node = self.tree.root_node().descendant_for_point_range(point, point);
        while let Some(found) = node {
            if found.kind().contains("comment") {
                return Part::Comment;
            }
            if found.kind().contains("string") {
                return Part::String;
            }
            node = found.parent();
        }
        Part::Code
    }
}

/// Walks the tree without recursion: broken or hostile files nest deeper than a stack.
fn collect(language: Language, tree: &Tree, text: &str) -> Vec<Definition> {
    let mut definitions: Vec<Definition> = Vec::new();
    // The definitions around the current node: index, depth, and whether it is a function.
    let mut open: Vec<(usize, u32, bool)> = Vec::new();
    let mut cursor = tree.walk();
    // Counted here because the cursor would count it anew each time.
    let mut depth = 0u32;
    loop {
        let node = cursor.node();
        while open.last().is_some_and(|(_, opened, _)| *opened >= depth) {
            open.pop();
        }
        let kind = language.defines(node.kind()).filter(|kind| node.is_named() && counts(*kind, node));
        if let Some(kind) = kind {
            let whole = decorated(node);
            definitions.push(Definition {
                line: name_row(node) + 1,
                start_line: node.start_position().row + 1,
                end_line: last_line(node),
                signature: signature(node, kind, text),
                doc: doc(language, node, whole, text),
                parent: open.last().map(|(index, _, _)| *index),
                is_local: open.iter().any(|(_, _, function)| *function),
            });
            let is_function = matches!(kind, Kind::Function | Kind::Arrow);
            open.push((definitions.len() - 1, depth, is_function));
        }
        if cursor.goto_first_child() {
            depth += 1;
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return definitions;
            }
            depth -= 1;
        }
    }
}

pub(crate) fn counts(kind: Kind, node: Node<'_>) -> bool {
    match kind {
        Kind::Function | Kind::Type | Kind::Container | Kind::Value => true,
        Kind::Arrow => node.child_by_field_name("value").is_some_and(|value| {
            ["arrow_function", "function_expression", "function", "class"].contains(&value.kind())
        }),
        Kind::Prototype => {
            let mut declarator = node.child_by_field_name("declarator");
            while let Some(found) = declarator {
                if found.kind() == "function_declarator" {
                    return true;
                }
                declarator = found.child_by_field_name("declarator");
            }
            false
        }
        Kind::Tagged => node.child_by_field_name("body").is_some(),
    }
}

/// The node with what belongs in front of it: decorators, `export`, `template <…>`.
fn decorated(node: Node<'_>) -> Node<'_> {
    const WRAPPERS: &[&str] = &[
        "decorated_definition",
        "export_statement",
        "template_declaration",
        "lexical_declaration",
        "variable_declaration",
        "type_declaration",
        "ambient_declaration",
        "expression_statement",
        "type_definition",
    ];
    let mut whole = node;
    while let Some(parent) = whole.parent().filter(|parent| WRAPPERS.contains(&parent.kind())) {
        whole = parent;
    }
    whole
}

/// The row of the node's name.
fn name_row(node: Node<'_>) -> usize {
    let name = node.child_by_field_name("name").or_else(|| node.child_by_field_name("declarator"));
    name.unwrap_or(node).start_position().row
}

/// The last line with something of the node on it; some grammars let a node end at the next line's beginning.
fn last_line(node: Node<'_>) -> usize {
    let end = node.end_position();
    if end.column == 0 && end.row > node.start_position().row { end.row } else { end.row + 1 }
}

/// The node's first child that begins before `end` and is a comment.
fn comment_before(node: Node<'_>, end: usize) -> Option<Node<'_>> {
    let mut cursor = node.walk();
    node.children(&mut cursor).find(|child| child.kind().contains("comment") && child.start_byte() < end)
}

/// The text up to the body, on one line.
fn signature(node: Node<'_>, kind: Kind, text: &str) -> String {
    let value = node.child_by_field_name("value");
    let body = match kind {
        Kind::Arrow => value.and_then(|value| value.child_by_field_name("body")),
        Kind::Value => value,
        Kind::Function | Kind::Type | Kind::Container | Kind::Prototype | Kind::Tagged => {
            node.child_by_field_name("body").or_else(|| {
                node.child_by_field_name("type")
                    .filter(|found| found.kind().ends_with("_type"))
                    .and_then(members)
            })
        }
    };
    let end = body.map_or(node.end_byte(), |body| body.start_byte());
    let end = comment_before(node, end).map_or(end, |comment| comment.start_byte());
    let whole = text.get(node.start_byte()..end).unwrap_or_default();
    // Without a body to cut at, more than one line is more than a signature; a parameter list may still span some.
    let whole = if body.is_some() { whole } else { whole.lines().next().unwrap_or_default() };
    let words = whole.split_whitespace().skip_while(|word| word.starts_with('@') && *word != "@interface");
    let words: Vec<&str> = keyword(node, text).into_iter().chain(words).collect();
    let line = words.join(" ").replace("( ", "(").replace(", )", ")").replace(" )", ")");
    shorten(line.trim_end_matches([' ', '{', '=', ':', ';']).trim_end_matches("=>").trim_end())
}

/// The word in front of the node that says what it is: `const` of a variable, `type` in Go.
fn keyword<'t>(node: Node<'_>, text: &'t str) -> Option<&'t str> {
    const HOLDERS: &[&str] = &["lexical_declaration", "variable_declaration", "type_declaration"];
    let holder = node.parent().filter(|parent| HOLDERS.contains(&parent.kind()))?;
    text.get(holder.child(0)?.byte_range())
}

/// Where the members of a Go type begin.
fn members(found: Node<'_>) -> Option<Node<'_>> {
    let mut cursor = found.walk();
    found.children(&mut cursor).find(|child| child.kind() == "field_declaration_list" || child.kind() == "{")
}

/// The first line of what is said about a definition.
fn doc(language: Language, node: Node<'_>, whole: Node<'_>, text: &str) -> Option<String> {
    if language == Language::Python {
        let first = node.child_by_field_name("body")?.named_child(0)?;
        let string = if first.kind() == "expression_statement" { first.named_child(0)? } else { first };
        let literal = &text[string.byte_range()];
        return if string.kind() == "string" {
            first_words(literal.trim_start_matches(['r', 'R', 'u', 'U']))
        } else {
            None
        };
    }
    // The comments that end right above it, of which the first line matters.
    let holder = || whole.parent().filter(|parent| parent.kind() == "body_statement");
    let mut above = whole.prev_sibling().or_else(|| holder()?.prev_sibling());
    let (mut row, mut first) = (whole.start_position().row, None);
    while let Some(found) = above {
        let is_attribute = found.kind() == "attribute_item";
        let touches = last_line(found) >= row;
        let is_inner = text[found.byte_range()].starts_with("//!");
        if !touches || is_inner || !(is_attribute || found.kind().contains("comment")) {
            break;
        }
        if !is_attribute {
            // A comment behind the code of the line before belongs to that.
            let line_start = text[..found.start_byte()].rfind('\n').map_or(0, |at| at + 1);
            if !text[line_start..found.start_byte()].trim().is_empty() {
                break;
            }
            first = Some(found);
        }
        row = found.start_position().row;
        above = found.prev_sibling();
    }
    first_words(&text[first?.byte_range()])
}

/// The first line that says something, without the signs of a comment or string.
fn first_words(comment: &str) -> Option<String> {
    comment
        .lines()
        .map(|line| {
            line.trim()
                .trim_start_matches("\"\"\"")
                .trim_start_matches("'''")
                .trim_start_matches(['/', '*', '#', '!', '"', '\''])
                .trim_end_matches("*/")
                .trim_end_matches(['"', '\''])
                .trim()
        })
        .find(|line| !line.is_empty())
        .map(shorten)
}

fn shorten(line: &str) -> String {
    match line.char_indices().nth(LINE_CHARS) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line.into(),
    }
}
