//! How MCP servers are started: a project's in a jail and only with the code that was trusted, and none leaves a process.

use std::io::Read;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::mcp::file;
use crate::support::{Project, Said, has_python};

/// A project whose trusted file has this script run as a server.
fn with_server(script: &str, more: &Value) -> Project {
    let project = Project::new();
    let mut entry = json!({"command": "sh", "args": ["server.sh"]});
    for (key, value) in more.as_object().unwrap() {
        entry[key] = value.clone();
    }
    project.file("server.sh", script);
    project.file(".mcp.json", &json!({"mcpServers": {"s": entry}}).to_string());
    let said = project.say(&["trust", ".mcp.json", "--yes"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stderr.contains("runs server.sh"), "{}", said.stderr);
    project
}

/// What `gimlet mcp` says; none where nothing here can confine a server, which then is not started.
fn list(project: &Project) -> Option<Said> {
    let said = project.say(&["mcp"]);
    if said.stdout.contains("there is none here") {
        assert!(std::env::var_os("CI").is_none(), "CI needs a jail: {}", said.stdout);
        assert!(!said.stdout.contains("started"), "{}", said.stdout);
        return None;
    }
    assert!(said.stdout.contains("started"), "{}{}", said.stdout, said.stderr);
    Some(said)
}

const PROBE: &str = "echo started >&2
cat OUTSIDE >&2
echo x > calc.py && echo WROTE-PROJECT >&2
echo x > planted.txt && echo WROTE-TOP >&2
echo x >> .git/config && echo WROTE-GIT >&2
cat .env >&2
";

#[test]
fn finding_07_a_projects_server_runs_in_a_jail() {
    for (more, writes) in
        [(json!({}), false), (json!({"write": true}), true), (json!({"jail": false}), false)]
    {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("key"), "TOPSECRET").unwrap();
        let probe = PROBE.replace("OUTSIDE", &outside.path().join("key").display().to_string());
        let project = with_server(&probe, &more);
        project.file(".env", "KEY=TOPSECRET\n");
        let settings = std::fs::read(project.repo.path().join(".git/config")).unwrap();
        let Some(said) = list(&project) else { return };
        assert!(!said.stdout.contains("TOPSECRET"), "{}", said.stdout);
        assert_eq!(said.stdout.contains("WROTE-PROJECT"), writes, "{more} {}", said.stdout);
        assert!(!said.stdout.contains("WROTE-TOP") && !said.stdout.contains("WROTE-GIT"), "{}", said.stdout);
        assert!(!project.repo.path().join("planted.txt").exists());
        assert_eq!(std::fs::read(project.repo.path().join(".git/config")).unwrap(), settings);
        let is_said = said.stderr.contains("`jail = false` of MCP server `s` is ignored");
        assert_eq!(is_said, more == json!({"jail": false}), "{}", said.stderr);
    }
}

#[test]
fn finding_07_a_projects_server_has_the_network_only_when_its_entry_says_so() {
    if !has_python() {
        return;
    }
    for network in [false, true] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let script = format!(
            "echo started >&2\npython3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 5)' && echo REACHED >&2\n"
        );
        let project = with_server(&script, &json!({ "network": network }));
        let Some(said) = list(&project) else { return };
        assert_eq!(said.stdout.contains("REACHED"), network, "{}", said.stdout);
    }
}

/// What a jailed command wrote into a server's script does not run before a person has trusted it.
#[test]
fn finding_07_a_servers_code_is_pinned_with_its_trust() {
    let project = with_server("echo started >&2\n", &json!({}));
    if list(&project).is_none() {
        return;
    }
    let call = json!({"cmd": "echo 'echo EVIL >&2' > server.sh"}).to_string();
    let said = project.say(&["tools", "call", "run_cmd", &call, "--approve", "all"]);
    assert_eq!(said.code, 0, "{}{}", said.stdout, said.stderr);
    let said = project.say(&["mcp"]);
    assert!(said.stdout.contains("s  off  server.sh is not as it was when"), "{}", said.stdout);
    assert!(!said.stdout.contains("EVIL"), "{}", said.stdout);
    let said = project.run("[[reply]]\ntext = \"Hello.\"\n", &[]);
    assert!(said.code == 0 && said.stderr.contains("MCP server `s` is off: server.sh"), "{}", said.stderr);
    let listed: Value = serde_json::from_str(&project.say(&["trust", "--list", "--json"]).stdout).unwrap();
    assert_eq!(listed[0]["state"], "changed");
    let again = project.say(&["trust", ".mcp.json", "--yes"]);
    assert!(again.stderr.contains("uses files that have changed"), "{}", again.stderr);
    assert!(project.say(&["mcp"]).stdout.contains("EVIL"));
}

/// Processes whose arguments hold this text.
fn running(mark: &str) -> usize {
    let arguments = |entry: std::fs::DirEntry| {
        let mut text = String::new();
        std::fs::File::open(entry.path().join("cmdline")).ok()?.read_to_string(&mut text).ok()?;
        Some(text)
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten().filter_map(arguments);
    all.filter(|text| text.starts_with("sleep") && text.contains(mark)).count()
}

#[test]
fn finding_16_a_servers_children_end_with_it_whatever_session_they_are_in() {
    for (number, then) in ["exit 1", "exec cat", "sleep 600"].iter().enumerate() {
        let project = Project::new();
        let mark = format!("60{number}.{}", std::process::id());
        let line = format!("setsid sleep {mark} & (setsid sh -c 'sleep {mark} &' &); {then}");
        let entry = json!({"command": "sh", "args": ["-c", line], "connectTimeout": 1});
        let servers = file(&project, &json!({ "s": entry }));
        assert_eq!(project.say(&["mcp", "--mcp", &servers]).code, 1);
        let asked = Instant::now();
        while running(&mark) > 0 && asked.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(running(&mark), 0, "{then}");
    }
}
