//! A server's tool as one of ours. What it would do cannot be seen from here, so every call asks, unless the user
//! believes the server and the server says that the tool only reads. An approval is bound to what the server said
//! about the tool: a changed definition asks again.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::digest::digest;
use gimlet::effect::Effect;
use gimlet::message::ToolCall;
use gimlet::signature::signature;
use gimlet::telemetry::with_mcp;
use gimlet::tool::{Manner, Tool, ToolCx, ToolError, ToolOutput, ToolSpec};
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, ServerResult};
use serde_json::Value;

use super::code;
use super::content::{self, clip};
use super::extra;
use super::link::{Link, PROGRESS_FACTOR};
use super::listing::Offered;
use super::names;
use crate::config::{Hints, Remember, ServerConfig};

/// Characters of arguments in an effect; longer ones are told apart by a hash and shown in full by a preview.
const SHOWN: usize = 400;

/// A tool of a server.
pub(super) struct McpTool {
    link: Arc<Link>,
    /// As it was when the run began.
    offered: Offered,
    spec: Arc<ToolSpec>,
    alias: Option<String>,
}

impl McpTool {
    pub(super) fn new(link: Arc<Link>, offered: Offered, name: String) -> Self {
        let spec = Arc::new(offered.spec(name, manner(&link.config)));
        McpTool { alias: names::own_name(&offered.name), link, offered, spec }
    }
}

/// Our own limits end a call first, with the server's words; the guard's are the last resort.
pub(super) fn manner(config: &ServerConfig) -> Manner {
    let longest = config.call_timeout * PROGRESS_FACTOR + config.connect_timeout * 4;
    Manner { timeout: longest, ..Manner::default() }
}

impl Tool for McpTool {
    fn spec(&self) -> Arc<ToolSpec> {
        self.spec.clone()
    }

    fn alias(&self) -> Option<&str> {
        self.alias.as_deref()
    }

    fn effects(&self, args: &Value) -> Result<Vec<Effect>, ToolError> {
        let listing = self.link.listing();
        let server = &self.link.config.name;
        let Some(now) = listing.find(&self.offered.name) else {
            let message = format!("MCP server `{server}` does not offer `{}` any more.", self.offered.name);
            return Err(ToolError::failed(code::MCP_TOOL_GONE, message).with("server", server.clone()));
        };
        if now.fingerprint != self.offered.fingerprint {
            let message = format!(
                "MCP server `{server}` changed `{}` after this run began. Call it by {}(server={server:?}, tool={:?}, \
                 arguments={{…}}); a person is asked first.",
                now.name,
                extra::CALL,
                now.name
            );
            let usage = signature(&now.spec(now.name.clone(), Manner::default()));
            return Err(ToolError::failed(code::MCP_TOOL_CHANGED, message).with("usage", usage));
        }
        if self.link.config.hints == Hints::Believed && now.reads_only {
            return Ok(Vec::new());
        }
        Ok(vec![opaque(&self.link.config, now, args)])
    }

    fn preview(&self, args: &Value) -> Option<String> {
        long_arguments(args)
    }

    fn call<'a>(
        &'a self,
        call: &'a ToolCall,
        cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        invoke(&self.link, &self.offered, &call.args, cx).boxed()
    }
}

/// What a person decides about, exact enough to be bound by a hash.
pub(super) fn opaque(config: &ServerConfig, tool: &Offered, args: &Value) -> Effect {
    let args = match config.remember {
        Remember::Tool => String::new(),
        Remember::Call => {
            let text = args.to_string();
            if text.chars().count() > SHOWN {
                format!(" with {} (in full {})", clip(&text, SHOWN), &digest(text.as_bytes())[..16])
            } else {
                format!(" with {text}")
            }
        }
    };
    let what = format!(
        "`{}` of MCP server `{}`{args} (as defined by {})",
        tool.name,
        config.name,
        &tool.fingerprint[..12]
    );
    Effect::Opaque { what }
}

/// All of the arguments, where the question shows only their beginning.
pub(super) fn long_arguments(args: &Value) -> Option<String> {
    let is_long = args.to_string().chars().count() > SHOWN;
    is_long.then(|| serde_json::to_string_pretty(args).ok()).flatten()
}

/// Calls a tool of a server.
pub(super) async fn invoke(
    link: &Link,
    tool: &Offered,
    args: &Value,
    cx: &ToolCx,
) -> Result<ToolOutput, ToolError> {
    let params = CallToolRequestParams::new(tool.name.clone())
        .with_arguments(args.as_object().cloned().unwrap_or_default());
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    match with_mcp("tools/call", &link.config.name, link.request(request, cx)).await? {
        ServerResult::CallToolResult(result) => content::result(result, tool.wrapping)
            .map(ToolOutput::new)
            .map_err(|error| error.with("server", link.config.name.clone())),
        ServerResult::InputRequiredResult(_) => Err(ToolError::failed(
            code::MCP_TOOL_FAILED,
            format!("`{}` asks for input from a person, which this program does not pass on.", tool.name),
        )),
        _ => Err(ToolError::failed(code::MCP_TOOL_FAILED, "the server's answer is no tool result")),
    }
}
