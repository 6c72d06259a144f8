//! Tracing: listens to the spans of the core and sends them to Phoenix, or to whatever speaks OTLP.
//!
//! A run is never slower or different for it. Spans leave by a bounded queue and a thread of their own, and without a
//! collector nobody notices but who asks.

mod config;
mod export;
mod layer;
mod timeline;

use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use gimlet::event::Event;
use gimlet::guard::Redactor;
use gimlet::telemetry::Payloads;
use jiff::Timestamp;
use opentelemetry_sdk::trace::SpanData;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::Registry;

use crate::args::TraceArgs;
use crate::config::Settings;
use crate::diagnostics;
use crate::exit::UsageError;
use crate::style::DIM;

use config::{Chosen, Target, environment};
use export::{Queue, Sender};
use layer::SpanLayer;

pub(crate) use config::Content;
pub(crate) use timeline::timeline;

/// How to have a Phoenix, for whoever has none.
const START_PHOENIX: &str = "docker run -d -p 127.0.0.1:6006:6006 arizephoenix/phoenix";

/// A running export.
struct Tracing {
    queue: Queue,
    target: Target,
    told: Told,
}

/// Whether a failure to export is told.
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
static RUNNING: OnceLock<Tracing> = OnceLock::new();

/// Listens to what this process does from here on: diagnostics for the terminal, and spans for the collector if they are
/// wanted.
pub(crate) fn begin(settings: &Settings, args: &TraceArgs, told: Told) -> anyhow::Result<()> {
    let Some(target) = config::target(settings, &environment)? else {
        diagnostics::start(settings);
        return Ok(());
    };
    let content = Content::asked(args, &environment)?;
    let queue = Queue::start(Sender::new(target.clone(), &environment), &environment);
    let sink = queue.clone();
    let layer =
        SpanLayer { sink: Box::new(move |span| sink.push(span)), clock: Box::new(SystemTime::now), content };
    diagnostics::start_with(settings, Some(layer.with_filter(filter_fn(layer::ours))));
    // A command begins once; the first would go on.
    let _first = RUNNING.set(Tracing { queue, target, told });
    Ok(())
}

/// Sends what is left, for at most half a second. For the very end: a collector that hangs is left behind.
pub(crate) fn finish() {
    if let Some(tracing) = RUNNING.get() {
        tracing.finish();
    }
}

impl Tracing {
    /// Sends what is left and mentions a failure where somebody wants to know.
    fn finish(&self) {
        let Err(why) = self.queue.finish() else { return };
        let tell = match (self.told, self.target.chosen) {
            (Told::Always, _) | (Told::WhenNamed, Chosen::ByName) => true,
            (Told::WhenNamed, Chosen::ByDefault) | (Told::Never, _) => false,
        };
        if tell {
            // The answer is out; a terminal that went away is no failure of the run.
            let _unseen = writeln!(
                crate::out::stderr(),
                "{DIM}note: the trace did not reach {}: {why}{DIM:#}",
                self.target.shown()
            );
        }
    }
}

/// What the core is to put into spans.
pub(crate) fn payloads(args: &TraceArgs) -> Result<Payloads, UsageError> {
    Content::asked(args, &environment).map(Content::recorded)
}

/// Keys that are sent along with spans and must not be seen anywhere else.
pub(crate) fn secrets() -> Vec<String> {
    config::secrets(&environment)
}

/// The spans of a run, from its log.
pub(crate) fn spans(events: &[Event], content: Content, redactor: &Redactor) -> Vec<SpanData> {
    let now = Arc::new(Mutex::new(SystemTime::UNIX_EPOCH));
    let spans = Arc::new(Mutex::new(Vec::new()));
    let (clock, sink) = (now.clone(), spans.clone());
    let layer = SpanLayer {
        sink: Box::new(move |span| sink.lock().unwrap_or_else(PoisonError::into_inner).push(span)),
        clock: Box::new(move || *clock.lock().unwrap_or_else(PoisonError::into_inner)),
        content,
    };
    tracing::subscriber::with_default(
        Registry::default().with(layer.with_filter(filter_fn(layer::ours))),
        || {
            gimlet::telemetry::retell(events, content.recorded(), redactor, |time| {
                *now.lock().unwrap_or_else(PoisonError::into_inner) = system_time(time);
            });
        },
    );
    let mut spans = std::mem::take(&mut *spans.lock().unwrap_or_else(PoisonError::into_inner));
    spans.sort_by_key(|span| span.start_time);
    spans
}

fn system_time(time: Timestamp) -> SystemTime {
    let nanos = u64::try_from(time.as_nanosecond()).unwrap_or(0);
    SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos)
}

/// What a run's spans were sent as.
pub(crate) struct Resent {
    pub(crate) spans: usize,
    pub(crate) endpoint: String,
}

/// Sends the spans of a run that is over, and waits for the answer.
pub(crate) async fn resend(
    settings: &Settings,
    events: &[Event],
    args: &TraceArgs,
    redactor: &Redactor,
) -> anyhow::Result<Resent> {
    let target = config::endpoint(settings, &environment)?;
    let spans = spans(events, Content::asked(args, &environment)?, redactor);
    let endpoint = target.shown();
    let count = spans.len();
    // The client blocks, and must be made and dropped where that is allowed.
    let sent = tokio::task::spawn_blocking(move || {
        let sender = Sender::new(target, &environment);
        sender.send(&spans)
    })
    .await?;
    match sent {
        Ok(()) => Ok(Resent { spans: count, endpoint }),
        Err(why) => anyhow::bail!("the spans did not reach {endpoint}: {why}\nhint: {START_PHOENIX}"),
    }
}
