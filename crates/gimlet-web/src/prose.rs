//! An answer as people write them: paragraphs, headings, lists, quotes, tables of code. A small part of Markdown, made into
//! elements one by one, so that markup in the text stays text. Nothing of it is a link that leads elsewhere unseen.

use gimlet::text::Printable;
use maud::{Markup, PreEscaped, html};

use crate::colour::{self, Language};

/// A text with its form.
pub(crate) fn prose(text: &str) -> Markup {
    let text = Printable::prose(text).into_string();
    let lines: Vec<&str> = text.lines().collect();
    let mut out = String::new();
    let mut at = 0;
    while at < lines.len() {
        let (shown, used) = block(&lines[at..]);
        out.push_str(&shown.0);
        at += used.max(1);
    }
    html! { div.prose { (PreEscaped(out)) } }
}

/// The next block, and how many lines it is.
fn block(lines: &[&str]) -> (Markup, usize) {
    let line = lines[0];
    let trimmed = line.trim_start();
    if let Some((fence, word)) = fence(trimmed) {
        let body: Vec<&str> =
            lines[1..].iter().copied().take_while(|line| !line.trim_start().starts_with(fence)).collect();
        let code = colour::block(&body.join("\n"), Language::of(word));
        return (html! { pre.code { code { (code) } } }, body.len() + 2);
    }
    if trimmed.is_empty() {
        return (html! {}, 1);
    }
    if let Some((level, text)) = heading(trimmed) {
        let shown = if level < 3 {
            html! { h3 { (inline(text)) } }
        } else {
            html! { h4 { (inline(text)) } }
        };
        return (shown, 1);
    }
    if item(trimmed).is_some() {
        return list(lines);
    }
    if trimmed.starts_with('>') {
        let quoted: Vec<&str> =
            lines.iter().map_while(|line| line.trim_start().strip_prefix('>')).map(str::trim).collect();
        return (html! { blockquote { (inline(&quoted.join("\n"))) } }, quoted.len());
    }
    let begins = |line: &&&str| {
        let line = line.trim_start();
        line.is_empty() || fence(line).is_some() || heading(line).is_some() || item(line).is_some()
    };
    let more = lines[1..].iter().take_while(|line| !begins(line)).count();
    (html! { p { (inline(&lines[..=more].join("\n"))) } }, more + 1)
}

fn fence(line: &str) -> Option<(&str, &str)> {
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = line.len() - line.trim_start_matches(mark).len();
    (length >= 3).then(|| (&line[..length], line[length..].trim()))
}

fn heading(line: &str) -> Option<(usize, &str)> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    (1..=6).contains(&level).then_some(())?;
    Some((level, text.strip_prefix(' ')?.trim_end_matches('#').trim()))
}

/// An entry of a list: whether it is numbered, and its text.
fn item(line: &str) -> Option<(bool, &str)> {
    if let Some(text) = ["- ", "* ", "+ "].iter().find_map(|mark| line.strip_prefix(mark)) {
        return Some((false, text));
    }
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = line.len() - rest.len();
    (1..=3).contains(&digits).then_some(())?;
    Some((true, rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") "))?))
}

fn list(lines: &[&str]) -> (Markup, usize) {
    let mut entries: Vec<String> = Vec::new();
    let numbered = item(lines[0].trim_start()).is_some_and(|(numbered, _)| numbered);
    let mut used = 0;
    for line in lines {
        let trimmed = line.trim_start();
        match item(trimmed) {
            Some((kind, text)) if kind == numbered || line.len() > trimmed.len() => {
                entries.push(text.to_owned())
            }
            None if line.len() > trimmed.len() && !trimmed.is_empty() && fence(trimmed).is_none() => {
                if let Some(last) = entries.last_mut() {
                    last.push('\n');
                    last.push_str(trimmed);
                }
            }
            Some(_) | None => break,
        }
        used += 1;
    }
    let rows = html! { @for entry in &entries { li { (inline(entry)) } } };
    (
        if numbered {
            html! { ol { (rows) } }
        } else {
            html! { ul { (rows) } }
        },
        used,
    )
}

/// Code and strong words within a line; everything else as it is.
fn inline(text: &str) -> Markup {
    let mut out = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let next = rest.find(['`', '*']).unwrap_or(rest.len());
        out.push_str(&html! { (&rest[..next]) }.0);
        rest = &rest[next..];
        let spans = [("`", "code"), ("**", "strong")];
        let span = spans.iter().find_map(|(mark, name)| {
            let inner = rest.strip_prefix(mark)?;
            let end = inner.find(mark).filter(|end| *end > 0)?;
            Some((&inner[..end], &inner[end + mark.len()..], *name))
        });
        match span {
            Some((inner, after, "code")) => {
                out.push_str(&html! { code { (inner) } }.0);
                rest = after;
            }
            Some((inner, after, _)) => {
                out.push_str(&html! { strong { (inner) } }.0);
                rest = after;
            }
            None => {
                let length = rest.chars().next().map_or(0, char::len_utf8);
                out.push_str(&html! { (&rest[..length]) }.0);
                rest = &rest[length..];
            }
        }
    }
    PreEscaped(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_kept_and_markup_stays_text() {
        let text = "# Why\nIt **divides** by `$# + 1`,\n<b>too many</b>.\n\n1. one\n2. two `x`\n\n- a\n  more\n- b\n\n```py\nx = \"<i>\"\n```\n> quoted";
        let shown = prose(text).into_string();
        for part in [
            "<h3>Why</h3>",
            "<strong>divides</strong>",
            "<code>$# + 1</code>",
            "&lt;b&gt;too many&lt;/b&gt;",
            "<ol><li>one</li><li>two <code>x</code></li></ol>",
            "<li>a\nmore</li>",
            "&lt;i&gt;",
            "<blockquote>quoted</blockquote>",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(!shown.contains("<i>"), "{shown}");
    }

    #[test]
    fn odd_marks_end() {
        for text in ["*", "`", "**", "``` \n", "a ** b", "* ", "```", "1.", "#", ">", "é`é*", "- \n  \n"] {
            let _ = prose(text);
        }
        assert!(prose("2 * 3 * 4").into_string().contains("2 * 3 * 4"));
    }
}
