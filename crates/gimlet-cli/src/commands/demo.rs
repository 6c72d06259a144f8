//! `gimlet demo`: the whole story with no model server. A throw-away repository with a failing test is explored, patched,
//! tested and explained. Only the model's replies are scripted; everything else is what a real run does.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use gimlet_eval::repository::Repository;
use gimlet_runtime::{Home, Input, Options, Process, Runtime};
use gimlet_web::{Config, Server};

use crate::args::DemoArgs;
use crate::ending::{At, tell};
use crate::exit::ExitStatus;
use crate::front::Front;
use crate::style::{BOLD, DIM};
use crate::{app, interrupt};

const TASK: &str = "The test fails. Find out why, fix it, and show that it passes.";

const FILES: &[(&str, &str)] = &[
    ("README.md", include_str!("../../demo/README.md")),
    ("average.sh", include_str!("../../demo/average.sh")),
    ("test.sh", include_str!("../../demo/test.sh")),
];

/// Shows the demo.
pub(crate) async fn demo(args: DemoArgs) -> anyhow::Result<ExitStatus> {
    let folder = tempfile::Builder::new()
        .prefix("gimlet-demo-")
        .tempdir()
        .context("cannot make a folder for the demo")?;
    let repo = folder.path().join("average");
    make_repository(&repo)?;
    let mut stderr = crate::out::stderr();
    if !args.json {
        writeln!(
            stderr,
            "{BOLD}A demonstration.{BOLD:#} The repository, the tools, the approval and the log are real;"
        )?;
        writeln!(stderr, "the model's replies are scripted, so no model server is needed.\n")?;
        writeln!(stderr, "{DIM}in {}{DIM:#}\n{BOLD}task:{BOLD:#} {TASK}\n", repo.display())?;
    }
    let script = folder.path().join("demo");
    std::fs::write(&script, include_str!("../../demo/script.toml"))?;
    // Nothing of the user's own settings or of the folder this was started in takes part.
    let process =
        Process::current()?.with_home(Home::at(&folder.path().join("home"))?).started_in(repo.clone());
    let runtime = app::runtime_for_demo(Arc::new(process), &args)?;
    let options = Options {
        root: Some(repo.clone()),
        model: Some(format!("scripted/{}", script.display())),
        trace: (&args.trace).into(),
        ..Options::default()
    };
    if args.web {
        return on_the_page(runtime, options, repo, TASK).await;
    }
    let mut front = Front::demo(args.json);
    let cancel = interrupt::interruptible()?;
    let session = runtime.begin_attended(options, front.attendance()).await?;
    let turn = session.submit(Input::Task(TASK.into())).await?;
    let id = turn.run().to_string();
    let ending = front.follow_until(&session, turn, &cancel).await?;
    tell(&id, At::Shell(&format!("gimlet resume {id}")), &ending, &front).await?;
    if args.keep {
        let kept = folder.keep();
        writeln!(stderr, "{DIM}kept in {}{DIM:#}", kept.display())?;
    } else if !args.json {
        writeln!(stderr, "{DIM}The demo's folder is removed; `gimlet demo --keep` keeps it.{DIM:#}")?;
    }
    Ok(ExitStatus::from(&ending))
}

/// Shows the demo's run on the page, where its question is answered, until the program is stopped.
async fn on_the_page(
    runtime: Runtime,
    options: Options,
    repo: PathBuf,
    task: &str,
) -> anyhow::Result<ExitStatus> {
    let server = Server::bind(Config {
        listen: ([127, 0, 0, 1], 0).into(),
        names: Vec::new(),
        tls: None,
        password_file: None,
        projects: vec![repo],
        runtime,
        program: std::env::current_exe().context("cannot find this program")?,
    })
    .await?;
    let cancel = interrupt::interruptible()?;
    let run = server.start(options, task).await?;
    writeln!(crate::out::stdout(), "listening on {}", server.address())?;
    writeln!(crate::out::stdout(), "log in with {}", server.login_to(&run)?)?;
    writeln!(crate::out::stderr(), "{DIM}the run asks its question there; Ctrl-C ends the demo{DIM:#}")?;
    server.run(cancel.cancelled_owned()).await?;
    Ok(ExitStatus::Success)
}

fn make_repository(path: &Path) -> anyhow::Result<()> {
    let mut repository = Repository::init(path)?;
    for (name, text) in FILES {
        std::fs::write(path.join(name), text)?;
    }
    repository.commit("Average of numbers", "demo")
}
