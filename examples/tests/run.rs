//! Every example runs to its end, and those that promise to be short are.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../custom_model.rs"]
mod custom_model;
#[path = "../custom_tool.rs"]
mod custom_tool;
#[path = "../hook.rs"]
mod hook;

use std::process::Command;

use gimlet_models::Script;
use gimlet_testkit::ModelServer;

#[test]
fn custom_tool_runs() {
    custom_tool::main().unwrap();
}

#[test]
fn hook_runs() {
    hook::main().unwrap();
}

#[test]
fn custom_model_runs() {
    custom_model::main().unwrap();
}

#[test]
fn a_tool_takes_at_most_25_lines() {
    let source = include_str!("../custom_tool.rs");
    let from = source.find("/// Count the words").unwrap();
    let to = source.find("#[tokio::main").unwrap();
    let lines = source[from..to].lines().filter(|line| !line.trim().is_empty()).count();
    assert!(lines <= 25, "{lines} lines");
}

/// The program of an example, which cargo builds beside the tests.
fn example(name: &str) -> Command {
    let tests = std::env::current_exe().unwrap();
    let folder = tests.parent().unwrap().parent().unwrap().join("examples");
    let mut command = Command::new(folder.join(name));
    for (variable, _) in std::env::vars_os().filter(|(name, _)| {
        let name = name.to_string_lossy();
        ["MODEL_", "GIMLET_", "PHOENIX_", "OTEL_"].iter().any(|prefix| name.starts_with(prefix))
    }) {
        command.env_remove(variable);
    }
    command.env("PHOENIX_ENABLED", "false");
    command
}

fn said(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_coding_agent_takes_fifteen_lines_and_changes_a_file() {
    let source = include_str!("../coding_agent.rs");
    let main = &source[source.find("fn main()").unwrap()..];
    let lines = main.lines().filter(|line| !line.trim().is_empty()).count();
    assert!(lines <= 15, "{lines} lines");

    let script: Script = toml::from_str(
        "order = \"turns\"\n[[reply]]\ncalls = [{ name = \"run_cmd\", args = { cmd = \"touch made\" } }]\n\
         [[reply]]\ntext = \"Made.\"\n",
    )
    .unwrap();
    let server = ModelServer::builder(script).start().await.unwrap();
    let (project, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut command = example("coding_agent");
    command.arg("make it").current_dir(project.path()).env("GIMLET_HOME", home.path());
    command.env("MODEL_ID", "openai/scripted").env("MODEL_API_BASE", format!("{}/v1", server.url()));
    command.env("OPENAI_API_KEY", "test-key");
    assert_eq!(said(&mut command), "Made.\n");
    assert!(project.path().join("made").exists());
}

#[test]
fn two_projects_do_not_meet() {
    let folders = ["one", "two"].map(|name| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("notes.txt"), format!("notes of {name}\n")).unwrap();
        std::fs::create_dir(folder.path().join(".data")).unwrap();
        let script = folder.path().join(".data/script.toml");
        let text = format!(
            "order = \"turns\"\n[[reply]]\ncalls = [{{ name = \"read_file\", args = {{ path = \"notes.txt\" }} }}]\n\
             [[reply]]\nexpect = [\"notes of {name}\"]\ntext = \"It is {name}.\"\n"
        );
        std::fs::write(&script, text).unwrap();
        let settings = format!("[model]\nid = \"scripted/{}\"\n", script.display());
        std::fs::write(folder.path().join(".data/config.toml"), settings).unwrap();
        folder
    });
    let mut command = example("two_projects");
    command.args(folders.iter().map(|folder| folder.path()));
    assert_eq!(said(&mut command), "It is one. (by read_file)\nIt is two. (by read_file)\n");
    for folder in &folders {
        assert_eq!(std::fs::read_dir(folder.path().join(".data/runs")).unwrap().count(), 1);
    }
}
