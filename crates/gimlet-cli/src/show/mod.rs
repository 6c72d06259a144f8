//! What people see: a run as it happens, as JSON lines, or told afterwards.

mod footer;
mod guided;
mod json;
mod live;
mod markdown;
mod plan;
mod screen;
mod stream;
mod talk;

use std::fmt::Write;

use gimlet::approval::ApprovalRequest;
use gimlet::effect::Effect;
use serde_json::Value;

use crate::style::{DIM, ERROR, GOOD, NAME, WARNING};

pub(crate) use json::JsonLines;
pub(crate) use live::{Live, Words};
pub(crate) use markdown::markdown;
pub(crate) use plan::plan;
pub(crate) use screen::Screen;
pub(crate) use talk::{Prose, Talk, Telling, Volume, Warnings, summary};

/// Tells the person something about a run that is taken up.
pub(crate) fn note(text: &str) -> std::io::Result<()> {
    use std::io::Write;
    writeln!(anstream::stderr(), "{WARNING}note:{WARNING:#} {text}")
}

/// A question as a person reads it.
pub(crate) fn question(request: &ApprovalRequest) -> String {
    let mut text = String::new();
    let askers: Vec<&str> = request.askers().collect();
    let by = if askers.is_empty() { String::new() } else { format!(" (asked by {})", askers.join(" → ")) };
    let _ = writeln!(
        text,
        "\n{WARNING}approval needed{WARNING:#}: {NAME}{}{NAME:#}{by}, because {}",
        request.tool, request.reason
    );
    for effect in &request.effects {
        let _ = writeln!(text, "  {}", effect_line(effect));
        if let Effect::Run { command, .. } = effect {
            parts(command).iter().for_each(|part| {
                let _ = writeln!(text, "    {DIM}which runs{DIM:#} {part}");
            });
        }
    }
    if let Some(preview) = &request.preview {
        text.push_str(&diff(preview));
    }
    text
}

/// The programs a command would start, where its text alone does not show them.
fn parts(command: &str) -> Vec<String> {
    let context = gimlet_policy::Context::new("/", gimlet_policy::Jail::Absent);
    let report = gimlet_policy::Policy::builtin().check(command, &context);
    match report.segments.as_slice() {
        [] => Vec::new(),
        [only] if report.argv.as_ref() == Some(&only.argv) => Vec::new(),
        several => several.iter().map(|part| clip(&part.argv.join(" "), 100)).collect(),
    }
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
        Effect::Remember { what, .. } => format!("remember {what}"),
        Effect::Opaque { what } => format!("something that cannot be seen: {what}"),
    }
}

/// A diff with its colours, indented.
pub(crate) fn diff(text: &str) -> String {
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
        // Asked for in an earlier process: its log knows.
        Value::Null => String::new(),
        other => other.to_string(),
    };
    clip(&text, most)
}

/// Asks the person at the terminal; anything but a yes is a no.
pub(crate) fn agreed(err: &mut impl std::io::Write, question: &str) -> std::io::Result<bool> {
    write!(err, "{question} [y/N] ")?;
    err.flush()?;
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
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

/// A Markdown fence that the text cannot close.
pub(crate) fn fence(text: &str) -> String {
    let mut fence = String::from("```");
    while text.contains(&fence) {
        fence.push('`');
    }
    fence
}
