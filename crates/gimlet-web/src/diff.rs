//! A unified diff, file by file, as tables: unified, and side by side. Everything in it is text.

use gimlet::text::Printable;
use maud::{Markup, PreEscaped, html};

use crate::colour::{self, Language};

/// Most lines that are shown.
const MOST_LINES: usize = 2000;

/// What became of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Same,
    Added,
    Removed,
    /// Where a hunk begins, or a remark of the format.
    Note,
}

struct Row {
    kind: Kind,
    old: Option<u32>,
    new: Option<u32>,
    text: String,
}

#[derive(Default)]
struct File {
    name: String,
    /// The name before, where it is another one.
    was: Option<String>,
    rows: Vec<Row>,
}

/// Whether a text is a diff.
pub(crate) fn is_diff(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("@@ -"))
        && text.lines().any(|line| line.starts_with("+++ ") || line.starts_with("--- "))
}

/// Shows a diff both ways; the style sheet shows one of them.
pub(crate) fn diff(text: &str) -> Markup {
    let files = files(text);
    let cut = text.lines().count().saturating_sub(MOST_LINES);
    html! {
        div.diff {
            @for file in &files { (shown(file)) }
            @if cut > 0 { p.dim { (cut) " more lines are not shown." } }
        }
    }
}

fn shown(file: &File) -> Markup {
    let count = |kind| file.rows.iter().filter(|row| row.kind == kind).count();
    let (added, removed) = (count(Kind::Added), count(Kind::Removed));
    let code = coloured(file);
    html! {
        details.file open {
            summary {
                code { @if let Some(was) = &file.was { (was) " → " } (file.name) } " "
                span.good { "+" (added) } " " span.bad { "−" (removed) }
            }
            table.unified { tbody { @for (row, code) in file.rows.iter().zip(&code) { (unified(row, code)) } } }
            table.split { colgroup { col.no; col; col.no; col; } tbody { @for pair in pairs(&file.rows) { (split(pair, &file.rows, &code)) } } }
        }
    }
}

fn files(text: &str) -> Vec<File> {
    let mut files: Vec<File> = Vec::new();
    let (mut old, mut new, mut in_hunk) = (0, 0, false);
    let mut before = String::new();
    for line in text.lines().take(MOST_LINES) {
        let line = Printable::block(line).into_string();
        if let Some(range) = line.strip_prefix("@@ ") {
            (old, new) = begins(range);
            in_hunk = true;
            if files.is_empty() {
                files.push(File::default());
            }
            push(&mut files, Row { kind: Kind::Note, old: None, new: None, text: line });
            continue;
        }
        // A removed line that begins with two dashes looks like a header; in a hunk it is a line.
        if let Some(name) = line.strip_prefix("--- ").filter(|_| !in_hunk || is_header(&line)) {
            in_hunk = false;
            before = bare(name);
        } else if let Some(name) = line.strip_prefix("+++ ").filter(|_| !in_hunk) {
            let after = bare(name);
            let name = if after == "/dev/null" { before.clone() } else { after };
            let was = (before != name && before != "/dev/null" && !before.is_empty()).then(|| before.clone());
            files.push(File { name, was, rows: Vec::new() });
        } else if line.starts_with("diff --git ") {
            in_hunk = false;
        } else if in_hunk {
            let rest = line.get(1..).unwrap_or_default().to_owned();
            let row = match line.chars().next() {
                Some('-') => Row { kind: Kind::Removed, old: Some(old), new: None, text: rest },
                Some('+') => Row { kind: Kind::Added, old: None, new: Some(new), text: rest },
                Some('\\') => Row { kind: Kind::Note, old: None, new: None, text: line },
                Some(_) | None => Row { kind: Kind::Same, old: Some(old), new: Some(new), text: rest },
            };
            old += u32::from(row.old.is_some());
            new += u32::from(row.new.is_some());
            push(&mut files, row);
        }
    }
    files
}

fn push(files: &mut [File], row: Row) {
    if let Some(file) = files.last_mut() {
        file.rows.push(row);
    }
}

/// Whether a line that begins with `--- ` names a file: those of git do, and so does the absence of one.
fn is_header(line: &str) -> bool {
    line.starts_with("--- a/") || line == "--- /dev/null"
}

/// A name without git's prefix and without the time that some programs write behind it.
fn bare(name: &str) -> String {
    let name = name.split('\t').next().unwrap_or(name);
    name.strip_prefix("a/").or_else(|| name.strip_prefix("b/")).unwrap_or(name).to_owned()
}

