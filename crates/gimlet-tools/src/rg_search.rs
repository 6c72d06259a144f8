//! `rg_search`: a regular expression over the whole project, with ripgrep's libraries.
//!
//! The answer is the same every time: files in order of their names, searched in batches by several threads, and the
//! limit counts over all files.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use gimlet::effect::Effect;
use gimlet::tool::{ToolCx, ToolError, TypedTool, code as core};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blocking::{blocking, cancelled};
use crate::code;
use crate::root::Root;
use crate::walk::{self, FileGlob};

/// Files searched between two looks at whether enough was found.
const BATCH: usize = 2048;
/// Most characters of a matching line, so that one minified file does not fill the answer.
const LINE_CHARS: usize = 300;

/// The tool.
#[derive(Debug, Clone)]
pub struct RgSearch {
    /// Where it may look.
    pub root: Root,
    /// How many threads search.
    pub threads: usize,
}

/// Search all project files for a regular expression. Returns file, line number and text of each match.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Input {
    /// Regular expression, case-sensitive. Put (?i) in front to ignore case.
    pub pattern: String,
    /// Which files to search: "*.py" in every folder, "src/*.py" only in src, "src" all below src.
    #[serde(default = "star")]
    pub glob: String,
    /// Most matches to return.
    #[serde(default = "fifty")]
    #[schemars(range(min = 1, max = 1000))]
    pub limit: usize,
}

fn star() -> String {
    "*".into()
}

fn fifty() -> usize {
    50
}

/// The result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Output {
    /// The matching lines, by file and line.
    pub matches: Vec<Match>,
    /// How many are returned.
    pub count: usize,
    /// What was looked for.
    pub pattern: String,
    /// Where.
    pub glob: String,
    /// Whether there are more.
    pub truncated: bool,
    /// What the model should know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

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

impl TypedTool for RgSearch {
    const NAME: &'static str = "rg_search";
    type Input = Input;
    type Output = Output;

    fn effects(&self, input: &Input) -> Result<Vec<Effect>, ToolError> {
        FileGlob::new(&self.root, &input.glob)?;
        Ok(vec![Effect::Read { path: PathBuf::new() }])
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        let tool = self.clone();
        blocking(&cx.cancel, move |cancel| {
            search(&tool.root, tool.threads, &input, &|| cancel.is_cancelled())
        })
        .await
    }
}

/// Searches.
pub fn search(
    root: &Root,
    threads: usize,
    input: &Input,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Output, ToolError> {
    if input.pattern.is_empty() {
        return Err(ToolError::failed(core::VALIDATION_FAILED, "the pattern is empty"));
    }
    let glob = FileGlob::new(root, &input.glob)?;
    let (matcher, literal) = matcher(&input.pattern, false)?;
    let files = walk::files(root, &glob, stop)?;
    let (matches, truncated) = search_files(root, &matcher, &files, threads, input.limit, stop)?;
    let mut notes = Vec::new();
    if literal {
        notes.push("the pattern is no regular expression and was searched as plain text".to_owned());
    }
    if matches.is_empty() {
        notes.push(format!("no matches in {} files", files.len()));
    }
    if truncated {
        notes.push(format!("only the first {}; use a narrower pattern or glob", input.limit));
    }
    Ok(Output {
        count: matches.len(),
        matches,
        pattern: input.pattern.clone(),
        glob: input.glob.clone(),
        truncated,
        message: (!notes.is_empty()).then(|| notes.join("; ")),
    })
}

/// Searches files in their order; returns at most `limit` matches and whether there are more.
pub(crate) fn search_files(
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
pub(crate) fn matcher(pattern: &str, ignore_case: bool) -> Result<(RegexMatcher, bool), ToolError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn project(files: &[(&str, &[u8])]) -> (tempfile::TempDir, Root) {
        let temp = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            let path = temp.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        let root = Root::open(temp.path()).unwrap();
        (temp, root)
    }

    fn call(root: &Root, pattern: &str, glob: &str, limit: usize) -> Output {
        let input = Input { pattern: pattern.into(), glob: glob.into(), limit };
        search(root, 2, &input, &|| false).unwrap()
    }

    fn places(output: &Output) -> Vec<String> {
        output.matches.iter().map(|found| format!("{}:{}:{}", found.file, found.line, found.text)).collect()
    }

    #[test]
    fn matches_come_in_order_with_their_places() {
        let (_temp, root) = project(&[
            ("b.py", b"x = 1\ndef go():\r\n    pass\n"),
            ("a/z.py", b"def stop():\n"),
            ("a/y.rs", b"fn def_() {}\n"),
        ]);
        let output = call(&root, r"^def \w+", "*.py", 50);
        assert_eq!(places(&output), ["a/z.py:1:def stop():", "b.py:2:def go():"]);
        assert_eq!((output.count, output.truncated, output.message), (2, false, None));
        assert_eq!(call(&root, "(?i)DEF", "a", 50).count, 2);
    }

    #[test]
    fn nothing_found_is_a_success() {
        let (_temp, root) = project(&[("a", b"x\n")]);
        let output = call(&root, "zzz", "*", 50);
        assert_eq!((output.count, output.truncated), (0, false));
        assert_eq!(output.message.as_deref(), Some("no matches in 1 files"));
    }

    #[test]
    fn the_limit_counts_over_all_files() {
        let many: Vec<(String, Vec<u8>)> =
            (0..200).map(|n| (format!("f{n:03}"), b"hit\nhit\nhit\n".to_vec())).collect();
        let files: Vec<(&str, &[u8])> = many.iter().map(|(n, b)| (n.as_str(), b.as_slice())).collect();
        let (_temp, root) = project(&files);
        let output = call(&root, "hit", "*", 4);
        assert_eq!(places(&output), ["f000:1:hit", "f000:2:hit", "f000:3:hit", "f001:1:hit"]);
        assert!(output.truncated);
        let all = call(&root, "hit", "*", 1000);
        assert_eq!((all.count, all.truncated), (600, false));
        assert!(!call(&root, "hit", "*", 600).truncated);
    }

    #[test]
    fn binary_and_secret_files_are_not_searched() {
        let (_temp, root) = project(&[
            ("bin", b"secret\n\0"),
            (".env", b"secret\n"),
            ("x.pem", b"secret\n"),
            (".git/config", b"secret\n"),
            (".hidden", b"secret\n"),
            ("seen", b"secret\n"),
        ]);
        assert_eq!(places(&call(&root, "secret", "*", 50)), ["seen:1:secret"]);
        for glob in [".env", "*.pem", ".git/config", ".git/**"] {
            assert_eq!(call(&root, "secret", glob, 50).count, 0, "{glob}");
        }
    }

    #[test]
    fn a_broken_expression_is_searched_as_text_and_said() {
        let (_temp, root) = project(&[("a", b"call(foo(1))\n")]);
        let output = call(&root, "foo(", "*", 50);
        assert_eq!(output.count, 1);
        assert!(output.message.is_some_and(|message| message.contains("plain text")));
    }

    #[test]
    fn long_lines_are_shortened() {
        let (_temp, root) = project(&[("min.js", "é".repeat(5000).as_bytes())]);
        let text = &call(&root, "é", "*", 50).matches[0].text;
        assert!(text.ends_with("… (5000 characters)") && text.chars().count() < 330);
    }
}
