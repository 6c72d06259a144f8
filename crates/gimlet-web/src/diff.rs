//! A unified diff as a table: one under the other, and side by side. Everything in it is text.

use gimlet::text::Printable;
use maud::{Markup, html};

/// Most lines that are shown.
const MOST_LINES: usize = 1500;

/// A line and what became of it.
struct Row<'a> {
    kind: char,
    old: Option<u32>,
    new: Option<u32>,
    text: &'a str,
}

/// Shows a diff both ways; the style sheet shows one of them.
pub(crate) fn diff(text: &str) -> Markup {
    let rows = rows(text);
    let cut = text.lines().count().saturating_sub(MOST_LINES);
    html! {
        div.diff {
            table.unified { tbody { @for row in &rows { (unified(row)) } } }
            table.split { tbody { @for pair in pairs(&rows) { (split(pair)) } } }
            @if cut > 0 { p.dim { (cut) " more lines are not shown" } }
        }
    }
}

fn rows(text: &str) -> Vec<Row<'_>> {
    let (mut old, mut new, mut in_hunk) = (0, 0, false);
    let mut rows = Vec::new();
    for line in text.lines().take(MOST_LINES) {
        let kind = line.chars().next().unwrap_or(' ');
        if let Some(range) = line.strip_prefix("@@ ") {
            (old, new) = begins(range);
            in_hunk = true;
            rows.push(Row { kind: '@', old: None, new: None, text: line });
        } else if !in_hunk || line.starts_with("diff --git ") {
            in_hunk = false;
            let is_name = line.starts_with("+++ ") || line.starts_with("--- ") || line.starts_with("rename ");
            if is_name {
                rows.push(Row { kind: 'f', old: None, new: None, text: line });
            }
        } else {
            let rest = line.get(1..).unwrap_or_default();
            let row = match kind {
                '-' => Row { kind, old: Some(old), new: None, text: rest },
                '+' => Row { kind, old: None, new: Some(new), text: rest },
                '\\' => Row { kind: 'f', old: None, new: None, text: line },
                _ => Row { kind: ' ', old: Some(old), new: Some(new), text: rest },
            };
            old += u32::from(row.old.is_some());
            new += u32::from(row.new.is_some());
            rows.push(row);
        }
    }
    rows
}

/// Where a hunk begins, of `-1,3 +1,4 @@`.
fn begins(range: &str) -> (u32, u32) {
    let number = |sign| {
        let part = range.split(' ').find_map(|part| part.strip_prefix(sign));
        part.and_then(|part| part.split(',').next()?.parse().ok()).unwrap_or(1)
    };
    (number('-'), number('+'))
}

fn class(kind: char) -> &'static str {
    match kind {
        '+' => "add",
        '-' => "del",
        '@' => "hunk",
        'f' => "file",
        _ => "same",
    }
}

fn unified(row: &Row<'_>) -> Markup {
    let sign = if matches!(row.kind, '+' | '-') { row.kind } else { ' ' };
    html! {
        tr class=(class(row.kind)) {
            td.no { @if let Some(n) = row.old { (n) } }
            td.no { @if let Some(n) = row.new { (n) } }
            td.code { (sign) (code(row)) }
        }
    }
}

fn code(row: &Row<'_>) -> Markup {
    let text = Printable::block(row.text);
    html! { @if matches!(row.kind, '@' | 'f') { (text.as_str()) } @else { (colours(text.as_str())) } }
}

/// A removed and an added line beside each other.
fn pairs<'a>(rows: &'a [Row<'a>]) -> Vec<(Option<&'a Row<'a>>, Option<&'a Row<'a>>)> {
    let mut pairs = Vec::new();
    let mut at = 0;
    while at < rows.len() {
        let removed = rows[at..].iter().take_while(|row| row.kind == '-').count();
        let added = rows[at + removed..].iter().take_while(|row| row.kind == '+').count();
        if removed + added == 0 {
            pairs.push((Some(&rows[at]), Some(&rows[at])));
            at += 1;
            continue;
        }
        let (old, new) = (&rows[at..at + removed], &rows[at + removed..at + removed + added]);
        pairs.extend((0..removed.max(added)).map(|n| (old.get(n), new.get(n))));
        at += removed + added;
    }
    pairs
}

fn split((old, new): (Option<&Row<'_>>, Option<&Row<'_>>)) -> Markup {
    let side = |row: Option<&Row<'_>>, number: fn(&Row<'_>) -> Option<u32>| {
        let kind = row.map_or("none", |row| class(row.kind));
        html! {
            td.no { @if let Some(n) = row.and_then(number) { (n) } }
            td.code class=(kind) { @if let Some(row) = row { (code(row)) } }
        }
    };
    match (old, new) {
        (Some(row), _) if matches!(row.kind, '@' | 'f') => {
            html! { tr class=(class(row.kind)) { td.code colspan="4" { (code(row)) } } }
        }
        _ => html! { tr { (side(old, |row| row.old)) (side(new, |row| row.new)) } },
    }
}

const WORDS: &str = " as async await break case class const continue def do elif else enum except export false fn for from \
func function if impl import in interface let loop match mod mut new nil none None not null or pub raise return self \
static struct super switch then this throw trait true True False try type use var void while with yield ";

/// Colours for code of any language: strings, comments, numbers and the usual words.
pub(crate) fn colours(line: &str) -> Markup {
    let mut parts: Vec<(&str, &str)> = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let (class, length) = match first {
            '#' => ("c", rest.len()),
            '/' if rest.starts_with("//") => ("c", rest.len()),
            '"' | '\'' | '`' => {
                let end = rest[1..].find(first).map_or(rest.len(), |at| at + 2);
                ("s", end)
            }
            c if c.is_alphanumeric() || c == '_' => {
                let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
                let is_word = WORDS.contains(&format!(" {} ", &rest[..end]));
                (
                    if is_word {
                        "k"
                    } else if c.is_ascii_digit() {
                        "n"
                    } else {
                        ""
                    },
                    end,
                )
            }
            other => ("", other.len_utf8()),
        };
        parts.push((class, &rest[..length]));
        rest = &rest[length..];
    }
    html! { @for (class, text) in parts { @if class.is_empty() { (text) } @else { span class=(class) { (text) } } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_a_diff_stays_text() {
        let text = "--- a/<b>.rs\n+++ b/<b>.rs\n@@ -1 +1 @@\n-<script>1</script>\n+let a = \"<img>\"; // é\n";
        let shown = diff(text).into_string();
        assert!(!shown.contains("<script>") && !shown.contains("<img>") && !shown.contains("<b>"), "{shown}");
        assert!(shown.contains("&lt;script&gt;"), "{shown}");
    }
}
