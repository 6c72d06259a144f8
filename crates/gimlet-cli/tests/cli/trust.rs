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

    let trusted = project.say(&["trust", "--yes"]);
    assert_eq!(trusted.code, 0, "{}", trusted.stderr);
    insta::assert_snapshot!("trust_file", trusted.stderr);
    let said = with_key(&project, &["hello", "--timeout", "1"]);
    assert_ne!(said.code, 2, "it is tried now: {}", said.stderr);
    assert!(said.stderr.contains("the key for openai is not sent to 198.51.100.1"), "{}", said.stderr);

    project.file("gimlet.toml", "[model]\nid = \"openai/x\"\napi_base = \"http://198.51.100.2:9\"\n");
    let said = with_key(&project, &["hello", "--timeout", "1"]);
    assert_eq!(said.code, 2, "{}", said.stderr);
    let again = project.say(&["trust", "gimlet.toml", "--yes"]);
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
        assert_eq!(project.say(&["trust", "--yes"]).code, 0);
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
    assert_eq!(project.say(&["trust", "--yes"]).code, 0);
    std::fs::write(project.home.path().join("trust.json"), "{").unwrap();
    let said = project.say(&["-m", "openai/x", "hello"]);
    assert_eq!(said.code, 2, "{}", said.stderr);
    assert!(said.stderr.contains("trust.json is damaged"), "{}", said.stderr);
}

/// A pin is about one project: another whose file is a link to the trusted one has programs of its own.
#[test]
fn finding_02_trust_does_not_travel_by_symlink() {
    let (ours, theirs) = (Project::new(), Project::new());
    let marker = ours.home.path().join("started");
    let entry = serde_json::json!({ "mcpServers": { "s": { "command": "sh", "args": ["./server.sh"] } } });
    let script =
        |text: &str| format!("#!/bin/sh\ntouch {}{text}\necho started{text} >&2\n", marker.display());
    ours.file(".mcp.json", &entry.to_string());
    ours.file("server.sh", &script("-ours"));
    assert_eq!(ours.say(&["trust", ".mcp.json", "--yes"]).code, 0);
    theirs.file("server.sh", &script("-theirs"));
    let target = ours.repo.path().canonicalize().unwrap().join(".mcp.json");
    let link = theirs.repo.path().join(".mcp.json");
    std::os::unix::fs::symlink(&target, &link).unwrap();
    std::os::unix::fs::symlink(ours.repo.path(), theirs.repo.path().join("sub")).unwrap();
    let say = |args: &[&str]| {
        Said::from(theirs.gimlet(args).env("GIMLET_HOME", ours.home.path()).output().unwrap())
    };
    let listed = say(&["mcp"]);
    assert!(listed.stderr.contains(".mcp.json is a symbolic link"), "{}{}", listed.stdout, listed.stderr);
    for file in [".mcp.json", "sub/.mcp.json"] {
        let named = say(&["mcp", "--mcp", file]);
        assert_eq!(named.code, 2, "{file}: {}{}", named.stdout, named.stderr);
    }
    assert_eq!(say(&["trust", ".mcp.json", "--yes"]).code, 2, "a link is not pinned either");
    assert!(
        !ours.home.path().join("started-theirs").exists() && !ours.home.path().join("started-ours").exists()
    );
    // In its own project the trusted file is used.
    let said = ours.say(&["mcp"]);
    assert!(said.stdout.contains("started-ours"), "{}{}", said.stdout, said.stderr);
}

/// A list that an older version wrote still holds for files at the top of their project.
#[test]
fn pins_without_a_project_are_still_read() {
    let project = Project::new();
    project.file(".env", "MODEL_API_BASE=https://x.example.com\n");
    assert_eq!(project.say(&["trust", "--yes"]).code, 0);
    let list = project.home.path().join("trust.json");
    let mut pins: Value = serde_json::from_slice(&std::fs::read(&list).unwrap()).unwrap();
    assert!(pins[0]["root"].is_string());
    pins[0].as_object_mut().unwrap().remove("root");
    std::fs::write(&list, pins.to_string()).unwrap();
    let shown: Value = serde_json::from_str(&project.say(&["trust", "--list", "--json"]).stdout).unwrap();
    assert_eq!(shown[0]["state"], "trusted");
    pins[0]["path"] = Value::from("/elsewhere/.env");
    std::fs::write(&list, pins.to_string()).unwrap();
    assert_eq!(with_key(&project, &["-m", "openai/x", "hello"]).code, 2);
}

#[test]
fn without_a_terminal_trust_needs_a_yes() {
    let project = Project::new();
    project.file(".env", "MODEL_API_BASE=https://x.example.com\n");
    let said = project.say(&["trust"]);
    assert_eq!(said.code, 2, "{}", said.stderr);
    assert!(said.stderr.contains("there is no terminal to ask on"), "{}", said.stderr);
    assert_eq!(project.say(&["trust", "--list", "--json"]).stdout, "[]\n");
}

/// A repository plays the model, or raises what a run may use, only after it is trusted.
#[test]
fn finding_13_an_untrusted_project_neither_plays_the_model_nor_raises_limits() {
    let project = Project::new();
    project.file("script.toml", "[[reply]]\ntext = \"I am the repository.\"\n");
    for (name, text) in [
        (".env", "MODEL_ID=scripted/script.toml\n"),
        ("gimlet.toml", "[model]\nid = \"scripted/script.toml\"\n"),
    ] {
        project.file(name, text);
        let said = project.say(&["hello"]);
        assert_eq!(said.code, 2, "{name}: {}{}", said.stdout, said.stderr);
        assert!(said.stderr.contains("and is not trusted"), "{}", said.stderr);
        std::fs::remove_file(project.repo.path().join(name)).unwrap();
    }
    let raised = "AGENT_MAX_STEPS=100000\nSANDBOX_TIMEOUT=86400\nTRUNCATION_MAX_CHARS=900000000\nVALIDATION_MAX_CHARS=900000000\n";
    project.file(".env", raised);
    let shown = project.say(&["config"]);
    assert!(!shown.stdout.contains("100000") && !shown.stdout.contains("900000000"), "{}", shown.stdout);
    for key in ["agent.max_steps", "sandbox.timeout"] {
        assert!(shown.stderr.contains(&format!("{key} would be")), "{key}: {}", shown.stderr);
    }
    // It may still ask for less.
    project.file(".env", "AGENT_MAX_STEPS=3\n");
    let shown = project.say(&["config"]);
    assert!(
        shown.stdout.lines().any(|line| line.contains("AGENT_MAX_STEPS") && line.contains(" 3 ")),
        "{}",
        shown.stdout
    );
}
