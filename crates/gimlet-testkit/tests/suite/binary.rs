//! The server as a program of its own.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// Ends the program with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn binary() -> Command {
    Command::new(env!("CARGO_BIN_EXE_gimlet-model-server"))
}

/// Starts it and reads the address it prints first.
fn start(script: &Path, args: &[&str]) -> (Running, String) {
    let mut child = binary().arg(script).args(args).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (Running(child), line.trim().to_owned())
}

#[tokio::test]
async fn it_prints_its_address_serves_and_logs() {
    let folder = tempfile::tempdir().unwrap();
    let (script, log) = (folder.path().join("script.toml"), folder.path().join("log.jsonl"));
    std::fs::write(&script, "[[reply]]\ntext = 'hello'\n[[reply]]\ntext = 'again'").unwrap();
    let (_running, url) = start(&script, &["--log", log.to_str().unwrap(), "--model", "tiny"]);
    let client = reqwest::Client::new();
    let send = async |body: &Value| {
        let request = client.post(format!("{url}/v1/chat/completions")).bearer_auth("sk-secret").json(body);
        request.send().await.unwrap()
    };
    let task = json!({ "role": "user", "content": "hi" });
    let good = send(&json!({ "model": "tiny", "messages": [task] })).await;
    assert_eq!(good.json::<Value>().await.unwrap()["choices"][0]["message"]["content"], "hello");
    assert_eq!(send(&json!({ "model": "tiny", "messages": [task, task] })).await.status(), 400);
    assert_eq!(send(&json!({ "model": "huge", "messages": [task] })).await.status(), 404);

    let text = std::fs::read_to_string(&log).unwrap();
    assert!(!text.contains("sk-secret"), "keys stay out of the log");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(
        (&lines[0]["wire"], &lines[0]["task"], &lines[0]["violations"]),
        (&json!("openai"), &json!("hi"), &json!([]))
    );
    let sent = json!({ "model": "tiny", "messages": [task] }).to_string().len();
    assert_eq!(lines[0]["bytes"], sent);
    assert!(lines[0]["at_us"].as_u64() <= lines[1]["at_us"].as_u64());
    assert_eq!(lines[1]["violations"][0]["rule"], "roles");
}

#[tokio::test]
async fn lenient_answers_broken_requests() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.json");
    std::fs::write(&script, r#"{ "reply": [{ "text": "hello" }] }"#).unwrap();
    let (_running, url) = start(&script, &["--lenient"]);
    let body = json!({ "messages": [{ "role": "user", "content": "no model" }], "stream": false });
    let response = reqwest::Client::new().post(format!("{url}/api/chat")).json(&body).send().await.unwrap();
    assert_eq!(response.json::<Value>().await.unwrap()["message"]["content"], "hello");
}

#[test]
fn help_is_given_and_a_bad_script_is_named() {
    let help = binary().arg("--help").output().unwrap();
    assert!(help.status.success());
    let text = String::from_utf8(help.stdout).unwrap();
    for word in ["--port", "--log", "--lenient", "--model", "first line on standard output"] {
        assert!(text.contains(word), "{word} is missing in\n{text}");
    }
    let bad = binary().arg("/nowhere/script.toml").output().unwrap();
    assert_eq!(bad.status.code(), Some(2));
    assert!(String::from_utf8(bad.stderr).unwrap().contains("cannot read the script /nowhere/script.toml"));
}
