//! `gimlet acp` through the real binary: a conversation that was recorded, and what people complained of elsewhere.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::approvals::fix;
use crate::support::Project;

/// Long enough for any machine; a test that waits so long has failed.
const PATIENCE: Duration = Duration::from_secs(120);

/// A client that says what a test says.
struct Client {
    process: Child,
    input: Option<ChildStdin>,
    output: Receiver<Value>,
    next: u64,
    /// Updates of the session, in order.
    updates: Vec<Value>,
    /// Requests of the agent that were not answered yet.
    asked: Vec<Value>,
    /// How `fs/read_text_file` is answered.
    buffer: Option<(String, String)>,
}

impl Client {
    fn start(project: &Project, args: &[&str]) -> Client {
        let mut words = vec!["acp"];
        words.extend(args);
        let mut process = project
            .gimlet(&words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let input = process.stdin.take();
        let stdout = process.stdout.take().unwrap();
        let (sender, output) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let line = line.unwrap();
                let message: Value = serde_json::from_str(&line)
                    .unwrap_or_else(|error| panic!("not the protocol: {error}: {line}"));
                assert_eq!(message["jsonrpc"], "2.0", "{line}");
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Client { process, input, output, next: 0, updates: Vec::new(), asked: Vec::new(), buffer: None }
    }

    fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
        input.flush().unwrap();
    }

    /// Sends a request and returns its id.
    fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Takes the next message; updates and requests of the agent are kept.
    fn take(&mut self) -> Value {
        let message = self.output.recv_timeout(PATIENCE).unwrap();
        match message["method"].as_str() {
            Some("session/update") => self.updates.push(message["params"]["update"].clone()),
            Some("fs/read_text_file") => {
                let answer = match &self.buffer {
                    Some((path, text)) if message["params"]["path"] == json!(path) => {
                        json!({ "jsonrpc": "2.0", "id": message["id"], "result": { "content": text } })
                    }
                    _ => {
                        json!({ "jsonrpc": "2.0", "id": message["id"], "error": { "code": -32002, "message": "not open" } })
                    }
                };
                self.send(&answer);
            }
            Some("fs/write_text_file") => {
                let (path, text) = (&message["params"]["path"], &message["params"]["content"]);
                self.buffer = Some((path.as_str().unwrap().into(), text.as_str().unwrap().into()));
                self.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": {} }));
            }
            Some(_) if message.get("id").is_some() => self.asked.push(message.clone()),
            Some(_) | None => {}
        }
        message
    }

    /// Waits for the answer to a request.
    fn end(&mut self, id: u64) -> Result<Value, Value> {
        loop {
            let mut message = self.take();
            if message.get("method").is_none() && message["id"] == json!(id) {
                return match message.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(message["result"].take()),
                };
            }
        }
    }

    fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.begin(method, params);
        self.end(id)
    }

    /// Waits for a request of the agent.
    fn request(&mut self) -> Value {
        loop {
            if let Some(at) = self.asked.iter().position(|asked| !asked["method"].is_null()) {
                return self.asked.remove(at);
            }
            self.take();
        }
    }

    fn answer(&mut self, request: &Value, result: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
    }

    fn choose(&mut self, request: &Value, option: &str) {
        self.answer(request, json!({ "outcome": { "outcome": "selected", "optionId": option } }));
    }

    fn initialize(&mut self) -> Value {
        self.call("initialize", json!({ "protocolVersion": 1, "clientCapabilities": {} })).unwrap()
    }

    fn new_session(&mut self, project: &Project) -> String {
        let answer = self.call("session/new", json!({ "cwd": project.root(), "mcpServers": [] })).unwrap();
        answer["sessionId"].as_str().unwrap().to_owned()
    }

    fn prompt(&mut self, session: &str, text: &str) -> Result<Value, Value> {
        let id = self.begin_prompt(session, text);
        self.end(id)
    }

    fn begin_prompt(&mut self, session: &str, text: &str) -> u64 {
        self.begin(
            "session/prompt",
            json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] }),
        )
    }

    fn of_kind(&self, kind: &str) -> Vec<&Value> {
        self.updates.iter().filter(|update| update["sessionUpdate"] == kind).collect()
    }

    fn said(&self) -> String {
        let chunks = self.of_kind("agent_message_chunk");
        chunks.iter().map(|chunk| chunk["content"]["text"].as_str().unwrap()).collect()
    }

    /// Closes the agent's input and waits until it has ended.
    fn leave(mut self) -> i32 {
        drop(self.input.take());
        self.process.wait().unwrap().code().unwrap_or(-1)
    }
}

