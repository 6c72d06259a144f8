//! The only door to a tool. Agents, code cells, sub-agents and foreign callers all come through here, so there is no
//! way around the guard.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::digest::digest_json;
use crate::effect::Effect;
use crate::guard::{self, BadSchema, Layer, Outcome, Pass};
use crate::message::ToolCall;
use crate::tool::{Tool, ToolCx, ToolError, ToolOutput, ToolSpec, code};
use gimlet_reply::arguments::closest;

/// Tools, each behind its guard, in a stable order.
pub struct Toolbox {
    tools: Vec<Entry>,
    by_name: HashMap<String, usize>,
    specs: Arc<[Arc<ToolSpec>]>,
    /// The specs, and once more under each alias.
    callable: Arc<[Arc<ToolSpec>]>,
}

struct Entry {
    tool: Arc<dyn Tool>,
    guard: Box<dyn Layer>,
}

/// Why a set of tools cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ToolboxError {
    /// Two tools with one name.
    #[error("two tools are called `{0}`")]
    Duplicate(String),
    /// A name that cannot be called from Python.
    #[error("`{0}` cannot be a tool's name: it must be a Python identifier and no keyword or `final_answer`")]
    BadName(String),
    /// A schema that is not one.
    #[error(transparent)]
    BadSchema(#[from] BadSchema),
}

impl Toolbox {
    /// A toolbox with these tools.
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Result<Self, ToolboxError> {
        Toolbox::with_driver_tools(tools, [])
    }

    /// A toolbox with tools, and others that only the program calls: they are not among the specs. One whose name a
    /// tool of the model has is left out.
    pub fn with_driver_tools(
        tools: impl IntoIterator<Item = Arc<dyn Tool>>,
        driver: impl IntoIterator<Item = Arc<dyn Tool>>,
    ) -> Result<Self, ToolboxError> {
        let mut toolbox = Toolbox::of_models(tools)?;
        for tool in driver {
            let name = tool.spec().name.clone();
            if !toolbox.has(&name) {
                toolbox.by_name.insert(name, toolbox.tools.len());
                let guard = guard::assemble(tool.clone())?;
                toolbox.tools.push(Entry { tool, guard });
            }
        }
        Ok(toolbox)
    }

    fn of_models(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Result<Self, ToolboxError> {
        let mut entries = Vec::new();
        let mut by_name = HashMap::new();
        let mut specs = Vec::new();
        for tool in tools {
            let spec = tool.spec();
            if !is_callable_name(&spec.name) {
                return Err(ToolboxError::BadName(spec.name.clone()));
            }
            if by_name.insert(spec.name.clone(), entries.len()).is_some() {
                return Err(ToolboxError::Duplicate(spec.name.clone()));
            }
            let guard = guard::assemble(tool.clone())?;
            entries.push(Entry { tool, guard });
            specs.push(spec);
        }
        let mut callable = specs.clone();
        for (alias, at) in aliases(&entries, &by_name) {
            callable.push(Arc::new(ToolSpec { name: alias.clone(), ..specs[at].as_ref().clone() }));
            by_name.insert(alias, at);
        }
        Ok(Toolbox { tools: entries, by_name, specs: specs.into(), callable: callable.into() })
    }

    /// What the tools are, in order.
    pub fn specs(&self) -> &Arc<[Arc<ToolSpec>]> {
        &self.specs
    }

    /// Every name a call may use with what it stands for: the tools, and their aliases.
    pub(crate) fn callable(&self) -> &Arc<[Arc<ToolSpec>]> {
        &self.callable
    }

    /// Whether there is a tool of this name.
    pub fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Hash of all specs: tells a resumed run whether its tools are still the same.
    pub fn digest(&self) -> String {
        digest_json(&json!(self.specs.iter().map(AsRef::as_ref).collect::<Vec<_>>()))
    }

    /// Whether a call may run beside others.
    pub(crate) fn is_parallel(&self, call: &ToolCall) -> bool {
        let Some(entry) = self.by_name.get(&call.name).map(|&at| &self.tools[at]) else { return true };
        entry.tool.spec().manner.parallel
            && entry.tool.effects(&call.args).is_ok_and(|effects| !effects.iter().any(Effect::changes_world))
    }

    /// Makes a call through the guard.
    pub(crate) async fn call(&self, mut pass: Pass) -> Outcome {
        match self.by_name.get(&pass.call.name) {
            Some(&at) => self.tools[at].guard.pass(&mut pass).await,
            None => {
                // A name nobody knows is guarded like any other, so that it is recorded and traced.
                let missing = Missing { asked: pass.call.name.clone(), specs: self.specs.clone() };
                match guard::assemble(Arc::new(missing)) {
                    Ok(guard) => guard.pass(&mut pass).await,
                    Err(error) => Outcome::Fatal(error.to_string()),
                }
            }
        }
    }
}

/// The aliases that mean one tool and nothing else, in the tools' order.
fn aliases(tools: &[Entry], names: &HashMap<String, usize>) -> Vec<(String, usize)> {
    let claimed = || tools.iter().enumerate().filter_map(|(at, entry)| Some((entry.tool.alias()?, at)));
    claimed()
        .filter(|(alias, _)| is_callable_name(alias) && !names.contains_key(*alias))
        .filter(|(alias, _)| claimed().filter(|(other, _)| other == alias).count() == 1)
        .map(|(alias, at)| (alias.to_owned(), at))
        .collect()
}

/// Stands in for a tool that does not exist.
struct Missing {
    asked: String,
    specs: Arc<[Arc<ToolSpec>]>,
}

impl Tool for Missing {
    fn spec(&self) -> Arc<ToolSpec> {
        Arc::new(ToolSpec {
            name: self.asked.clone(),
            description: String::new(),
            input: json!({}),
            output: None,
            manner: Default::default(),
        })
    }

