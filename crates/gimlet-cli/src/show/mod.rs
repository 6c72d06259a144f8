//! What people see: a run as it happens, as JSON lines, or told afterwards.

mod json;
mod talk;

use std::fmt::Write;

use gimlet::approval::ApprovalRequest;
use gimlet::effect::Effect;
use serde_json::Value;

use crate::style::{DIM, ERROR, GOOD, NAME, WARNING};

pub(crate) use json::JsonLines;
pub(crate) use talk::{Talk, Volume, summary};

/// A question as a person reads it.
pub(crate) fn question(request: &ApprovalRequest) -> String {
    let mut text = String::new();
    let by = if request.asker.is_empty() { String::new() } else { format!(" (asked by {})", request.asker) };
    let _ = writeln!(
        text,
        "\n{WARNING}approval needed{WARNING:#}: {NAME}{}{NAME:#}{by}, because {}",
        request.tool, request.reason
    );
    for effect in &request.effects {
        let _ = writeln!(text, "  {}", effect_line(effect));
    }
    if let Some(preview) = &request.preview {
        text.push_str(&diff(preview));
    }
    text
}

/// An effect in words.
pub(crate) fn effect_line(effect: &Effect) -> String {
    match effect {
        Effect::Read { path } => format!("read {}", path.display()),
        Effect::Write { path, digest: Some(_) } => format!("write {}", path.display()),
        Effect::Write { path, digest: None } => format!("remove {}", path.display()),
        Effect::Run { command, cwd } if cwd.as_os_str().is_empty() || cwd.as_os_str() == "." => {
            format!("run {command}")
        }
        Effect::Run { command, cwd } => format!("run {command} (in {})", cwd.display()),
        Effect::Network { host } => format!("talk to {host}"),
        Effect::Delegate { agent } => format!("hand a task to {agent}"),
        Effect::Opaque { what } => format!("something that cannot be seen: {what}"),
    }
}

/// A diff with its colours, indented.
fn diff(text: &str) -> String {
    let mut coloured = String::new();
    for line in text.lines() {
        let style = match line.as_bytes().first() {
            Some(b'+') => GOOD,
            Some(b'-') => ERROR,
            Some(b'@') => NAME,
            _ => DIM,
        };
        let _ = writeln!(coloured, "    {style}{line}{style:#}");
    }
    coloured
}

/// Arguments on one line: `path="calc.py" limit=5`.
pub(crate) fn arguments(args: &Value, most: usize) -> String {
    let text = match args {
        Value::Object(map) => {
            map.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    };
    clip(&text, most)
}

/// A text cut to so many characters, on one line.
pub(crate) fn clip(text: &str, most: usize) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= most {
        return line;
    }
    let mut cut: String = line.chars().take(most.saturating_sub(1)).collect();
    cut.push('…');
    cut
}