/// A client that is dropped in a failing test ends its agent.
impl Drop for Client {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const LOOK: &str = r#"
order = "turns"
[[reply]]
thinking = "I look at it."
calls = [{ name = "read_file", args = { path = "calc.py" } }]
[[reply]]
text = "It subtracts."
usage = { input = 10, output = 3 }
chunk_bytes = 4
[[reply]]
text = "As I said."
"#;

fn calc(project: &Project) -> String {
    std::fs::read_to_string(project.repo.path().join("calc.py")).unwrap()
}

#[test]
fn a_conversation_is_told_from_its_first_word_to_its_last() {
    let project = Project::new();
    let model = project.script(LOOK);
    let mut client = Client::start(&project, &["--model", &model]);
    let agent = client.initialize();
    assert_eq!(agent["protocolVersion"], 1);
    assert_eq!(agent["agentCapabilities"]["loadSession"], true);
    let session = client.new_session(&project);
    assert!(client.updates.is_empty(), "nothing is said before the answer: {:?}", client.updates);
    while client.of_kind("available_commands_update").is_empty() {
        client.take();
    }
    let ending = client.prompt(&session, "what is wrong?").unwrap();
    assert_eq!(ending["stopReason"], "end_turn", "{ending}");
    assert_eq!(ending["usage"]["inputTokens"], 10, "{ending}");
    assert_eq!(client.said(), "It subtracts.");
    assert_eq!(client.of_kind("agent_thought_chunk")[0]["content"]["text"], "I look at it.");
    let call = client.of_kind("tool_call")[0].clone();
    assert_eq!((&call["kind"], &call["title"]), (&json!("read"), &json!("read_file calc.py")));
    let place = project.repo.path().canonicalize().unwrap().join("calc.py");
    assert_eq!(call["locations"][0]["path"], json!(place), "{call}");
    let done = client.of_kind("tool_call_update");
    let done = done.last().unwrap();
    assert_eq!((&done["status"], &done["toolCallId"]), (&json!("completed"), &call["toolCallId"]));
    assert!(done["content"][0]["content"]["text"].as_str().unwrap().contains("return a - b"), "{done}");
    assert_eq!(client.of_kind("session_info_update")[0]["title"], "what is wrong?");
    client.prompt(&session, "are you sure?").unwrap();
    assert!(client.said().ends_with("As I said."), "{}", client.said());

    // The session is the run, for everything else there is.
    let list = client.call("session/list", json!({ "cwd": project.root() })).unwrap();
    assert_eq!(list["sessions"][0]["sessionId"], json!(session), "{list}");
    assert_eq!(client.leave(), 0);
    assert!(project.say(&["runs", "show", &session]).stdout.contains("It subtracts."));
}

#[test]
fn load_tells_the_log_again_and_resume_does_not() {
    let project = Project::new();
    let model = project.script(LOOK);
    let mut client = Client::start(&project, &["--model", &model]);
    client.initialize();
    let session = client.new_session(&project);
    client.prompt(&session, "what is wrong?").unwrap();
    client.leave();

    let mut client = Client::start(&project, &[]);
    client.initialize();
    let at = json!({ "sessionId": session, "cwd": project.root(), "mcpServers": [] });
    let state = client.call("session/load", at.clone()).unwrap();
    assert_eq!(state["modes"]["currentModeId"], "ask", "{state}");
    assert_eq!(client.of_kind("user_message_chunk")[0]["content"]["text"], "what is wrong?");
    assert_eq!(client.said(), "It subtracts.");
    assert_eq!(client.of_kind("tool_call").len(), 1);
    assert_eq!(client.of_kind("agent_thought_chunk")[0]["content"]["text"], "I look at it.");
    let closed = client.call("session/close", json!({ "sessionId": session })).unwrap();
    assert_eq!(closed, json!({}));
    client.updates.clear();
    client.call("session/resume", at).unwrap();
    assert!(client.said().is_empty() && client.of_kind("tool_call").is_empty(), "{:?}", client.updates);
    client.prompt(&session, "are you sure?").unwrap();
    assert_eq!(client.said(), "As I said.");

    let elsewhere = json!({ "sessionId": session, "cwd": "/", "mcpServers": [] });
    client.call("session/close", json!({ "sessionId": session })).unwrap();
    let refused = client.call("session/load", elsewhere).unwrap_err();
    assert!(refused["message"].as_str().unwrap().contains("another folder"), "{refused}");
    let none = json!({ "sessionId": "20200101-000000-aaaaaa", "cwd": project.root(), "mcpServers": [] });
    assert_eq!(client.call("session/load", none).unwrap_err()["code"], -32002);
}

#[test]
fn a_change_is_asked_with_its_diff_and_made_after_a_yes() {
    let project = Project::new().ungated();
    let model = project.script(&fix(&project));
    let mut client = Client::start(&project, &["--model", &model]);
    client.initialize();
    let session = client.new_session(&project);
    let prompt = client.begin_prompt(&session, "fix it");
    let asked = client.request();
    assert_eq!(asked["method"], "session/request_permission");
    let call = &asked["params"]["toolCall"];
    let diff = &call["content"][0];
    assert_eq!(diff["type"], "diff", "{call}");
    assert!(diff["oldText"].as_str().unwrap().contains("a - b"), "{diff}");
    assert!(diff["newText"].as_str().unwrap().contains("a + b"), "{diff}");
    assert!(
        client.of_kind("tool_call").iter().any(|told| told["toolCallId"] == call["toolCallId"]),
        "the call is known before it is asked about"
    );
    assert!(calc(&project).contains("a - b"));
    client.choose(&asked, "allow_once");
    assert_eq!(client.end(prompt).unwrap()["stopReason"], "end_turn");
    assert!(calc(&project).contains("a + b"));
    let edited = client.of_kind("tool_call_update");
    let edited = edited.iter().rev().find(|update| update["content"][0]["type"] == "diff");
    assert!(edited.is_some(), "what was changed is shown as a diff: {:?}", client.updates);
    client.prompt(&session, "/undo").unwrap();
    assert!(calc(&project).contains("a - b"), "{}", client.said());
}

#[test]
fn a_no_is_read_by_the_model_and_a_yes_for_the_session_is_not_asked_again() {
    let project = Project::new();
    let command = format!("rm -f one.txt && echo {}", "x".repeat(600));
    let other = "rm -f two.txt";
    let script = format!(
        r#"
[[reply]]
calls = [{{ name = "run_cmd", args = {{ cmd = "{command}" }} }}]
[[reply]]
expect = ["use git"]
calls = [{{ name = "run_cmd", args = {{ cmd = "{other}" }} }}]
[[reply]]
calls = [{{ name = "list_files", args = {{}} }}]
[[reply]]
calls = [{{ name = "run_cmd", args = {{ cmd = "{other}" }} }}]
[[reply]]
text = "Done."
"#
    );
    let model = project.script(&script);
    let mut client = Client::start(&project, &["--model", &model]);
    client.initialize();
    let session = client.new_session(&project);
    let prompt = client.begin_prompt(&session, "remove it");
    let first = client.request();
    let call = first["params"]["toolCall"].clone();
    assert_eq!(call["title"], json!(command), "the title has the whole command");
    assert!(call["content"][0]["content"]["text"].as_str().unwrap().contains(&command), "{call}");
    client.answer(
        &first,
        json!({
            "outcome": { "outcome": "selected", "optionId": "reject_once" },
            "_meta": { "gimlet": { "feedback": "use git instead" } },
        }),
    );
    let second = client.request();
    client.choose(&second, "allow_always");
    let ending = client.end(prompt).unwrap();
    assert_eq!(ending["stopReason"], "end_turn", "{ending}");
    assert!(client.asked.is_empty(), "the same command is not asked about again: {:?}", client.asked);
    let told = client.of_kind("tool_call_update");
    let output = told.iter().rev().find_map(|update| update["content"][0]["content"]["text"].as_str());
    assert!(output.unwrap().contains("exit code 0"), "{told:?}");
}

#[test]
fn a_question_outlives_its_client_and_is_asked_again_under_the_same_id() {
    let project = Project::new().ungated();
    let model = project.script(&fix(&project));
    let mut client = Client::start(&project, &["--model", &model]);
    client.initialize();
    let session = client.new_session(&project);
    client.begin_prompt(&session, "fix it");
    let first = client.request();
    client.leave();
    let waiting: Vec<Value> = serde_json::from_str(&project.say(&["approvals", "--json"]).stdout).unwrap();
    assert_eq!(waiting[0]["request"]["id"], first["params"]["_meta"]["gimlet"]["approval"]["id"]);

    let mut client = Client::start(&project, &[]);
    client.initialize();
    client
        .call("session/load", json!({ "sessionId": session, "cwd": project.root(), "mcpServers": [] }))
        .unwrap();
    let again = client.request();
    let id = |asked: &Value| asked["params"]["_meta"]["gimlet"]["approval"]["id"].clone();
    assert_eq!(id(&again), id(&first));
    assert_eq!(again["params"]["toolCall"]["toolCallId"], first["params"]["toolCall"]["toolCallId"]);
    client.choose(&again, "allow_once");
    while !client.said().contains("Fixed.") {
        client.take();
    }
    assert!(calc(&project).contains("a + b"));
}

#[test]
fn cancel_stops_a_turn_also_after_load_and_at_once() {
    let project = Project::new();
    let slow = r#"
order = "turns"
[[reply]]
text = "I think about it for a very long time."
chunk_bytes = 1
delay_ms = 60000
[[reply]]
text = "I think again for a very long time."
chunk_bytes = 1
delay_ms = 60000
"#;
    let model = project.script(slow);
    let mut client = Client::start(&project, &["--model", &model]);
    client.initialize();
    let session = client.new_session(&project);
    let prompt = client.begin_prompt(&session, "think");
    client.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(client.end(prompt).unwrap()["stopReason"], "cancelled");
    client.leave();

    let mut client = Client::start(&project, &[]);
    client.initialize();
    client
        .call("session/load", json!({ "sessionId": session, "cwd": project.root(), "mcpServers": [] }))
        .unwrap();
    let prompt = client.begin_prompt(&session, "think again");
    client.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(client.end(prompt).unwrap()["stopReason"], "cancelled");
}

#[test]
fn advertised_modes_and_options_work() {
    let project = Project::new().ungated();
    let model = project.script(&fix(&project));
    let mut client = Client::start(&project, &["--model", &model]);
    client.initialize();
    let begun = client.call("session/new", json!({ "cwd": project.root(), "mcpServers": [] })).unwrap();
    let session = begun["sessionId"].as_str().unwrap().to_owned();
    for mode in begun["modes"]["availableModes"].as_array().unwrap() {
        client.call("session/set_mode", json!({ "sessionId": session, "modeId": mode["id"] })).unwrap();
        assert_eq!(client.of_kind("current_mode_update").last().unwrap()["currentModeId"], mode["id"]);
    }
    let set = |client: &mut Client, id: &str, value: &str| {
        client.call(
            "session/set_config_option",
            json!({ "sessionId": session, "configId": id, "value": value }),
        )
    };
    for option in begun["configOptions"].as_array().unwrap() {
        for value in option["options"].as_array().unwrap() {
            let (id, value) = (option["id"].as_str().unwrap(), value["value"].as_str().unwrap());
            let now = set(&mut client, id, value).unwrap();
            let now = now["configOptions"].as_array().unwrap();
            let now = now.iter().find(|option| option["id"] == id).unwrap();
            assert_eq!(now["currentValue"], value, "{id}");
        }
    }
    assert!(set(&mut client, "action", "dance").is_err());
    set(&mut client, "action", "tools").unwrap();
    set(&mut client, "approve", "all").unwrap();
    let ending = client.prompt(&session, "fix it").unwrap();
    assert_eq!(ending["stopReason"], "end_turn", "{ending}");
    assert!(calc(&project).contains("a + b"), "nobody was asked");
    assert!(set(&mut client, "action", "code").is_err(), "a run acts as it began");
}

#[test]
fn unsaved_text_counts_and_the_editor_is_told_of_what_is_written() {
    let project = Project::new();
    let unsaved = "def add(a, b):\n    # not saved yet\n    return a - b\n";
    let script = r#"
[[reply]]
calls = [{ name = "read_file", args = { path = "calc.py" } }]
[[reply]]
expect = ["not saved yet"]
calls = [{ name = "edit_file", args = { path = "calc.py", old_text = "return a - b", new_text = "return a + b" } }]
[[reply]]
text = "Fixed."
"#;
    let model = project.script(script);
    project.config("[agents.editor]\ndescription = \"edits\"\ntools = [\"read_file\", \"edit_file\"]\n");
    let mut client = Client::start(&project, &["--model", &model, "--agent", "editor", "--approve", "all"]);
    let fs = json!({ "fs": { "readTextFile": true, "writeTextFile": true } });
    client.call("initialize", json!({ "protocolVersion": 1, "clientCapabilities": fs })).unwrap();
    let path = project.repo.path().canonicalize().unwrap().join("calc.py").display().to_string();
    client.buffer = Some((path, unsaved.to_owned()));
    let session = client.new_session(&project);
    let ending = client.prompt(&session, "fix it").unwrap();
    assert_eq!(ending["stopReason"], "end_turn", "{ending}: {:?}", client.updates);
    let wanted = unsaved.replace("a - b", "a + b");
    assert_eq!(calc(&project), wanted, "{:?}", client.updates);
    assert_eq!(client.buffer.as_ref().unwrap().1, wanted, "the buffer has it, too");
}

#[test]
fn what_makes_no_sense_is_an_error_and_not_the_end() {
    let project = Project::new();
    let model = project.script(LOOK);
    let mut client = Client::start(&project, &["--model", &model]);
    writeln!(client.input.as_mut().unwrap(), "this is no JSON").unwrap();
    assert_eq!(client.take()["error"]["code"], -32700);
    client.initialize();
    assert_eq!(client.call("session/dance", json!({})).unwrap_err()["code"], -32601);
    assert_eq!(client.call("session/new", json!({ "cwd": "here" })).unwrap_err()["code"], -32602);
    let nobody = json!({ "sessionId": "nobody", "prompt": [{ "type": "text", "text": "hi" }] });
    assert_eq!(client.call("session/prompt", nobody).unwrap_err()["code"], -32002);
    let session = client.new_session(&project);
    let image =
        json!({ "sessionId": session, "prompt": [{ "type": "image", "data": "", "mimeType": "image/png" }] });
    assert_eq!(client.call("session/prompt", image).unwrap_err()["code"], -32602);
    let linked = json!({ "sessionId": session, "prompt": [
        { "type": "text", "text": "what is wrong in" },
        { "type": "resource_link", "uri": "file:///calc.py", "name": "calc.py" },
    ] });
    assert_eq!(client.call("session/prompt", linked).unwrap()["stopReason"], "end_turn");
}

#[test]
fn the_clients_mcp_servers_are_the_sessions() {
    if !crate::support::has_python() {
        return;
    }
    let project = Project::new();
    let script = r#"
[[reply]]
calls = [{ name = "my_notes__greet", args = { name = "Ada" } }]
[[reply]]
expect = ["hello Ada"]
text = "Greeted."
"#;
    let model = project.script(script);
    project.file("server.py", MCP_SERVER);
    let mut client = Client::start(&project, &["--model", &model, "--approve", "all"]);
    client.initialize();
    let server = project.repo.path().join("server.py");
    let servers = json!([{ "name": "My Notes", "command": "python3", "args": [server],
        "env": [{ "name": "GREETING", "value": "hello" }] }]);
    let begun = client.call("session/new", json!({ "cwd": project.root(), "mcpServers": servers })).unwrap();
    let ending = client.prompt(begun["sessionId"].as_str().unwrap(), "greet Ada").unwrap();
    assert_eq!(ending["stopReason"], "end_turn", "{ending}");
    assert_eq!(client.said(), "Greeted.");
    let without = client.new_session(&project);
    client.prompt(&without, "/tools").unwrap();
    assert!(!client.said().contains("my_notes__greet"), "another session does not have them");
}

const MCP_SERVER: &str = r#"
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "notes", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "greet", "description": "Greets.", "inputSchema":
                  {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}]}
    elif method == "tools/call":
        text = os.environ["GREETING"] + " " + message["params"]["arguments"]["name"]
        result = {"content": [{"type": "text", "text": text}]}
    elif id is None:
        continue
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)
"#;

