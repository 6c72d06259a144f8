//! What commands begin with: the surroundings of the process, settings, and the runtime, which is closed when the program
//! ends.

use std::io::Write;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use gimlet::store::Inbox;
use gimlet_runtime::isolation::{self, Containers};
use gimlet_runtime::{Config, Notice, Notify, Options, Process, Runtime, ServerSpeech, Settings};

use crate::args::{DemoArgs, RunOptions, TraceArgs};
use crate::diagnostics::{self, Told};
use crate::style::{DIM, WARNING};

/// Runtimes that were opened, and are closed when the program ends.
static OPEN: Mutex<Vec<Runtime>> = Mutex::new(Vec::new());

/// Containers of commands that open no runtime.
static CONTAINERS: LazyLock<Containers> = LazyLock::new(Containers::default);

/// Owns the containers of a command that opens no runtime.
pub(crate) fn containers() -> &'static Containers {
    &CONTAINERS
}

/// What the process was started with.
pub(crate) fn process() -> anyhow::Result<Arc<Process>> {
    Ok(Arc::new(Process::current()?))
}

/// The settings in force.
pub(crate) fn settings(options: impl Into<Options>) -> anyhow::Result<Settings> {
    Settings::load(&process()?, &options.into())
}

/// Questions and decisions outside of runs.
pub(crate) fn inbox() -> anyhow::Result<Arc<dyn Inbox>> {
    Ok(plain()?.inbox().clone())
}

/// A runtime for looking at runs, and for calls that are nobody's run.
pub(crate) fn plain() -> anyhow::Result<Runtime> {
    open(Config { notify: printer(Loudness::Details), ..Config::of_process()? })
}

/// A runtime for runs that are shown as the options say.
pub(crate) fn runtime(options: &RunOptions) -> anyhow::Result<Runtime> {
    let loudness = if options.json || options.quiet { Loudness::Warnings } else { Loudness::Details };
    watched(process()?, options.json, loudness, &options.trace, options.told())
}

/// A runtime for a run that a command needs an answer of.
pub(crate) fn errand(trace: &TraceArgs) -> anyhow::Result<Runtime> {
    watched(process()?, false, Loudness::Warnings, trace, Told::WhenNamed)
}

/// A runtime for the demo, in surroundings of its own.
pub(crate) fn runtime_for_demo(process: Arc<Process>, args: &DemoArgs) -> anyhow::Result<Runtime> {
    watched(process, args.json, Loudness::Warnings, &args.trace, Told::WhenNamed)
}

fn watched(
    process: Arc<Process>,
    json: bool,
    loudness: Loudness,
    trace: &TraceArgs,
    told: Told,
) -> anyhow::Result<Runtime> {
    let speech = if json { ServerSpeech::Events } else { ServerSpeech::Notices };
    let trace = trace.clone();
    open(Config {
        process,
        backend: None,
        root: None,
        notify: printer(loudness),
        speech,
        subscriber: None,
        on_settings: Some(Arc::new(move |settings, _| diagnostics::begin(settings, &trace, told))),
    })
}

/// A runtime for whole tasks that another program asks for.
pub(crate) fn serving() -> anyhow::Result<Runtime> {
    open(Config {
        notify: printer(Loudness::Warnings),
        speech: ServerSpeech::Events,
        ..Config::of_process()?
    })
}

/// A runtime for the sessions of an editor or a program. Nobody reads what it says but in a log.
pub(crate) fn attended(trace: &TraceArgs) -> anyhow::Result<Runtime> {
    watched(process()?, true, Loudness::Warnings, trace, Told::WhenNamed)
}

/// Listens to what a command does that is nobody's run.
pub(crate) fn trace(settings: &Settings) -> anyhow::Result<()> {
    diagnostics::begin(settings, &TraceArgs::default(), Told::WhenNamed)
}

fn open(config: Config) -> anyhow::Result<Runtime> {
    let runtime = Runtime::open(config)?;
    OPEN.lock().unwrap_or_else(PoisonError::into_inner).push(runtime.clone());
    Ok(runtime)
}

/// Ends what the program has started. The last thing it does.
pub(crate) async fn close_all() {
    // They stay known: a second Ctrl-C meanwhile kills what would outlive the program.
    let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for runtime in open {
        runtime.close().await;
    }
    for left in isolation::end_containers(&CONTAINERS).await {
        printer(Loudness::Warnings)(Notice::Warning(left));
    }
}

/// Kills what would outlive a program that ends at once.
pub(crate) fn kill_all() {
    for runtime in OPEN.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        runtime.kill_servers();
    }
}

/// Which notices are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loudness {
    /// What is wrong, and what is worth knowing of a run that is taken up.
    Warnings,
    /// Everything.
    Details,
}

fn printer(loudness: Loudness) -> Notify {
    Arc::new(move |notice| {
        let mut stderr = crate::out::stderr();
        // Nobody is left to tell when this fails.
        let _ = match notice {
            Notice::Warning(text) => writeln!(stderr, "{WARNING}warning:{WARNING:#} {text}"),
            Notice::Note(text) => writeln!(stderr, "{WARNING}note:{WARNING:#} {text}"),
            Notice::Detail(_) | Notice::Server(_) if loudness == Loudness::Warnings => Ok(()),
            Notice::Detail(text) => writeln!(stderr, "{DIM}{text}{DIM:#}"),
            Notice::Server(text) => writeln!(stderr, "{DIM}· {text}{DIM:#}"),
        };
    })
}
