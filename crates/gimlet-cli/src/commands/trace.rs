//! `gimlet runs trace` and `gimlet runs show --timeline`: a run's spans, from its log.

use std::io::Write;

use gimlet_runtime::options::Trace;
use gimlet_runtime::{Options, redactor, trace};

use super::runs::load;
use crate::app;
use crate::exit::ExitStatus;
use crate::show;

/// Width of a picture that nobody watches.
const WIDE: usize = 100;

/// Sends a run's spans to the collector.
pub(crate) async fn resend(run: &str, trace_content: bool) -> anyhow::Result<ExitStatus> {
    let (_, events) = load(run).await?;
    let asked = Trace { content: trace_content, ..Trace::default() };
    let settings = app::settings(Options::default())?;
    let sent = trace::resend(&settings, &events, asked, &redactor(settings.process())).await?;
    writeln!(crate::out::stdout(), "sent {} spans to {}", sent.spans, sent.endpoint)?;
    Ok(ExitStatus::Success)
}

/// Draws where a run's time went.
pub(crate) async fn timeline(run: &str) -> anyhow::Result<ExitStatus> {
    let (_, events) = load(run).await?;
    let spans = trace::spans(&events, trace::Content::default(), &redactor(app::process()?.as_ref()));
    write!(crate::out::stdout(), "{}", show::timeline(&spans, width()))?;
    Ok(ExitStatus::Success)
}

fn width() -> usize {
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.trim().parse().ok());
    said.unwrap_or_else(|| match crate::out::answers_on_terminal() {
        true => termimad::terminal_size().0.into(),
        false => WIDE,
    })
}
