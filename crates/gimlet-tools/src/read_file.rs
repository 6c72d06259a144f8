//! `read_file`: a stretch of lines of a text file.

use gimlet::effect::Effect;
use gimlet::tool::{ToolCx, ToolError, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blocking::{blocking, cancelled};
use crate::code;
use crate::lines::TextFile;
use crate::root::Root;

/// How much a call returns: without a last line whole lines up to a page, at least one; with one, no more than a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Most lines.
    pub lines: usize,
    /// Most characters.
    pub chars: usize,
    /// Most lines that may be asked for by a first and a last line.
    pub range: usize,
}

impl Default for Page {
    fn default() -> Self {
        Page { lines: 150, chars: 3000, range: 1000 }
    }
}

/// The tool.
#[derive(Debug, Clone)]
pub struct ReadFile {
    /// Where it may read.
    pub root: Root,
    /// What fits one result.
    pub page: Page,
}

/// Read a text file. Long files come in pages: when the result has next_line, call again with start_line = next_line.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Input {
    /// File path relative to the project root, such as src/main.py.
    pub path: String,
    /// First line to read, counted from 1.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub start_line: usize,
    /// Last line to read. Leave out to get one page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub end_line: Option<usize>,
}

fn one() -> usize {
    1
}

/// The result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Output {
    /// The file.
    pub path: String,
    /// First line returned.
    pub start: usize,
    /// Last line returned.
    pub end: usize,
    /// Lines in the file.
    pub total_lines: usize,
    /// The text.
    pub lines: String,
    /// Where to go on when there is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_line: Option<usize>,
    /// What is wrong with the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl TypedTool for ReadFile {
    const NAME: &'static str = "read_file";
    type Input = Input;
    type Output = Output;

    fn effects(&self, input: &Input) -> Result<Vec<Effect>, ToolError> {
        Ok(vec![Effect::Read { path: self.root.resolve(&input.path)?.as_path().into() }])
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        let (root, page) = (self.root.clone(), self.page);
        blocking(&cx.cancel, move |cancel| read(&root, page, &input, &|| cancel.is_cancelled())).await
    }
}

