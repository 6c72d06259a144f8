//! The tools a server offers, cleaned: what is denied, doubled or unusable is left out and said.

use gimlet::digest::digest_json;
use gimlet::tool::ToolSpec;
use rmcp::RoleClient;
use rmcp::model::{PaginatedRequestParams, Tool};
use rmcp::service::{Peer, ServiceError};
use serde_json::{Value, json};

use super::content::{Wrapping, clip};
use super::schema;
use crate::config::ServerConfig;

/// Pages of a list that are read.
const PAGES: usize = 50;
/// Tools of one server.
const MOST: usize = 500;
/// Characters of a tool's description.
const WORDS: usize = 1000;

/// All tools of a server at one moment.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Listing {
    pub(super) tools: Vec<Offered>,
    /// What was left out or cut, for the person.
    pub(super) notes: Vec<String>,
}

/// A tool a server offers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Offered {
    /// As the server calls it.
    pub(super) name: String,
    pub(super) description: String,
    pub(super) input: Value,
    pub(super) output: Option<Value>,
    pub(super) wrapping: Wrapping,
    pub(super) reads_only: bool,
    /// Hash of everything the server says about it: what an approval is bound to.
    pub(super) fingerprint: String,
}

impl Listing {
    pub(super) fn find(&self, name: &str) -> Option<&Offered> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.tools.iter().map(|tool| tool.name.clone()).collect()
    }

    /// Asks a server.
    pub(super) async fn read(
        peer: &Peer<RoleClient>,
        config: &ServerConfig,
    ) -> Result<Listing, ServiceError> {
        let has_tools = peer.peer_info().is_none_or(|info| info.capabilities.tools.is_some());
        if !has_tools {
            return Ok(Listing::default());
        }
        let mut tools = Vec::new();
        let mut cursor = None;
        let mut complete = false;
        for _ in 0..PAGES {
            let page = peer.list_tools(Some(PaginatedRequestParams::default().with_cursor(cursor))).await?;
            tools.extend(page.tools);
            cursor = page.next_cursor;
            if cursor.is_none() {
                complete = true;
                break;
            }
        }
        let mut listing = Listing::of(tools, config);
        if !complete {
            listing
                .notes
                .push(format!("MCP server `{}` lists tools without end; the rest is ignored", config.name));
        }
        Ok(listing)
    }

    fn of(tools: Vec<Tool>, config: &ServerConfig) -> Listing {
        let mut listing = Listing::default();
        let server = &config.name;
        for tool in tools {
            if !config.filter.admits(&tool.name) {
                continue;
            }
            let name = clip(&tool.name, 128);
            if listing.tools.len() == MOST {
                listing
                    .notes
                    .push(format!("MCP server `{server}` has more than {MOST} tools; the rest is ignored"));
                break;
            }
            if listing.find(&name).is_some() {
                let note = format!("MCP server `{server}` has two tools `{name}`; the second is ignored");
                if !listing.notes.contains(&note) {
                    listing.notes.push(note);
                }
                continue;
            }
            listing.tools.push(Offered::new(name, &tool));
        }
        listing
    }
}

impl Offered {
    fn new(name: String, tool: &Tool) -> Offered {
        let output = tool.output_schema.as_deref();
        let wraps = output.and_then(|schema| schema.get("x-fastmcp-wrap-result")) == Some(&Value::Bool(true));
        let input = schema::clean(&tool.input_schema);
        let mut description = clip(tool.description.as_deref().unwrap_or_default().trim(), WORDS);
        if description.is_empty() {
            description = tool.title.clone().unwrap_or_else(|| name.clone());
        }
        if input.shrunk {
            description.push_str(" (Its schema is shortened here.)");
        }
        Offered {
            description,
            input: input.schema,
            output: output.map(|schema| schema::clean(schema).schema),
            wrapping: if wraps { Wrapping::Result } else { Wrapping::None },
            reads_only: tool.annotations.as_ref().and_then(|hints| hints.read_only_hint) == Some(true),
            fingerprint: digest_json(&json!({
                "name": tool.name,
                "description": tool.description,
                "input": tool.input_schema,
                "output": tool.output_schema,
                "annotations": tool.annotations,
            })),
            name,
        }
    }

    /// How it is called, under a name of our own.
    pub(super) fn spec(&self, name: String, manner: gimlet::tool::Manner) -> ToolSpec {
        ToolSpec {
            name,
            description: self.description.clone(),
            input: self.input.clone(),
            output: self.output.clone(),
            manner,
        }
    }
}
