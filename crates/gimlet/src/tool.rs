//! What a tool is. Authors implement [`TypedTool`]; everything else sees the erased [`Tool`].
//!
//! A tool does its job and nothing more: schema, validation, policy, approval, tracing, truncation, recording and
//! recovery hints come from the guard, which is the only caller.

use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::effect::Effect;
use crate::event::{AgentPath, Suspension};
use crate::ids::RunId;
use crate::message::ToolCall;
use crate::run::Services;

pub use gimlet_event::tool::{Keep, Manner, SuggestedCall, Suggestion, Tells, ToolFailure, ToolSpec, code};

/// The erased tool, as the guard sees it.
pub trait Tool: Send + Sync {
    /// What it is.
    fn spec(&self) -> Arc<ToolSpec>;

    /// What a call with these (validated) arguments would touch. Runs nothing.
    fn effects(&self, args: &Value) -> Result<Vec<Effect>, ToolError>;

    /// What a person should see before agreeing, such as a diff.
    fn preview(&self, _args: &Value) -> Option<String> {
        None
    }

    /// The arguments for a patch in place of the one that the preview shows; none where no patch can take its place.
    fn with_patch(&self, _args: &Value, _patch: &str) -> Option<Value> {
        None
    }

    /// A shorter name it answers to as well, where no other tool has or claims it.
    fn alias(&self) -> Option<&str> {
        None
    }

    /// Does it.
    fn call<'a>(&'a self, call: &'a ToolCall, cx: &'a ToolCx)
    -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

/// The tool as an author writes it. The doc comments of `Input` and its fields are the model's prompt.
pub trait TypedTool: Send + Sync + 'static {
    /// The name the model calls.
    const NAME: &'static str;
    /// The arguments.
    type Input: DeserializeOwned + JsonSchema + Send;
    /// The result.
    type Output: Serialize;

    /// How the guard treats it.
    fn manner(&self) -> Manner {
        Manner::default()
    }

    /// What a call would touch. The default is nothing beyond the tool's own computation.
    fn effects(&self, _input: &Self::Input) -> Result<Vec<Effect>, ToolError> {
        Ok(Vec::new())
    }

    /// What a person should see before agreeing.
    fn preview(&self, _input: &Self::Input) -> Option<String> {
        None
    }

    /// The argument that takes a patch in place of the one that the preview shows; the model does not know it.
    fn patch_argument(&self) -> Option<&'static str> {
        None
    }

    /// Does it.
    fn run(
        &self,
        input: Self::Input,
        cx: &ToolCx,
    ) -> impl Future<Output = Result<Self::Output, ToolError>> + Send;
}

/// Erases a typed tool.
pub fn tool<T: TypedTool>(tool: T) -> Arc<dyn Tool> {
    let schema = schemars::schema_for!(T::Input);
    let mut input = schema.to_value();
    let description = tidy_schema(&mut input);
    let spec = ToolSpec { name: T::NAME.into(), description, input, output: None, manner: tool.manner() };
    Arc::new(Typed { tool, spec: Arc::new(spec) })
}

