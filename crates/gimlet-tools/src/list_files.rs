//! `list_files`: the project's files that fit a glob.

use std::path::PathBuf;

use gimlet::effect::Effect;
use gimlet::tool::{Manner, Tells, ToolCx, ToolError, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blocking::blocking;
use crate::root::Root;
use crate::walk::{self, FileGlob};

/// The tool.
#[derive(Debug, Clone)]
pub struct ListFiles {
    /// Where it may look.
    pub root: Root,
}

/// List the project's files. Hidden and git-ignored files are left out.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Input {
    /// Which files: "*.py" finds them in every folder, "src/*.py" only in src, "src" all files below src.
    #[serde(default = "everywhere")]
    pub glob: String,
    /// Most files to return.
    #[serde(default = "hundred")]
    #[schemars(range(min = 1, max = 10000))]
    pub limit: usize,
}

fn everywhere() -> String {
    "**".into()
}

fn hundred() -> usize {
    100
}

/// The result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Output {
    /// Paths relative to the root, sorted.
    pub files: Vec<String>,
    /// How many are returned.
    pub count: usize,
    /// How many fit the glob.
    pub total_matches: usize,
    /// Whether there are more than returned.
    pub truncated: bool,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl TypedTool for ListFiles {
    const NAME: &'static str = "list_files";
    type Input = Input;
    type Output = Output;

    fn manner(&self) -> Manner {
        Manner { tells: Tells::Where, ..Manner::default() }
    }

    fn effects(&self, input: &Input) -> Result<Vec<Effect>, ToolError> {
        FileGlob::new(&self.root, &input.glob)?;
        Ok(vec![Effect::Read { path: PathBuf::new() }])
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        let root = self.root.clone();
        blocking(&cx.cancel, move |cancel| list(&root, &input, &|| cancel.is_cancelled())).await
    }
}

/// All files that `list_files` would show, relative to the root and sorted.
pub fn all(root: &Root) -> Result<Vec<PathBuf>, ToolError> {
    walk::files(root, &FileGlob::new(root, "**")?, &|| false)
}

