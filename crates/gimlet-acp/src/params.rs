//! What clients send, as working values. Fields that this program does not know are left alone.

use std::path::PathBuf;

use gimlet::plan::Planning;
use gimlet_runtime::options::{Action, ApproveMode, Choice, CommandProfile, ExecutorChoice, Options};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::wire::RpcError;

/// Reads the parameters of a method.
pub(crate) fn read<T: DeserializeOwned>(params: Value) -> Result<T, RpcError> {
    serde_json::from_value(params).map_err(|error| RpcError::params(error.to_string()))
}

/// What the client says about itself.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Initialize {
    pub(crate) client_capabilities: ClientCapabilities,
}

/// What the client can do.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ClientCapabilities {
    pub(crate) fs: FileSystem,
}

/// Whether the client reads and writes files for the agent.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct FileSystem {
    pub(crate) read_text_file: bool,
    pub(crate) write_text_file: bool,
}

/// A new session, or one to take up.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Begin {
    /// None for a new one.
    #[serde(default)]
    pub(crate) session_id: Option<String>,
    pub(crate) cwd: PathBuf,
    #[serde(default)]
    pub(crate) mcp_servers: Option<Vec<McpServer>>,
    #[serde(default, rename = "_meta")]
    pub(crate) meta: Option<Meta>,
}

/// The extensions of a message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Meta {
    pub(crate) gimlet: Wishes,
}

/// What a program says about a session beside ACP. What is left out is as the configuration says.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Wishes {
    pub(crate) model: Option<String>,
    pub(crate) api_base: Option<String>,
    pub(crate) temperature: Option<f32>,
    pub(crate) max_tokens: Option<u32>,
    pub(crate) agent: Option<String>,
    pub(crate) action: Option<String>,
    pub(crate) executor: Option<String>,
    pub(crate) sandbox: Option<String>,
    pub(crate) approve: Option<String>,
    pub(crate) max_steps: Option<u32>,
    pub(crate) step_budget: Option<u32>,
    pub(crate) plan: Option<u32>,
    pub(crate) timeout: Option<f64>,
    pub(crate) token_budget: Option<u64>,
    pub(crate) imports: Vec<String>,
    pub(crate) memory: Option<bool>,
    pub(crate) instructions: Option<bool>,
    /// JSON schema of the answer.
    pub(crate) output: Option<Value>,
    /// Tables `agents` and `mcp` as in a configuration file.
    pub(crate) config: Option<Map<String, Value>>,
    /// Tools that run in the client.
    pub(crate) tools: Vec<ProgramTool>,
    /// How many checks of the answer the client has.
    pub(crate) checks: usize,
    /// Whether the client wants every event as it is logged, instead of updates.
    pub(crate) events: bool,
    /// Whether a session that is taken up goes on in its own folder, whatever `cwd` says.
    pub(crate) anywhere: bool,
}

/// A tool that runs in the client.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ProgramTool {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) input: Value,
    #[serde(default)]
    pub(crate) output: Option<Value>,
    /// It changes nothing, so nobody is asked before it is called.
    #[serde(default)]
    pub(crate) reads_only: bool,
    /// Longest execution, in seconds.
    #[serde(default)]
    pub(crate) timeout: Option<f64>,
}

/// An MCP server of the client.
#[derive(Debug, Deserialize)]
pub(crate) struct McpServer {
    name: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: Vec<Pair>,
    url: Option<String>,
    #[serde(default)]
    headers: Vec<Pair>,
}

#[derive(Debug, Deserialize)]
struct Pair {
    name: String,
    value: String,
}

impl McpServer {
    /// Its name as part of tools' names, and its table.
    fn table(&self) -> (String, Value) {
        let word = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
        let pairs = |pairs: &[Pair]| -> Map<String, Value> {
            pairs.iter().map(|pair| (pair.name.clone(), json!(pair.value))).collect()
        };
        let table = match (&self.url, &self.command) {
            (Some(url), _) => json!({
                "type": self.kind.as_deref().unwrap_or("http"),
                "url": url,
                "headers": pairs(&self.headers),
            }),
            (None, command) => json!({
                "command": command.clone().unwrap_or_default(),
                "args": self.args,
                "env": pairs(&self.env),
            }),
        };
        (self.name.chars().map(word).collect(), table)
    }
}

impl Begin {
    /// Whether a session that is taken up goes on in its own folder.
    pub(crate) fn anywhere(&self) -> bool {
        self.session_id.is_some() && self.meta.as_ref().is_some_and(|meta| meta.gimlet.anywhere)
    }