/// Takes the description out of a schema's root and closes it to unknown arguments.
pub(crate) fn tidy_schema(schema: &mut Value) -> String {
    let Some(root) = schema.as_object_mut() else { return String::new() };
    root.remove("$schema");
    root.remove("title");
    root.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    root.insert("additionalProperties".into(), Value::Bool(false));
    let description = match root.remove("description") {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    drop_formats(schema);
    description
}

/// Takes out the width of numbers: it tells a model nothing and costs tokens.
fn drop_formats(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            let width = |format: &str| format.contains("int") || matches!(format, "float" | "double");
            if map.get("format").and_then(Value::as_str).is_some_and(width) {
                map.shift_remove("format");
            }
            map.values_mut().for_each(drop_formats);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_formats),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

struct Typed<T> {
    tool: T,
    spec: Arc<ToolSpec>,
}

impl<T: TypedTool> Typed<T> {
    fn input(&self, args: &Value) -> Result<T::Input, ToolError> {
        serde_json::from_value(args.clone())
            .map_err(|error| ToolError::failed(code::VALIDATION_FAILED, error.to_string()))
    }
}

impl<T: TypedTool> Tool for Typed<T> {
    fn spec(&self) -> Arc<ToolSpec> {
        self.spec.clone()
    }

    fn effects(&self, args: &Value) -> Result<Vec<Effect>, ToolError> {
        self.tool.effects(&self.input(args)?)
    }

    fn preview(&self, args: &Value) -> Option<String> {
        self.tool.preview(&self.input(args).ok()?)
    }

    fn with_patch(&self, args: &Value, patch: &str) -> Option<Value> {
        let mut args = args.clone();
        args.as_object_mut()?.insert(self.tool.patch_argument()?.to_owned(), patch.into());
        Some(args)
    }

    fn call<'a>(
        &'a self,
        call: &'a ToolCall,
        cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let output = self.tool.run(self.input(&call.args)?, cx).await?;
            serde_json::to_value(output).map(ToolOutput::new).map_err(|error| {
                ToolError::failed(
                    code::TOOL_EXCEPTION,
                    format!("the result cannot be written as JSON: {error}"),
                )
            })
        }
        .boxed()
    }
}

/// What a tool may use of the run it is called in.
#[derive(Clone)]
pub struct ToolCx {
    /// Ends when the call is to stop; long work checks or awaits it.
    pub cancel: CancellationToken,
    /// Id of this call.
    pub id: String,
    /// What the policy judged and a person may have approved.
    pub(crate) effects: Vec<Effect>,
    pub(crate) services: Arc<Services>,
}

impl std::fmt::Debug for ToolCx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolCx").field("id", &self.id).finish_non_exhaustive()
    }
}

impl ToolCx {
    /// The text stored under an address that a truncated result named.
    pub async fn stored(&self, address: &str) -> Result<Vec<u8>, crate::store::StoreError> {
        self.services.store.get(&address.parse()?).await
    }

    /// What this call was allowed to do. A tool whose effects depend on files makes sure that they are still these.
    pub fn effects(&self) -> &[Effect] {
        &self.effects
    }

    /// The run this call is part of.
    pub fn run(&self) -> &RunId {
        self.services.journal.run()
    }

    /// The agent of the run that makes it.
    pub fn path(&self) -> &AgentPath {
        self.services.journal.path()
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.services.clock.now()
    }

    /// A text without secrets, for a tool that keeps what it is given: results are cleaned by the guard, arguments not.
    pub fn clean<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.services.redactor.clean_text(text)
    }

    /// Tells the person something while the tool works.
    pub async fn notice(&self, message: impl Into<String>) {
        self.services.warn(message.into()).await;
    }
}

/// What a tool returns.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    /// The result: a bare string, or a structure.
    pub value: Value,
}

impl ToolOutput {
    /// A result.
    pub fn new(value: Value) -> Self {
        ToolOutput { value }
    }
}

/// Why a tool did not do its job.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ToolError {
    /// The model can mend it: it is shown the failure and goes on.
    #[error("{0}")]
    Failed(Box<ToolFailure>),
    /// The tool's own work waits for a person: the call stays open and is made again when the run is resumed. Only
    /// for tools whose manner is resumable.
    #[error("waiting: {0:?}")]
    Suspended(Suspension),
    /// The run cannot go on.
    #[error("{0}")]
    Fatal(String),
}

impl ToolError {
    /// A failure the model can mend.
    pub fn failed(error: impl Into<String>, message: impl Into<String>) -> Self {
        ToolError::Failed(Box::new(ToolFailure::new(error, message)))
    }

    /// Adds a fact to the failure's context.
    #[must_use]
    pub fn with(self, key: &str, value: impl Into<Value>) -> Self {
        match self {
            ToolError::Failed(mut failure) => {
                failure.context.insert(key.into(), value.into());
                ToolError::Failed(failure)
            }
            other @ (ToolError::Suspended(_) | ToolError::Fatal(_)) => other,
        }
    }
}
