//! One pattern over a path, and sets of them that are fast to ask about one path.

use super::glob;

/// Most patterns that the braces of one text may stand for.
const MAX_ALTERNATIVES: usize = 256;

/// Whether the names in a path may hold patterns of a shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Every name is a name.
    Exact,
    /// A name may be a shell's pattern; the question is whether it could stand for a match.
    Glob,
    /// A pattern that a program matches itself: `*` finds dot-files and crosses folders.
    Match,
}

/// A path, taken apart into names, and where the project's root is in it.
#[derive(Debug, Clone, Copy)]
pub struct Spot<'a> {
    /// The names, without `.` and `..`.
    pub names: &'a [&'a str],
    /// Where they begin.
    pub base: Base,
}

/// Where the names of a [`Spot`] begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// At the project's root.
    Project,
    /// At the root of the file system; the path is inside the project, whose root has this many names.
    Inside(usize),
    /// At the root of the file system, and the path is not in the project.
    Outside,
}

impl<'a> Spot<'a> {
    /// The names below the project's root, if the path is in it.
    pub(super) fn in_project(self) -> Option<&'a [&'a str]> {
        match self.base {
            Base::Project => Some(self.names),
            Base::Inside(depth) => self.names.get(depth..),
            Base::Outside => None,
        }
    }

    /// The names below the root of the file system, if they are known.
    fn in_system(self) -> Option<&'a [&'a str]> {
        match self.base {
            Base::Project => None,
            Base::Inside(_) | Base::Outside => Some(self.names),
        }
    }
}

/// Where the names of a pattern stand in a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// At the root of the file system.
    Root,
    /// At the root of the project.
    Project,
    /// Anywhere.
    Anywhere,
    /// At the end: what "anywhere" means without a `**`.
    End,
}

/// A pattern without alternatives.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern {
    start: Start,
    names: Vec<String>,
}

impl Pattern {
    fn new(text: &str) -> Self {
        let names: Vec<String> =
            text.split('/').filter(|name| !name.is_empty() && *name != ".").map(str::to_owned).collect();
        let start = if text.starts_with('/') {
            Start::Root
        } else if text.starts_with("./") {
            Start::Project
        } else if names.is_empty() || names.iter().any(|name| name == "**") {
            Start::Anywhere
        } else {
            Start::End
        };
        Pattern { start, names }
    }

    fn fits(&self, spot: Spot<'_>, reading: Reading) -> bool {
        match self.start {
            Start::Root => spot.in_system().is_some_and(|names| fits(&self.names, names, reading)),
            Start::Project => spot.in_project().is_some_and(|names| fits(&self.names, names, reading)),
            Start::Anywhere => fits_anywhere(&self.names, spot.names, reading),
            Start::End => spot
                .names
                .len()
                .checked_sub(self.names.len())
                .and_then(|skip| spot.names.get(skip..))
                .is_some_and(|end| fits(&self.names, end, reading)),
        }
    }

    /// How the last name of every path begins that fits; none if that can be any letter.
    fn initial(&self) -> Option<u8> {
        match self.start {
            Start::End => self.names.last().and_then(|name| glob::initial(name)),
            Start::Root | Start::Project | Start::Anywhere => None,
        }
    }

    /// How the last name of every path ends that fits; none if that can be any letter.
    fn ending(&self) -> Option<u8> {
        match self.start {
            Start::End => self.names.last().and_then(|name| glob::ending(name)),
            Start::Root | Start::Project | Start::Anywhere => None,
        }
    }
}

fn fits_anywhere(pattern: &[String], names: &[&str], reading: Reading) -> bool {
    pattern.is_empty()
        || (0..=names.len()).any(|skip| fits(pattern, names.get(skip..).unwrap_or_default(), reading))
}

fn fits(pattern: &[String], names: &[&str], reading: Reading) -> bool {
    match (pattern.split_first(), names.split_first()) {
        (None, None) => true,
        (None, Some(_)) => false,
        (Some((head, rest)), _) if head == "**" => fits_anywhere(rest, names, reading),
        (Some(_), None) => false,
        (Some((head, rest)), Some((name, deeper))) => {
            let here = match reading {
                Reading::Exact => glob::matches(head, name),
                Reading::Glob => glob::could_match(head, name),
                Reading::Match => glob::could_be_found(head, name),
            };
            here && fits(rest, deeper, reading)
        }
    }
}

/// Patterns of which any may fit. Sorted by how a name begins or ends, so that most are never compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Patterns {
    all: Vec<Pattern>,
    by_initial: Vec<(u8, usize)>,
    by_ending: Vec<(u8, usize)>,
    other: Vec<usize>,
}

