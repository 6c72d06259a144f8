//! Finds the lines of a SEARCH block in a file: exactly, then without trailing whitespace, then with another
//! indentation, then by its first and last line. What fits nowhere, or in two places, is refused with the nearest lines.

use std::ops::Range;

/// Most lines that are quoted with a refusal.
const QUOTED: usize = 6;
/// How alike the lines between two anchors must be, from 0 to 1.
const LIKENESS: f64 = 0.6;
/// Longest block whose middle lines are compared.
const MOST_COMPARED: usize = 200;

/// Whether a line of the file is a line of the block.
type SameLine<'a> = &'a dyn Fn(&str, &str) -> bool;

/// Why a replacement was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LadderError {
    /// No lines to look for.
    #[error("the SEARCH part is empty")]
    Empty,
    /// The lines are not in the file.
    #[error("the SEARCH lines are not in the file{}", quoted(nearest))]
    NotFound {
        /// The nearest lines with their numbers.
        nearest: Vec<(usize, String)>,
    },
    /// The lines are in the file more than once.
    #[error("the SEARCH lines fit {} times, at the lines {}: add a line before or after them", lines.len(), listed(lines))]
    Ambiguous {
        /// Where, counted from 1.
        lines: Vec<usize>,
    },
}

fn quoted(nearest: &[(usize, String)]) -> String {
    let lines: Vec<String> = nearest.iter().map(|(_, text)| text.clone()).collect();
    match nearest.first() {
        Some((line, _)) => format!("; the nearest lines, from line {line}:\n{}", lines.join("\n")),
        None => String::new(),
    }
}

