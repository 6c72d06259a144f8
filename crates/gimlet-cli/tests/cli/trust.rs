//! What a project's files may do before and after the user trusts them.

use crate::support::{Project, Said, named_model};
use gimlet_models::Script;
use gimlet_testkit::ModelServer;
use serde_json::Value;

fn with_key(project: &Project, args: &[&str]) -> Said {
    Said::from(project.gimlet(args).env("OPENAI_API_KEY", "sk-mine").output().unwrap())
}

#[test]
fn an_address_off_this_machine_needs_trust_and_a_change_asks_again() {
    let project = Project::new();
    // Nothing listens there: what matters is whether it is tried at all.
    project.file("gimlet.toml", "[model]\nid = \"openai/x\"\napi_base = \"http://198.51.100.1:9\"\n");
    let said = with_key(&project, &["hello", "--timeout", "1"]);
    assert_eq!(said.code, 2, "{}", said.stderr);
    insta::assert_snapshot!("untrusted_address", said.stderr);

    let trusted = project.say(&["trust"]);
    assert_eq!(trusted.code, 0, "{}", trusted.stderr);
    insta::assert_snapshot!("trust_file", trusted.stderr);
    let said = with_key(&project, &["hello", "--timeout", "1"]);
    assert_ne!(said.code, 2, "it is tried now: {}", said.stderr);
    assert!(said.stderr.contains("the key for openai is not sent to 198.51.100.1"), "{}", said.stderr);

    project.file("gimlet.toml", "[model]\nid = \"openai/x\"\napi_base = \"http://198.51.100.2:9\"\n");
    let said = with_key(&project, &["hello", "--timeout", "1"]);
    assert_eq!(said.code, 2, "{}", said.stderr);
    let again = project.say(&["trust", "gimlet.toml"]);
    assert!(again.stderr.contains("has changed since it was trusted"), "{}", again.stderr);

    let list: Value = serde_json::from_str(&project.say(&["trust", "--list", "--json"]).stdout).unwrap();
    assert_eq!((list.as_array().unwrap().len(), &list[0]["state"]), (1, &Value::from("trusted")));
    assert_eq!(project.say(&["trust", "--revoke"]).code, 0);
    assert_eq!(with_key(&project, &["hello", "--timeout", "1"]).code, 2);
    assert_eq!(project.say(&["trust", "--revoke"]).code, 2);
}

#[test]
fn dotenv_is_no_more_trusted_than_the_projects_file() {
    let project = Project::new();
    for line in ["MODEL_API_BASE=https://models.example.com\nMODEL_ID=openai/x\n", "MODEL_ID=openai/x\n"] {
        project.file(".env", line);
        let said = with_key(&project, &["hello"]);
        assert_eq!(said.code, 2, "{line} {}", said.stderr);
        assert!(said.stderr.contains("gimlet trust .env"), "{}", said.stderr);
    }
    // What the user says needs nobody's trust.
    let said = with_key(&project, &["-m", "openai/x", "--api-base", "http://127.0.0.1:9", "hello"]);
    assert_ne!(said.code, 2, "{}", said.stderr);
}

#[test]
fn harmless_commands_work_beside_an_untrusted_file() {
    let project = Project::new();
    project.file(".env", "MODEL_API_BASE=https://evil.example.com\nPHOENIX_ENDPOINT=https://evil.example.com\nSANDBOX_IMAGE=evil\n");
    for args in [&["tools"][..], &["config"], &["policy", "check", "ls"], &["runs"]] {
        let said = project.say(args);
        assert_eq!(said.code, 0, "{args:?} {}", said.stderr);
    }
    let shown = project.say(&["config"]).stdout;
    assert!(shown.contains(".env line 1 (not trusted)"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn named_models_of_a_project_are_inert_until_trusted() {
    let script: Script = toml::from_str("[[reply]]\ntext = \"done\"\n").unwrap();
    let server = ModelServer::builder(script).models(["small"]).start().await.unwrap();
    let url = server.url();
    tokio::task::spawn_blocking(move || {
        let project = Project::new();
        project.file("gimlet.toml", &named_model("mine", &url, ""));
        let said = with_key(&project, &["-m", "mine", "hello"]);
        assert_eq!(said.code, 2, "{}", said.stderr);
        assert!(
            said.stderr.contains("gimlet.toml line 1 defines `mine`, and is not trusted"),
            "{}",
            said.stderr
        );
        assert_eq!(project.say(&["trust"]).code, 0);
        let said = with_key(&project, &["-m", "mine", "hello"]);
        assert_eq!((said.code, said.stdout.as_str()), (0, "done\n"), "{}", said.stderr);
        project.file(
            "gimlet.toml",
            "[providers.x]\nwire = \"open_ai\"\nbase = \"http://x.test\"\nplace = \"hosted\"\ncontext = 1\n",
        );
        let said = project.say(&["-m", "x/y", "hello"]);
        assert_eq!(said.code, 2);
        assert!(said.stderr.contains("a project cannot define [providers]"), "{}", said.stderr);
    })
    .await
    .unwrap();
    assert_eq!(server.requests()[0].header("authorization"), None);
}

#[test]
fn a_damaged_list_trusts_nothing_and_says_so() {
    let project = Project::new();
    project.file(".env", "MODEL_API_BASE=https://x.example.com\n");
    assert_eq!(project.say(&["trust"]).code, 0);
    std::fs::write(project.home.path().join("trust.json"), "{").unwrap();
    let said = project.say(&["-m", "openai/x", "hello"]);
    assert_eq!(said.code, 2, "{}", said.stderr);
    assert!(said.stderr.contains("trust.json is damaged"), "{}", said.stderr);
}
