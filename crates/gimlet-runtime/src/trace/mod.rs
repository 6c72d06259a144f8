//! Tracing: listens to the spans of the core and sends them to Phoenix, or to whatever speaks OTLP.
//!
//! A run is never slower or different for it. Spans leave by a bounded queue and a thread of their own, and without a
//! collector nobody notices but who asks.

mod config;
mod export;
mod layer;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use gimlet::event::Event;
use gimlet::guard::Redactor;
use gimlet::telemetry::Payloads;
use jiff::Timestamp;
use opentelemetry_sdk::trace::SpanData;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::Registry;

use gimlet_config::options::Trace;
use gimlet_config::{Failure, Process, Settings, UsageError};

use config::{Chosen, Target};
use export::{Queue, Sender};
use layer::SpanLayer;

pub use config::Content;

/// How to have a Phoenix, for whoever has none.
const START_PHOENIX: &str = "docker run -d -p 127.0.0.1:6006:6006 arizephoenix/phoenix";

/// A running export of spans.
pub struct Export {
    queue: Queue,
    target: Target,
    content: Content,
}

/// Why an export failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsent {
    /// Where spans should have gone, without passwords.
    pub endpoint: String,
    /// What went wrong.
    pub why: String,
    /// Whether somebody named the collector.
    pub is_named: bool,
}

impl Export {
    /// Starts to export, if spans are wanted.
    pub fn start(settings: &Settings, trace: Trace) -> anyhow::Result<Option<Export>> {
        let env = lookup(settings.process());
        let Some(target) = config::target(settings, &env)? else { return Ok(None) };
        let content = Content::asked(trace, &env)?;
        let queue = Queue::start(Sender::new(target.clone(), &env), &env);
        Ok(Some(Export { queue, target, content }))
    }

    /// Listens to the core's spans, as a layer of the program's own subscriber.
    pub fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
    {
        let sink = self.queue.clone();
        SpanLayer {
            sink: Box::new(move |span| sink.push(span)),
            clock: Box::new(SystemTime::now),
            content: self.content,
        }
        .with_filter(filter_fn(layer::ours))
    }

    /// Sends what is left, for at most half a second. For the very end: a collector that hangs is left behind.
    pub fn finish(&self) -> Result<(), Unsent> {
        self.queue.finish().map_err(|why| Unsent {
            endpoint: self.target.shown(),
            why,
            is_named: self.target.chosen == Chosen::ByName,
        })
    }
}

/// Looks variables up in what the process was started with. An empty variable counts as none, as OpenTelemetry has it.
fn lookup(process: &Process) -> impl Fn(&str) -> Option<String> + '_ {
    |name| process.var(name).filter(|value| !value.trim().is_empty()).map(str::to_owned)
}

/// What the core is to put into spans.
pub fn payloads(process: &Process, trace: Trace) -> Result<Payloads, UsageError> {
    Content::asked(trace, &lookup(process)).map(Content::recorded)
}

/// Keys that are sent along with spans and must not be seen anywhere else.
pub fn secrets(process: &Process) -> Vec<String> {
    config::secrets(&lookup(process))
}

/// The spans of a run, from its log.
pub fn spans(events: &[Event], content: Content, redactor: &Redactor) -> Vec<SpanData> {
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
pub struct Resent {
    /// How many spans were sent.
    pub spans: usize,
    /// Where to, without passwords.
    pub endpoint: String,
}

/// Sends the spans of a run that is over, and waits for the answer.
pub async fn resend(
    settings: &Settings,
    events: &[Event],
    trace: Trace,
    redactor: &Redactor,
) -> anyhow::Result<Resent> {
    let process = settings.process().clone();
    let target = config::endpoint(settings, &lookup(&process))?;
    let spans = spans(events, Content::asked(trace, &lookup(&process))?, redactor);
    let endpoint = target.shown();
    let count = spans.len();
    // The client blocks, and must be made and dropped where that is allowed.
    let sent = tokio::task::spawn_blocking(move || {
        let sender = Sender::new(target, &lookup(&process));
        sender.send(&spans)
    })
    .await?;
    match sent {
        Ok(()) => Ok(Resent { spans: count, endpoint }),
        Err(why) => {
            Err(Failure::new(format!("the spans did not reach {endpoint}: {why}"), START_PHOENIX).into())
        }
    }
}