/// Where a hunk begins, of `-1,3 +1,4 @@`.
fn begins(range: &str) -> (u32, u32) {
    let number = |sign| {
        let part = range.split(' ').find_map(|part| part.strip_prefix(sign));
        part.and_then(|part| part.split(',').next()?.parse().ok()).unwrap_or(1)
    };
    (number('-'), number('+'))
}

/// The code of every row. Each side is coloured as a text of its own, so that a string that begins on one line goes on.
fn coloured(file: &File) -> Vec<Markup> {
    let language = Language::of(&file.name);
    let side = |without: Kind| {
        let rows = file.rows.iter().filter(|row| row.kind != without && row.kind != Kind::Note);
        let text: Vec<&str> = rows.map(|row| row.text.as_str()).collect();
        colour::lines(&text.join("\n"), language).into_iter()
    };
    let (mut old, mut new) = (side(Kind::Added), side(Kind::Removed));
    let code = file.rows.iter().map(|row| match row.kind {
        Kind::Note => Some(html! { (row.text) }),
        Kind::Removed => old.next(),
        Kind::Added => new.next(),
        Kind::Same => {
            old.next();
            new.next()
        }
    });
    code.map(|line| line.unwrap_or(PreEscaped(String::new()))).collect()
}

fn class(kind: Kind) -> &'static str {
    match kind {
        Kind::Added => "add",
        Kind::Removed => "del",
        Kind::Note => "hunk",
        Kind::Same => "same",
    }
}

fn unified(row: &Row, code: &Markup) -> Markup {
    let sign = match row.kind {
        Kind::Added => "+",
        Kind::Removed => "−",
        Kind::Same | Kind::Note => "",
    };
    html! {
        tr class=(class(row.kind)) {
            td.no { @if let Some(n) = row.old { (n) } }
            td.no { @if let Some(n) = row.new { (n) } }
            td.sign { (sign) }
            td.code { (code) }
        }
    }
}

/// Positions of a removed and an added line that stand beside each other.
fn pairs(rows: &[Row]) -> Vec<(Option<usize>, Option<usize>)> {
    let mut pairs = Vec::new();
    let mut at = 0;
    while at < rows.len() {
        let run = |from: usize, kind| rows[from..].iter().take_while(|row| row.kind == kind).count();
        let removed = run(at, Kind::Removed);
        let added = run(at + removed, Kind::Added);
        if removed + added == 0 {
            pairs.push((Some(at), Some(at)));
            at += 1;
            continue;
        }
        let middle = at + removed;
        pairs.extend(
            (0..removed.max(added))
                .map(|n| ((n < removed).then_some(at + n), (n < added).then_some(middle + n))),
        );
        at += removed + added;
    }
    pairs
}

fn split((old, new): (Option<usize>, Option<usize>), rows: &[Row], code: &[Markup]) -> Markup {
    let side = |at: Option<usize>, number: fn(&Row) -> Option<u32>| {
        let row = at.and_then(|at| Some((rows.get(at)?, code.get(at)?)));
        let kind = row.map_or("none", |(row, _)| class(row.kind));
        html! {
            td.no { @if let Some(n) = row.and_then(|(row, _)| number(row)) { (n) } }
            td class={ "code " (kind) } { @if let Some((_, code)) = row { (code) } }
        }
    };
    match old.and_then(|at| rows.get(at)) {
        Some(row) if row.kind == Kind::Note => {
            html! { tr.hunk { td.no {} td.code colspan="3" { (row.text) } } }
        }
        Some(_) | None => html! { tr { (side(old, |row| row.old)) (side(new, |row| row.new)) } },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_a_diff_stays_text() {
        let text = "--- a/<b>.rs\n+++ b/<b>.rs\n@@ -1 +1 @@\n-<script>1</script>\n+let a = \"<img>\"; // é\n";
        let shown = diff(text).into_string();
        assert!(!shown.contains("<script>") && !shown.contains("<img>") && !shown.contains("<b>"), "{shown}");
        assert!(shown.contains("&lt;<span class=\"ht\">script</span>&gt;"), "{shown}");
    }

    #[test]
    fn files_and_lines_are_told_apart() {
        let text = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n same\n--- looks like a header\n+++ and this\n\
                    --- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+one\n";
        let files = files(text);
        let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["x.py", "new.py"]);
        assert_eq!(files[0].rows[2].text, "-- looks like a header");
        assert_eq!(files[0].rows[3].text, "++ and this");
        assert_eq!(files[1].rows[1].new, Some(1));
    }
}
