//! The `gimlet` binary: parse, one function per command, exit code.
#![forbid(unsafe_code)]

mod app;
mod args;
mod asking;
mod attach;
mod commands;
mod custom;
mod diagnostics;
mod diff_text;
mod doctor;
mod ending;
mod exit;
mod front;
mod interrupt;
mod keys;
mod patch_editor;
mod session;
mod show;

use std::process::ExitCode;

use clap::CommandFactory;

use gimlet_term::{out, style};

use args::{Cli, Command};
use exit::ExitStatus;

/// An interpreter makes and drops objects all the time; the system's allocator costs it a tenth of its speed.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // The sandbox's worker and the jail's helper are this same program. They must not start threads or read anything
    // before their jail is up.
    if let Some(done) = gimlet_runtime::run_as_helper() {
        return done;
    }
    gimlet_eval::stay_with_parent();
    let cli = Cli::read();
    let status = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => {
            let status = runtime.block_on(async {
                let status = dispatch(cli).await;
                app::close_all().await;
                status
            });
            // A tool's blocking work that was cancelled must not hold the program up.
            runtime.shutdown_background();
            status
        }
        Err(error) => Err(error.into()),
    };
    let status = status.unwrap_or_else(|error| exit::report(&error));
    diagnostics::finish();
    status.into()
}

async fn dispatch(cli: Cli) -> anyhow::Result<ExitStatus> {
    match cli.command {
        None => commands::run::run(cli.run).await,
        Some(Command::Run(args)) => commands::run::run(args).await,
        Some(Command::Demo(args)) => commands::demo::demo(args).await,
        Some(Command::Resume(args)) => commands::run::resume(args).await,
        Some(Command::Commit(args)) => commands::commit::commit(args).await,
        Some(Command::Review(args)) => commands::review::review(args).await,
        Some(Command::Runs { command, list }) => commands::runs::runs(command, list).await,
        Some(Command::Approvals(args)) => commands::approvals::approvals(args).await,
        Some(Command::Approve(args)) => commands::approvals::approve(&args).await,
        Some(Command::Deny(args)) => commands::approvals::deny(args).await,
        Some(Command::Models { command, server, json }) => {
            commands::models::models(command, server, json).await
        }
        Some(Command::Eval(args)) => commands::eval::eval(*args).await,
        Some(Command::Python(args)) => commands::python::python(args).await,
        Some(Command::Policy { command }) => commands::policy::policy(command).await,
        Some(Command::Agents { command, root, mcp, json }) => {
            commands::agents::agents(command, &root, &mcp, json)
        }
        Some(Command::Tools { command, root, mcp, json }) => {
            commands::tools::tools(command, &root, &mcp, json).await
        }
        Some(Command::Skills { root, json }) => commands::knowledge::skills(&root, json),
        Some(Command::Commands { root, json }) => commands::knowledge::commands(&root, json),
        Some(Command::Sandbox { command, root, jail, json }) => {
            commands::sandbox::sandbox(command, &root, jail, json).await
        }
        Some(Command::Mcp { command, root, mcp, json }) => {
            commands::mcp::mcp(command, &root, &mcp, json).await
        }
        Some(Command::Acp(args)) => commands::acp::acp(*args).await,
        Some(Command::Memory { command, root, json }) => commands::memory::memory(command, &root, json).await,
        Some(Command::Repo { command, root }) => commands::repo::repo(command, &root),
        Some(Command::Config { command, root, json }) => commands::config::config(command, &root, json),
        Some(Command::Doctor(args)) => doctor::doctor(&args).await,
        Some(Command::Serve(args)) => commands::serve::serve(args).await,
        Some(Command::Trust(args)) => commands::trust::trust(&args),
        Some(Command::Completions { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "gimlet", &mut script);
            out::data(&script)?;
            Ok(ExitStatus::Success)
        }
        Some(Command::Man { dir }) => commands::man::man(dir.as_deref()),
    }
}
