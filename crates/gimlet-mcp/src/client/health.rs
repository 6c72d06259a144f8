//! Whether a server works, for `gimlet mcp list` and the doctor: it is started, asked for its tools and closed.

use serde::Serialize;

use super::connect::Ground;
use super::link::Link;
use crate::config::ServerConfig;

/// What a look at a server found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HealthRow {
    /// Its name.
    pub name: String,
    /// Its program or address.
    pub launch: String,
    /// How it is.
    #[serde(flatten)]
    pub health: Health,
}

/// How a server is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "health", rename_all = "snake_case")]
pub enum Health {
    /// It answers.
    Up {
        /// What it calls itself.
        server: String,
        /// The revision of the protocol that both sides agreed on.
        protocol: String,
        /// Names of its tools, as the server says them.
        tools: Vec<String>,
        /// Things about its tools that were left out.
        notes: Vec<String>,
    },
    /// It does not.
    Down {
        /// Why.
        error: String,
        /// What to do.
        hint: String,
    },
}

/// Looks at a server.
pub async fn check(config: ServerConfig, ground: &Ground) -> HealthRow {
    let (name, launch) = (config.name.clone(), config.launch.to_string());
    let health = match Link::open(config, ground).await {
        Ok(link) => {
            let info = link.info();
            let listing = link.listing();
            let server = info.as_ref().and_then(|info| info.server_info.as_ref());
            let up = Health::Up {
                server: server.map(|s| format!("{} {}", s.name, s.version)).unwrap_or_default(),
                protocol: info.as_ref().map(|info| info.protocol_version.to_string()).unwrap_or_default(),
                tools: listing.names(),
                notes: listing.notes.clone(),
            };
            link.close().await;
            up
        }
        Err(error) => Health::Down { error: error.to_string(), hint: error.hint() },
    };
    HealthRow { name, launch, health }
}
