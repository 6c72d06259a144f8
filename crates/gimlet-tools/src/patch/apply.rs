//! Putting hunks into a text. Pure: text in, text out.

use std::cmp::Reverse;

use super::read::{Hunk, HunkLine, LineKind};
use super::seek::{self, Miss, Strictness};
use super::text::{Ending, Line, join, split, usual_ending};

/// A text with its hunks applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The new text.
    pub text: String,
    /// The weakest match that was needed.
    pub strictness: Strictness,
}

/// A hunk that has no place. What a model needs to mend it is quoted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HunkError {
    /// Its lines are not in the file.
    #[error("hunk {number} does not fit: {}", describe(.not_found, .nearest))]
    NotFound {
        /// Which hunk, counted from 1.
        number: usize,
        /// The lines that are nowhere in the file; empty if all are there, but not in this order.
        not_found: Vec<String>,
        /// Line numbers and lines of the file that look most like them.
        nearest: Vec<(usize, String)>,
    },
    /// Its lines are in the file more than once and it says no line number.
    #[error("hunk {number} fits at lines {}; add more unchanged lines around the change", list(.lines))]
    Ambiguous {
        /// Which hunk, counted from 1.
        number: usize,
        /// Where it fits.
        lines: Vec<usize>,
    },
    /// It only adds lines and does not say where.
    #[error("hunk {number} only adds lines; add unchanged lines around them to say where")]
    NoPlace {
        /// Which hunk, counted from 1.
        number: usize,
    },
    /// It adds lines among those that another one replaces.
    #[error("hunk {number} lies inside of another hunk; make one of the two")]
    Inside {
        /// Which hunk, counted from 1.
        number: usize,
    },
}

fn describe(not_found: &[String], nearest: &[(usize, String)]) -> String {
    let mut text = if not_found.is_empty() {
        "its lines are in the file, but not one after the other".to_owned()
    } else {
        format!(
            "not in the file: {}",
            not_found.iter().map(|line| format!("{line:?}")).collect::<Vec<_>>().join(", ")
        )
    };
    if !nearest.is_empty() {
        let lines: Vec<String> =
            nearest.iter().map(|(number, line)| format!("line {number}: {line:?}")).collect();
        text.push_str(&format!("; nearest is {}", lines.join(", ")));
    }
    text
}

fn list(lines: &[usize]) -> String {
    lines.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// How much of a failed hunk is quoted.
const QUOTED: usize = 3;

/// A hunk and the lines it takes the place of.
struct Placed<'a> {
    at: usize,
    /// Old lines covered, fewer than the hunk has if stray blanks at its end were left out.
    length: usize,
    hunk: &'a Hunk,
    lines: &'a [HunkLine],
    strictness: Strictness,
}

/// Applies all hunks or none.
pub fn apply(text: &str, hunks: &[Hunk]) -> Result<Applied, HunkError> {
    // Nobody sees a byte order mark, so a diff does not mention it, unless a program wrote it.
    const MARK: char = '\u{feff}';
    let mentioned = hunks.iter().flat_map(|hunk| &hunk.lines).any(|line| line.text.starts_with(MARK));
    match text.strip_prefix(MARK) {
        Some(rest) if !mentioned => {
            let applied = apply_to(rest, hunks)?;
            Ok(Applied { text: format!("{MARK}{}", applied.text), ..applied })
        }
        Some(_) | None => apply_to(text, hunks),
    }
}

fn apply_to(text: &str, hunks: &[Hunk]) -> Result<Applied, HunkError> {
    let file = split(text);
    let mut placed: Vec<Placed<'_>> = Vec::with_capacity(hunks.len());
    // How far the hunks so far were from where they said: the next one is expected as far off.
    let mut drift = 0isize;
    for (index, hunk) in hunks.iter().enumerate() {
        let near = hunk.at.map(|line| line.saturating_sub(1).saturating_add_signed(drift));
        let found = place(&file, hunk, index + 1, near, &placed)?;
        if let (Some(line), true) = (hunk.at, found.length > 0) {
            drift = found.at.cast_signed() - line.saturating_sub(1).cast_signed();
        }
        placed.push(found);
    }
    // What is only inserted comes before what begins at the same line.
    placed.sort_by_key(|found| (found.at, found.length));
    let strictness = placed.iter().map(|found| found.strictness).max().unwrap_or(Strictness::Exact);
    Ok(Applied { text: build(&file, &placed), strictness })
}

