//! A diff as a model reads it: by file, as much as fits, with the numbers that lines have in the new file.

use std::collections::BTreeMap;
use std::fmt::Write;

use gimlet_runtime::parts::tools::patch::unquote;

/// What a diff says of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Section {
    /// The new name, or the old one of a file that is gone.
    pub(crate) path: String,
    pub(crate) text: String,
    /// Lines of the new file that the diff shows, and whether they are new.
    pub(crate) lines: BTreeMap<usize, bool>,
}

/// Takes a diff apart.
pub(crate) fn sections(diff: &str) -> Vec<Section> {
    let mut texts: Vec<String> = Vec::new();
    for line in diff.split_inclusive('\n') {
        if line.starts_with("diff --") || texts.is_empty() {
            texts.push(String::new());
        }
        if let Some(last) = texts.last_mut() {
            last.push_str(line);
        }
    }
    texts.into_iter().filter_map(section).collect()
}

fn section(text: String) -> Option<Section> {
    let header = || text.lines().take_while(|line| !line.starts_with("@@"));
    let named = |start: &str, prefix: &str| {
        let name = header().find_map(|line| line.strip_prefix(start))?;
        let name = unquote(name.trim_end_matches('\t'));
        (name != "/dev/null").then(|| name.strip_prefix(prefix).unwrap_or(&name).to_owned())
    };
    let both = || {
        // A file without lines of text is named only here, twice by the same name.
        let names = header().next()?.strip_prefix("diff --git a/")?;
        let half = names.len().checked_sub(3)? / 2;
        names.get(..half).filter(|name| names.get(half..) == Some(&format!(" b/{name}"))).map(str::to_owned)
    };
    let path = named("+++ ", "b/")
        .or_else(|| named("rename to ", ""))
        .or_else(|| named("--- ", "a/"))
        .or_else(both)?;
    let lines =
        numbered_lines(&text).filter_map(|(number, line)| Some((number?, line.starts_with('+')))).collect();
    Some(Section { path, lines, text })
}

/// The lines behind the header; those that the new file has with their numbers there.
fn numbered_lines(text: &str) -> impl Iterator<Item = (Option<usize>, &str)> {
    let mut next = 0;
    text.lines().skip_while(|line| !line.starts_with("@@")).map(move |line| match line.as_bytes().first() {
        Some(b'@') => {
            next = begins_at(line).unwrap_or(next);
            (None, line)
        }
        Some(b'+' | b' ') | None => {
            next += 1;
            (Some(next - 1), line)
        }
        Some(_) => (None, line),
    })
}

/// Where a hunk begins in the new file.
fn begins_at(hunk: &str) -> Option<usize> {
    let new = hunk.split_whitespace().find_map(|word| word.strip_prefix('+'))?;
    new.split(',').next()?.parse().ok()
}

/// A section with the numbers of lines before them.
fn numbered(section: &Section) -> String {
    let mut out = format!("{}:\n", section.path);
    for (number, line) in numbered_lines(&section.text) {
        let _ = match number {
            Some(number) => writeln!(out, "{number:>5} {line}"),
            None if line.starts_with("@@") => writeln!(out, "  ..."),
            None => writeln!(out, "      {line}"),
        };
    }
    if section.lines.is_empty() && !section.text.contains("\n@@") {
        out.push_str("      (no lines of text)\n");
    }
    out
}

/// How a diff is written for a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As git writes it.
    Plain,
    /// With the numbers of lines.
    Numbered,
}

/// A diff that fits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fitted {
    pub(crate) text: String,
    /// Files of which not everything is shown.
    pub(crate) cut: Vec<String>,
}

/// As much as fits so many characters. Small files are whole; larger ones share the rest evenly, and a cut is said.
pub(crate) fn fitted(sections: &[Section], form: Form, room: usize) -> Fitted {
    let texts: Vec<String> = sections
        .iter()
        .map(|section| match form {
            Form::Plain => section.text.clone(),
            Form::Numbered => numbered(section),
        })
        .collect();
    let mut sizes: Vec<usize> = texts.iter().map(|text| text.chars().count()).collect();
    sizes.sort_unstable();
    // The share of each that is larger than its share: found by giving the small ones what they need.
    let (mut left, mut share) = (room, usize::MAX);
    for (at, size) in sizes.iter().enumerate() {
        let even = left / (sizes.len() - at);
        if *size > even {
            share = even;
            break;
        }
        left -= size;
    }
    let mut fitted = Fitted { text: String::new(), cut: Vec::new() };
    for (section, text) in sections.iter().zip(&texts) {
        if text.chars().count() <= share {
            fitted.text.push_str(text);
            continue;
        }
        let mut chars = 0;
        let kept: usize = text
            .split_inclusive('\n')
            .take_while(|line| {
                chars += line.chars().count();
                chars <= share
            })
            .map(str::len)
            .sum();
        fitted.text.push_str(&text[..kept]);
        let more = text[kept..].lines().count();
        let _ = writeln!(fitted.text, "[{more} more lines of {} are not shown]", section.path);
        fitted.cut.push(section.path.clone());
    }
    fitted
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "diff --git a/a.rs b/a.rs\n--- a/a.rs\n+++ b/a.rs\n@@ -3,3 +3,4 @@ fn x()\n one\n-two\n+2\n+2.5\n three\n\
                        diff --git a/b.bin b/b.bin\nBinary files a/b.bin and b/b.bin differ\n\
                        diff --git a/old b/new\nrename from old\nrename to new\n\
                        diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n";

    #[test]
    fn files_and_lines_are_found() {
        let found = sections(DIFF);
        let paths: Vec<&str> = found.iter().map(|section| section.path.as_str()).collect();
        assert_eq!(paths, ["a.rs", "b.bin", "new", "gone"]);
        let lines: Vec<(usize, bool)> = found[0].lines.clone().into_iter().collect();
        assert_eq!(lines, [(3, false), (4, true), (5, true), (6, false)]);
        assert_eq!(
            numbered(&found[0]),
            "a.rs:\n  ...\n    3  one\n      -two\n    4 +2\n    5 +2.5\n    6  three\n"
        );
    }

    #[test]
    fn small_files_are_whole_and_large_ones_share_the_rest() {
        let large = |name: &str| {
            let lines: String = (0..100).map(|n| format!("+line {n}\n")).collect();
            format!("diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -0,0 +1,100 @@\n{lines}")
        };
        let diff = format!("{}{DIFF}{}", large("x"), large("y"));
        let fit = fitted(&sections(&diff), Form::Plain, 1200);
        assert_eq!(fit.cut, ["x", "y"]);
        assert!(fit.text.chars().count() < 1400 && fit.text.contains("+2.5"), "{}", fit.text);
        assert!(fit.text.contains("more lines of y are not shown]"), "{}", fit.text);
        assert_eq!(
            fitted(&sections(DIFF), Form::Plain, 5000),
            Fitted { text: DIFF.to_owned(), cut: Vec::new() }
        );
    }
}