/// Lists the files.
pub fn list(root: &Root, input: &Input, stop: &(dyn Fn() -> bool + Sync)) -> Result<Output, ToolError> {
    let found = walk::files(root, &FileGlob::new(root, &input.glob)?, stop)?;
    let total_matches = found.len();
    let files: Vec<String> = found
        .into_iter()
        .filter(|path| root.holds(path))
        .take(input.limit)
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    let truncated = files.len() < total_matches;
    let message = match files.len() {
        0 if total_matches == 0 => Some("no file fits; rg_search looks for words inside of files".to_owned()),
        some if truncated => Some(format!("{some} of {total_matches} files; use a narrower glob")),
        _ => None,
    };
    Ok(Output { count: files.len(), files, total_matches, truncated, message })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(files: &[&str]) -> tempfile::TempDir {
        let temp = tempfile::Builder::new().prefix("plain").tempdir().unwrap();
        fill(temp.path(), files);
        temp
    }

    fn fill(root: &std::path::Path, files: &[&str]) {
        for name in files {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x\n").unwrap();
        }
    }

    fn names(root: &std::path::Path, glob: &str) -> Vec<String> {
        let input = Input { glob: glob.into(), limit: 100 };
        list(&Root::open(root).unwrap(), &input, &|| false).unwrap().files
    }

    #[test]
    fn globs_mean_what_a_model_expects() {
        let temp =
            project(&["a.py", "src/b.py", "src/deep/c.py", "src/d.rs", "docs/x[1].md", ".github/ci.yml"]);
        let root = temp.path();
        assert_eq!(names(root, "*.py"), ["a.py", "src/b.py", "src/deep/c.py"]);
        assert_eq!(names(root, "**/*.py"), ["a.py", "src/b.py", "src/deep/c.py"]);
        assert_eq!(names(root, "src/*.py"), ["src/b.py"]);
        assert_eq!(names(root, "./src/**/*.{py,rs}"), ["src/b.py", "src/d.rs", "src/deep/c.py"]);
        assert_eq!(names(root, "src"), ["src/b.py", "src/d.rs", "src/deep/c.py"]);
        assert_eq!(names(root, "src/"), names(root, "src"));
        assert_eq!(
            names(root, &format!("{}/src/*.rs", root.canonicalize().unwrap().display())),
            ["src/d.rs"]
        );
        assert_eq!(names(root, ".github/**"), [".github/ci.yml"]);
        for glob in ["*", "**", ".", "", "**/*"] {
            assert_eq!(names(root, glob).len(), 5, "{glob}");
        }
        assert!(names(root, "*.zig").is_empty());
    }

    #[test]
    fn ignored_hidden_secret_and_generated_files_are_left_out() {
        let temp = project(&[
            ".git/HEAD",
            ".hidden/x",
            "keep.txt",
            "out/x.o",
            "node_modules/m/i.js",
            "pkg/__pycache__/m.pyc",
            ".env",
            "tls.key",
            "sub/skip.log",
            "sub/keep.log",
        ]);
        std::fs::write(temp.path().join(".gitignore"), "out/\n*.log\n").unwrap();
        std::fs::write(temp.path().join("sub/.gitignore"), "!keep.log\n").unwrap();
        assert_eq!(names(temp.path(), "*"), ["keep.txt", "sub/keep.log"]);
        assert!(names(temp.path(), ".env").is_empty());
        assert!(names(temp.path(), ".git/**").is_empty());
    }

    #[test]
    fn a_project_below_a_hidden_folder_and_an_ignored_one_works() {
        let temp = tempfile::tempdir().unwrap();
        fill(temp.path(), &[".cache/project/src/a.rs"]);
        std::fs::write(temp.path().join(".gitignore"), "*\n").unwrap();
        assert_eq!(names(&temp.path().join(".cache/project"), "*.rs"), ["src/a.rs"]);
    }

    #[test]
    fn a_folder_of_a_repository_obeys_the_repository() {
        let temp = project(&[".git/HEAD", "pkg/a.txt", "pkg/b.log"]);
        std::fs::write(temp.path().join(".gitignore"), "*.log\n").unwrap();
        assert_eq!(names(&temp.path().join("pkg"), "*"), ["a.txt"]);
    }

    #[test]
    fn the_limit_is_said() {
        let temp = project(&["a", "b", "c"]);
        let input = Input { glob: "*".into(), limit: 2 };
        let output = list(&Root::open(temp.path()).unwrap(), &input, &|| false).unwrap();
        assert_eq!((output.files.as_slice(), output.count), (&["a".to_owned(), "b".to_owned()][..], 2));
        assert_eq!((output.total_matches, output.truncated), (3, true));
        assert_eq!(output.message.as_deref(), Some("2 of 3 files; use a narrower glob"));
    }

    #[test]
    fn bad_globs_and_links_are_refused() {
        let temp = project(&["a"]);
        std::os::unix::fs::symlink("/etc", temp.path().join("etc")).unwrap();
        let root = Root::open(temp.path()).unwrap();
        assert_eq!(names(temp.path(), "**"), ["a"]);
        for (glob, word) in [
            ("../*", "PATH_OUTSIDE_ROOT"),
            ("/etc/*", "PATH_OUTSIDE_ROOT"),
            ("a/../../b", "PATH_OUTSIDE_ROOT"),
            ("[", "GLOB_FAILED"),
            ("a\0b", "VALIDATION_FAILED"),
        ] {
            let error = list(&root, &Input { glob: glob.into(), limit: 9 }, &|| false).unwrap_err();
            assert!(error.to_string().starts_with(word), "{glob}: {error}");
        }
        assert!(names(temp.path(), "etc/*").is_empty());
        assert!(names(temp.path(), "etc").is_empty());
        assert!(names(temp.path(), "a..b").is_empty(), "two dots inside a name are fine");
    }

    #[test]
    fn a_stopped_call_ends() {
        let temp = project(&["a"]);
        let input = Input { glob: "*".into(), limit: 2 };
        let error = list(&Root::open(temp.path()).unwrap(), &input, &|| true).unwrap_err();
        assert!(error.to_string().starts_with("CANCELLED"));
    }
}