#[test]
fn a_program_brings_tools_checks_and_the_form_of_its_answer() {
    let project = Project::new();
    let script = r#"
[[reply]]
calls = [{ name = "recall", args = { query = "monday" } }]
[[reply]]
expect = ["rain"]
text = "[]"
[[reply]]
expect = ["say why"]
text = '["rain"]'
"#;
    let model = project.script(script);
    let mut client = Client::start(&project, &["--model", &model]);
    client.initialize();
    let meta = json!({ "gimlet": {
        "events": true, "checks": 1, "agent": "lead",
        "output": { "type": "array", "items": { "type": "string" } },
        "config": { "agents": { "lead": { "tools": ["recall"], "max_steps": 5 } } },
        "tools": [{ "name": "recall", "description": "Find memories.", "reads_only": true, "input": {
            "type": "object", "properties": { "query": { "type": "string" } }, "required": ["query"], "additionalProperties": false } }],
    } });
    let begun = client
        .call("session/new", json!({ "cwd": project.root(), "mcpServers": [], "_meta": meta }))
        .unwrap();
    let session = begun["sessionId"].as_str().unwrap().to_owned();
    let prompt = client.begin_prompt(&session, "why on mondays?");
    let call = client.request();
    assert_eq!((&call["method"], &call["params"]["name"]), (&json!("_gimlet/tool"), &json!("recall")));
    assert_eq!(call["params"]["args"], json!({ "query": "monday" }));
    client.answer(&call, json!({ "value": [{ "text": "rain" }] }));
    let check = client.request();
    assert_eq!((&check["method"], &check["params"]["answer"]), (&json!("_gimlet/check"), &json!("[]")));
    client.answer(&check, json!({ "problem": "say why" }));
    let check = client.request();
    client.answer(&check, json!({ "problem": null }));
    let ending = client.end(prompt).unwrap();
    assert_eq!(ending["_meta"]["gimlet"]["finished"]["value"], json!(["rain"]), "{ending}");
    assert_eq!(ending["_meta"]["gimlet"]["run"], json!(session));
    assert!(client.updates.is_empty(), "a program that wants events gets no updates: {:?}", client.updates);
}

