//! MCP through the real binary, in both directions: `gimlet mcp serve` is the server that the client is tried with.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Project, Said, of_type};

/// An entry that starts this program as a server of the project.
pub(crate) fn ourselves(project: &Project) -> Value {
    json!({
        "command": assert_cmd::cargo::cargo_bin!("gimlet"),
        "args": ["mcp", "serve", "--root", project.repo.path(), "--approve", "all"],
        "env": {"GIMLET_HOME": project.home.path().join("server")},
        "requiredTools": ["read_file", "run_cmd"],
    })
}

/// A file of the user's own that names servers.
pub(crate) fn file(project: &Project, servers: &Value) -> String {
    let path = project.home.path().join("servers.json");
    std::fs::write(&path, json!({ "mcpServers": servers }).to_string()).unwrap();
    path.display().to_string()
}

#[test]
fn servers_are_listed_with_their_health() {
    let project = Project::new();
    let said = project.say(&["mcp"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, ""), "{}", said.stderr);
    assert!(said.stderr.contains("no MCP server is configured\nhint: "), "{}", said.stderr);

    let broken = json!({"command": "no-such-program"});
    let servers = file(&project, &json!({"g": ourselves(&project), "broken": broken}));
    let said = project.say(&["mcp", "list", "--mcp", &servers]);
    assert_eq!(said.code, 1, "{}", said.stderr);
    assert!(
        said.stdout.contains("g  up  ") && said.stdout.contains("protocol 2026-07-28, "),
        "{}",
        said.stdout
    );
    assert!(said.stdout.contains("broken  down  no-such-program\n"), "{}", said.stdout);
    assert!(said.stdout.contains("hint: install `no-such-program`"), "{}", said.stdout);

    let servers = file(&project, &json!({"g": ourselves(&project)}));
    let said = project.say(&["mcp", "--mcp", &servers, "list", "--json"]);
    let listed: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!((said.code, &listed["servers"][0]["health"]), (0, &json!("up")));
}

#[test]
fn a_projects_servers_are_off_until_they_are_trusted() {
    let project = Project::new();
    let marker = project.home.path().join("started");
    let entry = format!(
        "[mcp.evil]\ncommand = \"sh\"\nargs = [\"-c\", \"touch {}; echo started >&2; sleep 60\"]\nconnect_timeout = 2\ntrusted = true\n",
        marker.display()
    );
    project.file("gimlet.toml", &entry);
    project.file("mcp.json", &json!({"mcpServers": {"other": {"command": "true"}}}).to_string());
    let said = project.say(&["mcp"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stdout.contains("evil  off  ") && said.stdout.contains("other  off  "), "{}", said.stdout);
    assert!(said.stdout.contains("hint: read it, then run: gimlet trust "), "{}", said.stdout);
    let said = project.run("[[reply]]\ntext = \"Hello.\"\n", &[]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "Hello.\n"), "{}", said.stderr);
    assert!(said.stderr.contains("are off; to use them: gimlet trust "), "{}", said.stderr);
    assert!(!marker.exists(), "nothing was started");

    assert_eq!(project.say(&["trust", "gimlet.toml", "--yes"]).code, 0);
    let said = project.say(&["mcp"]);
    assert!(
        said.stdout.contains("started") && said.stdout.contains("evil  down  "),
        "{} {}",
        said.stdout,
        said.stderr
    );
    assert!(!marker.exists(), "its jail does not reach there");
    assert!(said.stderr.contains("`trusted` of MCP server `evil` is ignored"), "{}", said.stderr);

    project.file("gimlet.toml", &format!("{entry}# changed\n"));
    assert!(project.say(&["mcp"]).stdout.contains("evil  off  "), "a changed file asks again");
    assert!(!marker.exists());

    let said = project.say(&["mcp", "--mcp", "mcp.json"]);
    assert_eq!(said.code, 2, "{}", said.stdout);
    assert!(said.stderr.contains("belongs to the project and is not trusted\nhint: "), "{}", said.stderr);
}

