//! What servers offer beside tools, through two tools of our own: resources and prompts to read, and tools that came or
//! changed after the run began.

use std::fmt::Write;
use std::sync::Arc;

use gimlet::effect::Effect;
use gimlet::signature::signature;
use gimlet::tool::{Manner, Tool, ToolCx, ToolError, TypedTool, tool};
use rmcp::model::{
    ClientRequest, GetPromptRequest, GetPromptRequestParams, ListPromptsRequest,
    ListResourceTemplatesRequest, ListResourcesRequest, PaginatedRequestParams, ReadResourceRequest,
    ReadResourceRequestParams, ServerResult,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::code;
use super::content::{self, clip};
use super::link::Link;
use super::tool::{invoke, long_arguments, manner, opaque};
use crate::config::Hints;

/// Name of the tool that calls what came later.
pub(super) const CALL: &str = "mcp_call";

/// So many entries of a list are shown.
const SHOWN: usize = 100;

/// The tools that some of these servers have a use for.
pub(super) fn tools(links: &[Arc<Link>]) -> Vec<Arc<dyn Tool>> {
    let of = |wanted: fn(&Link) -> bool| Servers(links.iter().filter(|link| wanted(link)).cloned().collect());
    let reading = of(|link| {
        link.info()
            .is_some_and(|info| info.capabilities.resources.is_some() || info.capabilities.prompts.is_some())
    });
    let changing = of(|link| {
        link.info().is_some_and(|info| {
            info.capabilities.tools.as_ref().and_then(|tools| tools.list_changed) == Some(true)
        })
    });
    let mut tools = Vec::new();
    if !reading.0.is_empty() {
        tools.push(tool(McpRead { servers: reading }));
    }
    if !changing.0.is_empty() {
        tools.push(tool(McpCall { servers: changing }));
    }
    tools
}

/// The servers one of these tools is about.
struct Servers(Vec<Arc<Link>>);

impl Servers {
    fn find(&self, name: &str) -> Result<&Arc<Link>, ToolError> {
        self.0.iter().find(|link| link.config.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.0.iter().map(|link| link.config.name.as_str()).collect();
            ToolError::failed(code::MCP_NO_SUCH_SERVER, format!("there is no MCP server `{name}` here"))
                .with("servers", json!(names))
        })
    }

    fn manner(&self) -> Manner {
        let longest = self.0.iter().map(|link| manner(&link.config).timeout).max().unwrap_or_default();
        Manner { timeout: longest, ..Manner::default() }
    }
}

/// Read a resource or a prompt of an MCP server. Without uri and prompt: list what the servers have.
#[derive(Debug, Deserialize, JsonSchema)]
struct ReadInput {
    /// Name of the server.
    #[serde(default)]
    server: Option<String>,
    /// The resource to read.
    #[serde(default)]
    uri: Option<String>,
    /// The prompt to read.
    #[serde(default)]
    prompt: Option<String>,
    /// What the prompt is to be filled with.
    #[serde(default)]
    arguments: Option<Map<String, Value>>,
}

struct McpRead {
    servers: Servers,
}

impl McpRead {
    /// The server that is meant, and what is wanted of it; none to list.
    fn target<'a>(&'a self, input: &ReadInput) -> Result<Option<(&'a Arc<Link>, Wanted)>, ToolError> {
        let wanted = match (&input.uri, &input.prompt) {
            (Some(uri), None) => Wanted::Resource(uri.clone()),
            (None, Some(prompt)) => {
                Wanted::Prompt(prompt.clone(), input.arguments.clone().unwrap_or_default())
            }
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => {
                return Err(ToolError::failed(
                    gimlet::tool::code::VALIDATION_FAILED,
                    "give a uri or a prompt, not both",
                ));
            }
        };
        let link = match (&input.server, self.servers.0.as_slice()) {
            (Some(name), _) => self.servers.find(name)?,
            (None, [only]) => only,
            (None, _) => {
                return Err(ToolError::failed(gimlet::tool::code::VALIDATION_FAILED, "say which server"));
            }
        };
        Ok(Some((link, wanted)))
    }
}

enum Wanted {
    Resource(String),
    Prompt(String, Map<String, Value>),
}

impl TypedTool for McpRead {
    const NAME: &'static str = "mcp_read";
    type Input = ReadInput;
    type Output = Value;

    fn manner(&self) -> Manner {
        self.servers.manner()
    }

    fn effects(&self, input: &ReadInput) -> Result<Vec<Effect>, ToolError> {
        let Some((link, wanted)) = self.target(input)? else { return Ok(Vec::new()) };
        if link.config.hints == Hints::Believed {
            return Ok(Vec::new());
        }
        let server = &link.config.name;
        let what = match wanted {
            Wanted::Resource(uri) => format!("resource {uri} of MCP server `{server}`"),
            Wanted::Prompt(name, arguments) => {
                format!("prompt `{name}` of MCP server `{server}` with {}", Value::Object(arguments))
            }
        };
        Ok(vec![Effect::Opaque { what }])
    }

