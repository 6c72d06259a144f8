//! The MCP servers of the configuration: each is started, asked for its tools and closed.

use gimlet_runtime::parts::mcp::{Health, Reaper};

use super::Row;
use gimlet_runtime::config::Settings;
use gimlet_runtime::mcp;

/// A row for each server; none where there are no servers.
pub(super) async fn mcp(settings: &Settings) -> Vec<Row> {
    let named = match mcp::named(settings, &[]) {
        Ok(named) => named,
        Err(error) => return vec![Row::failed("mcp", &error, "mend the file it names")],
    };
    let health = match mcp::health(settings, &named, &Reaper::default()).await {
        Ok(health) => health,
        Err(error) => return vec![Row::failed("mcp", &error, "see `gimlet sandbox`")],
    };
    let mut rows: Vec<Row> = health
        .into_iter()
        .map(|row| match row.health {
            Health::Up { protocol, tools, .. } => {
                Row::good("mcp", format!("{}: {} tools, protocol {protocol}", row.name, tools.len()))
            }
            // A run starts without it, unless it has required tools.
            Health::Down { error, hint } => Row::weak("mcp", error, hint),
        })
        .collect();
    for inert in &named.inert {
        rows.push(Row::weak("mcp", format!("{} is off: {}", inert.name, inert.why()), inert.hint()));
    }
    rows
}
