//! A server that behaves: names, results, effects, changes, progress, resources, processes.

use std::sync::Arc;

use gimlet::Env;
use gimlet::approval::DenyAll;
use gimlet::effect::Effect;
use gimlet::tool::{ToolCx, ToolError, TypedTool, tool};
use gimlet_mcp::config::{Hints, Protocol, Remember};
use gimlet_mcp::{Health, McpError, Reaper, Servers, check};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{World, alive, fixture, gone, ground, grown, marked};

/// A built-in of the same name as one of the server's tools.
#[derive(Deserialize, JsonSchema)]
struct Nothing {}

struct ReadFile;

impl TypedTool for ReadFile {
    const NAME: &'static str = "read_file";
    type Input = Nothing;
    type Output = Value;

    async fn run(&self, _input: Nothing, _cx: &ToolCx) -> Result<Value, ToolError> {
        Ok(json!("our own"))
    }
}

#[tokio::test]
async fn names_are_safe_unique_and_never_shadow() {
    let world = World::with(vec![fixture("good")], vec![tool(ReadFile)]).await;
    let names = world.names();
    assert!(names.contains(&"fix__echo".into()) && names.contains(&"fix__get_item_now".into()), "{names:?}");
    assert!(names.contains(&"mcp_read".into()) && names.contains(&"mcp_call".into()), "{names:?}");
    assert_eq!(
        world.call("read_file", json!({})).await,
        "our own",
        "a server cannot take a built-in's place"
    );
    assert_eq!(world.call("fix__read_file", json!({})).await, "called read_file");
    assert_eq!(world.call("get_item_now", json!({})).await, "called get-item.now", "its own name is enough");
    assert_eq!(world.call("echo", json!({"text": "hi"})).await, "hi");
}

#[tokio::test]
async fn an_own_name_that_two_servers_have_is_nobodys() {
    let mut other = fixture("good");
    other.name = "other".into();
    let world = World::with(vec![fixture("good"), other], Vec::new()).await;
    assert_eq!(world.call("echo", json!({"text": "hi"})).await["error"], "UNKNOWN_TOOL");
    assert_eq!(world.call("other__echo", json!({"text": "hi"})).await, "hi");
}

#[tokio::test]
async fn results_have_types() {
    for mode in ["good", "modern"] {
        let world = World::start(fixture(mode)).await;
        assert_eq!(
            world.call("add", json!({"a": 2, "b": "3"})).await,
            json!({"sum": 5}),
            "structure, and \"3\" is 3"
        );
        assert_eq!(world.call("picture", json!({})).await, "Here:\n[image: image/png, 3 bytes, not shown]");
        let failed = world.call("fail", json!({})).await;
        assert_eq!(
            (&failed["error"], &failed["message"]),
            (&json!("MCP_TOOL_FAILED"), &json!("no such memory"))
        );
        let wrong = world.call("add", json!({"a": 2})).await;
        assert_eq!(wrong["error"], "VALIDATION_FAILED", "{wrong}");
        assert_eq!(wrong["context"]["usage"], "fix__add(a: int, b: int)");
    }
}

#[tokio::test]
async fn both_revisions_of_the_protocol_are_spoken() {
    for (mode, protocol, spoken) in [
        ("good", Protocol::Auto, "2025-11-25"),
        ("modern", Protocol::Auto, "2026-07-28"),
        ("modern", Protocol::Handshake, "2025-11-25"),
        ("modern", Protocol::Discover, "2026-07-28"),
    ] {
        let row = check(gimlet_mcp::config::ServerConfig { protocol, ..fixture(mode) }, &ground()).await;
        let Health::Up { protocol, tools, .. } = row.health else { panic!("{row:?}") };
        assert_eq!(protocol, spoken);
        assert!(tools.contains(&"get-item.now".to_owned()), "{tools:?}");
    }
}

