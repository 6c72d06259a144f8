//! A whole coding agent in a program of your own: all built-in tools, the jail, the policy for commands, approvals, a durable
//! log, and whatever model the settings name (`MODEL_ID=ollama_chat/qwen2.5-coder:14b`, for one).
#![expect(clippy::print_stdout, reason = "it shows its answer")]

use std::process::ExitCode;

use gimlet::Ending;
use gimlet_runtime::options::ApproveMode;
use gimlet_runtime::{Config, Input, Options, Runtime, run_as_helper};

fn main() -> anyhow::Result<ExitCode> {
    if let Some(done) = run_as_helper() {
        return Ok(done);
    }
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let runtime = Runtime::open(Config::load(".")?)?;
        let agent = runtime.begin(Options { approve: Some(ApproveMode::All), ..Options::default() }).await?;
        let task = std::env::args().nth(1).unwrap_or_else(|| "Which files are here?".to_owned());
        let ending = agent.submit(Input::Task(task)).await?.ended().await?;
        runtime.close().await;
        let Ending::Finished(finished) = ending else { anyhow::bail!("it stopped: {ending:?}") };
        println!("{}", finished.answer);
        Ok(ExitCode::SUCCESS)
    })
}
