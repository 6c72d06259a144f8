//! Real servers, each installed from its package registry, and real clients for our own. Where they are comes in by
//! variables: GIMLET_TEST_MCP_PYTHON, a Python with `mcp`, `fastmcp`, `mcp-server-git` and `mcp-server-time`;
//! GIMLET_TEST_MCP_NODE, a folder with `server-everything` and `server-filesystem`.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use gimlet_mcp::config::{HttpWire, Launch, Protocol, ServerConfig};
use gimlet_mcp::{Health, Servers, check};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::support::{World, configured, fixture, ground};

fn variable(name: &str) -> PathBuf {
    PathBuf::from(std::env::var_os(name).unwrap_or_else(|| panic!("{name} says where the servers are")))
}

fn python() -> PathBuf {
    variable("GIMLET_TEST_MCP_PYTHON")
}

fn script(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/mcp").join(name).display().to_string()
}

/// A program that speaks over its standard streams.
fn stdio(command: impl AsRef<Path>, args: &[&str]) -> ServerConfig {
    let launch = Launch::Stdio {
        command: command.as_ref().display().to_string(),
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        env: Default::default(),
        cwd: None,
    };
    ServerConfig { launch, connect_timeout: Duration::from_secs(120), ..fixture("") }
}

fn node(package: &str, args: &[&str]) -> ServerConfig {
    let program = variable("GIMLET_TEST_MCP_NODE").join("node_modules/.bin").join(package);
    stdio(program, args)
}

fn remote(url: &str, wire: HttpWire) -> ServerConfig {
    let launch = Launch::Remote { url: url.into(), headers: Default::default(), wire };
    ServerConfig { launch, connect_timeout: Duration::from_secs(60), ..fixture("") }
}

/// The revision that was agreed on.
async fn spoken(config: ServerConfig) -> String {
    match check(config, &ground()).await.health {
        Health::Up { protocol, .. } => protocol,
        Health::Down { error, .. } => panic!("{error}"),
    }
}

/// A server that listens, killed when dropped.
struct Listening {
    _child: Child,
    address: String,
}

