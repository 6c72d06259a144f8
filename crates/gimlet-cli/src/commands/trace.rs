//! `gimlet runs trace` and `gimlet runs show --timeline`: a run's spans, from its log.

use std::io::Write;

use gimlet::event::Event;
use gimlet::store::Store;

use crate::args::TraceArgs;
use crate::config::{Flags, Settings};
use crate::exit::ExitStatus;
use crate::home;
use crate::trace;
use crate::world;

/// Width of a picture that nobody watches.
const WIDE: usize = 100;

/// Sends a run's spans to the collector.
pub(crate) async fn resend(run: &str, trace_content: bool) -> anyhow::Result<ExitStatus> {
    let events = load(run).await?;
    let args = TraceArgs { trace_content, ..TraceArgs::default() };
    let settings = Settings::load(Flags::default())?;
    let sent = trace::resend(&settings, &events, &args, &world::redactor()).await?;
    writeln!(crate::out::stdout(), "sent {} spans to {}", sent.spans, sent.endpoint)?;
    Ok(ExitStatus::Success)
}

/// Draws where a run's time went.
pub(crate) async fn timeline(run: &str) -> anyhow::Result<ExitStatus> {
    let events = load(run).await?;
    let spans = trace::spans(&events, trace::Content::default(), &world::redactor());
    write!(crate::out::stdout(), "{}", trace::timeline(&spans, width()))?;
    Ok(ExitStatus::Success)
}

async fn load(run: &str) -> anyhow::Result<Vec<Event>> {
    let store = home::store()?;
    let id = super::runs::find(&store, run)?;
    Ok(store.load(&id).await?)
}

fn width() -> usize {
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.trim().parse().ok());
    said.unwrap_or_else(|| match crate::out::answers_on_terminal() {
        true => termimad::terminal_size().0.into(),
        false => WIDE,
    })
}
