//! The `gimlet` binary: parse, one function per command, exit code.
#![forbid(unsafe_code)]

mod approver;
mod args;
mod commands;
mod exit;
mod home;
mod models;
mod patches;
mod show;
mod style;
mod world;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Cli, Command};
use exit::ExitStatus;

fn main() -> ExitCode {
    // The sandbox's worker is this same program. It must not start threads or read anything before its jail is up.
    if std::env::args_os().nth(1).is_some_and(|word| word == world::WORKER) {
        return gimlet_python::worker::main();
    }
    let cli = Cli::parse();
    let status = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => {
            let status = runtime.block_on(dispatch(cli));
            // A tool's blocking work that was cancelled must not hold the program up.
            runtime.shutdown_background();
            status
        }
        Err(error) => Err(error.into()),
    };
    status.unwrap_or_else(|error| exit::report(&error)).into()
}

async fn dispatch(cli: Cli) -> anyhow::Result<ExitStatus> {
    match cli.command {
        None => commands::run::run(cli.run).await,
        Some(Command::Run(args)) => commands::run::run(args).await,
        Some(Command::Demo(args)) => commands::demo::demo(args).await,
        Some(Command::Resume(args)) => commands::run::resume(args).await,
        Some(Command::Runs { command }) => commands::runs::runs(command).await,
        Some(Command::Approvals(args)) => commands::approvals::list(args),
        Some(Command::Approve(args)) => commands::approvals::approve(&args),
        Some(Command::Deny(args)) => commands::approvals::deny(args),
        Some(Command::Models { command, options }) => commands::models::models(command, &options).await,
        Some(Command::Python(args)) => commands::python::python(args).await,
        Some(Command::Policy { command, root }) => commands::policy::policy(command, &root),
        Some(Command::Tools { command, root }) => commands::tools::tools(command, &root).await,
        Some(Command::Completions { shell }) => {
            clap_complete::generate(shell, &mut Cli::command(), "gimlet", &mut std::io::stdout());
            Ok(ExitStatus::Success)
        }
    }
}