fn place<'a>(
    file: &[Line],
    hunk: &'a Hunk,
    number: usize,
    near: Option<usize>,
    placed: &[Placed<'_>],
) -> Result<Placed<'a>, HunkError> {
    let wanted: Vec<&str> = hunk.old_lines().map(|line| line.text.as_str()).collect();
    if wanted.is_empty() {
        return insertion(file, hunk, number, near, placed);
    }
    // Stray blank lines at the end are no part of the file; they are dropped one by one if they do not fit.
    let blanks =
        hunk.lines.iter().rev().take_while(|l| l.kind == LineKind::Keep && l.text.trim().is_empty()).count();
    let mut first_miss = None;
    for dropped in 0..=blanks {
        let wanted = &wanted[..wanted.len() - dropped];
        if wanted.is_empty() {
            break;
        }
        let free = |at: usize| {
            placed.iter().all(|other| at + wanted.len() <= other.at || other.at + other.length <= at)
        };
        match seek::find(file, wanted, near, free) {
            Ok(found) => {
                return Ok(Placed {
                    at: found.at,
                    length: wanted.len(),
                    hunk,
                    lines: &hunk.lines[..hunk.lines.len() - dropped],
                    strictness: found.strictness,
                });
            }
            Err(miss) => first_miss = first_miss.or(Some(miss)),
        }
    }
    Err(match first_miss {
        Some(Miss::Ambiguous(lines)) => HunkError::Ambiguous { number, lines },
        Some(Miss::Nowhere) | None => not_found(file, &wanted, number),
    })
}

/// A hunk without old lines goes where its number says: after that line.
fn insertion<'a>(
    file: &[Line],
    hunk: &'a Hunk,
    number: usize,
    near: Option<usize>,
    placed: &[Placed<'_>],
) -> Result<Placed<'a>, HunkError> {
    let at = match (hunk.at, near) {
        _ if file.is_empty() => 0,
        (Some(0), _) => 0,
        (Some(_), Some(near)) => (near + 1).min(file.len()),
        (Some(_) | None, _) => return Err(HunkError::NoPlace { number }),
    };
    if placed.iter().any(|other| other.at < at && at < other.at + other.length) {
        return Err(HunkError::Inside { number });
    }
    Ok(Placed { at, length: 0, hunk, lines: &hunk.lines, strictness: Strictness::Exact })
}

fn not_found(file: &[Line], wanted: &[&str], number: usize) -> HunkError {
    let missing: Vec<&str> = wanted.iter().copied().filter(|line| !seek::occurs(file, line)).collect();
    let sought = missing.first().or_else(|| wanted.iter().find(|line| !line.trim().is_empty()));
    HunkError::NotFound {
        number,
        not_found: missing.iter().take(QUOTED).map(ToString::to_string).collect(),
        nearest: sought.map(|line| seek::nearest(file, line, QUOTED)).unwrap_or_default(),
    }
}

