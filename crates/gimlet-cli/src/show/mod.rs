//! What people see: a run as it happens, as JSON lines, or told afterwards.

mod footer;
mod guided;
mod json;
mod live;
mod markdown;
mod plan;
mod question;
mod screen;
mod stream;
mod syntax;
mod talk;
mod timeline;
mod when;

use std::fmt::Write;

use gimlet::event::Event;
use gimlet::text::Printable;
use serde_json::Value;

use crate::style::{DIM, ERROR, GOOD, NAME, WARNING};

pub(crate) use gimlet_runtime::clip;
pub(crate) use json::JsonLines;
pub(crate) use live::{Live, Words};
pub(crate) use markdown::markdown;
pub(crate) use plan::plan;
pub(crate) use question::{effect_line, is_cut, question, whole_question};
pub(crate) use screen::Screen;
pub(crate) use talk::{Prose, Talk, Telling, Volume, Warnings, summary, without_order};
pub(crate) use timeline::timeline;
pub(crate) use when::{day, minute};

/// Shows a run's events, one after the other.
pub(crate) trait Show: Send + Sync {
    /// Shows the next one.
    fn show(&self, event: &Event);
}

/// Tells the person something about a run that is taken up.
pub(crate) fn note(text: &str) -> std::io::Result<()> {
    use std::io::Write;
    writeln!(crate::out::stderr(), "{WARNING}note:{WARNING:#} {}", Printable::line(text))
}

/// A diff with its colours, indented.
pub(crate) fn diff(text: &str) -> String {
    let mut coloured = String::new();
    // Not by `lines`, which would drop a carriage return from the end of a line unseen.
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        let style = match line.as_bytes().first() {
            Some(b'+') => GOOD,
            Some(b'-') => ERROR,
            Some(b'@') => NAME,
            _ => DIM,
        };
        let _ = writeln!(coloured, "    {style}{}{style:#}", Printable::block(line));
    }
    coloured
}

/// Arguments on one line: `path="calc.py" limit=5`.
pub(crate) fn arguments(args: &Value, most: usize) -> String {
    let text = match args {
        Value::Object(map) => {
            map.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
        }
        // Asked for in an earlier process: its log knows.
        Value::Null => String::new(),
        other => other.to_string(),
    };
    clip(&text, most)
}

/// A number of things, by the word for one of them.
pub(crate) fn counted(count: impl Into<u64>, one: &str) -> String {
    let count = count.into();
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

/// Asks the person at the terminal; anything but a yes is a no.
pub(crate) fn agreed(err: &mut impl std::io::Write, question: &str) -> std::io::Result<bool> {
    // What was typed before the question was there does not answer it.
    crate::keys::discard_pending();
    write!(err, "{question} [y/N] ")?;
    err.flush()?;
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// A Markdown fence that the text cannot close.
pub(crate) fn fence(text: &str) -> String {
    let mut fence = String::from("```");
    while text.contains(&fence) {
        fence.push('`');
    }
    fence
}
