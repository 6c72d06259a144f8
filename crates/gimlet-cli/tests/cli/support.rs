//! The real binary in a real repository, with its own home.

use std::path::PathBuf;
use std::process::{Command, Output};

use gimlet_testkit::GitRepo;
use serde_json::Value;

/// A repository, a home for runs, and the binary to use them with.
pub(crate) struct Project {
    pub(crate) repo: GitRepo,
    pub(crate) home: tempfile::TempDir,
}

/// What a command printed and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Project {
    pub(crate) fn new() -> Self {
        let repo = GitRepo::new()
            .file("calc.py", "def add(a, b):\n    return a - b\n")
            .file("README.md", "# Calc\n\nAdds numbers.\n")
            .commit("first");
        Project { repo, home: tempfile::tempdir().unwrap() }
    }

    /// With answers taken as they come: the story is about something else than what a change needs.
    pub(crate) fn ungated(self) -> Self {
        self.config("[gate]\nenabled = false\n");
        self
    }

    /// The binary, about to run in the repository.
    pub(crate) fn gimlet(&self, args: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("gimlet"));
        command
            .args(args)
            .current_dir(self.repo.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("GIMLET_HOME", self.home.path())
            .env("NO_COLOR", "1")
            .stdin(std::process::Stdio::null());
        command
    }

    pub(crate) fn say(&self, args: &[&str]) -> Said {
        Said::from(self.gimlet(args).output().unwrap())
    }

    /// The repository as runs name it.
    pub(crate) fn root(&self) -> String {
        self.repo.path().canonicalize().unwrap().display().to_string()
    }

    /// Writes a file into the repository.
    pub(crate) fn file(&self, path: &str, text: &str) {
        std::fs::write(self.repo.path().join(path), text).unwrap();
    }

    /// Writes the user's own configuration.
    pub(crate) fn config(&self, text: &str) {
        std::fs::write(self.home.path().join("config.toml"), text).unwrap();
    }

    /// Puts a script where `--model` can find it.
    pub(crate) fn script(&self, text: &str) -> String {
        let path: PathBuf = self.home.path().join("script.toml");
        std::fs::write(&path, text).unwrap();
        format!("scripted/{}", path.display())
    }

    /// Runs a task against a script.
    pub(crate) fn run(&self, script: &str, more: &[&str]) -> Said {
        let model = self.script(script);
        let mut args = vec!["--model", &model, "what is wrong?"];
        args.extend(more);
        self.say(&args)
    }

    /// Runs a task against a script and reads its events.
    pub(crate) fn events(&self, script: &str, more: &[&str]) -> (i32, Vec<Value>) {
        let mut args = vec!["--json"];
        args.extend(more);
        let said = self.run(script, &args);
        (said.code, said.events())
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Said {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Said {
    /// Standard output as JSON lines.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
            .collect()
    }
}

/// Whether there is a Python for those tests whose projects are written in it; CI has one.
pub(crate) fn has_python() -> bool {
    let there = Command::new("python3").arg("--version").output().is_ok();
    assert!(there || std::env::var_os("CI").is_none(), "Python is needed on CI");
    there
}

/// An entry that gives a model of a scripted server a name.
pub(crate) fn named_model(name: &str, url: &str, more: &str) -> String {
    format!("[models.{name}]\nid = \"openai/small\"\napi_base = \"{url}\"\n{more}")
}

/// The events of one type.
pub(crate) fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}
