//! Searching files for a regular expression with ripgrep's libraries.
//!
//! The answer is the same every time: files in order of their names, searched in batches by several threads, and the
//! limit counts over all files.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use gimlet::tool::{ToolError, code as core};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use serde::Serialize;

use crate::blocking::cancelled;
use crate::code;
use crate::root::Root;

/// Files searched between two looks at whether enough was found.
const BATCH: usize = 2048;
/// Most characters of a matching line, so that one minified file does not fill the answer.
const LINE_CHARS: usize = 300;

/// A matching line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Match {
    /// Path relative to the root.
    pub file: String,
    /// Line number from 1.
    pub line: u64,
    /// The line.
    pub text: String,
}

/// What is looked for.
pub(crate) struct Query<'a> {
    /// A regular expression; text that is none is looked for as it is.
    pub(crate) pattern: &'a str,
    pub(crate) ignore_case: bool,
    /// Most matches.
    pub(crate) limit: usize,
    /// The argument that could be narrower, for the advice when there are more.
    pub(crate) narrower: &'a str,
}

/// What was found.
pub(crate) struct Found {
    pub(crate) matches: Vec<Match>,
    /// Whether there are more.
    pub(crate) truncated: bool,
    /// What the model should know.
    pub(crate) message: Option<String>,
    /// What matched, to find the place in a line again.
    pub(crate) matcher: RegexMatcher,
}

impl Query<'_> {
    /// Looks through files, which are only gathered once the pattern is known to be one.
    pub(crate) fn run(
        &self,
        root: &Root,
        threads: usize,
        stop: &(dyn Fn() -> bool + Sync),
        files: impl FnOnce() -> Result<Vec<PathBuf>, ToolError>,
    ) -> Result<Found, ToolError> {
        if self.pattern.is_empty() {
            return Err(ToolError::failed(core::VALIDATION_FAILED, "the pattern is empty"));
        }
        let (matcher, literal) = matcher(self.pattern, self.ignore_case)?;
        let files = files()?;
        let (matches, truncated) = search_files(root, &matcher, &files, threads, self.limit, stop)?;
        let mut notes = Vec::new();
        if literal {
            notes.push("the pattern is no regular expression and was searched as plain text".to_owned());
        }
        if matches.is_empty() {
            notes.push(match files.len() {
                0 => format!("no file fits; search all files without {}", self.narrower),
                searched => format!("no matches in {searched} files"),
            });
        }
        if truncated {
            notes.push(format!("only the first {}; use a narrower pattern or {}", self.limit, self.narrower));
        }
        let message = (!notes.is_empty()).then(|| notes.join("; "));
        Ok(Found { matches, truncated, message, matcher })
    }
}

/// Searches files in their order; returns at most `limit` matches and whether there are more.
fn search_files(
    root: &Root,
    matcher: &RegexMatcher,
    files: &[PathBuf],
    threads: usize,
    limit: usize,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<(Vec<Match>, bool), ToolError> {
    let mut matches = Vec::new();
    // One more than asked for is sought, to know whether there is more.
    let wanted = limit.saturating_add(1);
    for batch in files.chunks(BATCH) {
        matches.extend(search_batch(root, matcher, batch, threads.max(1), wanted - matches.len(), stop));
        if stop() {
            return Err(cancelled());
        }
        if matches.len() >= wanted {
            break;
        }
    }
    let truncated = matches.len() > limit;
    matches.truncate(limit);
    Ok((matches, truncated))
}

/// The matcher, and whether the pattern had to be taken literally: models search for `foo(` more often than for a group.
fn matcher(pattern: &str, ignore_case: bool) -> Result<(RegexMatcher, bool), ToolError> {
    let mut builder = RegexMatcherBuilder::new();
    builder.line_terminator(Some(b'\n')).case_insensitive(ignore_case);
    if let Ok(matcher) = builder.build(pattern) {
        return Ok((matcher, false));
    }
    match builder.fixed_strings(true).build(pattern) {
        Ok(matcher) => Ok((matcher, true)),
        Err(error) => {
            let message = format!("the pattern cannot be searched for: {error}");
            Err(ToolError::failed(code::RG_FAILED, message).with("pattern", pattern))
        }
    }
}

/// Searches some files with several threads; the matches come back in the files' order.
fn search_batch(
    root: &Root,
    matcher: &RegexMatcher,
    files: &[PathBuf],
    threads: usize,
    wanted: usize,
    stop: &(dyn Fn() -> bool + Sync),
) -> Vec<Match> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut searcher =
            SearcherBuilder::new().binary_detection(BinaryDetection::quit(0)).line_number(true).build();
        let mut found = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = files.get(index).filter(|_| !stop()) else { return found };
            let matches = search_file(root, &mut searcher, matcher, path, wanted);
            if !matches.is_empty() {
                found.push((index, matches));
            }
        }
    };
    let mut found: Vec<(usize, Vec<Match>)> = if threads == 1 || files.len() < 64 {
        work()
    } else {
        std::thread::scope(|scope| {
            let handles: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            handles.into_iter().filter_map(|handle| handle.join().ok()).flatten().collect()
        })
    };
    found.sort_unstable_by_key(|(index, _)| *index);
    found.into_iter().flat_map(|(_, matches)| matches).take(wanted).collect()
}

/// One file's matches. What cannot be opened or read is left out, as ripgrep does.
fn search_file(
    root: &Root,
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
    path: &Path,
    wanted: usize,
) -> Vec<Match> {
    let Ok(file) = root.open_walked(path) else { return Vec::new() };
    let mut sink = Collect { file: path, matches: Vec::new(), wanted, binary: false };
    if searcher.search_file(matcher, &file, &mut sink).is_err() || sink.binary {
        return Vec::new();
    }
    sink.matches
}

struct Collect<'a> {
    file: &'a Path,
    matches: Vec<Match>,
    wanted: usize,
    binary: bool,
}

impl Sink for Collect<'_> {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        self.matches.push(Match {
            file: self.file.to_string_lossy().into_owned(),
            line: found.line_number().unwrap_or_default(),
            text: shorten(String::from_utf8_lossy(found.bytes()).trim_end()),
        });
        Ok(self.matches.len() < self.wanted)
    }

    fn binary_data(&mut self, _searcher: &Searcher, _offset: u64) -> Result<bool, io::Error> {
        self.binary = true;
        Ok(false)
    }
}

fn shorten(line: &str) -> String {
    match line.char_indices().nth(LINE_CHARS) {
        Some((cut, _)) => format!("{}… ({} characters)", &line[..cut], line.chars().count()),
        None => line.into(),
    }
}
