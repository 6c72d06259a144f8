//! `list_definitions`: what a source file defines, without the bodies.

use gimlet::effect::Effect;
use gimlet::tool::{ToolCx, ToolError, TypedTool};
use gimlet_repo::{EXTENSIONS, Language, MOST_BYTES, Outline};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blocking::blocking;
use crate::code;
use crate::lines::read_all;
use crate::root::Root;

/// The tool.
#[derive(Debug, Clone)]
pub struct ListDefinitions {
    /// Where it may read.
    pub root: Root,
}

/// List the functions, classes and types of a source file: line, signature and first doc line, without bodies.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Input {
    /// Source file relative to the project root.
    pub file_path: String,
}

/// The result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Output {
    /// The file.
    pub file_path: String,
    /// What it defines, in order.
    pub definitions: Vec<Definition>,
    /// How many.
    pub count: usize,
}

/// A definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Definition {
    /// Its first line.
    pub line: usize,
    /// Its last line.
    pub end_line: usize,
    /// It, up to its body.
    pub signature: String,
    /// The first line said about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doc: Option<String>,
    /// What it is a member of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inside: Option<String>,
}

impl TypedTool for ListDefinitions {
    const NAME: &'static str = "list_definitions";
    type Input = Input;
    type Output = Output;

    fn effects(&self, input: &Input) -> Result<Vec<Effect>, ToolError> {
        Ok(vec![Effect::Read { path: self.root.resolve(&input.file_path)?.as_path().into() }])
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        let root = self.root.clone();
        blocking(&cx.cancel, move |_| list(&root, &input)).await
    }
}

/// Lists them. What is defined inside functions is left out.
pub fn list(root: &Root, input: &Input) -> Result<Output, ToolError> {
    let path = root.resolve(&input.file_path)?;
    let unsupported = || {
        let known: Vec<&str> = EXTENSIONS.iter().map(|(extension, _)| *extension).collect();
        let message = format!("{} has none of the endings: {}", path.display(), known.join(", "));
        ToolError::failed(code::UNSUPPORTED_LANGUAGE, message).with("path", path.display())
    };
    // Asked for first: that the file is missing matters more than its ending.
    let bytes = read_all(root, &path, MOST_BYTES)?;
    let language = Language::of(path.as_path()).ok_or_else(unsupported)?;
    let outline = Outline::of(language, &String::from_utf8_lossy(&bytes)).ok_or_else(unsupported)?;
    let all = &outline.definitions;
    let definitions: Vec<Definition> = all
        .iter()
        .filter(|found| !found.is_local)
        .map(|found| Definition {
            line: found.line,
            end_line: found.end_line,
            signature: found.signature.clone(),
            doc: found.doc.clone(),
            inside: found.parent.map(|parent| all[parent].signature.clone()),
        })
        .collect();
    Ok(Output { file_path: path.display(), count: definitions.len(), definitions })
}