    async fn run(&self, input: ReadInput, cx: &ToolCx) -> Result<Value, ToolError> {
        let Some((link, wanted)) = self.target(&input)? else {
            let mut lists = Map::new();
            for link in &self.servers.0 {
                if input.server.as_ref().is_none_or(|name| *name == link.config.name) {
                    lists.insert(link.config.name.clone(), Value::String(contents(link, cx).await));
                }
            }
            return Ok(Value::Object(lists));
        };
        let request = match wanted {
            Wanted::Resource(uri) => ClientRequest::ReadResourceRequest(ReadResourceRequest::new(
                ReadResourceRequestParams::new(uri),
            )),
            Wanted::Prompt(name, arguments) => ClientRequest::GetPromptRequest(GetPromptRequest::new(
                GetPromptRequestParams::new(name).with_arguments(arguments),
            )),
        };
        match link.request(request, cx).await? {
            ServerResult::ReadResourceResult(result) => Ok(content::resource(result)),
            ServerResult::GetPromptResult(result) => Ok(content::prompt(result)),
            _ => Err(ToolError::failed(code::MCP_TOOL_FAILED, "the server answered something else")),
        }
    }
}

/// What a server has to read, one a line.
async fn contents(link: &Link, cx: &ToolCx) -> String {
    let mut text = String::new();
    let capabilities = link.info().map(|info| info.capabilities.clone()).unwrap_or_default();
    let page = PaginatedRequestParams::default;
    let mut requests = Vec::new();
    if capabilities.resources.is_some() {
        requests.push(ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(page())));
        requests.push(ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest::with_param(
            page(),
        )));
    }
    if capabilities.prompts.is_some() {
        requests.push(ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(page())));
    }
    for request in requests {
        match link.request(request, cx).await {
            Ok(ServerResult::ListResourcesResult(list)) => {
                for item in list.resources.iter().take(SHOWN) {
                    let about = item.description.as_deref().unwrap_or(&item.name);
                    let _ = writeln!(text, "uri {} – {}", item.uri, clip(about, 120));
                }
            }
            Ok(ServerResult::ListResourceTemplatesResult(list)) => {
                for item in list.resource_templates.iter().take(SHOWN) {
                    let about = item.description.as_deref().unwrap_or(&item.name);
                    let _ = writeln!(text, "uri {} (fill in) – {}", item.uri_template, clip(about, 120));
                }
            }
            Ok(ServerResult::ListPromptsResult(list)) => {
                for item in list.prompts.iter().take(SHOWN) {
                    let arguments: Vec<&str> =
                        item.arguments.iter().flatten().map(|argument| argument.name.as_str()).collect();
                    let about = item.description.as_deref().unwrap_or_default();
                    let _ = writeln!(
                        text,
                        "prompt {}({}) – {}",
                        item.name,
                        arguments.join(", "),
                        clip(about, 120)
                    );
                }
            }
            Ok(_) => {}
            Err(error) => {
                let _ = writeln!(text, "{error}");
            }
        }
    }
    if text.is_empty() { "nothing".into() } else { text }
}

/// Call a tool that an MCP server began to offer, or changed, after this conversation began. Without tool: list them.
#[derive(Debug, Deserialize, JsonSchema)]
struct CallInput {
    /// Name of the server.
    server: String,
    /// Name of the tool.
    #[serde(default)]
    tool: Option<String>,
    /// Its arguments.
    #[serde(default)]
    arguments: Option<Map<String, Value>>,
}

struct McpCall {
    servers: Servers,
}

impl TypedTool for McpCall {
    const NAME: &'static str = CALL;
    type Input = CallInput;
    type Output = Value;

    fn manner(&self) -> Manner {
        self.servers.manner()
    }

    /// Always opaque: what came or changed while a run works was never looked at by anybody.
    fn effects(&self, input: &CallInput) -> Result<Vec<Effect>, ToolError> {
        let link = self.servers.find(&input.server)?;
        let Some(name) = &input.tool else { return Ok(Vec::new()) };
        let listing = link.listing();
        let Some(offered) = listing.find(name) else {
            let message = format!("MCP server `{}` has no tool `{name}`", input.server);
            return Err(ToolError::failed(code::MCP_TOOL_GONE, message).with("tools", json!(listing.names())));
        };
        Ok(vec![opaque(&link.config, offered, &json!(input.arguments))])
    }

    fn preview(&self, input: &CallInput) -> Option<String> {
        long_arguments(&json!(input.arguments))
    }

    async fn run(&self, input: CallInput, cx: &ToolCx) -> Result<Value, ToolError> {
        let link = self.servers.find(&input.server)?;
        let listing = link.listing();
        let Some(name) = &input.tool else {
            let tools: Vec<Value> = listing
                .tools
                .iter()
                .take(SHOWN)
                .map(|offered| {
                    let usage = signature(&offered.spec(offered.name.clone(), Manner::default()));
                    json!({ "tool": usage, "about": clip(&offered.description, 200) })
                })
                .collect();
            return Ok(json!(tools));
        };
        let Some(offered) = listing.find(name) else {
            let message = format!("MCP server `{}` has no tool `{name}`", input.server);
            return Err(ToolError::failed(code::MCP_TOOL_GONE, message));
        };
        Ok(invoke(link, offered, &json!(input.arguments.unwrap_or_default()), cx).await?.value)
    }
}
