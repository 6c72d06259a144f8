//! Servers that misbehave: each costs an error value, never a run.

use std::time::Duration;

use gimlet_mcp::config::{Launch, ServerConfig};
use gimlet_mcp::{Health, Servers, check};
use serde_json::json;

use crate::support::{World, fixture, gone, ground, marked};

async fn down(config: ServerConfig) -> (String, String) {
    match check(config, &ground()).await.health {
        Health::Down { error, hint } => (error, hint),
        up @ Health::Up { .. } => panic!("{up:?}"),
    }
}

#[tokio::test]
async fn a_server_that_hangs_at_its_start_is_given_up() {
    let mark = format!("hang-{}", std::process::id());
    let config = ServerConfig { connect_timeout: Duration::from_millis(300), ..marked("hang", &mark) };
    let (error, hint) = down(config.clone()).await;
    assert!(error.starts_with("MCP server `fix` was not ready within"), "{error}");
    assert!(hint.contains("connect_timeout"), "{hint}");
    gone(&mark).await;

    let servers = Servers::start(vec![config, fixture("good")], &ground()).await.unwrap();
    assert!(
        servers.warnings()[0].contains("Its tools are missing. Start it by hand"),
        "{:?}",
        servers.warnings()
    );
    assert!(servers.tools().iter().any(|tool| tool.spec().name == "fix__echo"), "the others work");
}

#[tokio::test]
async fn a_server_that_cannot_start_says_why() {
    let (error, _) = down(fixture("exit")).await;
    assert!(error.contains("it ended with exit status: 3\nIt wrote:\n"), "{error}");
    assert!(error.contains("  ModuleNotFoundError: No module named 'memory_server'"), "{error}");
    let mut config = fixture("good");
    if let Launch::Stdio { command, .. } = &mut config.launch {
        *command = "no-such-program".into();
    }
    let (error, hint) = down(config).await;
    assert!(error.starts_with("MCP server `fix` cannot be started: `no-such-program`: "), "{error}");
    assert_eq!(hint, "install `no-such-program`, or name it with its full path");
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_is_an_error_value_and_comes_back() {
    for mode in ["good", "modern"] {
        let world = World::start(fixture(mode)).await;
        let died = world.call("die", json!({})).await;
        assert_eq!(died["error"], "MCP_SERVER_DIED", "{died}");
        assert_eq!(
            died["message"],
            "MCP server `fix` ended with code 7 while it worked on this. The call may have taken effect."
        );
        assert_eq!(died["context"]["stderr"], "fatal: out of ideas");
        assert_eq!(died["context"]["hint"], "The next call starts it again.");
        assert_eq!(world.call("echo", json!({"text": "back"})).await, "back");
    }
}

#[tokio::test]
async fn a_server_that_does_not_come_back_is_left_alone_for_a_while() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("server");
    std::fs::copy(env!("CARGO_BIN_EXE_gimlet-mcp-fixture"), &program).unwrap();
    let mut config = fixture("good");
    if let Launch::Stdio { command, .. } = &mut config.launch {
        *command = program.display().to_string();
    }
    let world = World::start(config).await;
    std::fs::remove_file(&program).unwrap();
    world.call("die", json!({})).await;
    let gone = world.call("echo", json!({"text": "a"})).await;
    assert_eq!(gone["error"], "MCP_SERVER_GONE", "{gone}");
    assert!(gone["message"].as_str().unwrap().contains("cannot be started"), "{gone}");
    assert_eq!(gone["context"]["hint"], "Go on without it, or try again later.");
    std::fs::copy(env!("CARGO_BIN_EXE_gimlet-mcp-fixture"), &program).unwrap();
    let resting = world.call("echo", json!({"text": "a"})).await;
    assert_eq!(resting["error"], "MCP_SERVER_GONE", "it rests before the next try");
    tokio::time::sleep(Duration::from_millis(2200)).await;
    assert_eq!(world.call("echo", json!({"text": "a"})).await, "a");
}

#[tokio::test]
async fn a_call_without_an_answer_times_out_with_the_servers_words() {
    let config = ServerConfig { call_timeout: Duration::from_millis(300), ..fixture("flood") };
    let world = World::start(config).await;
    let late = world.call("hang", json!({})).await;
    assert_eq!(late["error"], "TOOL_TIMEOUT", "{late}");
    assert!(late["message"].as_str().unwrap().contains("did not answer within 0.3 s"), "{late}");
    assert!(late["context"]["stderr"].as_str().unwrap().contains("noise noise"), "{late}");
    assert_eq!(world.call("echo", json!({"text": "a"})).await, "a", "the others still work");
}

#[tokio::test]
async fn noise_on_either_stream_holds_nobody_up() {
    for mode in ["flood", "garbage"] {
        let world = World::start(fixture(mode)).await;
        for _ in 0..5 {
            assert_eq!(world.call("echo", json!({"text": mode})).await, mode);
        }
    }
}

#[tokio::test]
async fn a_huge_result_is_cut_and_kept() {
    let world = World::start(fixture("good")).await;
    let env = world.env();
    let store = env.store.clone();
    let big = world.call_in(env, "big", json!({})).await;
    let text = big.as_str().unwrap();
    assert!(text.len() < 10_000, "{}", text.len());
    let address = text.split("[full text: ").nth(1).unwrap().trim_end_matches(']').parse().unwrap();
    assert_eq!(store.get(&address).await.unwrap().len(), 20 * 1024 * 1024);
    assert_eq!(world.call("echo", json!({"text": "a"})).await, "a");
}

#[tokio::test]
async fn a_message_without_end_cuts_the_server_off() {
    let world = World::start(fixture("good")).await;
    let cut = world.call("endless_line", json!({})).await;
    assert_eq!(cut["error"], "MCP_SERVER_DIED", "{cut}");
    assert!(cut["message"].as_str().unwrap().contains("it sent a message of more than 32 MB"), "{cut}");
    assert_eq!(world.call("echo", json!({"text": "back"})).await, "back");
}

#[tokio::test]
async fn two_tools_of_one_name_are_one() {
    let world = World::start(fixture("double")).await;
    assert_eq!(world.servers.warnings(), ["MCP server `fix` has two tools `echo`; the second is ignored"]);
    let mut names = world.names();
    names.sort();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
    let alike = names.iter().filter(|name| name.starts_with("fix__get_item_now")).count();
    assert_eq!(alike, 2, "{names:?}");
    assert_eq!(world.call("echo", json!({"text": "first"})).await, "first");
}

#[tokio::test]
async fn schemas_that_explode_are_defused() {
    let world = World::start(fixture("bomb")).await;
    let spec = world.agent.toolbox().specs().iter().find(|spec| spec.name == "fix__bomb").unwrap().clone();
    assert!(
        spec.input.to_string().len() < 6001 && spec.description.len() < 1100,
        "{}",
        spec.description.len()
    );
    assert!(!spec.input.to_string().contains("$ref"));
    let evil = "a".repeat(60) + "!";
    assert_eq!(world.call("bomb", json!({"slow": evil, "far": 1})).await, "called bomb");
}

#[tokio::test]
async fn a_list_without_end_ends() {
    let world = World::start(fixture("endless")).await;
    assert_eq!(world.names().iter().filter(|name| *name == "fix__again").count(), 1);
    let warnings = world.servers.warnings();
    assert!(warnings.iter().any(|warning| warning.contains("lists tools without end")), "{warnings:?}");
}
