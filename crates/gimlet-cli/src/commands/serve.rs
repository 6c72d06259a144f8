//! `gimlet serve`: the page and the HTTP interface, until the program is stopped.

use std::io::Write;

use anyhow::Context;
use gimlet_runtime::UsageError;
use gimlet_web::{Config, Server, Tls};
use serde_json::json;

use crate::args::ServeArgs;
use crate::exit::ExitStatus;
use crate::{app, interrupt};

/// Every watcher is an open file, and the usual limit of a shell is fewer than the server allows.
fn open_many_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // With fewer files there is room for fewer watchers, and no other harm.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Serves.
pub(crate) async fn serve(args: ServeArgs) -> anyhow::Result<ExitStatus> {
    open_many_files();
    let runtime = app::serving()?;
    let given = if args.project.is_empty() { vec![".".into()] } else { args.project };
    let mut projects = Vec::new();
    for folder in given {
        let path = folder
            .canonicalize()
            .map_err(|error| UsageError::new(format!("cannot serve {}: {error}", folder.display())))?;
        projects.push(path);
    }
    let program = std::env::current_exe().context("cannot find this program")?;
    let tls = args.tls_cert.zip(args.tls_key).map(|(certificate, key)| Tls { certificate, key });
    let server = Server::bind(Config {
        listen: args.listen,
        names: args.host,
        tls,
        password_file: args.password_file,
        projects,
        runtime,
        program,
    })
    .await?;
    let (address, login) = (server.address(), server.login()?);
    if args.json {
        crate::out::json(&json!({ "address": address, "login": login }))?;
    } else {
        writeln!(crate::out::stdout(), "listening on {address}")?;
        writeln!(crate::out::stdout(), "log in with {login}")?;
    }
    if args.open {
        let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
        // Without a browser here, the link is on the terminal.
        let _ = tokio::process::Command::new(opener).arg(&login).spawn();
    }
    let cancel = interrupt::interruptible()?;
    server.run(cancel.cancelled_owned()).await?;
    Ok(ExitStatus::Success)
}
