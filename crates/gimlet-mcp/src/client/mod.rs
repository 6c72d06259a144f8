//! Other people's servers as a set of tools.

mod bounded;
mod connect;
mod content;
mod extra;
mod health;
mod http;
mod hub;
mod link;
mod listing;
mod names;
mod schema;
mod sse;
mod tool;

use std::sync::Arc;

use futures_util::future::join_all;
use gimlet::tool::Tool;

use crate::config::ServerConfig;
use crate::error::McpError;
use link::Link;
use tool::McpTool;

pub use connect::{Ground, Voice};
pub use health::{Health, HealthRow, check};
pub use names::prefix;

/// Error words of MCP tools.
mod code {
    pub(super) const MCP_TOOL_FAILED: &str = "MCP_TOOL_FAILED";
    pub(super) const MCP_TOOL_GONE: &str = "MCP_TOOL_GONE";
    pub(super) const MCP_TOOL_CHANGED: &str = "MCP_TOOL_CHANGED";
    pub(super) const MCP_SERVER_DIED: &str = "MCP_SERVER_DIED";
    pub(super) const MCP_SERVER_GONE: &str = "MCP_SERVER_GONE";
    pub(super) const MCP_NO_SUCH_SERVER: &str = "MCP_NO_SUCH_SERVER";
}

/// Running servers. They outlive every agent that uses their tools; [`close`](Servers::close) ends them in peace, and
/// dropping them ends them anyway.
pub struct Servers {
    links: Vec<Arc<Link>>,
    warnings: Vec<String>,
}

impl Servers {
    /// Starts all servers side by side. One that must have certain tools and has not, or does not start, is an error;
    /// any other that does not start is left out with a warning.
    pub async fn start(configs: Vec<ServerConfig>, ground: &Ground) -> Result<Servers, McpError> {
        let mut servers = Servers { links: Vec::new(), warnings: Vec::new() };
        let opening = configs.into_iter().map(|config| async {
            let needed = !config.required.is_empty();
            (needed, Link::open(config, ground).await)
        });
        for (needed, opened) in join_all(opening).await {
            match opened {
                Ok(link) => {
                    servers.warnings.extend(link.listing().notes.iter().cloned());
                    servers.links.push(Arc::new(link));
                }
                Err(error) if needed => {
                    servers.close().await;
                    return Err(error);
                }
                Err(error) => {
                    servers
                        .warnings
                        .push(format!("{error}\nIts tools are missing. {}", sentence(&error.hint())));
                }
            }
        }
        Ok(servers)
    }

    /// What a person should know.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The servers' tools, in a stable order.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        for link in &self.links {
            let listing = link.listing();
            let names =
                names::safe_names(&link.config.name, listing.tools.iter().map(|tool| tool.name.as_str()));
            for (offered, name) in listing.tools.iter().zip(names) {
                // Two servers whose names end up alike: the first is meant.
                if !tools.iter().any(|tool| tool.spec().name == name) {
                    tools.push(Arc::new(McpTool::new(link.clone(), offered.clone(), name)));
                }
            }
        }
        tools.extend(extra::tools(&self.links));
        tools
    }

    /// Closes all connections and waits until the processes are gone.
    pub async fn close(&self) {
        join_all(self.links.iter().map(|link| link.close())).await;
    }
}

fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect::<String>() + ".").unwrap_or_default()
}
