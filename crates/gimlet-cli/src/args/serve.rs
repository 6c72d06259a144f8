//! Arguments of `gimlet serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Where to listen; only this machine can reach it.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7717")]
    pub(crate) listen: SocketAddr,
    /// Open the login link in a browser.
    #[arg(long)]
    pub(crate) open: bool,
    /// A folder in which tasks may be started; may be given more than once [default: this one].
    #[arg(long, value_name = "DIR")]
    pub(crate) project: Vec<PathBuf>,
    /// Print the address and the login link as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
