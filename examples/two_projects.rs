//! Two projects served by one process: each has a runtime of its own, with its own data directory, servers and workers, and
//! both are at work at the same time. Events are followed while they happen.
#![expect(clippy::print_stdout, reason = "it shows what happens")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use gimlet::Ending;
use gimlet::event::EventKind;
use gimlet_runtime::{Config, Home, Input, Options, Process, Runtime, run_as_helper};

fn main() -> anyhow::Result<ExitCode> {
    if let Some(done) = run_as_helper() {
        return Ok(done);
    }
    let folders: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [one, other] = folders.as_slice() else { anyhow::bail!("usage: two_projects FOLDER FOLDER") };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (first, second) =
        runtime.block_on(async { tokio::try_join!(serve(one.clone()), serve(other.clone())) })?;
    println!("{first}\n{second}");
    Ok(ExitCode::SUCCESS)
}

/// Works on one task in a folder, whose settings name the model, and returns what was done.
async fn serve(folder: PathBuf) -> anyhow::Result<String> {
    let home = Home::at(&folder.join(".data"))?;
    let process = Process::current()?.with_home(home).started_in(folder.clone());
    let runtime = Runtime::open(Config { process: Arc::new(process), ..Config::load(&folder)? })?;
    let session = runtime.begin(Options::default()).await?;
    let turn = session.submit(Input::Task("What is in notes.txt?".into())).await?;
    let mut events = turn.events()?;
    let ending = turn.ended().await?;
    let mut tools = Vec::new();
    while let Some(event) = events.next_now() {
        if let EventKind::ToolFinished(finished) = &event.kind {
            tools.push(finished.tool.clone());
        }
    }
    runtime.close().await;
    let Ending::Finished(finished) = ending else { anyhow::bail!("it stopped: {ending:?}") };
    Ok(format!("{} (by {})", finished.answer, tools.join(", ")))
}