#[test]
fn a_server_sees_what_its_entry_names_and_no_secret_of_ours() {
    let project = Project::new();
    let seen = project.home.path().join("seen");
    let look = format!("env > {}", seen.display());
    let servers = file(
        &project,
        &json!({"nosy": {"command": "sh", "args": ["-c", look], "env": {"MINE": "${SERVICE_TOKEN}-as-named"}}}),
    );
    let mut command = project.gimlet(&["mcp", "--mcp", &servers]);
    let said = Said::from(command.env("SERVICE_TOKEN", "t0ps3cret").env("PLAIN", "plain").output().unwrap());
    assert_eq!(said.code, 1, "{}", said.stdout);
    let seen = std::fs::read_to_string(seen).unwrap();
    assert!(seen.contains("MINE=t0ps3cret-as-named\n") && seen.contains("PATH="), "{seen}");
    assert!(
        !seen.contains("SERVICE_TOKEN") && !seen.contains("PLAIN") && !seen.contains("GIMLET_HOME"),
        "{seen}"
    );
}

/// What the documentation tells people to write into their clients' files starts a server that works.
#[test]
fn the_documented_entries_work() {
    let text = include_str!("../../../../docs/mcp.md");
    let blocks = text.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut tried = 0;
    for block in blocks {
        let written: Value = serde_json::from_str(block).unwrap_or_else(|error| panic!("{error}: {block}"));
        let mut entry = written.as_object().unwrap().values().next().unwrap()["gimlet"].clone();
        assert_eq!(entry["command"], "gimlet", "{block}");
        entry["command"] = json!(assert_cmd::cargo::cargo_bin!("gimlet"));
        let project = Project::new();
        entry["env"] = json!({"GIMLET_HOME": project.home.path()});
        let servers = file(&project, &json!({ "gimlet": entry }));
        let said = project.say(&["mcp", "--mcp", &servers]);
        assert!(said.code == 0 && said.stdout.contains("gimlet  up  "), "{} {}", said.stdout, said.stderr);
        tried += 1;
    }
    assert_eq!(tried, 2, "Claude Code and Cursor share one, Zed has its own");
}

#[test]
fn missing_tools_end_the_run_before_it_begins() {
    let project = Project::new();
    let mut entry = ourselves(&project);
    entry["requiredTools"] = json!(["semantic_recall", "read_file", "create_memory"]);
    let servers = file(&project, &json!({"memory": entry}));
    let said = project.run("[[reply]]\ntext = \"never\"\n", &["--mcp", &servers]);
    assert_eq!((said.code, said.stdout.as_str()), (2, ""));
    let expected = "MCP server `memory` does not offer the required tools semantic_recall, create_memory\nhint: it offers ";
    assert!(said.stderr.contains(expected), "{}", said.stderr);
}

pub(crate) const LOOK: &str = r#"
order = "turns"
[[reply]]
calls = [{ name = "g__read_file", args = { path = "calc.py" } }]
[[reply]]
expect = ["return a - b"]
text = "It subtracts."
"#;

#[test]
fn a_foreign_tool_asks_and_a_yes_elsewhere_carries_on() {
    let project = Project::new();
    let servers = file(&project, &json!({"g": ourselves(&project)}));
    let said = project.run(LOOK, &["--mcp", &servers]);
    assert_eq!(said.code, 3, "{}", said.stderr);
    assert!(
        said.stderr.contains("`read_file` of MCP server `g` with {\"path\":\"calc.py\"}"),
        "{}",
        said.stderr
    );
    assert!(!said.stderr.contains("Service initialized"), "the library keeps quiet: {}", said.stderr);
    let waiting: Vec<Value> = serde_json::from_str(&project.say(&["approvals", "--json"]).stdout).unwrap();
    let id = waiting[0]["request"]["id"].as_str().unwrap();
    assert_eq!(project.say(&["approve", id, "--always"]).code, 0);
    let said = project.say(&["resume", "last", "--mcp", &servers]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "It subtracts.\n"), "{}", said.stderr);
    let said = project.run(LOOK, &["--mcp", &servers]);
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (0, "It subtracts.\n"),
        "always means always: {}",
        said.stderr
    );
}

#[test]
fn a_user_may_believe_a_server() {
    let project = Project::new();
    let mut entry = ourselves(&project);
    entry["trusted"] = json!(true);
    let servers = file(&project, &json!({"g": entry}));
    let (code, events) = project.events(LOOK, &["--mcp", &servers]);
    assert_eq!((code, of_type(&events, "approval.requested").len()), (0, 0));
}

