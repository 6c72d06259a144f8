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
