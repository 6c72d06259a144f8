//! A run as a waterfall in the terminal: who waited for whom, and where the time went. Kinds are told apart by their
//! shading, so that it reads the same without colour.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use opentelemetry::Value;
use opentelemetry::trace::{SpanId, Status};
use opentelemetry_sdk::trace::SpanData;

use super::clip;
use crate::style::{DIM, ERROR};

/// Shading of each kind of work, and its name in the legend.
const SHADES: &[(&str, char, &str)] = &[
    ("LLM", '█', "model"),
    ("TOOL", '▓', "tool"),
    ("python.cell", '▒', "code"),
    ("GUARDRAIL", '░', "approval"),
    ("", '─', "agent, step"),
];
const DURATION: usize = 7;

/// Draws spans, `width` columns wide.
pub(crate) fn timeline(spans: &[SpanData], width: usize) -> String {
    let axis = Axis::of(spans);
    let labels = (width * 2 / 5).clamp(16, 48);
    let bars = width.saturating_sub(labels + DURATION + 3).max(8);
    let mut text = String::new();
    for (sitting, root) in roots(spans).into_iter().enumerate() {
        if let Some(pause) = axis.pauses.get(&sitting) {
            // Writing to a string cannot fail.
            let _written = writeln!(text, "{DIM}{:┈^width$}{DIM:#}", format!(" paused {} ", spell(*pause)));
        }
        draw(&mut text, spans, root, 0, &axis, (labels, bars));
    }
    let legend: Vec<String> = SHADES.iter().map(|(_, shade, name)| format!("{shade} {name}")).collect();
    let _written = writeln!(text, "{DIM}{}{DIM:#}", legend.join("  "));
    text
}

fn roots(spans: &[SpanData]) -> Vec<&SpanData> {
    spans.iter().filter(|span| span.parent_span_id == SpanId::INVALID).collect()
}

fn draw(
    text: &mut String,
    spans: &[SpanData],
    span: &SpanData,
    depth: usize,
    axis: &Axis,
    (labels, bars): (usize, usize),
) {
    let took = span.end_time.duration_since(span.start_time).unwrap_or_default();
    // Far inside, the name matters more than the depth.
    let indent = (depth * 2).min(labels / 2);
    let label = format!("{:indent$}{}", "", clip(&label(span), labels - indent));
    let (from, to) = (axis.column(span.start_time, bars), axis.column(span.end_time, bars));
    let from = from.min(bars - 1);
    let length = to.saturating_sub(from).max(1);
    let bar: String =
        std::iter::repeat_n(' ', from).chain(std::iter::repeat_n(shade(span), length)).collect();
    let style = match span.status {
        Status::Error { .. } => ERROR,
        Status::Ok | Status::Unset => anstyle::Style::new(),
    };
    let pad = labels.saturating_sub(label.chars().count());
    let _written = writeln!(text, "{style}{label}{style:#}{:pad$} {:>DURATION$}  {bar}", "", spell(took));
    for child in spans.iter().filter(|child| child.parent_span_id == span.span_context.span_id()) {
        draw(text, spans, child, depth + 1, axis, (labels, bars));
    }
}

/// The name of a span, with what matters about it.
fn label(span: &SpanData) -> String {
    let name = span.name.strip_prefix("tool_wrapped.").unwrap_or(&span.name);
    let error = match &span.status {
        Status::Error { description } => format!(" ✗ {description}"),
        Status::Ok | Status::Unset => String::new(),
    };
    let tokens = match (number(span, "llm.token_count.prompt"), number(span, "llm.token_count.completion")) {
        (Some(read), Some(written)) if read + written > 0 => format!(" {read}→{written}"),
        (Some(_) | None, _) => String::new(),
    };
    let granted = attribute(span, "approval.decision").map(|said| format!(" {said}")).unwrap_or_default();
    format!("{name}{tokens}{granted}{error}")
}

fn shade(span: &SpanData) -> char {
    let kind = attribute(span, "openinference.span.kind").unwrap_or_default();
    let known = SHADES.iter().find(|(name, _, _)| *name == kind || *name == span.name);
    known.map_or('─', |(_, shade, _)| *shade)
}

fn attribute(span: &SpanData, key: &str) -> Option<String> {
    span.attributes.iter().find(|pair| pair.key.as_str() == key).map(|pair| pair.value.as_str().into_owned())
}

fn number(span: &SpanData, key: &str) -> Option<i64> {
    span.attributes.iter().find(|pair| pair.key.as_str() == key).and_then(|pair| match pair.value {
        Value::I64(number) => Some(number),
        _ => None,
    })
}

/// Time without the pauses between a run's processes, which would press everything else flat.
struct Axis {
    /// When each process began, and how much work came before it.
    sittings: Vec<(SystemTime, Duration)>,
    /// How long the run rested before each of them.
    pauses: HashMap<usize, Duration>,
    whole: Duration,
}

impl Axis {
    fn of(spans: &[SpanData]) -> Self {
        let (mut sittings, mut pauses) = (Vec::new(), HashMap::new());
        let mut whole = Duration::ZERO;
        let mut last_end = None;
        for (index, root) in roots(spans).into_iter().enumerate() {
            if let Some(end) = last_end {
                pauses.insert(index, root.start_time.duration_since(end).unwrap_or_default());
            }
            sittings.push((root.start_time, whole));
            whole += root.end_time.duration_since(root.start_time).unwrap_or_default();
            last_end = Some(root.end_time);
        }
        Axis { sittings, pauses, whole }
    }

    fn column(&self, time: SystemTime, bars: usize) -> usize {
        let sitting = self.sittings.iter().rev().find(|(begun, _)| *begun <= time);
        let done = sitting.map_or(Duration::ZERO, |(begun, before)| {
            *before + time.duration_since(*begun).unwrap_or_default()
        });
        let whole = self.whole.as_nanos().max(1);
        let column = done.as_nanos() * bars as u128 / whole;
        usize::try_from(column).unwrap_or(bars).min(bars)
    }
}

/// A duration in three or four digits.
fn spell(took: Duration) -> String {
    match took.as_secs_f64() {
        seconds if seconds < 0.001 => format!("{} µs", took.as_micros()),
        seconds if seconds < 1.0 => format!("{} ms", took.as_millis()),
        seconds if seconds < 100.0 => format!("{seconds:.1} s"),
        seconds if seconds < 6_000.0 => format!("{:.0} min", seconds / 60.0),
        seconds if seconds < 172_800.0 => format!("{:.0} h", seconds / 3_600.0),
        seconds => format!("{:.0} d", seconds / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        let told = [10, 40_000, 1_500_000, 90_000_000, 600_000_000, 9_000_000_000, 300_000_000_000]
            .map(|micros| spell(Duration::from_micros(micros)));
        assert_eq!(told, ["10 µs", "40 ms", "1.5 s", "90.0 s", "10 min", "2 h", "3 d"]);
    }
}
