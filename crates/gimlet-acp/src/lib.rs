//! Gimlet as an agent of the Agent Client Protocol (ACP): an editor, or the Python package, is the client.
//!
//! The wire is JSON-RPC, one message a line. A session is a conversation of the runtime, and its id is the run's. What
//! ACP has no word for goes by methods that begin with `_gimlet/` and by `_meta.gimlet`.
#![forbid(unsafe_code)]

mod buffers;
mod cells;
mod chat;
mod commands;
mod content;
mod follow;
mod params;
mod program;
mod server;
mod settings;
mod updates;
mod wire;

use std::io::{BufRead, Write};

use gimlet_runtime::{Options, Runtime};
use tokio_util::sync::CancellationToken;

/// Serves a client until it closes its end, or until `stop`. `options` hold for every session; its folder is the client's.
/// Nothing but the protocol is written to `output`.
pub async fn serve(
    runtime: Runtime,
    options: Options,
    input: impl BufRead + Send + 'static,
    output: impl Write + Send + 'static,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let (peer, incoming) = wire::connect(input, output)?;
    server::Server::new(runtime, options, peer).serve(incoming, stop).await;
    Ok(())
}