#[test]
fn python_of_a_program_runs_in_the_sandbox_with_its_functions() {
    let project = Project::new();
    let mut client = Client::start(&project, &[]);
    client.initialize();
    let tool = json!({ "name": "double", "description": "Doubles.", "input": {
        "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] } });
    let opened = client.call("_gimlet/python/open", json!({ "tools": [tool] })).unwrap();
    let id = opened["id"].clone();
    let run =
        client.begin("_gimlet/python/run", json!({ "id": id, "code": "x = double(21)\nprint(x)\nx + 1" }));
    let call = client.request();
    assert_eq!(call["params"]["args"], json!({ "n": 21 }));
    client.answer(&call, json!({ "value": 42 }));
    let done = client.end(run).unwrap();
    assert_eq!((&done["stdout"], &done["end"]["value"]), (&json!("42\n"), &json!("43")), "{done}");
    let answer =
        client.call("_gimlet/python/run", json!({ "id": id, "code": "final_answer({'x': x})" })).unwrap();
    assert_eq!(answer["end"], json!({ "end": "answer", "value": { "x": 42 } }));
    client.call("_gimlet/python/close", json!({ "id": id })).unwrap();
    assert!(client.call("_gimlet/python/run", json!({ "id": id, "code": "1" })).is_err());
}

/// What the Python SDK of the protocol and this program said to each other, without requests for files and without what
/// differs from run to run.
const SDK: &str = include_str!("tapes/acp_sdk.jsonl");

#[test]
fn a_recorded_conversation_goes_the_same_way_again() {
    let project = Project::new().ungated();
    project.config("[gate]\nenabled = false\n[agents.editor]\ndescription = \"edits\"\ntools = [\"read_file\", \"edit_file\"]\n");
    let model = project.script(
        r#"
order = "turns"
[[reply]]
thinking = "I look first."
calls = [{ name = "read_file", args = { path = "calc.py" } }]
[[reply]]
calls = [{ name = "edit_file", args = { path = "calc.py", old_text = "return a - b", new_text = "return a + b" } }]
[[reply]]
text = "It adds now."
[[reply]]
text = "Yes."
"#,
    );
    let root = project.repo.path().canonicalize().unwrap().display().to_string();
    let start = || {
        let mut client = Client::start(&project, &["--model", &model, "--agent", "editor"]);
        let unsaved = "# unsaved\ndef add(a, b):\n    return a - b\n".to_owned();
        client.buffer = Some((format!("{root}/calc.py"), unsaved));
        client
    };
    let mut client = start();
    let mut session = String::from("SESSION");
    let mut asked = Value::Null;
    for line in SDK.lines() {
        let line = line.replace("SESSION", &session).replace("ROOT", &root);
        let mut entry: Value = serde_json::from_str(&line).unwrap();
        let mut message = entry["message"].take();
        if message == "leaves" {
            std::mem::replace(&mut client, start()).leave();
        } else if entry["from"] == "client" {
            if message.get("method").is_none() {
                message["id"] = asked.take();
            }
            client.send(&message);
        } else {
            let said = loop {
                let said = client.take();
                if !said["method"].as_str().is_some_and(|method| method.starts_with("fs/")) {
                    break said;
                }
            };
            if said.get("method").is_some() {
                asked = said["id"].clone();
            }
            if let Some(begun) = said["result"]["sessionId"].as_str() {
                session = begun.to_owned();
                message["result"]["sessionId"] = json!(session);
            }
            assert_eq!(what_stays(said), message);
        }
    }
}

/// A message without what differs from run to run, and without lists that other tests look at.
fn what_stays(message: Value) -> Value {
    const LEFT_OUT: [&str; 7] =
        ["_meta", "rawOutput", "updatedAt", "modes", "configOptions", "version", "availableCommands"];
    fn without(value: Value) -> Value {
        match value {
            Value::Object(map) => map
                .into_iter()
                .filter(|(name, _)| !LEFT_OUT.contains(&name.as_str()))
                .map(|(name, value)| (name, without(value)))
                .collect(),
            Value::Array(items) => items.into_iter().map(without).collect(),
            other => other,
        }
    }
    let mut message = without(message);
    if let Some(map) = message.as_object_mut().filter(|map| map.contains_key("method")) {
        map.remove("id");
    }
    message
}