#[tokio::test]
async fn every_call_asks_unless_the_user_believes_the_server() {
    let world = World::start(fixture("good")).await;
    world.call("fix__echo", json!({"text": "a"})).await;
    world.call("fix__echo", json!({"text": "b"})).await;
    let [one, two] = world.questions().try_into().unwrap();
    assert_ne!(one.binding, two.binding, "a yes is for these arguments");
    let Effect::Opaque { what } = &one.effects[0] else { panic!("{one:?}") };
    assert!(what.starts_with("`echo` of MCP server `fix` with {\"text\":\"a\"} (as defined by "), "{what}");

    let refused =
        world.call_in(Env { approver: Arc::new(DenyAll), ..world.env() }, "echo", json!({"text": "a"})).await;
    assert_eq!(refused["error"], "APPROVAL_DENIED");

    let mut trusted = fixture("good");
    (trusted.hints, trusted.remember) = (Hints::Believed, Remember::Tool);
    let world = World::start(trusted).await;
    world.call("fix__echo", json!({"text": "a"})).await;
    assert!(world.questions().is_empty(), "it says that it only reads, and is believed");
    world.call("fix__add", json!({"a": 1, "b": 2})).await;
    world.call("fix__add", json!({"a": 3, "b": 4})).await;
    let [one, two] = world.questions().try_into().unwrap();
    assert_eq!(one.binding, two.binding, "a yes for the tool is good for all arguments");
}

#[tokio::test]
async fn required_tools_are_counted_before_anything_else() {
    let mut config = fixture("good");
    config.required = vec!["echo".into(), "semantic_recall".into(), "create_memory".into()];
    let Err(error) = Servers::start(vec![config.clone()], &ground()).await else { panic!() };
    assert_eq!(
        error.to_string(),
        "MCP server `fix` does not offer the required tools semantic_recall, create_memory"
    );
    assert!(error.hint().starts_with("it offers echo, add, "), "{}", error.hint());

    config.required = vec!["echo".into()];
    config.filter.deny = vec!["ec*".into()];
    let denied = Servers::start(vec![config], &ground()).await;
    assert!(matches!(denied, Err(McpError::MissingTools { .. })), "what is denied is not there");

    let mut absent = fixture("exit");
    absent.required = vec!["echo".into()];
    let error = Servers::start(vec![absent], &ground()).await.err().unwrap();
    assert!(error.to_string().contains("No module named 'memory_server'"), "{error}");
}

#[tokio::test]
async fn lists_decide_what_is_offered() {
    let mut config = fixture("good");
    config.filter.allow = Some(vec!["e*".into(), "add".into()]);
    config.filter.deny = vec!["environment".into()];
    let names = World::start(config).await.names();
    assert_eq!(names, ["fix__echo", "fix__add", "fix__endless_line", "mcp_read", "mcp_call"]);
}