    /// The options of the session, on top of those the server was started with.
    pub(crate) fn options(&self, base: &Options) -> Result<Options, RpcError> {
        if !self.cwd.is_absolute() {
            return Err(RpcError::params("cwd must be an absolute path"));
        }
        let mut options = Options { root: (!self.anywhere()).then(|| self.cwd.clone()), ..base.clone() };
        let mut given = match &options.given {
            Some(Value::Object(given)) => given.clone(),
            Some(_) | None => Map::new(),
        };
        if let Some(Meta { gimlet: wishes }) = &self.meta {
            wishes.apply(&mut options)?;
            given.extend(wishes.config.clone().unwrap_or_default());
        }
        let servers: Map<String, Value> = self.mcp_servers.iter().flatten().map(McpServer::table).collect();
        if !servers.is_empty() {
            let known = given.entry("mcp").or_insert_with(|| json!({}));
            match known.as_object_mut() {
                Some(known) => known.extend(servers),
                None => return Err(RpcError::params("config.mcp must be a table")),
            }
        }
        options.given = (!given.is_empty()).then_some(Value::Object(given));
        Ok(options)
    }
}

impl Wishes {
    fn apply(&self, options: &mut Options) -> Result<(), RpcError> {
        fn said<T: Clone>(to: &mut Option<T>, from: &Option<T>) {
            if from.is_some() {
                to.clone_from(from);
            }
        }
        said(&mut options.model, &self.model);
        said(&mut options.api_base, &self.api_base);
        said(&mut options.temperature, &self.temperature);
        said(&mut options.max_tokens, &self.max_tokens);
        said(&mut options.agent, &self.agent);
        said(&mut options.action, &named::<Action>("action", self.action.as_deref())?);
        said(&mut options.executor, &named::<ExecutorChoice>("executor", self.executor.as_deref())?);
        said(&mut options.max_steps, &self.max_steps);
        said(&mut options.plan, &self.plan.map(|steps| Planning::from(Some(steps))));
        said(&mut options.step_budget, &self.step_budget);
        said(&mut options.timeout, &self.timeout);
        said(&mut options.token_budget, &self.token_budget);
        said(&mut options.memory, &self.memory);
        said(&mut options.instructions, &self.instructions);
        said(&mut options.output, &self.output);
        options.imports.extend(self.imports.iter().cloned());
        if let Some(profile) = named::<CommandProfile>("sandbox", self.sandbox.as_deref())? {
            options.sandbox.profile = profile;
        }
        if let Some(mode) = named::<ApproveMode>("approve", self.approve.as_deref())? {
            options.approve = Some(mode);
        }
        Ok(())
    }
}

/// One of a few named values.
pub(crate) fn named<T: Choice>(what: &str, name: Option<&str>) -> Result<Option<T>, RpcError> {
    let Some(name) = name else { return Ok(None) };
    let names = || T::ALL.iter().map(|(_, name, _)| *name).collect::<Vec<_>>().join(", ");
    T::named(name)
        .map(Some)
        .ok_or_else(|| RpcError::params(format!("there is no {what} `{name}`; there are: {}", names())))
}

/// A session that is named.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Named {
    pub(crate) session_id: String,
}

/// A list of sessions.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct List {
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) cursor: Option<String>,
}

/// Something to do.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Prompt {
    pub(crate) session_id: String,
    pub(crate) prompt: Vec<Block>,
}

/// A part of what is to be done.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Block {
    /// Words.
    Text { text: String },
    /// A file that the agent can read itself.
    ResourceLink { uri: String },
    /// A text that the client has.
    Resource { resource: Resource },
    /// Anything else, such as an image.
    #[serde(other)]
    Other,
}

/// A text and where it is from.
#[derive(Debug, Deserialize)]
pub(crate) struct Resource {
    uri: String,
    text: Option<String>,
}

impl Prompt {
    /// As a task.
    pub(crate) fn task(&self) -> Result<String, RpcError> {
        let mut parts = Vec::new();
        for block in &self.prompt {
            parts.push(match block {
                Block::Text { text } => text.clone(),
                Block::ResourceLink { uri } => place(uri).to_owned(),
                Block::Resource { resource: Resource { uri, text: Some(text) } } => {
                    format!("\n{}:\n```\n{}\n```\n", place(uri), text.trim_end_matches('\n'))
                }
                Block::Resource { resource: Resource { uri, text: None } } => place(uri).to_owned(),
                Block::Other => {
                    return Err(RpcError::params("a prompt can hold text and files, no images or sounds"));
                }
            });
        }
        let task = parts.join(" ").trim().to_owned();
        if task.is_empty() { Err(RpcError::params("the prompt is empty")) } else { Ok(task) }
    }
}

fn place(uri: &str) -> &str {
    uri.strip_prefix("file://").unwrap_or(uri)
}

/// Another mode.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetMode {
    pub(crate) session_id: String,
    pub(crate) mode_id: String,
}

/// Another value of an option.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetOption {
    pub(crate) session_id: String,
    pub(crate) config_id: String,
    pub(crate) value: Value,
}