/// Reads the lines asked for.
pub fn read(root: &Root, page: Page, input: &Input, stop: &dyn Fn() -> bool) -> Result<Output, ToolError> {
    let path = root.resolve(&input.path)?;
    let wrong_range = |message: String| {
        ToolError::failed(code::INVALID_LINE_RANGE, message)
            .with("path", path.display())
            .with("start_line", input.start_line)
            .with("end_line", input.end_line)
    };
    if input.start_line == 0 {
        return Err(wrong_range("lines are counted from 1".into()));
    }
    if let Some(end) = input.end_line.filter(|end| *end < input.start_line) {
        return Err(wrong_range(format!("the range {}-{end} ends before it starts", input.start_line)));
    }
    if let Some(end) = input.end_line.filter(|end| end - input.start_line >= page.range) {
        let message = format!("the range {}-{end} is longer than {} lines", input.start_line, page.range);
        return Err(wrong_range(message).with("max_lines", page.range));
    }

    let mut file = TextFile::open(root, &path)?;
    let mut lines = String::new();
    let (mut chars, mut end, mut total) = (0, input.start_line - 1, 0);
    let mut full = false;
    while file.next_line()?.is_some() {
        total += 1;
        if total % 4096 == 0 && stop() {
            return Err(cancelled());
        }
        if total < input.start_line || full || input.end_line.is_some_and(|last| total > last) {
            continue;
        }
        let text = file.text();
        chars += text.chars().count();
        let taken = end + 1 - input.start_line;
        if input.end_line.is_none() && (taken >= page.lines || (taken > 0 && chars > page.chars)) {
            full = true;
            continue;
        }
        lines.push_str(&text);
        end = total;
    }
    if input.start_line > total.max(1) {
        let message = format!("line {} is past the end; the file has {total} lines", input.start_line);
        return Err(wrong_range(message).with("total_lines", total));
    }
    Ok(Output {
        path: path.display(),
        start: input.start_line,
        end,
        total_lines: total,
        lines,
        next_line: (end < total).then_some(end + 1),
        note: file.note(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(files: &[(&str, &[u8])]) -> (tempfile::TempDir, Root) {
        let temp = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            std::fs::write(temp.path().join(name), bytes).unwrap();
        }
        let root = Root::open(temp.path()).unwrap();
        (temp, root)
    }

    fn call(root: &Root, path: &str, start: usize, end: Option<usize>) -> Result<Output, ToolError> {
        let input = Input { path: path.into(), start_line: start, end_line: end };
        read(root, Page::default(), &input, &|| false)
    }

    fn word(error: &ToolError) -> String {
        match error {
            ToolError::Failed(failure) => failure.error.clone(),
            other @ (ToolError::Suspended(_) | ToolError::Fatal(_)) => panic!("{other}"),
        }
    }

    #[test]
    fn every_line_of_a_long_file_is_reached_by_following_next_line() {
        let text: String = (1..=1000).map(|n| format!("line {n} with some words in it\n")).collect();
        let (_temp, root) = project(&[("long.txt", text.as_bytes())]);
        let (mut all, mut next, mut pages) = (String::new(), Some(1), 0);
        while let Some(start) = next {
            let page = call(&root, "long.txt", start, None).unwrap();
            assert!(page.lines.chars().count() <= 3000);
            assert_eq!(page.total_lines, 1000);
            all.push_str(&page.lines);
            next = page.next_line;
            pages += 1;
        }
        assert_eq!(all, text);
        assert!(pages > 5);
    }

    #[test]
    fn the_end_is_clamped_and_a_whole_range_is_given() {
        let (_temp, root) = project(&[("a.txt", b"one\r\ntwo\nthree")]);
        let output = call(&root, "a.txt", 2, Some(99)).unwrap();
        assert_eq!(
            (output.lines.as_str(), output.start, output.end, output.next_line),
            ("two\nthree", 2, 3, None)
        );
        let output = call(&root, "a.txt", 1, Some(1)).unwrap();
        assert_eq!((output.lines.as_str(), output.end, output.next_line), ("one\r\n", 1, Some(2)));
    }

    #[test]
    fn a_line_longer_than_a_page_is_still_given() {
        let long = "x".repeat(10_000);
        let (_temp, root) = project(&[("min.js", format!("{long}\nshort\n").as_bytes())]);
        let output = call(&root, "min.js", 1, None).unwrap();
        assert_eq!((output.lines.len(), output.end, output.next_line), (10_001, 1, Some(2)));
    }

    #[test]
    fn an_empty_file_is_no_error() {
        let (_temp, root) = project(&[("empty", b"")]);
        let output = call(&root, "empty", 1, None).unwrap();
        assert_eq!(
            (output.lines.as_str(), output.end, output.total_lines, output.next_line),
            ("", 0, 0, None)
        );
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let (temp, root) = project(&[
            ("bin", b"a\0b"),
            ("wide", b"\xff\xfeh\0i\0"),
            ("latin", b"caf\xe9\nplain\n"),
            ("a.txt", b"one\n"),
        ]);
        std::fs::create_dir(temp.path().join("dir")).unwrap();
        assert_eq!(word(&call(&root, "bin", 1, None).unwrap_err()), code::BINARY_FILE);
        assert_eq!(word(&call(&root, "wide", 1, None).unwrap_err()), code::BINARY_FILE);
        assert_eq!(word(&call(&root, "dir", 1, None).unwrap_err()), code::NOT_A_FILE);
        assert_eq!(word(&call(&root, "none", 1, None).unwrap_err()), code::FILE_NOT_FOUND);
        assert_eq!(word(&call(&root, "a.txt/none", 1, None).unwrap_err()), code::FILE_NOT_FOUND);
        assert_eq!(word(&call(&root, "a.txt", 2, None).unwrap_err()), code::INVALID_LINE_RANGE);
        assert_eq!(word(&call(&root, "a.txt", 0, None).unwrap_err()), code::INVALID_LINE_RANGE);
        assert_eq!(word(&call(&root, "a.txt", 3, Some(2)).unwrap_err()), code::INVALID_LINE_RANGE);
        assert_eq!(word(&call(&root, "a.txt", 1, Some(1001)).unwrap_err()), code::INVALID_LINE_RANGE);
        assert!(call(&root, "a.txt", 1, Some(1000)).is_ok());
        let latin = call(&root, "latin", 1, None).unwrap();
        assert_eq!(latin.lines, "caf\u{fffd}\nplain\n");
        assert!(latin.note.is_some());
        assert!(call(&root, "latin", 2, None).unwrap().note.is_none(), "only what was returned is judged");
    }
}
