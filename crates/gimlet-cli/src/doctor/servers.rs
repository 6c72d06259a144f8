//! The MCP servers of the configuration: each is started, asked for its tools and closed.

use gimlet_runtime::parts::mcp::{Health, Reaper};

use super::Row;
use gimlet_runtime::config::{Settings, shown};
use gimlet_runtime::mcp;

/// A row for each server; none where there are no servers.
pub(super) async fn mcp(settings: &Settings) -> Vec<Row> {
    let named = match mcp::named(settings, &[]) {
        Ok(named) => named,
        Err(error) => return vec![Row::failed("mcp", &error, "mend the file it names")],
    };
    let mut rows: Vec<Row> = mcp::health(settings, named.servers.clone(), &Reaper::default())
        .await
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
        let file = shown(&inert.file);
        let found = format!("{} is off: {file} is not trusted", inert.name);
        rows.push(Row::weak("mcp", found, format!("read it, then run: gimlet trust {file}")));
    }
    rows
}
