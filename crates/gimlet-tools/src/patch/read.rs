//! Reading a unified diff the way small models write them.
//!
//! Line numbers and counts are hints, prefixes may be missing, the diff may sit in a markdown fence, headers may lack
//! `a/` and `b/`. What a diff *says* is taken as it is; finding the place is the business of [`super::seek`].

use super::quote::{split_quoted, unquote};

/// What a diff wants of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileDiff {
    /// The old name as written, without quotes; none for `/dev/null`.
    pub old: Option<String>,
    /// The new name as written, without quotes; none for `/dev/null`.
    pub new: Option<String>,
    /// The diff says that the file is new.
    pub creates: bool,
    /// The diff says that the file goes away.
    pub deletes: bool,
    /// The diff says that the file changes its name.
    pub renames: bool,
    /// The new git mode, if it says one.
    pub mode: Option<u32>,
    /// The changes, in order.
    pub hunks: Vec<Hunk>,
}

/// Lines that follow each other, some to keep, some to remove, some to add.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hunk {
    /// The line it is said to begin at, counted from 1.
    pub at: Option<usize>,
    /// The lines.
    pub lines: Vec<HunkLine>,
    /// The old text is said to end without a newline.
    pub old_lacks_newline: bool,
    /// The new text is said to end without a newline.
    pub new_lacks_newline: bool,
    /// How many old and new lines the header promised.
    counts: Option<(usize, usize)>,
}

/// A line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HunkLine {
    /// What is to happen to it.
    pub kind: LineKind,
    /// The text without its ending.
    pub text: String,
    /// How it ends, where the diff can be trusted to say so.
    pub carriage_return: Option<bool>,
}

/// What is to happen to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// It stays.
    Keep,
    /// It goes.
    Remove,
    /// It comes.
    Add,
}

/// A diff that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Nothing in it is a diff.
    #[error("no changes found; a diff has lines like `--- a/file`, `+++ b/file`, `@@ -1,3 +1,3 @@`")]
    NoChanges,
    /// A hunk before any file name.
    #[error(
        "line {line}: no file is named before the first `@@`; put `--- a/file` and `+++ b/file` above it"
    )]
    NoFile {
        /// Where.
        line: usize,
    },
    /// Neither name is a file.
    #[error("line {line}: both names are /dev/null")]
    Nowhere {
        /// Where.
        line: usize,
    },
    /// Contents that are not text.
    #[error("line {line}: binary changes cannot be applied")]
    Binary {
        /// Where.
        line: usize,
    },
    /// Names and nothing to do.
    #[error("the changes of {file} are missing: no line begins with + or -")]
    Empty {
        /// The file.
        file: String,
    },
}

/// Reads a diff.
pub fn read(text: &str) -> Result<Vec<FileDiff>, ReadError> {
    let lines = unfenced(text);
    let mut reader = Reader {
        files: Vec::new(),
        in_hunk: false,
        awaits_names: false,
        trusts_endings: trusts_endings(&lines),
    };
    let mut index = 0;
    while let Some(line) = lines.get(index) {
        let rest = [lines.get(index + 1).copied(), lines.get(index + 2).copied()];
        index += reader.line(index + 1, line, rest)?;
    }
    reader.finish()
}

/// The lines of the diff: what stands in markdown fences if one of them holds a diff, else everything.
fn unfenced(text: &str) -> Vec<&str> {
    let all: Vec<&str> = text.strip_prefix('\u{feff}').unwrap_or(text).split('\n').collect();
    let mut inside = Vec::new();
    let mut fence: Option<&str> = None;
    for line in &all {
        // A fence begins its line; in a diff of a markdown file it follows a space, `+` or `-`.
        let bare = line.trim_end();
        match fence {
            None if bare.starts_with("```") || bare.starts_with("~~~") => fence = Some(&bare[..3]),
            Some(open) if bare == open => fence = None,
            Some(_) => inside.push(*line),
            None => {}
        }
    }
    let looks_like_a_diff = |lines: &[&str]| {
        lines
            .iter()
            .any(|line| line.starts_with("@@") || line.starts_with("--- ") || line.starts_with("diff --git "))
    };
    let mut lines = if looks_like_a_diff(&inside) { inside } else { all };
    if lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    lines
}

/// A diff made by git of a file with `\r\n` has `\r` in its contents and none in its headers. If its headers have them,
/// the diff itself was written that way, and its endings say nothing.
fn trusts_endings(lines: &[&str]) -> bool {
    lines.iter().any(|line| line.ends_with('\r'))
        && !lines.iter().any(|line| line.starts_with("@@") && line.ends_with('\r'))
}

