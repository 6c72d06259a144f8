//! `run_tests`: the project's tests, by the command its files suggest.

use std::sync::{Arc, OnceLock};

use gimlet::command::Permission;
use gimlet::effect::Effect;
use gimlet::tool::{Manner, ToolCx, ToolError, TypedTool};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::code;
use crate::lines::read_all;
use crate::root::Root;
use crate::run_cmd::{Output, Shell, checked, effects, manner, preview, run, tell_missing};

/// The tool.
#[derive(Clone)]
pub struct RunTests {
    shell: Shell,
    /// The guess that was stated first. What runs is what was approved, whatever the project has become since.
    stated: Arc<OnceLock<&'static str>>,
}

impl RunTests {
    /// The tool, with how commands run.
    pub fn new(shell: Shell) -> Self {
        RunTests { shell, stated: Arc::default() }
    }

    fn command(&self, input: &Input) -> Result<String, ToolError> {
        let given = input.test_cmd.as_deref().is_some_and(|cmd| !cmd.trim().is_empty());
        if given {
            return command(&self.shell.root, input);
        }
        match self.stated.get().copied().or_else(|| guess(&self.shell.root)) {
            Some(guessed) => Ok((*self.stated.get_or_init(|| guessed)).to_owned()),
            None => command(&self.shell.root, input),
        }
    }
}

/// Run the project's tests and return the exit code and the end of their output.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Input {
    /// The test command. Leave out to use the usual one: pytest, cargo test, npm test, go test or make test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_cmd: Option<String>,
    /// Seconds until they are killed.
    #[serde(default = "three_hundred")]
    #[schemars(range(min = 1, max = 3600))]
    pub timeout: u64,
    /// Leave out. Only when a result's `missing` names a permission: that permission; a person is asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<Permission>,
}

fn three_hundred() -> u64 {
    300
}

impl TypedTool for RunTests {
    const NAME: &'static str = "run_tests";
    type Input = Input;
    type Output = Output;

    fn manner(&self) -> Manner {
        manner()
    }

    fn effects(&self, input: &Input) -> Result<Vec<Effect>, ToolError> {
        effects(&self.shell, &self.command(input)?, &input.permissions)
    }

    fn preview(&self, input: &Input) -> Option<String> {
        Some(preview(&self.shell, &self.command(input).ok()?, &input.permissions))
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        let command = self.command(&input)?;
        let output = run(&self.shell, &command, input.timeout, &input.permissions, &cx.cancel).await?;
        tell_missing(&output, cx).await;
        Ok(output)
    }
}

/// The command that would run.
pub fn command(root: &Root, input: &Input) -> Result<String, ToolError> {
    match input.test_cmd.as_deref().filter(|cmd| !cmd.trim().is_empty()) {
        Some(cmd) => Ok(checked(cmd)?.into()),
        None => guess(root).map(Into::into).ok_or_else(|| {
            ToolError::failed(code::NO_TESTS_FOUND, "nothing here says how to run the tests; give test_cmd")
        }),
    }
}

/// The usual command for the project's kind.
pub fn guess(root: &Root) -> Option<&'static str> {
    let has = |path: &str| root.resolve(path).is_ok_and(|path| root.look(&path).is_ok());
    let text = |path: &str| {
        let path = root.resolve(path).ok()?;
        String::from_utf8(read_all(root, &path, 1024 * 1024).ok()?).ok()
    };
    let mentions = |path: &str, word: &str| text(path).is_some_and(|text| text.contains(word));
    let is_pytest = has("pytest.ini")
        || has("conftest.py")
        || has("tests/conftest.py")
        || mentions("pyproject.toml", "pytest")
        || mentions("tox.ini", "pytest")
        || mentions("setup.cfg", "pytest");
    if is_pytest {
        return Some("pytest -q");
    }
    if has("Cargo.toml") {
        return Some("cargo test");
    }
    if text("package.json").is_some_and(|text| has_test_script(&text)) {
        return Some("npm test");
    }
    if has("go.mod") {
        return Some("go test ./...");
    }
    let makefile = ["GNUmakefile", "makefile", "Makefile"].iter().find_map(|name| text(name));
    if makefile
        .is_some_and(|text| text.lines().any(|line| line.starts_with("test:") || line.starts_with("test ")))
    {
        return Some("make test");
    }
    let is_python =
        has("pyproject.toml") || has("setup.py") || has("requirements.txt") || has_python_tests(root);
    is_python.then_some("pytest -q")
}

