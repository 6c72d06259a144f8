//! A question to a person: what would be done, why they are asked, and what to look at first. All of it comes from
//! elsewhere, so all of it is made visible. Long parts are cut in the middle with a count; the whole can be asked for.

use std::fmt::Write;

use gimlet::approval::ApprovalRequest;
use gimlet::effect::Effect;
use gimlet::text::Printable;

use super::{clip, diff};
use crate::style::{DIM, NAME, WARNING};

/// Most lines shown of a preview before its middle is cut: they fit a usual terminal together with the question.
const PREVIEW_LINES: usize = 32;
/// Most characters shown of one line before its middle is cut.
const LINE_CHARS: usize = 800;

/// How much of a question is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// What fits a screen.
    Short,
    /// All of it.
    Whole,
}

/// A question as a person reads it, short enough for a screen.
pub(crate) fn question(request: &ApprovalRequest) -> String {
    render(request, Extent::Short)
}

/// All of a question.
pub(crate) fn whole_question(request: &ApprovalRequest) -> String {
    render(request, Extent::Whole)
}

/// Whether the short form of a question leaves something out.
pub(crate) fn is_cut(request: &ApprovalRequest) -> bool {
    question(request) != whole_question(request)
}

fn render(request: &ApprovalRequest, extent: Extent) -> String {
    let mut text = String::new();
    let askers: Vec<String> = request.askers().map(|name| Printable::line(name).into_string()).collect();
    let by = if askers.is_empty() { String::new() } else { format!(" (asked by {})", askers.join(" → ")) };
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "\n{WARNING}approval needed{WARNING:#}: {NAME}{}{NAME:#}{by}, because {}",
        Printable::line(&request.tool),
        Printable::line(&request.reason)
    );
    for effect in &request.effects {
        let _ = writeln!(text, "  {}", middle_cut(&effect_line(effect), extent));
        if let Effect::Run { command, .. } = effect {
            parts(command).iter().for_each(|part| {
                let _ = writeln!(text, "    {DIM}which runs{DIM:#} {part}");
            });
        }
    }
    if let Some(preview) = &request.preview {
        text.push_str(&diff(&lines_cut(preview, extent)));
    }
    text
}

/// The programs a command would start, where its text alone does not show them.
fn parts(command: &str) -> Vec<String> {
    let context =
        gimlet_runtime::parts::policy::Context::new("/", gimlet_runtime::parts::policy::Jail::Absent);
    let report = gimlet_runtime::parts::policy::Policy::builtin().check(command, &context);
    match report.segments.as_slice() {
        [] => Vec::new(),
        [only] if report.argv.as_ref() == Some(&only.argv) => Vec::new(),
        several => several.iter().map(|part| clip(&part.argv.join(" "), 100)).collect(),
    }
}

/// An effect in words, on one line.
pub(crate) fn effect_line(effect: &Effect) -> String {
    let path = |path: &std::path::Path| Printable::line(&path.display().to_string()).into_string();
    match effect {
        Effect::Read { path: read } => format!("read {}", path(read)),
        Effect::Write { path: written, digest: Some(_) } => format!("write {}", path(written)),
        Effect::Write { path: removed, digest: None } => format!("remove {}", path(removed)),
        Effect::Run { command, cwd } if cwd.as_os_str().is_empty() || cwd.as_os_str() == "." => {
            format!("run {}", Printable::line(command))
        }
        Effect::Run { command, cwd } => format!("run {} (in {})", Printable::line(command), path(cwd)),
        Effect::Network { host } => format!("talk to {}", Printable::line(host)),
        Effect::Delegate { agent } => format!("hand a task to {}", Printable::line(agent)),
        Effect::Remember { what, .. } => format!("remember {}", Printable::line(what)),
        Effect::Opaque { what } => format!("something that cannot be seen: {}", Printable::line(what)),
    }
}

/// A preview whose middle lines are counted where there are too many of them.
fn lines_cut(text: &str, extent: Extent) -> String {
    let lines: Vec<&str> = text.split('\n').collect();
    let lines = match lines.as_slice() {
        [all @ .., ""] => all,
        all => all,
    };
    let cut = |lines: &[&str]| -> Vec<String> {
        lines.iter().map(|line| middle_cut(Printable::block(line).as_str(), extent)).collect()
    };
    if extent == Extent::Whole || lines.len() <= PREVIEW_LINES {
        return cut(lines).join("\n");
    }
    // Of a cut preview the beginning says most, and the end must not be a place to hide something.
    let tail = PREVIEW_LINES / 3;
    let head = PREVIEW_LINES - tail - 1;
    let mut shown = cut(&lines[..head]);
    shown.push(format!("[… {} lines are not shown here …]", lines.len() - head - tail));
    shown.extend(cut(&lines[lines.len() - tail..]));
    shown.join("\n")
}

/// A line whose middle characters are counted where there are too many of them.
fn middle_cut(line: &str, extent: Extent) -> String {
    let count = line.chars().count();
    if extent == Extent::Whole || count <= LINE_CHARS {
        return line.to_owned();
    }
    let half = LINE_CHARS / 2;
    let head: String = line.chars().take(half).collect();
    let tail: String = line.chars().skip(count - half).collect();
    format!("{head}[… {} characters are not shown here …]{tail}", count - 2 * half)
}
