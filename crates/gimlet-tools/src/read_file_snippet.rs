//! `read_file_snippet`: the lines around the first place a text occurs.

use std::collections::VecDeque;

use gimlet::effect::Effect;
use gimlet::tool::{ToolCx, ToolError, TypedTool, code as core};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blocking::{blocking, cancelled};
use crate::code;
use crate::lines::TextFile;
use crate::root::Root;

/// The tool.
#[derive(Debug, Clone)]
pub struct ReadFileSnippet {
    /// Where it may read.
    pub root: Root,
}

/// Show the lines around the first place in a file where a text occurs.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Input {
    /// File path relative to the project root.
    pub path: String,
    /// Exact text to find. Not a regular expression.
    pub pattern: String,
    /// Lines to show before and after the match.
    #[serde(default = "five")]
    #[schemars(range(max = 500))]
    pub context_lines: usize,
}

fn five() -> usize {
    5
}

/// The result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Output {
    /// The file.
    pub path: String,
    /// What was looked for.
    pub pattern: String,
    /// The line it begins on.
    pub match_line: usize,
    /// First line returned.
    pub start: usize,
    /// Last line returned.
    pub end: usize,
    /// Lines in the file.
    pub total_lines: usize,
    /// The text.
    pub lines: String,
    /// What is wrong with the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl TypedTool for ReadFileSnippet {
    const NAME: &'static str = "read_file_snippet";
    type Input = Input;
    type Output = Output;

    fn effects(&self, input: &Input) -> Result<Vec<Effect>, ToolError> {
        Ok(vec![Effect::Read { path: self.root.resolve(&input.path)?.as_path().into() }])
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        let root = self.root.clone();
        blocking(&cx.cancel, move |cancel| snippet(&root, &input, &|| cancel.is_cancelled())).await
    }
}

/// Finds the text. A pattern of several lines matches lines that follow each other.
pub fn snippet(root: &Root, input: &Input, stop: &dyn Fn() -> bool) -> Result<Output, ToolError> {
    let path = root.resolve(&input.path)?;
    let wanted: Vec<&str> = input.pattern.lines().collect();
    if wanted.iter().all(|line| line.is_empty()) {
        return Err(ToolError::failed(core::VALIDATION_FAILED, "the pattern is empty"));
    }
    let mut file = TextFile::open(root, &path)?;
    // The last lines read: enough for the context before a match and the match itself.
    let mut recent: VecDeque<String> = VecDeque::new();
    let keep = input.context_lines + wanted.len();
    let mut found: Option<(usize, String)> = None;
    let (mut total, mut end) = (0, 0);
    while file.next_line()?.is_some() {
        total += 1;
        if total % 4096 == 0 && stop() {
            return Err(cancelled());
        }
        match &mut found {
            None => {
                let line = file.text();
                if recent.len() == keep {
                    recent.pop_front();
                }
                recent.push_back(line);
                if matches_end(&recent, &wanted) {
                    found = Some((total + 1 - wanted.len(), recent.iter().map(String::as_str).collect()));
                    end = total;
                }
            }
            Some((_, lines)) if total <= end + input.context_lines => lines.push_str(&file.text()),
            Some(_) => {}
        }
    }
    let Some((match_line, lines)) = found else {
        let message = format!("{:?} does not occur in {}", input.pattern, path.display());
        return Err(ToolError::failed(code::NOT_FOUND_IN_FILE, message)
            .with("path", path.display())
            .with("pattern", input.pattern.clone())
            .with("total_lines", total));
    };
    Ok(Output {
        path: path.display(),
        pattern: input.pattern.clone(),
        match_line,
        start: match_line.saturating_sub(input.context_lines).max(1),
        end: (end + input.context_lines).min(total),
        total_lines: total,
        lines,
        note: file.note(),
    })
}

/// Whether the wanted lines are the last ones read: the first may begin and the last may end in the middle of a line.
fn matches_end(recent: &VecDeque<String>, wanted: &[&str]) -> bool {
    let Some(start) = recent.len().checked_sub(wanted.len()) else { return false };
    let last = wanted.len() - 1;
    recent.range(start..).zip(wanted).enumerate().all(|(i, (line, want))| {
        let line = line.trim_end_matches(['\r', '\n']);
        match (i == 0, i == last) {
            (true, true) => line.contains(want),
            (true, false) => line.ends_with(want),
            (false, true) => line.starts_with(want),
            (false, false) => line == *want,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(text: &str, pattern: &str, context: usize) -> Result<Output, ToolError> {
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join("f"), text).unwrap();
        let input = Input { path: "f".into(), pattern: pattern.into(), context_lines: context };
        snippet(&Root::open(temp.path()).unwrap(), &input, &|| false)
    }

    #[test]
    fn the_first_match_is_shown_with_its_context() {
        let text: String = (1..=20).map(|n| format!("line {n}\n")).collect();
        let output = call(&text, "line 1", 2).unwrap();
        assert_eq!((output.match_line, output.start, output.end, output.total_lines), (1, 1, 3, 20));
        assert_eq!(output.lines, "line 1\nline 2\nline 3\n");
        let output = call(&text, "line 10", 2).unwrap();
        assert_eq!((output.match_line, output.start, output.end), (10, 8, 12));
        assert_eq!(output.lines, "line 8\nline 9\nline 10\nline 11\nline 12\n");
        let output = call(&text, "20", 3).unwrap();
        assert_eq!((output.start, output.end, output.lines.lines().count()), (17, 20, 4));
    }

    #[test]
    fn a_pattern_may_span_lines_and_line_endings_do_not_matter() {
        let output = call("a\r\nfn x() {\r\n  y\r\n}\r\n", "fn x() {\n  y", 0).unwrap();
        assert_eq!((output.match_line, output.start, output.end), (2, 2, 3));
        assert_eq!(output.lines, "fn x() {\r\n  y\r\n");
    }

    #[test]
    fn a_regular_expression_is_taken_literally_and_absence_is_said() {
        assert_eq!(call("a.b\naxb\n", "a.b", 0).unwrap().match_line, 1);
        assert!(call("axb\n", "a.b", 0).unwrap_err().to_string().starts_with(code::NOT_FOUND_IN_FILE));
        assert!(call("axb\n", "", 0).unwrap_err().to_string().starts_with(core::VALIDATION_FAILED));
    }
}
