//! `gimlet doctor`, on machines in different states.

use crate::support::{Project, Said};
use gimlet_models::Script;
use gimlet_testkit::ModelServer;
use serde_json::Value;

const CALLS: &str = r#"
order = "turns"
[[reply]]
calls = [{ name = "repo_info", args = {} }]
[[reply]]
text = "done"
"#;

fn report(said: &Said) -> Value {
    serde_json::from_str(&said.stdout)
        .unwrap_or_else(|error| panic!("{error}: {} {}", said.stdout, said.stderr))
}

fn row<'a>(report: &'a Value, check: &str) -> &'a Value {
    report["checks"].as_array().unwrap().iter().find(|row| row["check"] == check).unwrap_or(&Value::Null)
}

/// Runs it against a server that plays a script.
async fn against(script: &str, models: &'static [&'static str], args: &'static [&'static str]) -> Said {
    let script: Script = toml::from_str(script).unwrap();
    let server = ModelServer::builder(script).models(models.iter().copied()).start().await.unwrap();
    let url = server.url();
    tokio::task::spawn_blocking(move || {
        let mut all = vec!["doctor", "--api-base", &url];
        all.extend(args);
        Project::new().say(&all)
    })
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_in_order() {
    let said = against(CALLS, &["qwen3:8b"], &["--json"]).await;
    let report = report(&said);
    assert_eq!((said.code, &report["ok"]), (0, &Value::Bool(true)), "{report:#}");
    for check in ["settings", "data directory", "git", "python sandbox", "model server", "model", "tool call"]
    {
        assert_eq!(row(&report, check)["health"], "good", "{check}: {report:#}");
    }
    for layer in ["commands", "docker"] {
        let row = row(&report, layer);
        assert!(row["health"] == "good" || row["fix"].is_string(), "{layer}: {report:#}");
    }
    assert!(row(&report, "model")["found"].as_str().unwrap().contains("qwen3:8b"), "{report:#}");
    assert!(
        row(&report, "phoenix")["fix"].as_str().is_none_or(|fix| fix.contains("docker compose up phoenix"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_calls_no_tool_is_found_out() {
    let said = against("[[reply]]\ntext = \"I would call it.\"\n", &["qwen3:8b"], &[]).await;
    assert_eq!(said.code, 1, "{}", said.stdout);
    assert!(said.stderr.contains("asking ollama_chat/qwen3:8b to call a tool"), "{}", said.stderr);
    assert!(
        said.stdout.contains("✗ tool call       the model answered, but called no tool"),
        "{}",
        said.stdout
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn quick_asks_nothing_of_the_model() {
    let said = against("[[reply]]\ntext = \"no\"\n", &["qwen3:8b"], &["--quick", "--json"]).await;
    assert_eq!((said.code, row(&report(&said), "tool call")), (0, &Value::Null));
}

#[test]
fn no_server_no_model_and_what_to_do() {
    let said = Project::new().say(&["doctor", "--api-base", "http://127.0.0.1:9"]);
    assert_eq!(said.code, 1);
    let tail: String =
        said.stdout.lines().skip_while(|line| !line.contains("model server")).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!("doctor_no_server", tail);
}

#[test]
fn broken_settings_are_the_first_thing_to_mend() {
    let project = Project::new();
    project.file("gimlet.toml", "[model]\ntemperature = 9\n");
    let said = project.say(&["doctor"]);
    assert_eq!(said.code, 1);
    insta::assert_snapshot!("doctor_settings", said.stdout);
}

#[cfg(unix)]
#[test]
fn a_data_directory_others_can_write_is_not_safe() {
    use std::os::unix::fs::PermissionsExt;
    let project = Project::new();
    std::fs::set_permissions(project.home.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let said = project.say(&["doctor", "--quick", "--json", "-m", "scripted/none"]);
    assert_eq!(said.code, 1);
    let report = report(&said);
    let rows = report["checks"].as_array().unwrap();
    assert!(
        rows.iter().any(|row| row["fix"].as_str().is_some_and(|fix| fix.starts_with("chmod 700"))),
        "{report:#}"
    );
}
