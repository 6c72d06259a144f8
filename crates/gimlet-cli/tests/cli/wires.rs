//! Whole runs over HTTP: the real binary against the scripted server, which checks the protocol of every request.

use crate::support::{Project, Said};
use gimlet_models::Script;
use gimlet_testkit::ModelServer;

const SCRIPT: &str = r#"
order = "turns"
[[reply]]
thinking = "I should look."
text = "Let me look around."
calls = [{ name = "list_files", args = { glob = "**/*" } }, { name = "read_file", args = { path = "calc.py" } }]
usage = { input = 100, output = 20 }
chunk_bytes = 3
[[reply]]
calls = [{ name = "read_file", args = { path = "nothing.py" } }]
[[reply]]
text = "`add` subtracts: naïve, but wrong."
chunk_bytes = 1
"#;

/// Runs a task against the server; the server lives in this process, the program in its own.
fn ask(project: &Project, url: &str, model: &str, more: &[&str]) -> Said {
    let mut args = vec!["-m", model, "--api-base", url, "what is wrong?"];
    args.extend(more);
    let mut command = project.gimlet(&args);
    command.env("OPENAI_API_KEY", "sk-test").env("ANTHROPIC_API_KEY", "sk-ant-test");
    Said::from(command.output().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_wire_carries_a_whole_run() {
    for model in ["ollama_chat/scripted", "openai/scripted", "anthropic/scripted"] {
        let script: Script = toml::from_str(SCRIPT).unwrap();
        let server = ModelServer::builder(script).models(["scripted"]).start().await.unwrap();
        let (url, project) = (server.url(), Project::new());
        let said = tokio::task::spawn_blocking(move || ask(&project, &url, model, &[])).await.unwrap();
        assert_eq!(
            (said.code, said.stdout.as_str()),
            (0, "`add` subtracts: naïve, but wrong.\n"),
            "{model}: {}",
            said.stderr
        );
        server.assert_no_violations();
        assert_eq!(server.requests().len(), 3, "{model}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_that_is_hinted_at_carries_a_limited_run_on() {
    let script: Script = toml::from_str(SCRIPT).unwrap();
    let server = ModelServer::builder(script).models(["scripted"]).start().await.unwrap();
    let url = server.url();
    let (limited, resumed) = tokio::task::spawn_blocking(move || {
        let project = Project::new();
        let limited = ask(&project, &url, "ollama_chat/scripted", &["--max-steps", "1"]);
        let hint = limited.stderr.lines().find_map(|line| line.strip_prefix("hint: gimlet "));
        let words = hint.and_then(|hint| hint.strip_suffix(" carries on")).map(str::to_owned);
        let words = words.unwrap_or_else(|| panic!("{}", limited.stderr));
        (limited.code, project.say(&words.split(' ').collect::<Vec<_>>()))
    })
    .await
    .unwrap();
    assert_eq!((limited, resumed.code), (4, 0), "{}", resumed.stderr);
    assert_eq!(resumed.stdout, "`add` subtracts: naïve, but wrong.\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_replies_the_last_answer_and_parallel_calls_keep_the_protocol() {
    let script = r#"
    order = "turns"
    [[reply]]
    text = ""
    [[reply]]
    text = '<tool_call>{"name": "read_file", "arguments": {"path": </tool_call>'
    [[reply]]
    text = '{"name": "read_file", "arguments": {"path": "calc.py"}}'
    [[reply]]
    text = "My best guess."
    "#;
    for model in ["ollama_chat/scripted", "openai/scripted", "anthropic/scripted"] {
        let server =
            ModelServer::builder(toml::from_str(script).unwrap()).models(["scripted"]).start().await.unwrap();
        let (url, project) = (server.url(), Project::new());
        let said = tokio::task::spawn_blocking(move || ask(&project, &url, model, &["--max-steps", "3"]))
            .await
            .unwrap();
        server.assert_no_violations();
        assert_eq!((said.code, said.stdout.as_str()), (4, "My best guess.\n"), "{model}: {}", said.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stumbles_is_asked_again() {
    let script = r#"
    [[reply]]
    fault = { kind = "status", status = 503 }
    [[reply]]
    text = "there"
    "#;
    let server =
        ModelServer::builder(toml::from_str(script).unwrap()).models(["scripted"]).start().await.unwrap();
    let (url, project) = (server.url(), Project::new());
    let said =
        tokio::task::spawn_blocking(move || ask(&project, &url, "openai/scripted", &[])).await.unwrap();
    assert_eq!((said.code, said.stdout.as_str()), (0, "there\n"), "{}", said.stderr);
}

#[test]
fn a_server_that_is_not_there_is_said_with_a_hint() {
    let said = ask(&Project::new(), "http://127.0.0.1:9", "ollama_chat/x", &[]);
    assert_eq!(said.code, 1, "{}", said.stderr);
    assert!(said.stderr.contains("127.0.0.1:9") && said.stderr.contains("hint:"), "{}", said.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_chosen_and_one_that_is_absent_is_named() {
    let script: Script = toml::from_str("[[reply]]\ntext = \"chosen\"\n").unwrap();
    let server =
        ModelServer::builder(script).models(["qwen3:8b", "nomic-embed-text:latest"]).start().await.unwrap();
    let url = server.url();
    tokio::task::spawn_blocking(move || {
        let project = Project::new();
        let said = project.say(&["--api-base", &url, "hello"]);
        assert_eq!((said.code, said.stdout.as_str()), (0, "chosen\n"), "{}", said.stderr);
        assert!(said.stderr.contains("qwen3:8b"), "{}", said.stderr);
        let said = project.say(&["-m", "ollama_chat/qwen3:14b", "--api-base", &url, "hello"]);
        assert_eq!(said.code, 2, "{}", said.stderr);
        assert!(
            said.stderr.contains("qwen3:8b") && said.stderr.contains("ollama pull qwen3:14b"),
            "{}",
            said.stderr
        );
        let said = project.say(&["models", "--api-base", &url]);
        assert!(said.code == 0 && said.stdout.contains("qwen3:8b"), "{} {}", said.stdout, said.stderr);
    })
    .await
    .unwrap();
}
