//! `search_code`: a regular expression over source code, each match with the definition it is in.

use std::path::{Path, PathBuf};

use gimlet::effect::Effect;
use gimlet::tool::{ToolCx, ToolError, TypedTool};
use gimlet_repo::{Language, MOST_BYTES, Outline, Part};
use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blocking::blocking;
use crate::lines::read_all;
use crate::query::Query;
use crate::root::Root;
use crate::walk::{self, FileGlob};

/// The tool.
#[derive(Debug, Clone)]
pub struct SearchCode {
    /// Where it may look.
    pub root: Root,
    /// How many threads search.
    pub threads: usize,
}

/// Search source code for a regular expression. Each match tells which function or class it is in.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Input {
    /// Regular expression.
    pub pattern: String,
    /// File or folder to search. Leave out for the whole project.
    #[serde(default)]
    pub file_path: String,
    /// Whether upper and lower case are the same.
    #[serde(default = "yes")]
    pub ignore_case: bool,
    /// Most matches to return.
    #[serde(default = "fifty")]
    #[schemars(range(min = 1, max = 1000))]
    pub limit: usize,
}

fn yes() -> bool {
    true
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
    /// The definitions around it, outermost first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inside: Option<String>,
    /// What part of the code it is, where the language is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
}

impl TypedTool for SearchCode {
    const NAME: &'static str = "search_code";
    type Input = Input;
    type Output = Output;

    fn effects(&self, input: &Input) -> Result<Vec<Effect>, ToolError> {
        let path = match input.file_path.trim() {
            "" => PathBuf::new(),
            path => self.root.resolve(path)?.as_path().into(),
        };
        Ok(vec![Effect::Read { path }])
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
    let limit = input.limit;
    let query =
        Query { pattern: &input.pattern, ignore_case: input.ignore_case, limit, narrower: "file_path" };
    let found = query.run(root, threads, stop, || files(root, &input.file_path, stop))?;
    let mut matches = Vec::with_capacity(found.matches.len());
    for of_file in found.matches.chunk_by(|a, b| a.file == b.file) {
        let context = of_file.first().and_then(|first| Context::of(root, &first.file));
        for one in of_file {
            let line = usize::try_from(one.line).unwrap_or_default();
            let place = context.as_ref().map(|context| context.place(&found.matcher, line));
            let (inside, part) = place.map_or((None, None), |(inside, part)| (inside, Some(part)));
            matches.push(Match {
                file: one.file.clone(),
                line: one.line,
                text: one.text.clone(),
                inside,
                part,
            });
        }
    }
    Ok(Output {
        count: matches.len(),
        matches,
        pattern: input.pattern.clone(),
        truncated: found.truncated,
        message: found.message,
    })
}

/// The file, or the files below the folder, that a path names.
fn files(root: &Root, path: &str, stop: &(dyn Fn() -> bool + Sync)) -> Result<Vec<PathBuf>, ToolError> {
    if path.trim().is_empty() {
        return walk::files(root, &FileGlob::new(root, "**")?, stop);
    }
    let path = root.resolve(path)?;
    if root.path().join(path.as_path()).is_dir() {
        return walk::files(root, &FileGlob::new(root, &path.display())?, stop);
    }
    // Opened here so that a file which cannot be searched is said instead of left out.
    root.open_file(&path)?;
    Ok(vec![path.as_path().into()])
}

/// A file that had a match, parsed.
struct Context {
    text: String,
    outline: Outline,
}

impl Context {
    fn of(root: &Root, file: &str) -> Option<Self> {
        let language = Language::of(Path::new(file))?;
        let path = root.resolve(file).ok()?;
        let text = String::from_utf8_lossy(&read_all(root, &path, MOST_BYTES).ok()?).into_owned();
        let outline = Outline::of(language, &text)?;
        Some(Context { text, outline })
    }

    /// What is around a match, and what it is.
    fn place(&self, matcher: &RegexMatcher, line: usize) -> (Option<String>, Part) {
        let text = self.text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
        let column = matcher.find(text.as_bytes()).ok().flatten().map_or(0, |found| found.start());
        let part = self.outline.part(line, column);
        let around: Vec<&str> = self
            .outline
            .around(line)
            .into_iter()
            .filter(|found| found.line != line)
            .map(|found| found.signature.as_str())
            .collect();
        ((!around.is_empty()).then(|| around.join(" > ")), part)
    }
}
