//! A tool under the name that other programs know it by.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use gimlet::effect::Effect;
use gimlet::message::ToolCall;
use gimlet::tool::{Tool, ToolCx, ToolError, ToolOutput, ToolSpec};
use serde_json::Value;

/// The same tool, called otherwise.
pub struct Renamed {
    tool: Arc<dyn Tool>,
    spec: Arc<ToolSpec>,
}

impl Renamed {
    /// Calls a tool `name`.
    #[expect(clippy::new_ret_no_self, reason = "nobody needs the wrapper itself")]
    pub fn new(name: &str, tool: Arc<dyn Tool>) -> Arc<dyn Tool> {
        let spec = Arc::new(ToolSpec { name: name.to_owned(), ..tool.spec().as_ref().clone() });
        Arc::new(Renamed { tool, spec })
    }
}

impl Tool for Renamed {
    fn spec(&self) -> Arc<ToolSpec> {
        self.spec.clone()
    }

    fn effects(&self, args: &Value) -> Result<Vec<Effect>, ToolError> {
        self.tool.effects(args)
    }

    fn preview(&self, args: &Value) -> Option<String> {
        self.tool.preview(args)
    }

    fn call<'a>(
        &'a self,
        call: &'a ToolCall,
        cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.tool.call(call, cx)
    }
}
