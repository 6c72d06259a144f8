//! `gimlet sandbox`: which isolation layers this machine has, and the image of the Docker sandbox.

use std::io::Write;

use gimlet::cell::{CellEnd, CellEvent, Executor, SessionSpec};
use gimlet_runtime::parts::python::Limits;
use gimlet_runtime::parts::sandbox::docker::{self, DockerError, Engine};
use gimlet_runtime::parts::sandbox::jail;

use gimlet_runtime::options::{JailOptions, Sandbox};
use gimlet_runtime::{Options, Settings, isolation};
use serde_json::json;

use crate::app;
use crate::args::{JailArgs, JsonArgs, RootArgs, SandboxCommand};
use crate::exit::{ExitStatus, UsageError, hint_of};
use crate::style::{DIM, GOOD, WARNING};

/// One layer of isolation: whether it is there, and what to do about it.
pub(crate) struct Row {
    /// Its name.
    pub(crate) name: &'static str,
    /// What there is, or what is wrong.
    pub(crate) state: Result<String, String>,
    /// What would make it better.
    pub(crate) hint: Option<String>,
}

/// Shows the layers, or builds the image.
pub(crate) async fn sandbox(
    command: Option<SandboxCommand>,
    root: &RootArgs,
    jail: JailArgs,
    json: JsonArgs,
) -> anyhow::Result<ExitStatus> {
    match command.unwrap_or(SandboxCommand::Status { jail, json }) {
        SandboxCommand::Status { jail, json } => {
            let sandbox = Sandbox { jail: (&jail).into(), ..Sandbox::default() };
            let rows = rows(&app::settings(Options { sandbox, ..Options::from(root) })?).await;
            if json.json {
                let told = |row: &Row| {
                    let (is_there, state) = match &row.state {
                        Ok(text) => (true, text),
                        Err(text) => (false, text),
                    };
                    json!({ "name": row.name, "available": is_there, "state": state, "hint": row.hint })
                };
                crate::out::json(&rows.iter().map(told).collect::<Vec<_>>())?;
                return Ok(ExitStatus::Success);
            }
            let mut stdout = crate::out::stdout();
            for row in rows {
                let (style, mark, text) = match &row.state {
                    Ok(text) => (GOOD, "✓", text),
                    Err(text) => (WARNING, "–", text),
                };
                writeln!(stdout, "{style}{mark}{style:#} {:<10} {text}", row.name)?;
                if let Some(hint) = row.hint {
                    writeln!(stdout, "  {:<10} {DIM}hint: {hint}{DIM:#}", "")?;
                }
            }
            Ok(ExitStatus::Success)
        }
        SandboxCommand::Build { print: true, base: _ } => {
            write!(crate::out::stdout(), "{}", docker::DOCKERFILE)?;
            Ok(ExitStatus::Success)
        }
        SandboxCommand::Build { print: false, base } => build(&app::settings(root)?, base.as_deref()).await,
    }
}

/// The isolation layers of this machine, for `sandbox status` and `doctor`.
pub(crate) async fn rows(settings: &Settings) -> Vec<Row> {
    let jail = match isolation::find(settings.process(), &settings.root, &settings.sandbox.jail) {
        Ok(found) => Row {
            name: "commands",
            state: Ok(format!("jailed by {}; {}", found.mechanism.name(), limits(&settings.sandbox.jail))),
            hint: (!found.weaknesses.is_empty()).then(|| {
                format!(
                    "{}; bubblewrap would do better (apt install bubblewrap)",
                    found.weaknesses.join("; ")
                )
            }),
        },
        Err(why) => Row {
            name: "commands",
            state: Err(format!("no jail, so every command asks: {why}")),
            hint: Some(why.hint().into()),
        },
    };
    vec![jail, venv_row(settings).await, docker_row(settings).await]
}