/// Starts `examples/mcp/memory_server.py` over HTTP on a port of the system's choice.
async fn listening(transport: &str) -> Listening {
    let mut child = Command::new(python())
        .args([&script("memory_server.py"), transport])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let address =
        tokio::time::timeout(Duration::from_secs(60), lines.next_line()).await.unwrap().unwrap().unwrap();
    // It says where it will listen; wait until it does.
    let host = address.trim_start_matches("http://").split('/').next().unwrap().to_owned();
    for _ in 0..600 {
        if tokio::net::TcpStream::connect(&host).await.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Listening { _child: child, address }
}

async fn remembers(world: &World) {
    let created = world.call("create_memory", json!({"text": "tea at four", "tags": ["habit"]})).await;
    assert_eq!(created["text"], "tea at four", "{created}");
    let recalled = world.call("semantic_recall", json!({"query": "tea"})).await;
    assert_eq!(recalled[0]["text"], "tea at four", "a list is a list: {recalled}");
    let state = world.call("get_consciousness_state", json!({})).await;
    assert_eq!(state["memories"], 1, "{state}");
}

#[tokio::test]
#[ignore = "needs servers from the package registries"]
async fn the_example_configuration_works() {
    let text = std::fs::read_to_string(script("gimlet.toml")).unwrap();
    let mut configs = configured(&text.replace("memory_server.py", &script("memory_server.py")));
    let [config] = &mut configs[..] else { panic!("{configs:?}") };
    assert_eq!(config.required, ["semantic_recall", "create_memory", "get_consciousness_state"]);
    if let Launch::Stdio { command, .. } = &mut config.launch {
        *command = python().display().to_string();
    }
    for (protocol, revision) in [(Protocol::Auto, "2026-07-28"), (Protocol::Handshake, "2025-11-25")] {
        let config = ServerConfig { protocol, ..config.clone() };
        assert_eq!(spoken(config.clone()).await, revision);
        let world = World::start(config).await;
        assert!(world.names().contains(&"memory__semantic_recall".to_owned()), "{:?}", world.names());
        remembers(&world).await;
        world.servers.close().await;
    }
    config.required.push("forget_everything".into());
    let error = Servers::start(configs, &ground()).await.err().unwrap();
    assert_eq!(error.to_string(), "MCP server `memory` does not offer the required tool forget_everything");
}

#[tokio::test]
#[ignore = "needs servers from the package registries"]
async fn fastmcp_over_both_kinds_of_http() {
    for (transport, wire) in
        [("http", HttpWire::Streamable), ("http", HttpWire::Detect), ("sse", HttpWire::Sse)]
    {
        let server = listening(transport).await;
        let config = remote(&server.address, wire);
        let world = World::start(config).await;
        remembers(&world).await;
        world.servers.close().await;
    }
    let server = listening("sse").await;
    assert_eq!(
        spoken(remote(&server.address, HttpWire::Detect)).await,
        "2025-11-25",
        "the older way is found"
    );
}

#[tokio::test]
#[ignore = "needs servers from the package registries"]
async fn the_reference_servers_in_python() {
    let bin = python().parent().unwrap().to_owned();
    let repo = tempfile::tempdir().unwrap();
    for args in [
        &["init", "-q"][..],
        &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first", "--allow-empty"],
    ] {
        assert!(
            std::process::Command::new("git").args(args).current_dir(repo.path()).status().unwrap().success()
        );
    }
    let path = repo.path().display().to_string();
    let world = World::start(stdio(bin.join("mcp-server-git"), &["--repository", &path])).await;
    let log = world.call("git_log", json!({"repo_path": path})).await;
    assert!(log.to_string().contains("first"), "{log}");

    let world = World::start(stdio(bin.join("mcp-server-time"), &["--local-timezone", "UTC"])).await;
    let now = world.call("get_current_time", json!({"timezone": "Europe/Berlin"})).await;
    assert!(now.to_string().contains("Europe/Berlin"), "{now}");
    let wrong = world.call("get_current_time", json!({"timezone": "Nowhere/At_All"})).await;
    assert_eq!(wrong["error"], "MCP_TOOL_FAILED", "{wrong}");
}

#[tokio::test]
#[ignore = "needs servers from the package registries"]
async fn the_reference_servers_in_javascript() {
    assert_eq!(spoken(node("mcp-server-everything", &["stdio"])).await, "2025-11-25");
    let world = World::start(node("mcp-server-everything", &["stdio"])).await;
    let names = world.names();
    assert!(names.iter().all(|name| name.starts_with("fix__") || name.starts_with("mcp_")), "{names:?}");
    let echoed = world.call("echo", json!({"message": "hello"})).await;
    assert_eq!(echoed, "Echo: hello");
    let image = world.call("get_tiny_image", json!({})).await;
    assert!(image.as_str().unwrap().contains("[image: image/png, "), "{image}");
    let structured = world.call("get_structured_content", json!({"location": "New York"})).await;
    assert!(structured["temperature"].is_number(), "{structured}");
    let long = world.call("trigger_long_running_operation", json!({"duration": 1, "steps": 2})).await;
    assert!(long.as_str().unwrap().contains("completed"), "{long}");
    let notices = world.notices.take();
    assert!(notices.iter().any(|notice| notice.contains('%')), "{notices:?}");
    let lists = world.call("mcp_read", json!({})).await;
    let text = lists["fix"].as_str().unwrap();
    assert!(text.contains("uri demo://") && text.contains("prompt "), "{text}");

    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "hello").unwrap();
    let path = folder.path().display().to_string();
    let world = World::start(node("mcp-server-filesystem", &[&path])).await;
    let read = world.call("read_text_file", json!({"path": format!("{path}/a.txt")})).await;
    assert!(read.to_string().contains("hello"), "{read}");
    let outside = world.call("read_text_file", json!({"path": "/etc/hostname"})).await;
    assert_eq!(outside["error"], "MCP_TOOL_FAILED", "{outside}");
}

#[tokio::test]
#[ignore = "needs servers from the package registries"]
async fn server_everything_over_streamable_http() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let program = variable("GIMLET_TEST_MCP_NODE").join("node_modules/.bin/mcp-server-everything");
    let mut child = Command::new(program)
        .arg("streamableHttp")
        .env("PORT", port.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let url = format!("http://127.0.0.1:{port}/mcp");
    for _ in 0..600 {
        if tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let world = World::start(remote(&url, HttpWire::Detect)).await;
    assert_eq!(world.call("echo", json!({"message": "hello"})).await, "Echo: hello");
    child.kill().await.unwrap();
    let died: Value = world.call("echo", json!({"message": "hello"})).await;
    assert!(died["error"].as_str().is_some_and(|error| error.starts_with("MCP_")), "{died}");
}
