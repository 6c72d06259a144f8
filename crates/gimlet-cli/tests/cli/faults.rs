//! What people type, and what they get for it.

use std::io::Write;
use std::process::Stdio;

use crate::support::{Project, Said};
use serde_json::{Value, json};

const HELLO: &str = "[[reply]]\ntext = \"Hello.\"\n";

/// Runs the binary with something piped in.
fn piped(project: &Project, args: &[&str], input: &str) -> Said {
    let mut command = project.gimlet(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    Said::from(child.wait_with_output().unwrap())
}

fn last_task(project: &Project) -> String {
    let said = project.say(&["runs", "show", "last", "--json"]);
    said.events()[0]["task"].as_str().unwrap().to_owned()
}

#[test]
fn fault_02_only_what_the_person_typed_names_files() {
    let project = Project::new();
    let model = project.script(HELLO);
    let said =
        piped(&project, &["--model", &model, "mail me at @example"], "see @calc.py and @../x and @/y\n");
    assert_eq!(said.code, 0, "{}", said.stderr);
    let task = last_task(&project);
    assert!(!task.contains("return a - b"), "piped text attached a file: {task}");
    assert!(task.contains("@example") && task.contains("see @calc.py"), "{task}");
    let said = project.say(&["--model", &model, "see @calc.py and @../x/y"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert_eq!(said.stderr.matches("@../x/y is no file of this folder").count(), 1, "{}", said.stderr);
    assert!(last_task(&project).contains("return a - b"));
}

#[test]
fn fault_03_an_attachment_that_is_cut_says_so() {
    let project = Project::new();
    let model = project.script(HELLO);
    let numbers = (1..=100_000).map(|n| format!("{n}\n")).collect::<String>();
    let said = piped(&project, &["--model", &model, "sum up"], &numbers);
    assert!(said.stderr.contains("standard input is too long for the model"), "{}", said.stderr);
    assert!(last_task(&project).lines().count() > 3000, "as much as fits is attached");
}

#[test]
fn fault_04_options_are_accepted_before_a_command() {
    let project = Project::new();
    let model = project.script(HELLO);
    assert_eq!(project.say(&["--model", &model, "hi"]).code, 0);
    let root = project.root();
    for args in [&["-q", "runs"][..], &["--root", &root, "runs"], &["-m", &model, "runs", "-n", "2"]] {
        let said = project.say(args);
        assert_eq!(said.code, 0, "{args:?}: {}", said.stderr);
        assert!(said.stdout.contains("answered"), "{args:?}: {}", said.stdout);
    }
    let said = project.say(&["--root", &root, "tools", "list", "--json"]);
    assert!(serde_json::from_str::<Vec<Value>>(&said.stdout).is_ok(), "{said:?}");
    let said = project.say(&["--root", &root, "policy", "check", "ls", "-l"]);
    assert!(said.stdout.starts_with("allow"), "{said:?}");
    let said = project.say(&["modles"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.stderr.contains("did you mean `gimlet models`"), "{}", said.stderr);
}

#[test]
fn fault_05_an_approved_call_is_made() {
    let project = Project::new();
    let edit = json!({ "path": "calc.py", "old_text": "a - b", "new_text": "a + b" }).to_string();
    let call = ["tools", "call", "edit_file", &edit];
    let said = project.say(&call);
    assert_eq!(said.code, 3, "{said:?}");
    let waiting: Vec<Value> = serde_json::from_str(&project.say(&["approvals", "--json"]).stdout).unwrap();
    let id = waiting[0]["request"]["id"].as_str().unwrap();
    assert!(said.stdout.contains(&format!("gimlet approve {id}")), "{said:?}");
    assert!(project.say(&["approve", id]).stderr.contains("make the same call again"));
    let said = project.say(&call);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(project.say(&["approvals", "--json"]).stdout.trim(), "[]");

    let edit = json!({ "path": "calc.py", "old_text": "a + b", "new_text": "a * b" }).to_string();
    assert_eq!(project.say(&["tools", "call", "edit_file", &edit]).code, 3);
    let waiting: Vec<Value> = serde_json::from_str(&project.say(&["approvals", "--json"]).stdout).unwrap();
    let said = project.say(&["deny", waiting[0]["request"]["id"].as_str().unwrap()]);
    assert!(!said.stderr.contains("make the same call again"), "{}", said.stderr);
}

#[test]
fn fault_09_spaces_of_arguments_stay() {
    let project = Project::new();
    let script = r#"
order = "turns"
[[reply]]
calls = [{ name = "edit_file", args = { path = "new.py", old_text = "", new_text = "x  =  1\n" } }]
[[reply]]
text = "Done."
"#;
    let said = project.run(script, &["--approve", "all"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(project.say(&["runs", "export", "last"]).stdout.contains("x  =  1"));
}

#[test]
fn fault_14_last_is_the_last_run_of_this_folder() {
    let (here, elsewhere) = (Project::new(), Project::new());
    let model = here.script(HELLO);
    assert_eq!(here.say(&["--model", &model, "here"]).code, 0);
    let in_home = |args: &[&str]| {
        let mut command = elsewhere.gimlet(args);
        Said::from(command.env("GIMLET_HOME", here.home.path()).output().unwrap())
    };
    assert_eq!(in_home(&["runs", "show", "last"]).code, 2);
    assert!(in_home(&["runs"]).stderr.contains("no runs in this folder"));
    assert_eq!(in_home(&["--model", &model, "elsewhere"]).code, 0);
    let said = here.say(&["runs", "show", "last"]);
    assert!(said.stdout.starts_with("here"), "{}", said.stdout);
    assert!(!here.say(&["runs"]).stdout.contains("elsewhere"));
    assert!(here.say(&["runs", "--all"]).stdout.contains("elsewhere"));
    let listed: Vec<Value> = serde_json::from_str(&here.say(&["runs", "--json", "-n", "1"]).stdout).unwrap();
    assert_eq!(listed.len(), 1);
}

/// A model server with a script, and what it runs on.
fn serve(script: &str) -> (tokio::runtime::Runtime, gimlet_testkit::ModelServer) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(gimlet_testkit::ModelServer::start(toml::from_str(script).unwrap()));
    (runtime, server)
}

/// A reply that takes minutes, line by line.
fn slow() -> String {
    let lines: String = (1..=3000).map(|n| format!("line {n}\n")).collect();
    format!("[[reply]]\nchunk_bytes = 16\ndelay_ms = 50\ntext = '''\n{lines}'''\n")
}

#[test]
fn fault_03_an_attachment_has_half_of_the_models_window() {
    let project = Project::new();
    let (_runtime, server) = serve(HELLO);
    project.config(&crate::support::named_model(
        "wide",
        &format!("{}/v1", server.url()),
        "context = 100000\n",
    ));
    let numbers = (1..=100_000).map(|n| format!("{n}\n")).collect::<String>();
    let said = piped(&project, &["--model", "wide", "sum up"], &numbers);
    assert!(said.stderr.contains("of 588895 characters are attached"), "{}", said.stderr);
    assert!(said.stderr.contains("of 100000 lines"), "{}", said.stderr);
    let sent = last_task(&project).len();
    assert!((140_000..=160_000).contains(&sent), "{sent}");
}

#[test]
fn fault_11_a_folder_that_is_gone_is_told_as_that() {
    use crate::pty::{Look, Pty};
    let project = Project::new();
    let model = project.script(HELLO);
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().display().to_string();
    let mut pty = Pty::start(&project, &["--model", &model, "--root", &root], Look::default());
    pty.wait_for_prompt();
    std::fs::remove_dir_all(folder.path()).unwrap();
    pty.enter("hi");
    pty.wait_for("is gone");
    pty.wait_for_prompt();
    assert!(pty.shown().contains("error: the project's folder"), "{}", pty.shown());
    pty.press("\u{4}");
    assert_eq!(pty.end(), 0);
}

#[test]
fn fault_13_what_there_is_of_a_reply_is_printed_when_it_is_stopped() {
    let project = Project::new();
    let model = project.script(&slow());
    let mut command = project.gimlet(&["--model", &model, "count", "--quiet"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let has_begun = || project.say(&["runs", "show", "last", "--json"]).stdout.contains("line 2");
    while !has_begun() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let mut kill = std::process::Command::new("kill");
    assert!(kill.args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let said = Said::from(child.wait_with_output().unwrap());
    assert_eq!(said.code, 130, "{}", said.stderr);
    assert!(said.stdout.starts_with("line 1\nline 2\n"), "{}", said.stdout);
    let said = project.say(&["--model", &model, "count", "--timeout", "3"]);
    assert_eq!(said.code, 4, "{}", said.stderr);
    assert!(said.stdout.starts_with("line 1\nline 2\n"), "{}", said.stdout);
}

#[test]
fn fault_15_a_resumed_run_asks_the_server_that_it_began_with() {
    let project = Project::new();
    let script = "[[reply]]\ntext = \"Hello.\"\n[[reply]]\ntext = \"Again.\"\n";
    let (_runtime, server) = serve(script);
    let said = project.say(&["--model", "ollama_chat/scripted", "--api-base", &server.url(), "hi"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let said = project.say(&["resume", "last", "and again"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "Again.\n"), "{}", said.stderr);
}

#[test]
fn fault_18_a_run_that_only_repeats_itself_ends() {
    let project = Project::new();
    let call = "[[reply]]\ncalls = [{ name = \"read_file\", args = { path = \"calc.py\" } }]\n";
    let script = format!(
        "{}[[reply]]\nexpect = [\"You only repeat yourself\"]\ntext = \"It subtracts.\"\n",
        call.repeat(5)
    );
    let said = project.run(&script, &[]);
    assert_eq!((said.code, said.stdout.as_str()), (4, "It subtracts.\n"), "{}", said.stderr);
    assert!(said.stderr.contains("the model only repeated itself"), "{}", said.stderr);
    assert!(said.stderr.contains("for the fifth time"), "{}", said.stderr);
    let runs: Value = serde_json::from_str(&project.say(&["runs", "--json"]).stdout).unwrap();
    assert_eq!((&runs[0]["status"], &runs[0]["steps"]), (&json!("limited"), &json!(6)));
}

#[test]
fn fault_19_every_listing_has_json_and_runs_take_a_number() {
    let project = Project::new();
    project.run(HELLO, &[]);
    project.run(HELLO, &[]);
    for args in [
        &["tools"][..],
        &["tools", "list"],
        &["agents"],
        &["mcp"],
        &["memory"],
        &["memory", "list"],
        &["config"],
        &["sandbox"],
        &["sandbox", "status"],
        &["policy", "show"],
        &["runs", "-n", "1"],
        &["approvals"],
        &["trust", "--list"],
        &["doctor", "--quick"],
    ] {
        let said = project.say(&[args, &["--json"]].concat());
        let value = serde_json::from_str::<Value>(&said.stdout);
        assert!(value.is_ok(), "{args:?}: {said:?}");
    }
    let said = project.say(&["runs", "-n", "1"]);
    assert_eq!(said.stdout.matches("answered").count(), 1, "{}", said.stdout);
}

#[test]
fn fault_17_the_model_that_is_chosen_stands_first_with_what_a_probe_showed() {
    let project = Project::new();
    let (_runtime, server) = serve(HELLO);
    let said = project.say(&["models", "--api-base", &server.url()]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stdout.lines().nth(1).unwrap().starts_with('▸'), "{}", said.stdout);
    let said = project.say(&["models", "--api-base", &server.url(), "--json"]);
    let rows: Vec<Value> = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(rows.iter().filter(|row| row["chosen"] == true).count(), 1, "{}", said.stdout);
}
