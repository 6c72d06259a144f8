//! Looking into source code with tree-sitter: which languages, which of their nodes define something.

mod outline;

use std::path::Path;

use tree_sitter::{Parser, Tree};

pub(crate) use outline::Outline;
pub use outline::Part;

/// Largest file that is parsed.
pub(crate) const MOST_BYTES: u64 = 2 * 1024 * 1024;

/// A language these tools can look into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Python.
    Python,
    /// Rust.
    Rust,
    /// JavaScript, with or without JSX.
    JavaScript,
    /// TypeScript.
    TypeScript,
    /// TypeScript with JSX.
    Tsx,
    /// Go.
    Go,
    /// Java.
    Java,
    /// C.
    C,
    /// C++.
    Cpp,
    /// Ruby.
    Ruby,
}

/// File name endings and what they mean.
pub const EXTENSIONS: &[(&str, Language)] = &[
    ("py", Language::Python),
    ("pyi", Language::Python),
    ("rs", Language::Rust),
    ("js", Language::JavaScript),
    ("mjs", Language::JavaScript),
    ("cjs", Language::JavaScript),
    ("jsx", Language::JavaScript),
    ("ts", Language::TypeScript),
    ("mts", Language::TypeScript),
    ("cts", Language::TypeScript),
    ("tsx", Language::Tsx),
    ("go", Language::Go),
    ("java", Language::Java),
    ("c", Language::C),
    ("h", Language::Cpp),
    ("cc", Language::Cpp),
    ("cpp", Language::Cpp),
    ("cxx", Language::Cpp),
    ("hh", Language::Cpp),
    ("hpp", Language::Cpp),
    ("hxx", Language::Cpp),
    ("rb", Language::Ruby),
];

impl Language {
    /// The language of a file, by its name.
    pub fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        EXTENSIONS.iter().find(|(known, _)| *known == extension).map(|(_, language)| *language)
    }

    /// Parses a text; nothing if the grammar cannot be loaded. Broken code gives a tree with holes.
    pub(crate) fn parse(self, text: &str) -> Option<Tree> {
        let grammar: tree_sitter::Language = match self {
            Language::Python => tree_sitter_python::LANGUAGE.into(),
            Language::Rust => tree_sitter_rust::LANGUAGE.into(),
            Language::JavaScript => tree_sitter_javascript::LANGUAGE.into(),
            Language::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
            Language::Tsx => tree_sitter_typescript::LANGUAGE_TSX.into(),
            Language::Go => tree_sitter_go::LANGUAGE.into(),
            Language::Java => tree_sitter_java::LANGUAGE.into(),
            Language::C => tree_sitter_c::LANGUAGE.into(),
            Language::Cpp => tree_sitter_cpp::LANGUAGE.into(),
            Language::Ruby => tree_sitter_ruby::LANGUAGE.into(),
        };
        let mut parser = Parser::new();
        parser.set_language(&grammar).ok()?;
        parser.parse(text, None)
    }

    /// The line of the first syntax error of a text, counted from 1, and what stands there; none if there is no error.
    pub fn first_error(self, text: &str) -> Option<(usize, String)> {
        let tree = self.parse(text)?;
        let mut node = tree.root_node();
        if !node.has_error() {
            return None;
        }
        // Down to the innermost node that has the error.
        loop {
            let mut cursor = node.walk();
            let inner = node.children(&mut cursor).find(|child| child.has_error() || child.is_missing());
            match inner {
                Some(inner) if !node.is_error() => node = inner,
                Some(_) | None => break,
            }
        }
        let line = node.start_position().row;
        Some((line + 1, text.lines().nth(line).unwrap_or_default().trim().to_owned()))
    }

    /// What a node defines, by its kind.
    fn defines(self, kind: &str) -> Option<Kind> {
        Some(match (self, kind) {
            (Language::Python, "function_definition") => Kind::Function,
            (Language::Python, "class_definition") => Kind::Type,
            (Language::Rust, "function_item" | "function_signature_item" | "macro_definition") => {
                Kind::Function
            }
            (Language::Rust, "struct_item" | "enum_item" | "union_item" | "trait_item" | "type_item") => {
                Kind::Type
            }
            (Language::Rust, "impl_item" | "mod_item") => Kind::Container,
            (Language::Rust, "const_item" | "static_item") => Kind::Value,
            (
                Language::JavaScript | Language::TypeScript | Language::Tsx,
                "function_declaration" | "generator_function_declaration" | "method_definition",
            ) => Kind::Function,
            (Language::JavaScript | Language::TypeScript | Language::Tsx, "class_declaration") => Kind::Type,
            (Language::JavaScript | Language::TypeScript | Language::Tsx, "variable_declarator") => {
                Kind::Arrow
            }
            (
                Language::TypeScript | Language::Tsx,
                "function_signature" | "method_signature" | "abstract_method_signature",
            ) => Kind::Function,
            (
                Language::TypeScript | Language::Tsx,
                "interface_declaration"
                | "type_alias_declaration"
                | "enum_declaration"
                | "abstract_class_declaration",
            ) => Kind::Type,
            (Language::TypeScript | Language::Tsx, "internal_module" | "module") => Kind::Container,
            (Language::Go, "function_declaration" | "method_declaration") => Kind::Function,
            (Language::Go, "type_spec" | "type_alias") => Kind::Type,
            (Language::Java, "method_declaration" | "constructor_declaration") => Kind::Function,
            (
                Language::Java,
                "class_declaration"
                | "interface_declaration"
                | "enum_declaration"
                | "record_declaration"
                | "annotation_type_declaration",
            ) => Kind::Type,
            (Language::C | Language::Cpp, "function_definition" | "preproc_function_def") => Kind::Function,
            (Language::C | Language::Cpp, "declaration" | "field_declaration") => Kind::Prototype,
            (Language::C | Language::Cpp, "struct_specifier" | "enum_specifier" | "union_specifier") => {
                Kind::Tagged
            }
            (Language::Cpp, "class_specifier") => Kind::Tagged,
            (Language::C | Language::Cpp, "type_definition") => Kind::Type,
            (Language::Cpp, "alias_declaration" | "concept_definition") => Kind::Type,
            (Language::Cpp, "namespace_definition") => Kind::Container,
            (Language::Ruby, "method" | "singleton_method") => Kind::Function,
            (Language::Ruby, "class" | "module") => Kind::Type,
            (
                Language::Python
                | Language::Rust
                | Language::JavaScript
                | Language::TypeScript
                | Language::Tsx
                | Language::Go
                | Language::Java
                | Language::C
                | Language::Cpp
                | Language::Ruby,
                _,
            ) => return None,
        })
    }
}

/// What a node defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Something that runs; what is defined inside it is nobody else's business.
    Function,
    /// Something that has members or stands for a type.
    Type,
    /// Something that only holds definitions.
    Container,
    /// A constant.
    Value,
    /// A variable, which counts if it holds a function.
    Arrow,
    /// A declaration, which counts if it declares a function.
    Prototype,
    /// A `struct X`, which counts if it has a body: else it only names a type.
    Tagged,
}
