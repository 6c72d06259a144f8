//! Plays a script as a model server, for programs that are not tests of ours: it prints its address, then serves
//! until it is ended.
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "it prints its own words, for scripts")]

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use clap::Parser;
use gimlet_models::Script;
use gimlet_testkit::{ModelServer, Recorded};

/// Plays a script as an Ollama, OpenAI (chat completions and responses) and Anthropic server, and checks every request it gets.
///
/// The first line on standard output is its address. A request that breaks a rule of the protocol is answered with
/// 400 and the rule's name.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The script, TOML or (when it ends in .json) JSON
    script: PathBuf,
    /// Port to listen on; 0 takes a free one
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// Writes each request as a line of JSON, with the rules it broke
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Answers requests that break a rule too
    #[arg(long)]
    lenient: bool,
    /// A model it has; others are not found. Without it, any name will do
    #[arg(long = "model", value_name = "NAME")]
    models: Vec<String>,
    /// Context length its models have
    #[arg(long, value_name = "TOKENS", default_value_t = 32_768)]
    context: u64,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Args::parse()).await {
        Ok(never) => match never {},
        Err(message) => {
            // Nothing is left to do when standard error is gone too.
            let _written = writeln!(io::stderr(), "gimlet-model-server: {message}");
            ExitCode::from(2)
        }
    }
}

async fn run(args: Args) -> Result<std::convert::Infallible, String> {
    let script = Script::load(&args.script).map_err(|error| error.to_string())?;
    let mut builder = ModelServer::builder(script).port(args.port).models(args.models).context(args.context);
    if args.lenient {
        builder = builder.lenient();
    }
    if let Some(path) = args.log {
        let file =
            File::create(&path).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        builder = builder.on_request(logger(file));
    }
    let server =
        builder.start().await.map_err(|error| format!("cannot listen on port {}: {error}", args.port))?;
    let mut out = io::stdout().lock();
    writeln!(out, "{}", server.url()).and_then(|()| out.flush()).map_err(|error| error.to_string())?;
    drop(out);
    std::future::pending().await
}

/// Writes each request at once, so that the log is whole whenever the server is ended.
fn logger(file: File) -> impl Fn(&Recorded) + Send + Sync {
    let file = Mutex::new(file);
    move |recorded| {
        let Ok(mut line) = serde_json::to_vec(recorded) else { return };
        line.push(b'\n');
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write_all(&line) {
            let _written = writeln!(io::stderr(), "gimlet-model-server: cannot write the log: {error}");
        }
    }
}
