//! Secrets in what is attached to a task and in what tools return do not reach the model or the log.

use std::io::Write;
use std::process::Stdio;

use crate::support::{Project, of_type};

const ANSWER: &str = "[[reply]]\ntext = \"Seen.\"\n";
const VALUE: &str = "correct-horse-battery";

/// `VALUE` by `base64` and by `xxd -p`.
const ENCODED: [&str; 2] = ["Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5", "636f72726563742d686f7273652d62617474657279"];

#[test]
fn finding_15_attachments_and_piped_input_lose_their_secrets() {
    let project = Project::new();
    let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    project.file("notes.md", &format!("token {token}\nurl postgres://me:{VALUE}@db/x\n"));
    let model = project.script(ANSWER);
    let mut command = project.gimlet(&["--json", "--model", &model, "read @notes.md"]);
    command.env("DEPLOY_PASS", VALUE).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let piped = format!("piped {VALUE} {} {}\n", ENCODED[0], ENCODED[1]);
    child.stdin.take().unwrap().write_all(piped.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let events: Vec<serde_json::Value> =
        stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let task = of_type(&events, "run.started")[0]["task"].as_str().unwrap();
    assert!(task.contains("token [redacted]") && task.contains("piped [redacted]"), "{task}");
    for secret in [token.as_str(), VALUE, ENCODED[0], ENCODED[1]] {
        assert!(!stdout.contains(secret), "{secret} in {task}");
    }
}

#[test]
fn finding_15_what_a_tool_returns_loses_keys_of_well_known_shapes() {
    let project = Project::new();
    let key = format!("sk_live_{}", "4eC39HqLyjWDarjtT1zdp7dc");
    project
        .file("pay.py", &format!("KEY = \"{key}\"\nHASH = \"4b825dc642cb6eb9a060e54bf8d69288fbee4904\"\n"));
    let said = project.say(&["tools", "call", "read_file", "{\"path\": \"pay.py\"}"]);
    assert!(!said.stdout.contains(&key) && said.stdout.contains("[redacted]"), "{}", said.stdout);
    assert!(said.stdout.contains("4b825dc642cb6eb9a060e54bf8d69288fbee4904"), "{}", said.stdout);
}
