//! Arguments of `gimlet serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Where to listen; off this machine only with TLS and a password.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7717")]
    pub(crate) listen: SocketAddr,
    /// Open the login link in a browser.
    #[arg(long)]
    pub(crate) open: bool,
    /// A folder in which tasks may be started; may be given more than once [default: this one].
    #[arg(long, value_name = "DIR")]
    pub(crate) project: Vec<PathBuf>,
    /// Another name the server is reached by; may be given more than once.
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<String>,
    /// A certificate for TLS, as PEM.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The certificate's key, as PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// A file with a password for the page; only you may be able to read it.
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    /// Print the address and the login link as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