struct Reader {
    files: Vec<FileDiff>,
    in_hunk: bool,
    /// A `diff --git` line was seen whose `---` and `+++` may follow; they beat its names.
    awaits_names: bool,
    trusts_endings: bool,
}

impl Reader {
    /// Takes one line, or two where they belong together; returns how many.
    fn line(&mut self, number: usize, raw: &str, rest: [Option<&str>; 2]) -> Result<usize, ReadError> {
        let line = raw.strip_suffix('\r').unwrap_or(raw);
        if let Some(names) = line.strip_prefix("diff --git ") {
            let (old, new) = names_of_git_header(names);
            self.files.push(FileDiff { old, new, ..FileDiff::default() });
            (self.in_hunk, self.awaits_names) = (false, true);
            return Ok(1);
        }
        if let (Some(old), Some(new)) =
            (line.strip_prefix("--- "), rest[0].and_then(|next| next.strip_prefix("+++ ")))
            && self.may_be_header(rest[1])
        {
            self.names(number, old, new)?;
            return Ok(2);
        }
        if let Some(name) = line.strip_prefix("--- ").or_else(|| line.strip_prefix("+++ "))
            && rest[0].is_some_and(|next| next.starts_with("@@"))
            && (!self.in_hunk || self.hunk_is_complete())
        {
            // One of the two names is missing; the other is enough.
            self.names(number, name, name)?;
            return Ok(1);
        }
        if line.starts_with("@@") {
            let file = self.files.last_mut().ok_or(ReadError::NoFile { line: number })?;
            file.hunks.push(Hunk::of_header(line));
            (self.in_hunk, self.awaits_names) = (true, false);
            return Ok(1);
        }
        if self.in_hunk {
            self.content(raw);
        } else if let Some(file) = self.files.last_mut() {
            header(file, line, number)?;
        }
        Ok(1)
    }

    /// Inside a hunk `--- x` and `+++ y` may also be the removal of `-- x` and the addition of `++ y`. They are, unless
    /// the hunk has all its lines or a `@@` follows; and even then, if they are just what the hunk still lacks.
    fn may_be_header(&self, after: Option<&str>) -> bool {
        let lacks = self.files.last().and_then(|file| file.hunks.last()).and_then(Hunk::lacks);
        !self.in_hunk
            || self.hunk_is_complete()
            || (after.is_some_and(|line| line.starts_with("@@")) && lacks != Some((1, 1)))
    }

    fn hunk_is_complete(&self) -> bool {
        self.files.last().and_then(|file| file.hunks.last()).is_none_or(Hunk::is_complete)
    }

    fn names(&mut self, number: usize, old: &str, new: &str) -> Result<(), ReadError> {
        let (old, new) = (name_of(old), name_of(new));
        if old.is_none() && new.is_none() {
            return Err(ReadError::Nowhere { line: number });
        }
        if !self.awaits_names {
            self.files.push(FileDiff::default());
        }
        if let Some(file) = self.files.last_mut() {
            file.creates |= old.is_none();
            file.deletes |= new.is_none();
            (file.old, file.new) = (old, new);
        }
        (self.in_hunk, self.awaits_names) = (false, false);
        Ok(())
    }

    fn content(&mut self, raw: &str) {
        let Some(hunk) = self.files.last_mut().and_then(|file| file.hunks.last_mut()) else { return };
        let (line, carriage_return) = match raw.strip_suffix('\r') {
            Some(line) => (line, true),
            None => (raw, false),
        };
        if line.starts_with("\\ No newline") || line.starts_with("\\ no newline") {
            // Without a newline a `\r` is no half of an ending but the last letter.
            if let Some(last) = hunk.lines.last_mut().filter(|last| last.carriage_return == Some(true)) {
                last.text.push('\r');
                last.carriage_return = Some(false);
            }
            match hunk.lines.last().map(|last| last.kind) {
                Some(LineKind::Keep) => (hunk.old_lacks_newline, hunk.new_lacks_newline) = (true, true),
                Some(LineKind::Remove) => hunk.old_lacks_newline = true,
                Some(LineKind::Add) => hunk.new_lacks_newline = true,
                None => {}
            }
            return;
        }
        let (kind, text) = match line.chars().next() {
            Some('+') => (LineKind::Add, &line[1..]),
            Some('-') => (LineKind::Remove, &line[1..]),
            Some(' ') => (LineKind::Keep, &line[1..]),
            // A blank line that lost its space, or a line that never had a prefix: it can only be meant to stay.
            Some(_) | None => (LineKind::Keep, line),
        };
        let carriage_return = self.trusts_endings.then_some(carriage_return);
        hunk.lines.push(HunkLine { kind, text: text.into(), carriage_return });
    }

