//! `rg_search`: a regular expression over the whole project, with ripgrep's libraries.

use std::path::PathBuf;

use gimlet::effect::Effect;
use gimlet::tool::{ToolCx, ToolError, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blocking::blocking;
use crate::query::Query;
use crate::root::Root;
use crate::walk::{self, FileGlob};

pub use crate::query::Match;

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
    let glob = FileGlob::new(root, &input.glob)?;
    let query = Query { pattern: &input.pattern, ignore_case: false, limit: input.limit, narrower: "glob" };
    let mut note = None;
    let found = query.run(root, threads, stop, || {
        let fitting = walk::files(root, &glob, stop)?;
        if !fitting.is_empty() {
            return Ok(fitting);
        }
        // A small model that has guessed a file's name looks for it there again and again.
        note = Some("no file fits the glob, so all files were searched".to_owned());
        walk::files(root, &FileGlob::new(root, "*")?, stop)
    })?;
    let notes: Vec<String> = note.into_iter().chain(found.message).collect();
    Ok(Output {
        count: found.matches.len(),
        matches: found.matches,
        pattern: input.pattern.clone(),
        glob: input.glob.clone(),
        truncated: found.truncated,
        message: (!notes.is_empty()).then(|| notes.join("; ")),
    })
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
            assert_eq!(places(&call(&root, "secret", glob, 50)), ["seen:1:secret"], "{glob}");
        }
    }

    #[test]
    fn a_glob_that_fits_no_file_is_left_out_and_that_is_said() {
        let (_temp, root) = project(&[("shop/discounts.py", b"class Voucher:\n"), ("a.md", b"Voucher\n")]);
        let output = call(&root, "class Voucher", "**/vouchers.py", 50);
        assert_eq!(places(&output), ["shop/discounts.py:1:class Voucher:"]);
        assert_eq!(output.message.as_deref(), Some("no file fits the glob, so all files were searched"));
        assert_eq!(call(&root, "class Voucher", "*.md", 50).count, 0);
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
