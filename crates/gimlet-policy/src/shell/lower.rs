//! Walks the syntax tree once and makes a [`Script`] of it.

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::ControlFlow;

use tree_sitter::{Node, ParseOptions, Parser, Tree};

use super::Foreign;
use super::ast::{Channel, Function, Origin, Pipeline, Redirection, Script, Segment, Substitution, Word};
use super::lexer::{Hole, Variables, lex};

/// Nesting deeper than this is nobody's honest command line.
const MAX_DEPTH: usize = 120;
/// Steps the parser may take, in units of its progress reports: stops texts made to be slow.
const MAX_PROGRESS: usize = 1_000;
/// The same, once it has met an error: recovering from many is quadratic.
const MAX_RECOVERY: usize = 100;
/// More commands than this in one text are refused unread.
const MAX_SEGMENTS: usize = 2_000;
/// And so are more operators than this.
const MAX_OPERATORS: usize = 10_000;

/// Why a text could not be read at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// Nested too deeply.
    TooDeep,
    /// The parser gave up, or there are too many commands.
    TooTangled,
}

/// Parses a script. Broken text is not an error: it is read as far as it goes and noted as opaque.
pub(crate) fn parse(
    source: &str,
    variables: &mut Variables,
    foreign: &dyn Foreign,
) -> Result<Script, Unreadable> {
    // The plain reading is linear, so it goes first and refuses what the grammar would choke on.
    let mut own = variables.clone();
    let lexed = lex(source, 0, source.len(), &[], &mut own);
    if lexed.segments.len() > MAX_SEGMENTS || lexed.operators > MAX_OPERATORS {
        return Err(Unreadable::TooTangled);
    }
    let tree = grammar(source)?;
    let root = tree.root_node();
    let mut walk = Walk { source, variables, foreign, script: Script::default() };
    walk.visit(root, 0)?;
    let mut script = walk.script;
    // Allowed commands must look the same to both readers.
    if let Some(odd) = lexed.odd {
        note(&mut script, odd);
    } else if lexed.segments != script.segments {
        note(&mut script, "text that can be read in two ways");
    }
    if root.has_error() {
        note(&mut script, "a syntax error");
        // Where the grammar is lost, the plain reading still shows what the words would do.
        script.segments.extend(lexed.segments);
        // So does the reading without double quotes, which shows what is inside `"$(( … ))"`.
        let bare = source.replace('"', "");
        script.segments.extend(lex(&bare, 0, bare.len(), &[], &mut own).segments);
    }
    Ok(script)
}

/// The text as the grammar reads it.
fn grammar(source: &str) -> Result<Tree, Unreadable> {
    thread_local! {
        // Making a parser takes as long as reading a short command with it.
        static PARSER: Cell<Option<Parser>> = const { Cell::new(None) };
    }
    let mut parser = match PARSER.take() {
        Some(parser) => parser,
        None => {
            let mut parser = Parser::new();
            parser.set_language(&tree_sitter_bash::LANGUAGE.into()).map_err(|_| Unreadable::TooTangled)?;
            parser
        }
    };
    let (mut progress, mut recovery) = (0usize, 0usize);
    let mut watch = |state: &tree_sitter::ParseState| {
        progress += 1;
        recovery += usize::from(state.has_error());
        if progress > MAX_PROGRESS || recovery > MAX_RECOVERY {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let shadow = ascii(source);
    let bytes = shadow.as_bytes();
    let tree = parser
        .parse_with_options(
            &mut |offset, _| bytes.get(offset..).unwrap_or_default(),
            None,
            Some(ParseOptions::new().progress_callback(&mut watch)),
        )
        .ok_or(Unreadable::TooTangled);
    // One that gave up would go on where it stopped, in the next text.
    parser.reset();
    PARSER.set(Some(parser));
    tree
}

/// The text as the grammar sees it: the same length, and only characters its scanner is safe with. To a shell every
/// other character is an ordinary letter of a word, so the structure stays the same; words are read from the original.
fn ascii(source: &str) -> Cow<'_, str> {
    if source.bytes().all(|byte| matches!(byte, b'\n' | b'\t' | b' '..=b'~')) {
        return Cow::Borrowed(source);
    }
    let mut shadow = String::with_capacity(source.len());
    for char in source.chars() {
        match char {
            '\n' | '\t' | ' '..='~' => shadow.push(char),
            other => (0..other.len_utf8()).for_each(|_| shadow.push('x')),
        }
    }
    Cow::Owned(shadow)
}

fn note(script: &mut Script, what: &str) {
    if !script.opaque.iter().any(|known| known == what) {
        script.opaque.push(what.to_owned());
    }
}

struct Walk<'a> {
    source: &'a str,
    variables: &'a mut Variables,
    foreign: &'a dyn Foreign,
    script: Script,
}