    fn finish(mut self) -> Result<Vec<FileDiff>, ReadError> {
        for file in &mut self.files {
            for hunk in &mut file.hunks {
                hunk.drop_stray_blanks();
            }
            file.hunks.retain(|hunk| hunk.lines.iter().any(|line| line.kind != LineKind::Keep));
            let says_something = file.creates || file.deletes || file.renames || file.mode.is_some();
            if file.hunks.is_empty() && !says_something {
                let file = file.new.take().or(file.old.take()).unwrap_or_default();
                return Err(ReadError::Empty { file });
            }
        }
        if self.files.is_empty() { Err(ReadError::NoChanges) } else { Ok(self.files) }
    }
}

impl Hunk {
    /// A hunk made by hand, that says no line number.
    pub fn new(lines: Vec<HunkLine>) -> Self {
        Hunk { lines, ..Hunk::default() }
    }

    /// The hunk a `@@` line begins; its numbers are hints and may be missing.
    fn of_header(line: &str) -> Self {
        let numbers = |mark: char| {
            let word = line.split_whitespace().skip(1).take(2).find_map(|word| word.strip_prefix(mark))?;
            let (start, count) = word.split_once(',').unwrap_or((word, "1"));
            Some((start.parse::<usize>().ok()?, count.parse::<usize>().ok()?))
        };
        let (old, new) = (numbers('-'), numbers('+'));
        Hunk {
            at: old.map(|(start, _)| start),
            counts: old.zip(new).map(|((_, old), (_, new))| (old, new)),
            ..Hunk::default()
        }
    }

    /// How many old and new lines are missing by the header's counts. Without counts nobody knows.
    fn lacks(&self) -> Option<(usize, usize)> {
        let (old, new) = self.counts?;
        Some((old.saturating_sub(self.old_lines().count()), new.saturating_sub(self.new_lines().count())))
    }

    fn is_complete(&self) -> bool {
        self.lacks() == Some((0, 0))
    }

    /// The lines it expects to find.
    pub fn old_lines(&self) -> impl Iterator<Item = &HunkLine> {
        self.lines.iter().filter(|line| line.kind != LineKind::Add)
    }

    /// The lines it leaves.
    pub fn new_lines(&self) -> impl Iterator<Item = &HunkLine> {
        self.lines.iter().filter(|line| line.kind != LineKind::Remove)
    }

    /// Blank lines between a hunk and whatever follows it are no part of the file, unless the header counted them.
    fn drop_stray_blanks(&mut self) {
        let is_blank = |line: &HunkLine| line.kind == LineKind::Keep && line.text.is_empty();
        while self.lines.last().is_some_and(is_blank)
            && self.counts.is_none_or(|(old, _)| self.old_lines().count() > old)
        {
            self.lines.pop();
        }
    }
}

/// What the lines between `diff --git` and the first hunk say.
fn header(file: &mut FileDiff, line: &str, number: usize) -> Result<(), ReadError> {
    let mode = |text: &str| u32::from_str_radix(text.trim(), 8).ok();
    if let Some(text) = line.strip_prefix("new file mode ") {
        file.creates = true;
        file.mode = mode(text);
    } else if line.starts_with("deleted file mode ") {
        file.deletes = true;
    } else if let Some(text) = line.strip_prefix("new mode ") {
        file.mode = mode(text);
    } else if let Some(name) = line.strip_prefix("rename from ") {
        file.renames = true;
        file.old = Some(format!("a/{}", unquote(name)));
    } else if let Some(name) = line.strip_prefix("rename to ") {
        file.renames = true;
        file.new = Some(format!("b/{}", unquote(name)));
    } else if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") {
        return Err(ReadError::Binary { line: number });
    }
    Ok(())
}

/// The two names after `diff --git`. Unquoted names with spaces are told apart by being the same twice.
fn names_of_git_header(names: &str) -> (Option<String>, Option<String>) {
    let names = names.trim_end();
    if let Some((old, new)) = split_quoted(names) {
        return (Some(unquote(old)), Some(unquote(new.trim())));
    }
    let halves = names.match_indices(' ').map(|(at, _)| (&names[..at], &names[at + 1..]));
    let same = halves
        .clone()
        .find(|(old, new)| old.strip_prefix("a/").unwrap_or(old) == new.strip_prefix("b/").unwrap_or(new));
    match same.or_else(|| halves.clone().next()) {
        Some((old, new)) => (Some(old.into()), Some(unquote(new))),
        None => (Some(names.into()), Some(names.into())),
    }
}

/// The name in a `---` or `+++` line: without the time some programs add, without quotes.
fn name_of(text: &str) -> Option<String> {
    let text = text.strip_suffix('\r').unwrap_or(text);
    let name = unquote(text.split('\t').next().unwrap_or(text).trim());
    (name != "/dev/null").then_some(name)
}