/// The new text. Kept lines are the file's own, byte for byte.
fn build(file: &[Line], placed: &[Placed<'_>]) -> String {
    let usual = usual_ending(file);
    let mut out: Vec<Line> = Vec::with_capacity(file.len());
    let mut next = 0;
    for found in placed {
        out.extend_from_slice(&file[next..found.at]);
        next = found.at;
        // A diff that does not say how lines end means: as those around them.
        let around = |next: usize| {
            let before = next.checked_sub(1).filter(|before| *before >= found.at).unwrap_or(found.at);
            file[..found.at + found.length]
                .get(before)
                .map(|line| line.ending)
                .filter(|e| *e != Ending::Missing)
        };
        let indent = Indent::of(&file[found.at..found.at + found.length], found);
        // Added lines are likened to the removed lines they follow, one by one.
        let (mut run, mut added) = (next, 0);
        for line in found.lines {
            match line.kind {
                LineKind::Keep => {
                    out.push(file[next].clone());
                    next += 1;
                    (run, added) = (next, 0);
                }
                LineKind::Remove => {
                    if added > 0 {
                        (run, added) = (next, 0);
                    }
                    next += 1;
                }
                LineKind::Add => {
                    let ending = match line.carriage_return {
                        Some(true) => Ending::CrLf,
                        Some(false) => Ending::Lf,
                        None => around(next).unwrap_or(usual),
                    };
                    let like = (run + added).min(next.saturating_sub(1)).saturating_sub(found.at);
                    out.push(Line { text: indent.adjust(&line.text, like), ending });
                    added += 1;
                }
            }
        }
    }
    out.extend_from_slice(&file[next..]);
    end_well(&mut out, file, placed, usual);
    join(&out)
}

/// Only a last line may lack its ending, and it does so if the hunk at the end says so, else if it did before.
fn end_well(out: &mut [Line], file: &[Line], placed: &[Placed<'_>], usual: Ending) {
    let lacked = file.last().is_some_and(|line| line.ending == Ending::Missing);
    let at_end = placed.last().filter(|found| found.at + found.length == file.len());
    let lacks = match at_end {
        Some(found) if found.hunk.new_lacks_newline => true,
        Some(found) if found.hunk.old_lacks_newline => false,
        Some(_) | None => lacked,
    };
    let Some((last, rest)) = out.split_last_mut() else { return };
    for line in rest.iter_mut().filter(|line| line.ending == Ending::Missing) {
        line.ending = usual;
    }
    if lacks {
        last.ending = Ending::Missing;
    } else if last.ending == Ending::Missing {
        last.ending = usual;
    }
}

/// How the hunk's indentation differs from the file's, for the lines it adds.
struct Indent<'a> {
    /// The index, the hunk's indentation and the file's, for every line that was found and is not blank; none if the
    /// indentation is the same.
    pairs: Vec<(usize, &'a str, &'a str)>,
}

impl<'a> Indent<'a> {
    fn of(file: &'a [Line], found: &Placed<'a>) -> Self {
        if found.strictness < Strictness::Indentation {
            return Indent { pairs: Vec::new() };
        }
        let wanted = found.lines.iter().filter(|line| line.kind != LineKind::Add);
        let pairs = file
            .iter()
            .zip(wanted)
            .enumerate()
            .filter(|(_, (line, _))| !line.text.trim().is_empty())
            .map(|(index, (line, wanted))| (index, leading(&wanted.text), leading(&line.text)))
            .collect();
        Indent { pairs }
    }

    /// A line indented like one that was found, or deeper, is moved as that one was, of several the one nearest to
    /// `near`; a line less indented than all of them is moved by as much as the first.
    fn adjust(&self, line: &str, near: usize) -> String {
        if line.trim().is_empty() {
            return line.into();
        }
        let like = self
            .pairs
            .iter()
            .filter(|(_, wrong, _)| line.starts_with(wrong))
            .max_by_key(|(index, wrong, _)| (wrong.len(), Reverse(index.abs_diff(near))));
        if let Some((_, wrong, right)) = like {
            return format!("{right}{}", &line[wrong.len()..]);
        }
        let Some((_, wrong, right)) = self.pairs.first() else { return line.into() };
        if let Some(extra) = wrong.strip_suffix(right) {
            return line.strip_prefix(extra).unwrap_or(line).into();
        }
        match right.strip_suffix(wrong) {
            Some(lacking) => format!("{lacking}{line}"),
            None => line.into(),
        }
    }
}

fn leading(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}