/// The user's own Python, tried.
async fn venv_row(settings: &Settings) -> Row {
    const VERSION: &str = "import sys\nprint(sys.executable)\n'.'.join(map(str, sys.version_info[:3]))";
    let name = "venv";
    let limits = Limits::default();
    let memory = limits.memory >> 20;
    let tried = async {
        let executor = isolation::venv_executor(settings, &[], limits)?;
        evaluate(&*executor, VERSION).await
    };
    match tried.await {
        Ok(tried) => {
            let (version, program) = (tried.value.trim_matches('\''), tried.printed.trim());
            let every = jail::helper::WORKER_TICK.as_millis();
            let state =
                format!("CPython {version} at {program}; at most {memory} MB (measured every {every} ms)");
            Row { name, state: Ok(state), hint: None }
        }
        Err(error) => {
            Row { name, state: Err(format!("{error:#}")), hint: hint_of(&error).map(str::to_owned) }
        }
    }
}

/// What a piece of code came to.
pub(crate) struct Evaluated {
    /// Its last expression.
    pub(crate) value: String,
    /// What it printed.
    pub(crate) printed: String,
    /// What its sandbox lacks.
    pub(crate) weaknesses: Vec<String>,
}

/// Runs a piece of code that calls no tools, in a session of its own.
pub(crate) async fn evaluate(executor: &dyn Executor, code: &str) -> anyhow::Result<Evaluated> {
    let spec = SessionSpec { tools: Default::default(), seed: 0, epoch_ms: 0 };
    let mut session = executor.start(&spec).await?;
    let weaknesses = session.weaknesses();
    let mut cell = session.cell(code).await?;
    let mut printed = String::new();
    loop {
        match cell.next().await? {
            CellEvent::Ended(CellEnd::Done { value: Some(value) }) => {
                return Ok(Evaluated { value, printed, weaknesses });
            }
            CellEvent::Ended(other) => anyhow::bail!("the code ended as {other:?}"),
            CellEvent::Printed { text, .. } => printed.push_str(&text),
            CellEvent::HostCall { tool, .. } => anyhow::bail!("the code called {tool}"),
        }
    }
}

/// What is enforced of a command's use of the machine, and by whom.
fn limits(options: &JailOptions) -> String {
    let limits = isolation::limits(options);
    format!(
        "at most {} MB and {} processes (measured every {} ms), {} s of processor time each (by the kernel)",
        limits.memory >> 20,
        limits.processes,
        jail::helper::TICK.as_millis(),
        limits.cpu
    )
}

async fn docker_row(settings: &Settings) -> Row {
    let name = "docker";
    let config = match isolation::docker(settings, app::containers()) {
        Ok(config) => config,
        Err(error) => {
            return Row { name, state: Err(format!("{error:#}")), hint: hint_of(&error).map(str::to_owned) };
        }
    };
    let asked = async {
        let engine = Engine::connect(config.clone()).await?;
        let version = engine.version().await?;
        docker::try_image(&config).await?;
        Ok::<_, DockerError>(format!("engine {version} at {}, image {}", config.host, config.image))
    };
    let state = match asked.await {
        Ok(state) => state,
        Err(error) => {
            return Row { name, state: Err(error.to_string()), hint: Some(error.hint().into()) };
        }
    };
    // A project that no container may see is none that one should be tried with.
    let seen = match isolation::docker_in(&settings.root, settings, app::containers()) {
        Ok(config) => docker::try_project(&config, &settings.root).await,
        Err(_) => Ok(()),
    };
    let hint = seen.err().map(|error| format!("{error}; {}", error.hint()));
    Row { name, state: Ok(state), hint }
}

async fn build(settings: &Settings, base: Option<&str>) -> anyhow::Result<ExitStatus> {
    let failed = |error: DockerError| UsageError::new(error.to_string()).hint(error.hint());
    let engine = Engine::connect(isolation::docker(settings, app::containers())?).await.map_err(failed)?;
    let mut stderr = crate::out::stderr();
    let tell = |line: &str| drop(writeln!(stderr, "{DIM}{line}{DIM:#}"));
    docker::build(&engine, base, tell).await.map_err(|error| match error {
        // Most often a registry that is out of reach.
        DockerError::Other(said) => UsageError::new(said)
            .hint("`--base IMAGE` builds on an image that the engine has, or can get from elsewhere"),
        error => failed(error),
    })?;
    writeln!(crate::out::stdout(), "{}", engine.image_name())?;
    Ok(ExitStatus::Success)
}
