//! Finding where a hunk belongs: exactly first, then ever less strictly, and honestly when it is nowhere.

use super::text::Line;

/// How closely the file had to resemble the hunk. Later is weaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strictness {
    /// Letter by letter.
    Exact,
    /// Space at the end of lines did not count.
    TrailingSpace,
    /// Space at the beginning of lines did not count.
    Indentation,
    /// Typographic quotes, dashes and spaces counted as plain ones.
    Punctuation,
}

impl Strictness {
    const LADDER: [Strictness; 4] =
        [Strictness::Exact, Strictness::TrailingSpace, Strictness::Indentation, Strictness::Punctuation];

    fn same(self, file: &str, wanted: &str) -> bool {
        match self {
            Strictness::Exact => file == wanted,
            Strictness::TrailingSpace => file.trim_end() == wanted.trim_end(),
            Strictness::Indentation => file.trim() == wanted.trim(),
            Strictness::Punctuation => plain(file).eq(plain(wanted)),
        }
    }
}

/// The characters of a line with typography undone.
fn plain(line: &str) -> impl Iterator<Item = char> {
    line.trim().chars().map(|c| match c {
        '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}' | '\u{2032}' => '\'',
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{201f}' | '\u{2033}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    })
}

/// Where a hunk belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Index of its first line.
    pub(crate) at: usize,
    pub(crate) strictness: Strictness,
}

/// Why it has no place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Miss {
    /// It fits nowhere.
    Nowhere,
    /// It fits equally well at these lines, counted from 1.
    Ambiguous(Vec<usize>),
}

/// Finds the wanted lines. `near` is the index they are expected at; `free` says whether a stretch is still untouched.
pub(crate) fn find(
    file: &[Line],
    wanted: &[&str],
    near: Option<usize>,
    free: impl Fn(usize) -> bool,
) -> Result<Place, Miss> {
    let Some(last) = file.len().checked_sub(wanted.len()) else { return Err(Miss::Nowhere) };
    for strictness in Strictness::LADDER {
        let fits = |at: &usize| {
            free(*at)
                && file[*at..].iter().zip(wanted).all(|(line, wanted)| strictness.same(&line.text, wanted))
        };
        let mut places: Vec<usize> = (0..=last).filter(fits).collect();
        if let Some(near) = near {
            places = places.into_iter().min_by_key(|at| at.abs_diff(near)).into_iter().collect();
        }
        match places.as_slice() {
            [] => {}
            [at] => return Ok(Place { at: *at, strictness }),
            several => return Err(Miss::Ambiguous(several.iter().map(|at| at + 1).collect())),
        }
    }
    Err(Miss::Nowhere)
}

/// The lines of a file most like a line that was not found, best first.
pub(crate) fn nearest(file: &[Line], wanted: &str, most: usize) -> Vec<(usize, String)> {
    let wanted: String = plain(wanted).take(200).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut scored: Vec<(f64, usize)> = file
        .iter()
        .enumerate()
        .filter(|(_, line)| !line.text.trim().is_empty())
        .map(|(index, line)| {
            let line: String = plain(&line.text).take(200).collect();
            (strsim::normalized_damerau_levenshtein(&line, &wanted), index)
        })
        .filter(|(score, _)| *score >= 0.5)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    scored.into_iter().take(most).map(|(_, index)| (index + 1, file[index].text.clone())).collect()
}

/// Whether a line is in the file at all, by the weakest rule.
pub(crate) fn occurs(file: &[Line], wanted: &str) -> bool {
    file.iter().any(|line| Strictness::Punctuation.same(&line.text, wanted))
}

#[cfg(test)]
mod tests {
    use super::super::text::split;
    use super::*;

    fn at(file: &str, wanted: &[&str], near: Option<usize>) -> Result<(usize, Strictness), Miss> {
        find(&split(file), wanted, near, |_| true).map(|place| (place.at, place.strictness))
    }

    #[test]
    fn the_strictest_match_wins() {
        let file = "x  \n  x\nx\n“x”\n";
        assert_eq!(at(file, &["x"], None), Ok((2, Strictness::Exact)));
        assert_eq!(at("a \nb\n", &["a", "b"], None), Ok((0, Strictness::TrailingSpace)));
        assert_eq!(at("\ta\n", &["    a"], None), Ok((0, Strictness::Indentation)));
        assert_eq!(at(file, &["\"x\""], None), Ok((3, Strictness::Punctuation)));
    }

    #[test]
    fn several_places_need_a_hint() {
        let file = "a\nb\na\nb\n";
        assert_eq!(at(file, &["a", "b"], None), Err(Miss::Ambiguous(vec![1, 3])));
        assert_eq!(at(file, &["a", "b"], Some(3)), Ok((2, Strictness::Exact)));
        assert_eq!(at(file, &["c"], Some(0)), Err(Miss::Nowhere));
        assert_eq!(at("", &["c"], None), Err(Miss::Nowhere));
    }

    #[test]
    fn near_misses_are_found() {
        let file = split("def alpha(x):\n    return x\n\ndef beta(y):\n");
        assert_eq!(nearest(&file, "def alpha(z):", 1), [(1, "def alpha(x):".into())]);
        assert!(nearest(&file, "completely different words", 3).is_empty());
    }
}