impl Patterns {
    pub(super) fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut patterns = Patterns::default();
        texts.into_iter().for_each(|text| patterns.add(text));
        patterns
    }

    pub(super) fn add(&mut self, text: &str) {
        for text in alternatives(text) {
            let pattern = Pattern::new(&text);
            let place = self.all.len();
            match (pattern.initial(), pattern.ending()) {
                (Some(letter), _) => self.by_initial.push((letter.to_ascii_lowercase(), place)),
                (None, Some(letter)) => self.by_ending.push((letter.to_ascii_lowercase(), place)),
                (None, None) => self.other.push(place),
            }
            self.all.push(pattern);
        }
        self.by_initial.sort_unstable();
        self.by_ending.sort_unstable();
    }

    pub(super) fn fit(&self, spot: Spot<'_>, reading: Reading) -> bool {
        match (reading, spot.names.last()) {
            (Reading::Exact, Some(last)) if last.is_ascii() && !last.is_empty() => {
                let (first, end) = (last.as_bytes()[0], last.as_bytes()[last.len() - 1]);
                of(&self.by_initial, first)
                    .chain(of(&self.by_ending, end))
                    .chain(self.other.iter().copied())
                    .any(|place| self.all[place].fits(spot, reading))
            }
            (Reading::Exact | Reading::Glob | Reading::Match, _) => {
                self.all.iter().any(|pattern| pattern.fits(spot, reading))
            }
        }
    }

    /// The last name of each pattern.
    pub(super) fn last_names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().filter_map(|pattern| pattern.names.last().map(String::as_str))
    }

    /// Whether a pattern fits whose last name starts with a dot.
    pub(super) fn dotted_fit(&self, spot: Spot<'_>, reading: Reading) -> bool {
        if reading == Reading::Exact && !spot.names.last().is_some_and(|last| last.starts_with('.')) {
            return false;
        }
        let dotted = |pattern: &&Pattern| pattern.names.last().is_some_and(|last| last.starts_with('.'));
        self.all.iter().filter(dotted).any(|pattern| pattern.fits(spot, reading))
    }
}

fn of(sorted: &[(u8, usize)], letter: u8) -> impl Iterator<Item = usize> + '_ {
    let letter = letter.to_ascii_lowercase();
    let start = sorted.partition_point(|(known, _)| *known < letter);
    sorted[start..].iter().take_while(move |(known, _)| *known == letter).map(|(_, place)| *place)
}

/// The texts that the braces in one stand for. Where there are too many, a brace stands for anything.
fn alternatives(text: &str) -> Vec<String> {
    let mut done = Vec::new();
    let mut open = vec![text.to_owned()];
    while let Some(text) = open.pop() {
        let Some((head, inner, tail)) = brace(&text) else {
            done.push(text);
            continue;
        };
        let choices: Vec<&str> = inner.split(',').collect();
        if done.len() + open.len() + choices.len() > MAX_ALTERNATIVES {
            open.push(format!("{head}*{tail}"));
        } else {
            open.extend(choices.iter().rev().map(|choice| format!("{head}{choice}{tail}")));
        }
    }
    done
}

/// The first braces of a text that hold no others: what is before, in and behind them.
fn brace(text: &str) -> Option<(&str, &str, &str)> {
    let close = text.find('}')?;
    let start = text[..close].rfind('{')?;
    Some((&text[..start], &text[start + 1..close], &text[close + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, path: &str, base: Base) -> bool {
        let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
        Patterns::new([pattern]).fit(Spot { names: &names, base }, Reading::Exact)
    }

    #[test]
    fn patterns_fit_where_they_say() {
        for (pattern, path) in [
            (".env*", "/srv/a/.env.local"),
            (".aws/credentials", "/home/me/.aws/credentials"),
            (".ssh/**", "/home/me/.ssh/keys/a"),
            (".ssh/**", "/home/me/.ssh"),
            ("a/**/z", "/x/a/b/c/z"),
            ("a/**/z", "/x/a/z"),
            ("/etc/shadow", "/etc/shadow"),
            ("/etc/{passwd,shadow}", "/etc/shadow"),
            ("*.{pem,key}", "/x/Server.KEY"),
            ("/proc/*/environ", "/proc/1/environ"),
            ("", "/anything/at/all"),
        ] {
            assert!(fits(pattern, path, Base::Outside), "{pattern} {path}");
        }
        for (pattern, path) in [
            (".env*", "/srv/.env/a"),
            (".aws/credentials", "/credentials"),
            (".aws/credentials", "/.aws/x/credentials"),
            ("/etc/shadow", "/srv/etc/shadow"),
            ("a/**/z", "/x/a/b"),
            ("/", "/x"),
            ("./HEAD", "/HEAD"),
        ] {
            assert!(!fits(pattern, path, Base::Outside), "{pattern} {path}");
        }
        assert!(fits("./HEAD", "HEAD", Base::Project));
        assert!(fits("./HEAD", "/srv/app/HEAD", Base::Inside(2)));
        assert!(!fits("./HEAD", "/srv/app/src/HEAD", Base::Inside(2)));
        assert!(!fits("/etc/shadow", "etc/shadow", Base::Project), "a project may have a folder `etc`");
    }

    #[test]
    fn braces_stand_for_all_their_alternatives() {
        assert_eq!(alternatives("a{b,c}{,d}"), ["ab", "abd", "ac", "acd"]);
        assert_eq!(alternatives("a{b,{c,d}}e"), ["abe", "ace", "abe", "ade"]);
        assert_eq!(alternatives("a}b{"), ["a}b{"]);
        let many = "{a,b,c,d}".repeat(12);
        assert!(alternatives(&many).len() <= MAX_ALTERNATIVES + 4);
    }
}
