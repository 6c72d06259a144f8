//! `gimlet demo`: the whole story with no model server. A throw-away repository with a failing test is explored, patched,
//! tested and explained. Only the model's replies are scripted; everything else is what a real run does.

use std::collections::HashSet;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::approval::{ApprovalRequest, Approver, Decision, Scope};
use gimlet::event::ActionFormat;
use gimlet::limits::Limits;
use gimlet::{Env, Run};
use gimlet_models::{Script, ScriptedModel};
use gimlet_store::FileStore;

use crate::args::DemoArgs;
use crate::config::{Bounds, Flags, Settings};
use crate::ending::{At, tell};
use crate::exit::ExitStatus;
use crate::front::Front;
use crate::isolation::Isolation;
use crate::repository::Repository;
use crate::show::{Screen, question};
use crate::style::{BOLD, DIM};
use crate::trace::{self, Told};
use crate::world::{self, Place};

const TASK: &str = "The test fails. Find out why, fix it, and show that it passes.";

const FILES: &[(&str, &str)] = &[
    ("README.md", include_str!("../../demo/README.md")),
    ("average.sh", include_str!("../../demo/average.sh")),
    ("test.sh", include_str!("../../demo/test.sh")),
];

/// Shows the demo.
pub(crate) async fn demo(args: DemoArgs) -> anyhow::Result<ExitStatus> {
    let settings = Settings::load(Flags { trace: args.trace.wish(), ..Flags::default() })?;
    trace::begin(&settings, &args.trace, Told::WhenNamed)?;
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
    let place = Place::at(&repo, Bounds::default(), Isolation::new(&repo, &settings)?)?;
    let script: Script =
        toml::from_str(include_str!("../../demo/script.toml")).context("the demo's script is broken")?;
    let model = Arc::new(ScriptedModel::new("scripted/demo", script));
    let builder = gimlet::Agent::builder(model).tools(place.tools()).limits(Limits::default());
    let builder = match place.gate() {
        Some(gate) => builder.check(gate),
        None => builder,
    };
    let agent = builder.build()?;
    let mut front = Front::plain(args.json);
    let store = Arc::new(FileStore::open(&folder.path().join("home"))?);
    let screen = (!args.json).then(|| front.screen().clone());
    let approver = Arc::new(AgreeAloud { screen, agreed: Mutex::default() });
    let observer = front.observer(ActionFormat::Tools);
    let env = world::env(&place, store, approver, vec![observer], world::interruptible()?);
    let env = Env { payloads: trace::payloads(&args.trace)?, ..env };
    let run = Run::start(agent, TASK, env).await?;
    let id = run.id().to_string();
    let ending = front.drive(run).await?;
    tell(&id, At::Shell(&format!("gimlet resume {id}")), &ending, &front)?;
    if args.keep {
        let kept = folder.keep();
        writeln!(stderr, "{DIM}kept in {}{DIM:#}", kept.display())?;
    } else if !args.json {
        writeln!(stderr, "{DIM}The demo's folder is removed; `gimlet demo --keep` keeps it.{DIM:#}")?;
    }
    Ok(ExitStatus::from(&ending))
}

/// Shows each question as a person would see it, and agrees for the rest of the demo.
struct AgreeAloud {
    /// Where questions are shown; none with `--json`.
    screen: Option<Arc<Screen>>,
    /// What was agreed to already, by binding.
    agreed: Mutex<HashSet<String>>,
}

impl Approver for AgreeAloud {
    fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, Decision> {
        let new = self.agreed.lock().unwrap_or_else(PoisonError::into_inner).insert(request.binding.clone());
        if let Some(screen) = self.screen.as_ref().filter(|_| new) {
            screen.line(&format!(
                "{}  {DIM}(you would be asked here; the demo says yes, for this session){DIM:#}",
                question(&request)
            ));
        }
        std::future::ready(Decision::Approve { scope: Scope::Session }).boxed()
    }
}

fn make_repository(path: &Path) -> anyhow::Result<()> {
    let mut repository = Repository::init(path)?;
    for (name, text) in FILES {
        std::fs::write(path.join(name), text)?;
    }
    repository.commit("Average of numbers", "demo")
}
