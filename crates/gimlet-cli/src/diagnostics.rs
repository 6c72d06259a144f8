//! What the program says about its own work on standard error, as opposed to what a run says: one line each, from
//! `LOG_LEVEL` up. Libraries speak through `tracing`; this is where it is heard.

use std::fmt::Write as _;
use std::io::Write;
use std::sync::OnceLock;

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Identity, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, filter};

use gimlet_runtime::Settings;
use gimlet_runtime::config::LogLevel;
use gimlet_runtime::trace::Export;

use crate::args::TraceArgs;
use crate::style::{DIM, ERROR, WARNING};

/// Whether a failure to export spans is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// Not at all.
    Never,
    /// When somebody named the collector.
    WhenNamed,
    /// In any case.
    Always,
}

/// The export of this process, once there is one.
static RUNNING: OnceLock<(Export, Told)> = OnceLock::new();

/// Listens to what this process does from here on: diagnostics for the terminal, and spans for the collector if they are
/// wanted.
pub(crate) fn begin(settings: &Settings, args: &TraceArgs, told: Told) -> anyhow::Result<()> {
    if RUNNING.get().is_some() {
        return Ok(());
    }
    let Some(export) = Export::start(settings, args.into())? else {
        start(settings);
        return Ok(());
    };
    start_with(settings, Some(export.layer()));
    // A command begins once; the first goes on.
    let _first = RUNNING.set((export, told));
    Ok(())
}

/// Sends what is left of the trace, and mentions a failure where somebody wants to know.
pub(crate) fn finish() {
    let Some((export, told)) = RUNNING.get() else { return };
    let Err(unsent) = export.finish() else { return };
    let tell = match told {
        Told::Always => true,
        Told::WhenNamed => unsent.is_named,
        Told::Never => false,
    };
    if tell {
        // The answer is out; a terminal that went away is no failure of the run.
        let _unseen = writeln!(
            crate::out::stderr(),
            "{DIM}note: the trace did not reach {}: {}{DIM:#}",
            unsent.endpoint,
            unsent.why
        );
    }
}

/// Listens from here on, and tells what was found while reading the settings. Later calls change nothing.
pub(crate) fn start(settings: &Settings) {
    start_with(settings, None::<Identity>);
}

/// The same, with someone who listens to spans beside it.
pub(crate) fn start_with(settings: &Settings, spans: Option<impl Layer<Registry> + Send + Sync + 'static>) {
    // Whoever listened first goes on.
    let _ = Registry::default().with(spans).with(lines(settings.log_level.value)).try_init();
    for warning in &settings.warnings {
        tracing::warn!("{warning}");
    }
    for row in settings.rows() {
        if let Some(value) = &row.value {
            tracing::trace!("{} is {value} ({})", row.key.variable, row.origin);
        }
    }
}

/// A layer that prints events of at least this severity; spans are not its business.
pub(crate) fn lines<S>(level: LogLevel) -> impl Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let least = match level {
        LogLevel::Trace => LevelFilter::TRACE,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Warning => LevelFilter::WARN,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Off => LevelFilter::OFF,
    };
    // What the MCP library notes about every message is for whoever looks for a mistake.
    let heard = move |target: &str| least >= LevelFilter::DEBUG || !target.starts_with("rmcp");
    Lines.with_filter(filter::filter_fn(move |metadata| {
        metadata.is_event() && *metadata.level() <= least && heard(metadata.target())
    }))
}

struct Lines;

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let mut words = Words::default();
        event.record(&mut words);
        let (style, word) = match *event.metadata().level() {
            Level::ERROR => (ERROR, "error"),
            Level::WARN => (WARNING, "warning"),
            Level::INFO => (DIM, "info"),
            Level::DEBUG => (DIM, "debug"),
            Level::TRACE => (DIM, "trace"),
        };
        // Standard error that went away does not stop the program.
        let _ = writeln!(crate::out::stderr(), "{style}{word}:{style:#} {}{}", words.message, words.rest);
    }
}

/// An event's message, then its fields.
#[derive(Default)]
struct Words {
    message: String,
    rest: String,
}

impl Visit for Words {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        // Writing into a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.rest, " {name}={value:?}"),
        };
    }
}