#[test]
fn foreign_tools_are_functions_with_typed_results() {
    let script = r#"
[[reply]]
text = '''
```python
page = g__read_file("calc.py")
done = g__run_cmd(cmd="echo hello")
try:
    g__read_file(path="nope.py")
except ToolError as error:
    final_answer([type(page).__name__, page["total_lines"], "hello" in str(done), error.error])
```
'''
"#;
    let project = Project::new();
    let servers = file(&project, &json!({"g": ourselves(&project)}));
    let (code, events) = project.events(script, &["--action", "code", "--approve", "all", "--mcp", &servers]);
    assert_eq!(code, 0, "{events:?}");
    let finished = of_type(&events, "run.finished")[0];
    assert_eq!(finished["value"], json!(["dict", 2, true, "MCP_TOOL_FAILED"]), "{finished}");
}

#[test]
fn tools_can_be_called_by_hand() {
    let project = Project::new();
    let servers = file(&project, &json!({"g": ourselves(&project)}));
    let said = project.say(&["tools", "--mcp", &servers]);
    assert!(said.stdout.contains("g__read_file") && said.stdout.contains("g__ask"), "{}", said.stdout);
    let said = project.say(&["tools", "call", "g__repo_info", "{}", "--approve", "all", "--mcp", &servers]);
    assert_eq!(said.code, 0, "{} {}", said.stdout, said.stderr);
    let said =
        project.say(&["tools", "call", "ask", r#"{"task": ""}"#, "--approve", "all", "--mcp", &servers]);
    assert!(said.stdout.contains("MCP_TOOL_FAILED"), "its own name is enough: {}", said.stdout);
}

/// A client that writes lines.
struct Client {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    next: u64,
}

impl Client {
    fn start(project: &Project, more: &[&str]) -> Client {
        let mut args = vec!["mcp", "serve"];
        args.extend(more);
        let mut child = project.gimlet(&args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut client = Client { child, lines, next: 0 };
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        assert_eq!(client.request("initialize", &hello)["serverInfo"]["name"], "gimlet");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let line = self.lines.next().unwrap().unwrap();
            let answer: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
            if answer["id"] == id {
                return answer["result"].clone();
            }
        }
    }

    fn call(&mut self, tool: &str, args: Value) -> Value {
        self.request("tools/call", &json!({"name": tool, "arguments": args}))
    }

    /// Leaves, as clients do.
    fn leave(mut self) -> i32 {
        drop(self.child.stdin.take());
        self.child.wait().unwrap().code().unwrap()
    }
}

#[test]
fn a_client_that_cannot_ask_is_given_an_id_for_the_command_line() {
    let project = Project::new();
    let mut client = Client::start(&project, &[]);
    let page = client.call("read_file", json!({"path": "calc.py"}));
    assert_eq!(page["structuredContent"]["total_lines"], 2, "{page}");

    let touch = json!({"cmd": "touch made"});
    let refused = client.call("run_cmd", touch.clone());
    assert_eq!(
        (&refused["isError"], &refused["structuredContent"]["error"]),
        (&json!(true), &json!("APPROVAL_REQUIRED"))
    );
    let id = refused["structuredContent"]["context"]["approval"].as_str().unwrap().to_owned();
    assert!(project.say(&["approvals"]).stdout.contains(&format!("gimlet approve {id}\n")));
    let said = project.say(&["approve", &id]);
    assert_eq!(said.stderr, format!("approved {id}\nhint: make the same call again\n"));
    assert_eq!(client.call("run_cmd", touch.clone())["isError"], false);
    assert!(project.repo.path().join("made").exists());
    assert_eq!(client.call("run_cmd", touch)["isError"], true, "a yes is used once");
    let denied = client.call("run_cmd", json!({"cmd": "gimlet approve x"}));
    assert_eq!(denied["structuredContent"]["error"], "COMMAND_DENIED", "{denied}");
    assert_eq!(client.leave(), 0);
}

#[test]
fn a_server_may_be_for_reading_only() {
    let project = Project::new();
    let mut client = Client::start(&project, &["--read-only"]);
    let tools = client.request("tools/list", &json!({}));
    let names: Vec<&str> =
        tools["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(
        names.contains(&"read_file") && !names.contains(&"apply_patch") && !names.contains(&"ask"),
        "{names:?}"
    );
    assert!(
        tools["tools"].as_array().unwrap().iter().all(|tool| tool["annotations"]["readOnlyHint"] == true)
    );
    client.leave();
}

#[test]
fn a_whole_task_stops_for_a_person_and_goes_on() {
    let project = Project::new();
    let model = project.script(
        "order = \"turns\"\n[[reply]]\ncalls = [{ name = \"run_cmd\", args = { cmd = \"touch made\" } }]\n\
         [[reply]]\ntext = \"Made.\"\n",
    );
    let mut client = Client::start(&project, &["--model", &model]);
    let stopped = client.call("ask", json!({"task": "make it"}))["structuredContent"].clone();
    assert_eq!(stopped["state"], "suspended", "{stopped}");
    assert!(!project.repo.path().join("made").exists());
    assert_eq!(project.say(&["approve", stopped["approval"].as_str().unwrap()]).code, 0);
    let done = client.call("ask", json!({"resume": stopped["run"]}))["structuredContent"].clone();
    assert_eq!((&done["answer"], &done["state"]), (&json!("Made."), &json!("answered")), "{done}");
    assert!(project.repo.path().join("made").exists());
    client.leave();
}

#[test]
fn a_run_that_is_resumed_over_mcp_keeps_its_memory_and_its_plan() {
    let project = Project::new();
    let model = project.script(
        "order = \"turns\"\n[[reply]]\ntext = \"Known: nothing.\\nTo find: nothing.\\nSteps:\\n1. make it\"\n\
         [[reply]]\ncalls = [{ name = \"run_cmd\", args = { cmd = \"touch made\" } }]\n\
         [[reply]]\ncalls = [{ name = \"remember\", args = { text = \"It was made.\" } }]\n\
         [[reply]]\ntext = \"Made.\"\n",
    );
    let said = project.say(&["run", "--json", "--memory", "--plan", "--model", &model, "make it"]);
    assert_eq!(said.code, 3, "{}", said.stderr);
    let events = said.events();
    let run = events[0]["run"].as_str().unwrap().to_owned();
    let approval = of_type(&events, "approval.requested")[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(project.say(&["approve", &approval]).code, 0);
    // The server was started without either.
    let mut client = Client::start(&project, &["--approve", "all"]);
    let done = client.call("ask", json!({"resume": run}))["structuredContent"].clone();
    assert_eq!(done["state"], "answered", "{done}");
    client.leave();
    let shown = project.say(&["runs", "show", &run, "--json"]);
    let events = shown.events();
    let resumed = of_type(&events, "run.resumed")[0];
    assert_eq!(resumed["plan"], of_type(&events, "run.started")[0]["plan"], "{resumed}");
    assert!(!shown.stdout.contains("the tools are not the same"), "{}", shown.stdout);
}

#[test]
fn a_whole_task_has_the_servers_of_the_configuration() {
    let project = Project::new();
    let servers = file(&project, &json!({"g": ourselves(&project)}));
    let model = project.script(LOOK);
    let mut client = Client::start(&project, &["--model", &model, "--mcp", &servers, "--approve", "all"]);
    let tools = client.request("tools/list", &json!({})).to_string();
    assert!(!tools.contains("g__read_file"), "what is offered is our own: {tools}");
    for _ in 0..2 {
        let done = client.call("ask", json!({"task": "look"}))["structuredContent"].clone();
        assert_eq!((&done["answer"], &done["steps"]), (&json!("It subtracts."), &json!(2)), "{done}");
    }
    assert_eq!(client.leave(), 0);

    let mut entry = ourselves(&project);
    entry["requiredTools"] = json!(["semantic_recall"]);
    let servers = file(&project, &json!({"memory": entry}));
    let mut client = Client::start(&project, &["--model", &model, "--mcp", &servers]);
    let failed = client.call("ask", json!({"task": "look"}));
    assert!(failed.to_string().contains("does not offer the required tool semantic_recall"), "{failed}");
    assert_eq!(client.call("read_file", json!({"path": "calc.py"}))["isError"], false, "the server goes on");
    client.leave();
}

/// Whether a process with this word on its command line is there.
fn is_alive(word: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        entry.file_name().to_string_lossy().parse::<u32>().is_ok()
            && String::from_utf8_lossy(&line).split('\0').any(|argument| argument == word)
    })
}

fn wait_for(what: impl Fn() -> bool) {
    for _ in 0..1000 {
        if what() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("it did not happen");
}

#[test]
fn an_interrupt_ends_servers_that_are_starting() {
    let project = Project::new();
    let word = format!("{}.5", 600_000 + std::process::id());
    let servers = file(&project, &json!({"slow": {"command": "sleep", "args": [word]}}));
    let model = project.script("[[reply]]\ntext = \"never\"\n");
    let mut child = project
        .gimlet(&["--model", &model, "--mcp", &servers, "hello"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for(|| is_alive(&word));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    wait_for(|| !is_alive(&word));
}

/// A server that answers everything but calls, keeps what it is told in a file, and ends for no friendly word. It has a
/// child that would outlive it; the word is on both command lines.
fn stubborn(project: &Project, word: &str) -> (Value, PathBuf) {
    let (script, log) = (project.home.path().join("server.sh"), project.home.path().join("told"));
    let program = r#"
trap '' TERM
sleep "$1" &
answer() { echo "{\"jsonrpc\":\"2.0\",\"id\":$id,$1}"; }
while read -r line; do
  echo "$line" >>"$2"
  id=${line##*\"id\":}; id=${id%%[,\}]*}
  case $line in
    *'"initialize"'*) answer '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"tools/list"'*) answer '"result":{"tools":[{"name":"wait","inputSchema":{"type":"object"}}]}' ;;
    *'"server/discover"'*) answer '"error":{"code":-32601,"message":"no"}' ;;
  esac
done
wait
"#;
    std::fs::write(&script, program).unwrap();
    (json!({"command": "sh", "args": [script, word, &log]}), log)
}

/// A run whose call to the stubborn server is under way.
fn run_that_waits(project: &Project, word: &str) -> (Child, PathBuf, String) {
    let (entry, log) = stubborn(project, word);
    let servers = file(project, &json!({ "s": entry }));
    let model = project.script(
        "order = \"turns\"\n[[reply]]\ncalls = [{ name = \"s__wait\", args = {} }]\n\
         [[reply]]\nexpect = [\"CANCELLED\"]\ntext = \"Went on.\"\n",
    );
    let child = project
        .gimlet(&["--model", &model, "--mcp", &servers, "--approve", "all", "wait"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for(|| told(&log).contains("\"tools/call\""));
    (child, log, servers)
}

fn told(log: &Path) -> String {
    std::fs::read_to_string(log).unwrap_or_default()
}

fn interrupt(child: &Child) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn an_interrupt_during_a_call_cancels_it_ends_the_server_and_leaves_a_run_to_resume() {
    let project = Project::new();
    let word = format!("{}.25", 700_000 + std::process::id());
    let (mut child, log, servers) = run_that_waits(&project, &word);
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(told(&log).contains("\"notifications/cancelled\""), "{}", told(&log));
    wait_for(|| !is_alive(&word));
    let said = project.say(&["resume", "last", "--mcp", &servers]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "Went on.\n"), "{}", said.stderr);
    assert_eq!(told(&log).matches("\"tools/call\"").count(), 1, "nothing is called again by itself");
    wait_for(|| !is_alive(&word));
}

#[test]
fn a_second_interrupt_ends_everything_at_once() {
    let project = Project::new();
    let word = format!("{}.75", 800_000 + std::process::id());
    let (mut child, log, _) = run_that_waits(&project, &word);
    interrupt(&child);
    // The server does not end when it is asked to, so the program still waits for it.
    wait_for(|| told(&log).contains("\"notifications/cancelled\""));
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    wait_for(|| !is_alive(&word));
}

#[test]
fn the_doctor_looks_at_servers() {
    let project = Project::new();
    project.config("[mcp.broken]\ncommand = \"no-such-program\"\n");
    let said = project.say(&["doctor", "--quick"]);
    assert!(said.stdout.contains("MCP server `broken` cannot be started"), "{} {}", said.stdout, said.stderr);
}

/// The official Python client, in both revisions: a person who cannot be asked, one who says no, one who says yes.
#[test]
#[ignore = "needs the official Python client"]
fn the_official_client_is_served() {
    let python =
        std::env::var_os("GIMLET_TEST_MCP_PYTHON").unwrap_or_else(|| panic!("GIMLET_TEST_MCP_PYTHON"));
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.ci/mcp_client.py");
    let project = Project::new();
    let model = project.script("[[reply]]\ntext = \"It subtracts.\"\n");
    let gimlet: PathBuf = assert_cmd::cargo::cargo_bin!("gimlet").into();
    let output = Command::new(python)
        .arg(client)
        .args([gimlet.as_os_str(), project.repo.path().as_os_str(), model.as_ref()])
        .env("GIMLET_HOME", project.home.path())
        .output()
        .unwrap();
    let said = Said::from(output);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let visits = said.events();
    let seen: Vec<(&str, bool, usize)> = visits
        .iter()
        .map(|visit| {
            let questions = visit["questions"].as_array().unwrap().len();
            (visit["protocol"].as_str().unwrap(), visit["refused"].as_bool().unwrap(), questions)
        })
        .collect();
    let expected: Vec<(&str, bool, usize)> = ["2025-11-25", "2026-07-28"]
        .into_iter()
        .flat_map(|revision| [(revision, true, 0), (revision, true, 1), (revision, false, 1)])
        .collect();
    assert_eq!(seen, expected, "{visits:#?}");
    for visit in &visits {
        assert_eq!(visit["ask"]["answer"], "It subtracts.", "{visit}");
        assert!(visit["read_only"].as_array().unwrap().contains(&json!("read_file")), "{visit}");
    }
}

/// The inspector, as people use it from a shell.
#[test]
#[ignore = "needs the inspector"]
fn the_inspector_is_served() {
    let node = std::env::var_os("GIMLET_TEST_MCP_NODE").unwrap_or_else(|| panic!("GIMLET_TEST_MCP_NODE"));
    let project = Project::new();
    let gimlet: PathBuf = assert_cmd::cargo::cargo_bin!("gimlet").into();
    let inspect = |args: &[&str]| {
        let output = Command::new(Path::new(&node).join("node_modules/.bin/mcp-inspector"))
            .args(["--cli", "-e"])
            .arg(format!("GIMLET_HOME={}", project.home.path().display()))
            .arg(&gimlet)
            .args(["mcp", "serve", "--root"])
            .arg(project.repo.path())
            .args(args)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        Said::from(output)
    };
    let said = inspect(&["--method", "tools/list"]);
    assert!(
        said.stdout.contains("\"read_file\"") && said.stdout.contains("\"ask\""),
        "{} {}",
        said.stdout,
        said.stderr
    );
    let said = inspect(&["--method", "tools/call", "--tool-name", "read_file", "--tool-arg", "path=calc.py"]);
    assert!(said.stdout.contains("return a - b"), "{} {}", said.stdout, said.stderr);
}

/// The last run of another project is not this one's to take over.
#[test]
fn finding_10_resume_last_takes_only_runs_of_this_root() {
    let first = Project::new();
    let script = "[[reply]]\ncalls = [{ name = \"run_cmd\", args = { cmd = \"touch made\" } }]\n[[reply]]\ntext = \"done\"\n";
    assert_eq!(first.run(script, &[]).code, 3);
    let model = first.script("[[reply]]\ntext = \"taken over\"\n");
    let Project { repo: elsewhere, home } = first;
    let second = Project { repo: Project::new().repo, home };
    let mut client = Client::start(&second, &["--model", &model, "--approve", "all"]);
    let answer = client.call("ask", json!({"resume": "last"}));
    assert!(answer["isError"] == json!(true) && !answer.to_string().contains("taken over"), "{answer}");
    client.leave();
    assert!(!elsewhere.path().join("made").exists() && !second.repo.path().join("made").exists());
}

/// Nothing of what is asked about is left out: what a person is shown last is still all there.
#[test]
fn finding_14_all_of_a_question_can_be_read() {
    let project = Project::new();
    let long = format!("{}THE-END", "x".repeat(3000));
    project.file("mcp.json", &json!({"mcpServers": {"s": {"command": "true", "args": [long]}}}).to_string());
    let said = project.say(&["trust", "mcp.json", "--yes"]);
    assert!(said.code == 0 && said.stderr.contains("THE-END"), "{}", said.stderr);
    std::fs::remove_file(project.repo.path().join("mcp.json")).unwrap();

    let servers = file(&project, &json!({"g": ourselves(&project)}));
    let script = LOOK.replace("calc.py", &long);
    assert_eq!(project.run(&script, &["--mcp", &servers]).code, 3);
    let waiting = project.say(&["approvals", "--json"]).stdout;
    assert!(waiting.contains("THE-END"), "{waiting}");
}