/// Whether `npm test` would run something; the text a fresh project has only fails.
fn has_test_script(package: &str) -> bool {
    let package: serde_json::Value = serde_json::from_str(package).unwrap_or_default();
    package["scripts"]["test"].as_str().is_some_and(|script| !script.contains("no test specified"))
}

/// Whether a file at the top or in a folder of tests looks like pytest's.
fn has_python_tests(root: &Root) -> bool {
    let is_test =
        |name: &str| name.ends_with(".py") && (name.starts_with("test_") || name.ends_with("_test.py"));
    ["", "tests", "test"]
        .iter()
        .any(|folder| root.names_in(folder).is_ok_and(|names| names.iter().any(|name| is_test(name))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guessed(files: &[(&str, &str)]) -> Option<&'static str> {
        let temp = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = temp.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        guess(&Root::open(temp.path()).unwrap())
    }

    #[test]
    fn the_projects_files_say_how_it_is_tested() {
        assert_eq!(guessed(&[("pyproject.toml", "[tool.pytest.ini_options]\n")]), Some("pytest -q"));
        assert_eq!(guessed(&[("tests/test_a.py", "")]), Some("pytest -q"));
        assert_eq!(guessed(&[("a_test.py", "")]), Some("pytest -q"));
        assert_eq!(guessed(&[("Cargo.toml", ""), ("package.json", "{}")]), Some("cargo test"));
        assert_eq!(guessed(&[("package.json", r#"{"scripts":{"test":"vitest"}}"#)]), Some("npm test"));
        assert_eq!(
            guessed(&[("package.json", r#"{"scripts":{"test":"echo \"Error: no test specified\""}}"#)]),
            None
        );
        assert_eq!(guessed(&[("package.json", "not json")]), None);
        assert_eq!(guessed(&[("go.mod", "")]), Some("go test ./..."));
        assert_eq!(guessed(&[("Makefile", "all:\n\ntest: all\n\t./t\n")]), Some("make test"));
        assert_eq!(guessed(&[("Makefile", "testing:\n")]), None);
        assert_eq!(guessed(&[("README.md", "")]), None);
    }

    #[test]
    fn a_given_command_wins_and_none_is_an_error() {
        let temp = tempfile::tempdir().unwrap();
        let root = Root::open(temp.path()).unwrap();
        let input =
            |cmd: Option<&str>| Input { test_cmd: cmd.map(Into::into), timeout: 1, permissions: Vec::new() };
        assert_eq!(command(&root, &input(Some("./t"))).unwrap(), "./t");
        for cmd in [None, Some("  ")] {
            assert!(command(&root, &input(cmd)).unwrap_err().to_string().starts_with(code::NO_TESTS_FOUND));
        }
    }

    /// Approved is `make test`; what the project looks like when it runs does not matter any more.
    #[test]
    fn finding_09_the_command_is_fixed_when_effects_are_stated() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join("Makefile"), "test:\n\ttrue\n").unwrap();
        let shell = Shell {
            root: Root::open(temp.path()).unwrap(),
            environment: gimlet::command::Environment::allowed(Vec::<(String, String)>::new()),
            runner: Arc::new(crate::command::HostRunner),
            permissions: gimlet::command::Permissions::default(),
            looks_only: Arc::new(|_| false),
        };
        let tool = RunTests::new(shell);
        let input = Input { test_cmd: None, timeout: 1, permissions: Vec::new() };
        let stated = tool.effects(&input).unwrap();
        std::fs::write(temp.path().join("package.json"), r#"{"scripts":{"test":"evil"}}"#).unwrap();
        assert_eq!(tool.command(&input).unwrap(), "make test");
        assert_eq!(tool.effects(&input).unwrap(), stated);
    }
}