impl Walk<'_> {
    fn visit(&mut self, node: Node<'_>, depth: usize) -> Result<(), Unreadable> {
        if depth > MAX_DEPTH {
            return Err(Unreadable::TooDeep);
        }
        match node.kind() {
            "program" | "list" | "if_statement" | "elif_clause" | "else_clause" | "do_group"
            | "negated_command" => self.children(node, depth),
            "test_command" if self.is_bracket(node) => self.command(node, depth),
            "command"
            | "declaration_command"
            | "unset_command"
            | "variable_assignment"
            | "variable_assignments" => self.command(node, depth),
            "pipeline" => self.pipeline(node, depth),
            "redirected_statement" => self.redirected(node, depth),
            "function_definition" => self.function(node, depth),
            "for_statement" => self.for_loop(node, depth),
            "command_substitution" | "process_substitution" => {
                let (hole, substitution) = self.substitution(node, depth)?;
                drop(hole);
                self.script
                    .segments
                    .push(Segment { substitutions: vec![substitution], ..Segment::default() });
                Ok(())
            }
            "file_redirect" | "herestring_redirect" => {
                // `$(< file)` is a redirection without a command.
                let (redirections, substitutions) = self.redirection(node, depth)?;
                self.script.segments.push(Segment { redirections, substitutions, ..Segment::default() });
                Ok(())
            }
            "comment" | "\n" | ";" | "&&" | "||" => Ok(()),
            kind => {
                if node.is_named() {
                    note(&mut self.script, &kind.replace('_', " "));
                } else if kind == "&" {
                    note(&mut self.script, "a command in the background");
                }
                self.children(node, depth)
            }
        }
    }

    fn children(&mut self, node: Node<'_>, depth: usize) -> Result<(), Unreadable> {
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            self.visit(child, depth + 1)?;
        }
        Ok(())
    }

    /// A simple command: its words are lexed from the text, with the substitutions the tree found as holes.
    fn command(&mut self, node: Node<'_>, depth: usize) -> Result<(), Unreadable> {
        let (holes, substitutions) = self.holes(node, depth)?;
        let lexed = lex(self.source, node.start_byte(), node.end_byte(), &holes, self.variables);
        if let Some(odd) = lexed.odd {
            note(&mut self.script, odd);
        }
        let mut segments = lexed.segments;
        if node.kind() == "declaration_command" {
            // `export X=rm` sets X as well.
            for word in segments.iter().flat_map(|segment| &segment.argv) {
                if let Some((name, value)) = word.text.split_once('=') {
                    self.variables.set(name.to_owned(), word.part(value));
                }
            }
        }
        match segments.last_mut() {
            Some(last) => last.substitutions = substitutions,
            None if substitutions.is_empty() => {}
            None => segments.push(Segment { substitutions, ..Segment::default() }),
        }
        self.script.segments.extend(segments);
        if self.script.segments.len() > MAX_SEGMENTS { Err(Unreadable::TooTangled) } else { Ok(()) }
    }

    /// The substitutions inside a node, without looking into them for more.
    fn holes(&mut self, node: Node<'_>, depth: usize) -> Result<(Vec<Hole>, Vec<Substitution>), Unreadable> {
        let (mut holes, mut substitutions) = (Vec::new(), Vec::new());
        let mut pending = vec![(node, depth)];
        let mut cursor = node.walk();
        while let Some((node, depth)) = pending.pop() {
            if depth > MAX_DEPTH {
                return Err(Unreadable::TooDeep);
            }
            for child in node.children(&mut cursor) {
                match child.kind() {
                    "command_substitution" | "process_substitution" => {
                        let (hole, substitution) = self.substitution(child, depth + 1)?;
                        holes.push(hole);
                        substitutions.push(substitution);
                    }
                    "arithmetic_expansion" => {
                        let (start, end) = (child.start_byte(), child.end_byte());
                        holes.push(Hole { start, end, value: None, origin: Origin::Local });
                        note(&mut self.script, "arithmetic");
                        pending.push((child, depth + 1));
                    }
                    "heredoc_redirect" => note(&mut self.script, "a here-document"),
                    _ if child.child_count() == 0 && depth < MAX_DEPTH => {}
                    _ => pending.push((child, depth + 1)),
                }
            }
        }
        holes.sort_by_key(|hole| hole.start);
        Ok((holes, substitutions))
    }

    fn substitution(&mut self, node: Node<'_>, depth: usize) -> Result<(Hole, Substitution), Unreadable> {
        note(&mut self.script, "a substitution");
        let mut inner = Walk {
            source: self.source,
            variables: &mut *self.variables,
            foreign: self.foreign,
            script: Script::default(),
        };
        inner.children(node, depth + 1)?;
        let script = inner.script;
        let text = self.source.get(node.start_byte()..node.end_byte()).unwrap_or_default();
        let channel = if text.starts_with('>') { Channel::Drains } else { Channel::Feeds };
        let value = printed(&script).filter(|_| !text.starts_with(['<', '>']));
        let foreign = script
            .segments
            .iter()
            .flat_map(|segment| &segment.argv)
            .any(|word| self.foreign.is_foreign(&word.text));
        let origin = if foreign && value.is_none() { Origin::Foreign } else { Origin::Local };
        let hole = Hole { start: node.start_byte(), end: node.end_byte(), value, origin };
        Ok((hole, Substitution { channel, script }))
    }

    fn pipeline(&mut self, node: Node<'_>, depth: usize) -> Result<(), Unreadable> {
        let mut stages = Vec::new();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor).filter(Node::is_named) {
            let start = self.script.segments.len();
            self.visit(child, depth + 1)?;
            stages.push(start..self.script.segments.len());
        }
        self.script.pipelines.push(Pipeline { stages });
        Ok(())
    }

    /// A statement with redirections: they belong to its command, or to every command of a group.
    fn redirected(&mut self, node: Node<'_>, depth: usize) -> Result<(), Unreadable> {
        let start = self.script.segments.len();
        let body = node.child_by_field_name("body");
        if let Some(body) = body {
            self.visit(body, depth + 1)?;
        }
        let end = self.script.segments.len();
        let single = body.is_none_or(|body| matches!(body.kind(), "command" | "pipeline" | "list"));
        let mut extra = Segment::default();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "file_redirect" | "herestring_redirect" => {
                    let (found, substitutions) = self.redirection(child, depth)?;
                    extra.redirections.extend(found);
                    extra.substitutions.extend(substitutions);
                }
                "heredoc_redirect" => self.heredoc(child, depth, start..end, &mut extra)?,
                _ if body.is_some_and(|body| body.id() == child.id()) => {}
                _ => self.visit(child, depth + 1)?,
            }
        }
        let targets = if end == start {
            self.script.segments.insert(start, Segment::default());
            start..start + 1
        } else if single {
            end - 1..end
        } else {
            start..end
        };
        for segment in self.script.segments.get_mut(targets).unwrap_or_default() {
            segment.redirections.extend(extra.redirections.iter().cloned());
            segment.heredocs.extend(extra.heredocs.iter().cloned());
            segment.substitutions.extend(extra.substitutions.iter().cloned());
        }
        Ok(())
    }

    fn redirection(
        &mut self,
        node: Node<'_>,
        depth: usize,
    ) -> Result<(Vec<Redirection>, Vec<Substitution>), Unreadable> {
        let (holes, substitutions) = self.holes(node, depth)?;
        let lexed = lex(self.source, node.start_byte(), node.end_byte(), &holes, self.variables);
        if let Some(odd) = lexed.odd {
            note(&mut self.script, odd);
        }
        let mut found = Vec::new();
        for mut segment in lexed.segments {
            found.append(&mut segment.redirections);
            // The grammar counts `> out arg` as one redirection; the shell takes `arg` as an argument.
            if !segment.argv.is_empty()
                && let Some(last) = self.script.segments.last_mut()
            {
                last.argv.append(&mut segment.argv);
            }
        }
        Ok((found, substitutions))
    }

    /// A here-document. The grammar puts what follows on its line inside it: `cat <<E | sh`, `cat <<E && x`.
    fn heredoc(
        &mut self,
        node: Node<'_>,
        depth: usize,
        body: std::ops::Range<usize>,
        extra: &mut Segment,
    ) -> Result<(), Unreadable> {
        note(&mut self.script, "a here-document");
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "heredoc_body" => {
                    extra.heredocs.push(
                        self.source.get(child.start_byte()..child.end_byte()).unwrap_or_default().to_owned(),
                    );
                    let (_, substitutions) = self.holes(child, depth + 1)?;
                    extra.substitutions.extend(substitutions);
                }
                "file_redirect" | "herestring_redirect" => {
                    let (found, substitutions) = self.redirection(child, depth)?;
                    extra.redirections.extend(found);
                    extra.substitutions.extend(substitutions);
                }
                "heredoc_start" | "heredoc_end" | "<<" | "<<-" => {}
                _ => {
                    let start = self.script.segments.len();
                    self.visit(child, depth + 1)?;
                    let end = self.script.segments.len();
                    if end > start && !body.is_empty() {
                        // Counting it as piped is right for `|` and harmless for the rest.
                        self.script.pipelines.push(Pipeline { stages: vec![body.clone(), start..end] });
                    }
                }
            }
        }
        // The grammar loses some bodies, such as one that starts with a backslash, so everything after this line counts too.
        let after = self.source.get(node.start_byte()..).and_then(|rest| rest.split_once('\n'));
        extra.heredocs.extend(after.map(|(_, rest)| rest.to_owned()));
        Ok(())
    }

    fn function(&mut self, node: Node<'_>, depth: usize) -> Result<(), Unreadable> {
        note(&mut self.script, "a function");
        let name = node
            .child_by_field_name("name")
            .and_then(|name| self.source.get(name.start_byte()..name.end_byte()));
        let name = name.unwrap_or_default().to_owned();
        let start = self.script.segments.len();
        self.children(node, depth)?;
        self.script.functions.push(Function { name, body: start..self.script.segments.len() });
        Ok(())
    }

    /// Whether a test is written `[ … ]`, which is a command like any other; `[[ … ]]` is not.
    fn is_bracket(&self, node: Node<'_>) -> bool {
        let text = self.source.get(node.start_byte()..node.end_byte()).unwrap_or_default();
        text.starts_with('[') && !text.starts_with("[[")
    }

    fn for_loop(&mut self, node: Node<'_>, depth: usize) -> Result<(), Unreadable> {
        let Some(body) = node.child_by_field_name("body").filter(|body| body.kind() == "do_group") else {
            note(&mut self.script, "a loop");
            return self.children(node, depth);
        };
        let mut cursor = node.walk();
        let (mut holes, mut substitutions) = (Vec::new(), Vec::new());
        for value in node.children_by_field_name("value", &mut cursor) {
            if matches!(value.kind(), "command_substitution" | "process_substitution") {
                let (hole, substitution) = self.substitution(value, depth + 1)?;
                holes.push(hole);
                substitutions.push(substitution);
            } else {
                let (found, inner) = self.holes(value, depth + 1)?;
                holes.extend(found);
                substitutions.extend(inner);
            }
        }
        // The lexer reads the header and sets the variable.
        let lexed = lex(self.source, node.start_byte(), body.start_byte(), &holes, self.variables);
        if let Some(odd) = lexed.odd {
            note(&mut self.script, odd);
        }
        if !substitutions.is_empty() || !lexed.segments.is_empty() {
            self.script.segments.extend(lexed.segments);
            self.script.segments.push(Segment { substitutions, ..Segment::default() });
        }
        self.visit(body, depth + 1)
    }
}

/// What a substitution prints, when it is a plain `echo` or `printf` of known text, or looks up a program.
fn printed(script: &Script) -> Option<Word> {
    let [segment] = script.segments.as_slice() else { return None };
    let (program, rest) = segment.argv.split_first()?;
    let known = rest.iter().all(Word::is_known) && segment.redirections.is_empty();
    let words =
        rest.iter().map(|word| word.text.as_str()).filter(|text| !matches!(*text, "-n" | "-e" | "%s"));
    let text = match program.text.as_str() {
        "echo" | "printf" => words.collect::<Vec<_>>().join(" "),
        "which" | "command" | "type" | "whereis" => rest.last()?.text.clone(),
        _ => return None,
    };
    known.then_some(Word { text, certainty: super::Certainty::Unknown, origin: Origin::Local })
}