    fn effects(&self, _args: &Value) -> Result<Vec<Effect>, ToolError> {
        let names: Vec<&str> = self.specs.iter().map(|spec| spec.name.as_str()).collect();
        let guess = closest(&self.asked, names.iter().copied())
            .map(|name| format!("; did you mean `{name}`?"))
            .unwrap_or_default();
        Err(ToolError::failed(code::UNKNOWN_TOOL, format!("there is no tool `{}`{guess}", self.asked))
            .with("tools", json!(names)))
    }

    fn call<'a>(
        &'a self,
        _call: &'a ToolCall,
        _cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        std::future::ready(Err(ToolError::failed(code::UNKNOWN_TOOL, "there is no such tool"))).boxed()
    }
}

const PYTHON_KEYWORDS: &[&str] = &[
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
    "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
    "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// Whether a name can be a tool's or an agent's: callable from Python and not taken by the runtime.
pub fn is_callable_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name.len() <= 64
        && !PYTHON_KEYWORDS.contains(&name)
        && name != "final_answer"
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Named(&'static str, Option<&'static str>);

    impl Tool for Named {
        fn spec(&self) -> Arc<ToolSpec> {
            Arc::new(ToolSpec {
                name: self.0.into(),
                description: String::new(),
                input: json!({}),
                output: None,
                manner: Default::default(),
            })
        }

        fn effects(&self, _args: &Value) -> Result<Vec<Effect>, ToolError> {
            Ok(Vec::new())
        }

        fn alias(&self) -> Option<&str> {
            self.1
        }

        fn call<'a>(
            &'a self,
            _call: &'a ToolCall,
            _cx: &'a ToolCx,
        ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
            std::future::ready(Ok(ToolOutput::new(json!(self.0)))).boxed()
        }
    }

    #[test]
    fn an_alias_counts_only_where_it_is_nobody_elses() {
        let tools: [Arc<dyn Tool>; 6] = [
            Arc::new(Named("read", None)),
            Arc::new(Named("a__read", Some("read"))),
            Arc::new(Named("a__find", Some("find"))),
            Arc::new(Named("b__find", Some("find"))),
            Arc::new(Named("b__go", Some("go"))),
            Arc::new(Named("b__import", Some("import"))),
        ];
        let toolbox = Toolbox::new(tools).unwrap();
        let names = |specs: &[Arc<ToolSpec>]| specs.iter().map(|spec| spec.name.clone()).collect::<Vec<_>>();
        let own = ["read", "a__read", "a__find", "b__find", "b__go", "b__import"];
        assert_eq!(names(toolbox.specs()), own, "a model is told the names alone");
        assert_eq!(names(toolbox.callable())[own.len()..], ["go"]);
        assert!(toolbox.has("go") && !toolbox.has("find") && !toolbox.has("import"));
        assert_eq!(toolbox.by_name["read"], 0, "an alias takes nobody's place");
    }
}
