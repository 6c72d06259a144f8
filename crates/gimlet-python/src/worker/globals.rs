//! A cell's top-level names, compiled as the globals they are.
//!
//! Code of a module may run on locals that are no dict, so the compiler has its names looked up through the mapping
//! protocol, where every builtin costs an exception first. A session's variables are a plain dict: declared `global`, they
//! are found by the interpreter's inline caches. That pays where names are looked up again and again, in loops.

use std::collections::BTreeSet;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Comprehension, Expr, Identifier, Mod, ModModule, Stmt, StmtGlobal};
use ruff_python_parser::parse_module;
use ruff_source_file::SourceFileBuilder;
use ruff_text_size::{Ranged, TextRange, TextSize};
use rustpython_vm::builtins::PyCode;
use rustpython_vm::compiler::Mode;
use rustpython_vm::compiler::codegen::compile::compile_top;
use rustpython_vm::{PyRef, VirtualMachine};

/// The code with its names as globals, if it is worth it and nothing in it forbids it.
pub(crate) fn compile(code: &str, file: &str, vm: &VirtualMachine) -> Option<PyRef<PyCode>> {
    let mut module = parse_module(code).ok()?.into_syntax();
    declare(&mut module)?;
    let source = SourceFileBuilder::new(file, code).finish();
    let compiled = compile_top(Mod::Module(module), source, Mode::Exec, vm.compile_opts()).ok()?;
    Some(PyCode::new_ref_from_bytecode(vm, compiled))
}

/// Adds a `global` statement for the names of the top level, after what must come first.
fn declare(module: &mut ModModule) -> Option<()> {
    let mut finder = Finder::default();
    finder.visit_body(&module.body);
    if !finder.loops {
        return None;
    }
    let place = module.body.iter().take_while(|statement| must_come_first(statement)).count();
    let at = module.body.get(place).map_or(TextSize::default(), Ranged::start);
    let range = TextRange::empty(at);
    let names = finder.names.difference(&finder.barred);
    let names: Vec<Identifier> = names.map(|name| Identifier::new(*name, range)).collect();
    module.body.insert(place, Stmt::Global(StmtGlobal { node_index: Default::default(), range, names }));
    Some(())
}

/// A docstring, or an import from `__future__`.
fn must_come_first(statement: &Stmt) -> bool {
    match statement {
        Stmt::Expr(expression) => expression.value.is_string_literal_expr(),
        Stmt::ImportFrom(import) => import.module.as_ref().is_some_and(|module| module == "__future__"),
        _ => false,
    }
}

/// Finds names and loops. Names of functions inside are found too, which does no harm: only the top level is declared.
#[derive(Default)]
struct Finder<'a> {
    names: BTreeSet<&'a str>,
    /// Names that may not be global: those with an annotation, and the variables of comprehensions, which are their own.
    barred: BTreeSet<&'a str>,
    loops: bool,
}

impl<'a> Visitor<'a> for Finder<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::For(_) | Stmt::While(_) => self.loops = true,
            Stmt::AnnAssign(annotated) => {
                if let Expr::Name(name) = annotated.target.as_ref() {
                    self.barred.insert(name.id.as_str());
                }
            }
            _ => {}
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Name(name) = expression {
            self.names.insert(name.id.as_str());
        }
        visitor::walk_expr(self, expression);
    }

    fn visit_comprehension(&mut self, comprehension: &'a Comprehension) {
        self.loops = true;
        let mut target = Finder::default();
        target.visit_expr(&comprehension.target);
        self.barred.extend(target.names);
        visitor::walk_comprehension(self, comprehension);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(code: &str) -> Option<(usize, Vec<String>)> {
        let mut module = parse_module(code).unwrap().into_syntax();
        declare(&mut module)?;
        module.body.iter().enumerate().find_map(|(place, statement)| match statement {
            Stmt::Global(global) => Some((place, global.names.iter().map(|name| name.to_string()).collect())),
            _ => None,
        })
    }

    #[test]
    fn names_of_loops_are_declared_where_they_may_be() {
        let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        assert_eq!(declared("x = 1\nprint(x)"), None);
        assert_eq!(declared("for i in range(3):\n    t += i"), Some((0, names(&["i", "range", "t"]))));
        assert_eq!(declared("x: int = 0\nwhile x < 3: x += y"), Some((0, names(&["int", "y"]))));
        assert_eq!(declared("[i * k for i in a]"), Some((0, names(&["a", "k"]))));
        assert_eq!(
            declared("'doc'\nfrom __future__ import annotations\nimport math\nwhile a: pass"),
            Some((2, names(&["a"])))
        );
    }
}