#[tokio::test]
async fn changes_of_the_list_are_followed_and_ask_again() {
    let mut config = fixture("good");
    config.hints = Hints::Believed;
    let world = World::start(config).await;
    world.call("fix__echo", json!({"text": "a"})).await;
    assert!(world.questions().is_empty());
    assert_eq!(world.call("grow", json!({})).await, "grown");
    world.questions();
    let mut changed = Value::Null;
    // The news travels beside the result.
    for _ in 0..200 {
        changed = world.call("fix__echo", json!({"text": "a"})).await;
        if changed.is_object() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(changed["error"], "MCP_TOOL_CHANGED", "{changed}");
    assert_eq!(changed["context"]["usage"], "echo(text: str)");
    assert_eq!(world.call("fix__fail", json!({})).await["error"], "MCP_TOOL_GONE");

    let listed = world.call("mcp_call", json!({"server": "fix"})).await.to_string();
    assert!(listed.contains("later()") && listed.contains("louder"), "{listed}");
    assert!(world.questions().is_empty());
    let again = json!({"server": "fix", "tool": "echo", "arguments": {"text": "b"}});
    assert_eq!(world.call("mcp_call", again).await, "b");
    assert_eq!(world.call("mcp_call", json!({"server": "fix", "tool": "later"})).await, "called later");
    assert_eq!(world.questions().len(), 2, "what changed is asked about, whatever it says of itself");
    let missing = world.call("mcp_call", json!({"server": "fix", "tool": "nope"})).await;
    assert_eq!(missing["error"], "MCP_TOOL_GONE");
}

#[tokio::test]
async fn progress_and_messages_are_shown() {
    let world = World::start(fixture("good")).await;
    assert_eq!(world.call("slow", json!({})).await, "done");
    assert_eq!(
        world.notices.take(),
        ["fix: 30% indexing", "fix: 60% indexing", "fix: 100% indexing", "fix: half way"]
    );
}

#[tokio::test]
async fn resources_and_prompts_are_read_through_a_tool() {
    let world = World::start(fixture("good")).await;
    let listed = world.call("mcp_read", json!({})).await;
    assert_eq!(listed["fix"], "uri note://a – A note\nprompt greet(who) – \n");
    assert!(world.questions().is_empty(), "listing asks nobody");
    assert_eq!(world.call("mcp_read", json!({"uri": "note://a"})).await, "buy milk");
    let prompt = world
        .call("mcp_read", json!({"server": "fix", "prompt": "greet", "arguments": {"who": "Ada"}}))
        .await;
    assert_eq!(prompt["messages"][0]["text"], "Greet \"Ada\"");
    assert_eq!(world.questions().len(), 2);
    let both = world.call("mcp_read", json!({"uri": "note://a", "prompt": "greet"})).await;
    assert_eq!(both["error"], "VALIDATION_FAILED");
}

#[tokio::test]
async fn a_cancelled_call_is_cancelled_there_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cancelled");
    let mut config = fixture("good");
    if let gimlet_mcp::config::Launch::Stdio { env, .. } = &mut config.launch {
        env.insert("CANCELLED".into(), file.display().to_string());
    }
    let world = World::start(config).await;
    let env = world.env();
    let cancel = env.cancel.clone();
    let stop = async {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        cancel.cancel();
    };
    let (result, ()) = tokio::join!(world.call_in(env, "hang", json!({})), stop);
    assert_eq!(result["error"], "CANCELLED", "{result}");
    for _ in 0..500 {
        if file.exists() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(std::fs::read_to_string(file).unwrap(), "the caller no longer waits");
    assert_eq!(world.call("echo", json!({"text": "still here"})).await, "still here");
}

#[tokio::test]
async fn a_child_sees_only_what_is_named() {
    let mut config = fixture("good");
    if let gimlet_mcp::config::Launch::Stdio { env, .. } = &mut config.launch {
        env.insert("DATABASE_URL".into(), "postgres://x".into());
    }
    let world = World::start(config).await;
    let seen = world.call("environment", json!({})).await;
    let names: Vec<&str> = seen.as_str().unwrap().lines().filter_map(|line| line.split('=').next()).collect();
    assert!(names.contains(&"DATABASE_URL") && names.contains(&"PATH"), "{names:?}");
    // Cargo gives every test dozens of variables of its own.
    assert!(std::env::var("CARGO_PKG_NAME").is_ok() && !names.contains(&"CARGO_PKG_NAME"), "{names:?}");
    let allowed = ["PATH", "HOME", "LD_LIBRARY_PATH", "DATABASE_URL"];
    assert!(names.iter().all(|name| allowed.contains(name)), "{names:?}");
}

#[tokio::test]
async fn closing_ends_the_whole_group() {
    for mode in ["grandchild", "stubborn"] {
        let mark = format!("closing-{mode}-{}", std::process::id());
        let world = World::start(marked(mode, &mark)).await;
        assert!(!alive(&mark).is_empty());
        world.servers.close().await;
        gone(&mark).await;
        assert_eq!(world.call("echo", json!({"text": "a"})).await["error"], "MCP_SERVER_GONE");
    }
}

#[test]
fn a_panic_leaves_nothing_behind() {
    let mark = format!("panic-{}", std::process::id());
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = marked("grandchild", &mark);
    let outcome = std::panic::catch_unwind(|| {
        runtime().block_on(async {
            let _world = World::start(config).await;
            grown(&mark).await;
            panic!("as a program does");
        })
    });
    assert!(outcome.is_err());
    runtime().block_on(gone(&mark));
}

#[tokio::test]
async fn the_reaper_ends_what_is_left_at_once() {
    let mark = format!("reaper-{}", std::process::id());
    let mut ground = ground();
    ground.reaper = Reaper::default();
    let servers = Servers::start(vec![marked("grandchild", &mark)], &ground).await.unwrap();
    grown(&mark).await;
    ground.reaper.kill_all();
    gone(&mark).await;
    drop(servers);
}

#[tokio::test]
async fn tools_outlive_the_agent_that_used_them() {
    let servers = Servers::start(vec![fixture("good")], &ground()).await.unwrap();
    for _ in 0..2 {
        let world = World::with(Vec::new(), servers.tools()).await;
        assert_eq!(world.call("echo", json!({"text": "again"})).await, "again");
        drop(world);
    }
    let specs: Vec<_> = servers.tools().iter().map(|tool| tool.spec()).collect();
    assert_eq!(specs, servers.tools().iter().map(|tool| tool.spec()).collect::<Vec<_>>());
    servers.close().await;
}
