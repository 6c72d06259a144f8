//! Gimlet's own tools for other people's agents, over the same guard: what only looks is free, what changes something
//! asks the person behind the client, and `ask` hands over a whole task.

mod approve;
mod ask;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use gimlet::approval::Approver;
use gimlet::digest::digest_json;
use gimlet::event::Suspension;
use gimlet::ids::{Ids, RunId};
use gimlet::message::ToolCall;
use gimlet::run::{Invocation, invoke};
use gimlet::tool::{ToolFailure, ToolSpec, code};
use gimlet::{Agent, Env};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, Implementation, InputRequest, InputRequests,
    InputRequiredResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion, ServerCapabilities,
    ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, ServiceExt};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use approve::{Asked, ClientApprover, Way};

pub use ask::{Report, Task, Tasks};

/// What a server offers.
pub struct Offer {
    /// Whose tools they are; its model is never asked.
    pub agent: Arc<Agent>,
    /// The tools that only look.
    pub reading: BTreeSet<String>,
    /// The world of a call; its approver and token are replaced for each.
    pub env: Env,
    /// Knows earlier decisions and asks nobody: what it does not know it defers.
    pub standing: Arc<dyn Approver>,
    /// Leaves a question for the command line.
    pub waiting: Arc<dyn Approver>,
    /// Who works on whole tasks.
    pub tasks: Option<Arc<dyn Tasks>>,
}

/// Why a server stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The client said something else than hello.
    #[error("the client does not speak MCP: {0}")]
    Hello(String),
    /// It broke.
    #[error("the server broke: {0}")]
    Broken(String),
}

/// Serves over this process's standard input and output until the client is gone.
pub async fn serve(offer: Offer, stop: CancellationToken) -> Result<(), ServeError> {
    let (input, output) = rmcp::transport::stdio_pipes();
    serve_on(offer, input, output, stop).await
}

/// Serves over a pair of streams until the client is gone.
pub async fn serve_on(
    offer: Offer,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    stop: CancellationToken,
) -> Result<(), ServeError> {
    let server = Server { offer, asked: Asked::default(), suspended: ask::Suspended::default() };
    let running = match server.serve_with_ct((input, output), stop.clone()).await {
        Ok(running) => running,
        // A client that leaves before it says hello is no mistake of ours.
        Err(_) if stop.is_cancelled() => return Ok(()),
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(ServeError::Hello(error.to_string())),
    };
    running.waiting().await.map(drop).map_err(|error| ServeError::Broken(error.to_string()))
}

struct Server {
    offer: Offer,
    asked: Asked,
    suspended: ask::Suspended,
}

/// Calls outside of tasks belong to one nameless run, so that a question keeps its id when the client asks again.
struct OneRun;

impl Ids for OneRun {
    fn run(&self, now: jiff::Timestamp) -> RunId {
        "mcp-serve".parse().unwrap_or_else(|_| gimlet::ids::RandomIds.run(now))
    }
}

impl Server {
    fn approver(&self, way: Way) -> Arc<ClientApprover> {
        Arc::new(ClientApprover {
            standing: self.offer.standing.clone(),
            waiting: self.offer.waiting.clone(),
            way,
            asked: self.asked.clone(),
            open: Default::default(),
        })
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let name = request.name.to_string();
        let args = Value::Object(request.arguments.unwrap_or_default());
        let approver = self.approver(Way::of(&context, request.input_responses));
        let env = Env {
            approver: approver.clone(),
            ids: Arc::new(OneRun),
            cancel: context.ct.clone(),
            ..self.offer.env.clone()
        };
        // The same call has the same id, and so has its question.
        let id = format!("call_{}", &digest_json(&json!([name, args]))[..12]);
        match invoke(&self.offer.agent, env, ToolCall { id, name: name.clone(), args }).await {
            Invocation::Done(value) => done(value).into(),
            Invocation::Failed(failure) => failed(&failure).into(),
            Invocation::Suspended(Suspension::Approval { approval }) => match ask_back(&approver, None) {
                Some(question) => question.into(),
                None => failed(&needs_approval(name, &approval)).into(),
            },
            Invocation::Suspended(Suspension::Interrupted | Suspension::Diverged { .. }) => {
                failed(&ToolFailure {
                    tool: name,
                    ..ToolFailure::new(code::CANCELLED, "the call was stopped")
                })
                .into()
            }
            Invocation::Fatal(message) => {
                failed(&ToolFailure { tool: name, ..ToolFailure::new(code::TOOL_EXCEPTION, message) }).into()
            }
        }
    }

    fn listed(&self, spec: &ToolSpec) -> Tool {
        let reads = self.offer.reading.contains(&spec.name);
        let schema = spec.input.as_object().cloned().unwrap_or_default();
        Tool::new(spec.name.clone(), spec.description.clone(), schema)
            .with_annotations(ToolAnnotations::new().read_only(reads).destructive(!reads).open_world(false))
    }
}

/// The question for the client to ask, if its way is to ask back.
fn ask_back(approver: &ClientApprover, state: Option<String>) -> Option<InputRequiredResult> {
    let (id, question) = approver.question()?;
    let questions = InputRequests::from([(id, InputRequest::Elicitation(question))]);
    Some(InputRequiredResult::new(Some(questions), state))
}

fn needs_approval(tool: String, approval: &str) -> ToolFailure {
    ToolFailure {
        tool,
        context: Map::from_iter([("approval".to_owned(), approval.into())]),
        advice: Some(format!(
            "Ask the user to run `gimlet approve {approval}`, then make the same call again."
        )),
        ..ToolFailure::new("APPROVAL_REQUIRED", "A person must agree to this first.")
    }
}

/// A result: structure where there is some, and its text for clients that read only that.
fn done(value: Value) -> CallToolResult {
    match value {
        Value::String(text) => CallToolResult::success(vec![rmcp::model::ContentBlock::text(text)]),
        structure @ Value::Object(_) => CallToolResult::structured(structure),
        // Only an object may be structured content in every revision.
        other => CallToolResult::success(vec![rmcp::model::ContentBlock::text(other.to_string())]),
    }
}

fn failed(failure: &ToolFailure) -> CallToolResult {
    CallToolResult::structured_error(json!(failure))
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut me = Implementation::new("gimlet", self.offer.env.version.clone());
        me.title = Some("Gimlet".into());
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(me)
            .with_instructions(
                "Tools for the code in one folder. Reading is free; a tool that changes something asks the user first.",
            )
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut tools: Vec<Tool> =
            self.offer.agent.toolbox().specs().iter().map(|spec| self.listed(spec)).collect();
        if self.offer.tasks.is_some() {
            tools.push(ask::listed());
        }
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match &self.offer.tasks {
            Some(tasks) if request.name == ask::NAME => Ok(self.ask(tasks.clone(), request, context).await),
            _ if self.offer.agent.toolbox().has(&request.name) => Ok(self.call(request, context).await),
            _ => Err(ErrorData::invalid_params(format!("there is no tool `{}`", request.name), None)),
        }
    }
}
