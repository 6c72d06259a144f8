//! The model: whether its server answers, which model would be asked and why, and whether it can call a tool at all.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gimlet::event::EventKind;
use gimlet::journal::Observer;
use gimlet::limits::Limits;
use gimlet::{Agent, Env, Run};

use super::{Report, Row};
use crate::style::DIM;
use gimlet_runtime::config::Settings;
use gimlet_runtime::models::{self, Found};
use gimlet_runtime::{Failure, Project};

/// Longest wait for the tool call; a model may have to be loaded first.
const PATIENCE: Duration = Duration::from_secs(180);
const TASK: &str =
    "Call the tool repo_info once. When you have its result, answer with the single word: done.";

/// Looks for the model and tries it.
pub(super) async fn check(settings: &Settings, quick: bool, report: &mut Report) -> anyhow::Result<()> {
    if settings.model_id.is_none() {
        match models::installed(settings).await {
            Ok((server, installed)) => {
                report.add([Row::good(
                    "model server",
                    format!("{} has {} models", server.host(), installed.len()),
                )])?;
            }
            Err(error) => {
                return Ok(report.add([Row::failed(
                    "model server",
                    &error,
                    "start Ollama, or name a model with MODEL_ID",
                )])?);
            }
        }
    }
    let found = match models::chosen(settings).await {
        Ok(found) => found,
        Err(error) => return Ok(report.add([Row::failed("model", &error, "see `gimlet models`")])?),
    };
    let why = match (&found.why, &settings.model_id) {
        (Some(why), _) => why.clone(),
        (None, Some(setting)) => format!("named by {}", setting.origin),
        (None, None) => "named".to_owned(),
    };
    report.add([Row::good("model", format!("{}: {why}", found.model.id()))])?;
    if quick {
        return Ok(());
    }
    if !report.json {
        writeln!(crate::out::stderr(), "{DIM}  asking {} to call a tool …{DIM:#}", found.model.id())?;
    }
    report.add([tool_call(settings, found).await])?;
    Ok(())
}

/// Sees whether a tool call came through the guard and succeeded.
#[derive(Default)]
struct Calls(std::sync::atomic::AtomicUsize);

impl Observer for Calls {
    fn observe(&self, event: &gimlet::event::Event) {
        if let EventKind::ToolFinished(finished) = &event.kind
            && finished.ok
        {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }
}

/// A real micro-task: the loop, the guard and one harmless tool.
async fn tool_call(settings: &Settings, found: Found) -> Row {
    const CHECK: &str = "tool call";
    const FIX: &str =
        "try another model; `gimlet models` grades what is installed, `gimlet models probe` one of them";
    let began = Instant::now();
    let calls = Arc::new(Calls::default());
    let result = tokio::time::timeout(PATIENCE, drive(settings, found, calls.clone())).await;
    let seconds = began.elapsed().as_secs_f64();
    let called = calls.0.load(std::sync::atomic::Ordering::Relaxed) > 0;
    match result {
        Ok(Err(error)) => Row::failed(CHECK, &error, FIX),
        Ok(Ok(())) | Err(_) if called => Row::good(CHECK, format!("works ({seconds:.1} s)")),
        Ok(Ok(())) => Row::bad(CHECK, "the model answered, but called no tool", FIX),
        Err(_) => Row::bad(CHECK, format!("no tool call within {} seconds", PATIENCE.as_secs()), FIX),
    }
}

async fn drive(settings: &Settings, found: Found, calls: Arc<Calls>) -> anyhow::Result<()> {
    let project = Project::open(settings, crate::app::containers())?;
    let tools = project.tools().into_iter().filter(|tool| tool.spec().name == "repo_info");
    let agent = Agent::builder(found.model)
        .tools(tools)
        .dialect(found.manner.dialect)
        .constrain(found.manner.constrain)
        .limits(Limits { max_steps: 3, ..Limits::default() })
        .build()?;
    let env = Env { observers: vec![calls], root: settings.root.display().to_string(), ..Env::default() };
    match Run::start(agent, TASK, env).await?.drive().await? {
        gimlet::Ending::Failed(failure) => Err(match failure.hint {
            Some(hint) => Failure::new(failure.message, hint).into(),
            None => anyhow::anyhow!(failure.message),
        }),
        gimlet::Ending::Finished(_) | gimlet::Ending::Suspended(_) => Ok(()),
    }
}