fn listed(lines: &[usize]) -> String {
    lines.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

/// The text with the lines of `search` replaced by those of `replace`. Every other line stays as it is, and new lines
/// end as the file's lines do.
pub fn replace(text: &str, search: &str, replace: &str) -> Result<String, LadderError> {
    let wanted: Vec<&str> = trimmed_block(search);
    if wanted.is_empty() {
        return Err(LadderError::Empty);
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let bare: Vec<&str> = lines.iter().map(|line| line.trim_end_matches(['\n', '\r'])).collect();
    let new: Vec<&str> = replace.lines().collect();
    let exact = |a: &str, b: &str| a == b;
    let trailing = |a: &str, b: &str| a.trim_end() == b.trim_end();
    let indented = |a: &str, b: &str| a.trim() == b.trim();
    let rungs: [SameLine<'_>; 3] = [&exact, &trailing, &indented];
    for same in rungs {
        match fits(&bare, &wanted, same).as_slice() {
            [] => {}
            [at] => return Ok(spliced(&lines, *at..*at + wanted.len(), &bare, &wanted, &new)),
            several => {
                return Err(LadderError::Ambiguous { lines: several.iter().map(|at| at + 1).collect() });
            }
        }
    }
    if let [range] = anchored(&bare, &wanted).as_slice() {
        return Ok(spliced(&lines, range.clone(), &bare, &wanted, &new));
    }
    Err(LadderError::NotFound { nearest: nearest(&bare, &wanted) })
}

/// The lines of a block without blank ones at its ends: models add and drop them.
fn trimmed_block(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    let is_text = |line: &&str| !line.trim().is_empty();
    let Some(first) = lines.iter().position(&is_text) else { return Vec::new() };
    let last = lines.iter().rposition(is_text).unwrap_or(first);
    lines[first..=last].to_vec()
}

/// The places at which all lines are the same.
fn fits(bare: &[&str], wanted: &[&str], same: SameLine<'_>) -> Vec<usize> {
    let windows = bare.windows(wanted.len()).enumerate();
    windows
        .filter(|(_, window)| window.iter().zip(wanted).all(|(a, b)| same(a, b)))
        .map(|(at, _)| at)
        .collect()
}

/// The places whose first and last lines are the block's, and whose lines between are alike.
fn anchored(bare: &[&str], wanted: &[&str]) -> Vec<Range<usize>> {
    if !(3..=MOST_COMPARED).contains(&wanted.len()) {
        return Vec::new();
    }
    let (first, last) = (wanted[0].trim(), wanted[wanted.len() - 1].trim());
    let slack = wanted.len() / 5 + 1;
    let mut found: Vec<(Range<usize>, f64)> = Vec::new();
    for at in (0..bare.len()).filter(|at| bare[*at].trim() == first) {
        let shortest = wanted.len().saturating_sub(slack).max(2);
        let ends = (at + shortest..=at + wanted.len() + slack).filter(|end| *end <= bare.len());
        let best = ends
            .filter(|end| bare[*end - 1].trim() == last)
            .map(|end| (at..end, likeness(&bare[at + 1..end - 1], &wanted[1..wanted.len() - 1])))
            .filter(|(_, likeness)| *likeness >= LIKENESS)
            .max_by(|(_, one), (_, other)| one.total_cmp(other));
        found.extend(best);
    }
    found.into_iter().map(|(range, _)| range).collect()
}

/// How alike two runs of lines are: the mean over their lines, position by position.
fn likeness(one: &[&str], other: &[&str]) -> f64 {
    let longest = one.len().max(other.len());
    if longest == 0 {
        return 1.0;
    }
    let pairs = one.iter().zip(other);
    let sum: f64 = pairs.map(|(a, b)| strsim::normalized_levenshtein(clip(a.trim()), clip(b.trim()))).sum();
    sum / longest as f64
}

/// Enough of a line to compare it.
fn clip(line: &str) -> &str {
    line.char_indices().nth(200).map_or(line, |(at, _)| &line[..at])
}

/// The lines with a range of them replaced. If the block was indented otherwise than the file, so are the new lines.
fn spliced(lines: &[&str], range: Range<usize>, bare: &[&str], wanted: &[&str], new: &[&str]) -> String {
    let is_crlf = lines.iter().any(|line| line.ends_with("\r\n"));
    let ending = if is_crlf { "\r\n" } else { "\n" };
    let (file, block) = (indentation(bare[range.start]), indentation(wanted[0]));
    let mut text: String = lines[..range.start].concat();
    for line in new {
        text.push_str(&reindented(line.trim_end_matches('\r'), block, file));
        text.push_str(ending);
    }
    // A last line without its end stays without it.
    let ends_open = lines[range.clone()].last().is_some_and(|line| !line.ends_with('\n'));
    if ends_open && range.end == lines.len() && !new.is_empty() {
        text.truncate(text.len() - ending.len());
    }
    text.push_str(&lines[range.end..].concat());
    text
}

fn indentation(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

fn reindented(line: &str, from: &str, to: &str) -> String {
    if from == to || line.trim().is_empty() {
        return line.to_owned();
    }
    match (line.strip_prefix(from), from.strip_prefix(to)) {
        (Some(rest), _) => format!("{to}{rest}"),
        // The line has less than the block's own indentation: what is too much for the block is too much for it.
        (None, Some(excess)) => line.strip_prefix(excess).unwrap_or(line.trim_start()).to_owned(),
        (None, None) => line.to_owned(),
    }
}

/// The lines of the file that are most like the block.
fn nearest(bare: &[&str], wanted: &[&str]) -> Vec<(usize, String)> {
    let size = wanted.len().clamp(1, QUOTED);
    let wanted = &wanted[..size];
    // The longest line of the block tells most about where it belongs.
    let Some((offset, key)) = wanted.iter().enumerate().max_by_key(|(_, line)| line.trim().len()) else {
        return Vec::new();
    };
    let alike = |line: &str| strsim::normalized_levenshtein(clip(line.trim()), clip(key.trim()));
    let best = bare.iter().take(20_000).enumerate().map(|(at, line)| (at, alike(line)));
    match best.max_by(|(_, one), (_, other)| one.total_cmp(other)) {
        Some((at, likeness)) if likeness > 0.4 => {
            let from = at.saturating_sub(offset);
            let lines = bare.iter().enumerate().skip(from).take(size);
            lines.map(|(at, line)| (at + 1, (*line).to_owned())).collect()
        }
        Some(_) | None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str =
        "class A:\n    def f(self):\n        x = 1\n        return x\n\n    def g(self):\n        return 2\n";

    #[test]
    fn each_rung_finds_what_the_one_before_does_not() {
        let exact = replace(FILE, "        return 2\n", "        return 3\n").unwrap();
        assert_eq!(exact, FILE.replace("return 2", "return 3"));
        let trailing = replace(FILE, "        return 2   \n", "        return 3\n").unwrap();
        assert_eq!(trailing, exact);
        let indented = replace(FILE, "def g(self):\n    return 2\n", "def g(self):\n    return 3\n").unwrap();
        assert_eq!(indented, exact);
        let anchored = replace(
            FILE,
            "    def f(self):\n        x = 10\n        return x\n",
            "    def f(self):\n        return 1\n",
        );
        assert_eq!(
            anchored.unwrap(),
            FILE.replace("        x = 1\n        return x\n", "        return 1\n")
        );
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_nearest_lines() {
        let error = replace(FILE, "        return self.two + 1\n", "x").unwrap_err();
        assert!(matches!(error, LadderError::NotFound { .. }), "{error}");
        let error = replace("a\nb\na\n", "a\n", "c\n").unwrap_err();
        assert_eq!(error, LadderError::Ambiguous { lines: vec![1, 3] });
        assert_eq!(replace(FILE, " \n", "x"), Err(LadderError::Empty));
        let error = replace(FILE, "    def g(other):\n", "x").unwrap_err().to_string();
        assert!(error.contains("from line 6:\n    def g(self):"), "{error}");
    }

    #[test]
    fn line_ends_and_a_missing_last_one_are_kept() {
        assert_eq!(replace("a\r\nb\r\n", "a\n", "c\n").unwrap(), "c\r\nb\r\n");
        assert_eq!(replace("a\nb", "b\n", "c\nd\n").unwrap(), "a\nc\nd");
        assert_eq!(replace("a\nb\nc\n", "b\n", "").unwrap(), "a\nc\n");
    }
}
