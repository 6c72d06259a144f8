//! `gimlet runs replay`: a run as it was seen, told by the same code from the log alone. Nothing is done again.

use std::time::Duration;

use gimlet::Ending;
use gimlet::event::{ActionFormat, Event, EventKind};
use gimlet::text::Printable;

use super::runs::load;
use crate::ending::{At, tell};
use crate::exit::ExitStatus;
use crate::front::Front;
use crate::show::question;
use crate::style::BOLD;

/// Shows a run again.
pub(crate) async fn replay(run: &str, speed: f64, max_pause: f64) -> anyhow::Result<ExitStatus> {
    let (id, events) = load(run).await?;
    let action = events.iter().find_map(|event| match &event.kind {
        EventKind::RunStarted(started) => Some(started.action),
        _ => None,
    });
    let mut front = Front::plain(false);
    let shown = front.showing(action.unwrap_or(ActionFormat::Tools));
    let mut before = None;
    for event in &events {
        tokio::time::sleep(wait(before, event, speed, max_pause)).await;
        before = Some(event);
        shown.show(event);
        match &event.kind {
            EventKind::RunStarted(started) => front.screen().line(&said(&started.task)),
            EventKind::UserMessage { text } => front.screen().line(&said(text)),
            EventKind::ApprovalRequested(request) => front.screen().line(question(request).trim_end()),
            _ => {}
        }
        if let Some(ending) = ending(event) {
            tell(id.as_str(), At::Shell(&format!("gimlet resume {id}")), &ending, &front).await?;
        }
    }
    front.screen().rest();
    Ok(ExitStatus::Success)
}

fn said(text: &str) -> String {
    format!("{BOLD}›{BOLD:#} {}", Printable::block(text.trim()))
}

/// How long it took from one event to the next, as fast as asked for.
fn wait(before: Option<&Event>, event: &Event, speed: f64, most: f64) -> Duration {
    let passed = before.map_or(0.0, |before| event.time.duration_since(before.time).as_secs_f64());
    Duration::try_from_secs_f64((passed / speed).clamp(0.0, most)).unwrap_or_default()
}

fn ending(event: &Event) -> Option<Ending> {
    match &event.kind {
        EventKind::RunFinished(finished) => Some(Ending::Finished(finished.clone())),
        EventKind::RunSuspended { reason } => Some(Ending::Suspended(reason.clone())),
        EventKind::RunFailed { error } => Some(Ending::Failed(error.clone())),
        _ => None,
    }
}
