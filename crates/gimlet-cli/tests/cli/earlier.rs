//! Logs of an earlier version: they are shown, exported and carried on as if this version had written them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{Project, of_type};

const SUSPENDED: &str = "20261118-082028-751e1b";
const CONVERSATION: &str = "20261118-082048-839a23";

/// A kept run in a home, as the earlier version left it there.
fn kept(project: &Project, name: &str, run: &str, script: &str) {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/earlier-logs");
    project.script(script);
    let script = project.home.path().join("script.toml");
    let folder = project.home.path().join("runs").join(run);
    std::fs::create_dir_all(&folder).unwrap();
    let copy = |from: PathBuf, to: &str| {
        let Ok(text) = std::fs::read_to_string(from) else { return };
        let text = text.replace("{ROOT}", &project.root()).replace("{SCRIPT}", script.to_str().unwrap());
        std::fs::write(folder.join(to), text).unwrap();
    };
    copy(data.join(format!("{name}.jsonl")), "log.jsonl");
    copy(data.join(format!("{name}.patches.jsonl")), "patches.jsonl");
}

fn calc(project: &Project) -> String {
    std::fs::read_to_string(project.repo.path().join("calc.py")).unwrap()
}

/// It is listed, shown, replayed and exported, and nothing of its log is lost on the way.
fn is_readable(project: &Project, run: &str, task: &str, status: &str) {
    let before =
        std::fs::read_to_string(project.home.path().join("runs").join(run).join("log.jsonl")).unwrap();
    let written: Vec<Value> = before.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let runs: Vec<Value> = serde_json::from_str(&project.say(&["runs", "list", "--json"]).stdout).unwrap();
    let listed = runs.iter().find(|listed| listed["id"] == run).unwrap();
    assert_eq!((&listed["task"], &listed["status"]), (&json!(task), &json!(status)));
    let shown = project.say(&["runs", "show", run]);
    assert!(shown.code == 0 && shown.stdout.contains(task), "{shown:?}");
    let events = project.say(&["runs", "show", run, "--json"]).events();
    assert_eq!(events, written, "every field comes back as it was written");
    let exported = project.say(&["runs", "export", run]);
    assert!(exported.code == 0 && exported.stdout.contains(task), "{exported:?}");
    let exported = project.say(&["runs", "export", run, "--format", "json"]);
    let exported: Value = serde_json::from_str(&exported.stdout).unwrap();
    assert_eq!(exported["events"], json!(written));
    let replayed = project.say(&["runs", "replay", run, "--max-pause", "0"]);
    assert_eq!(replayed.code, 0, "{}", replayed.stderr);
}

#[test]
fn a_run_that_waited_for_an_approval_is_carried_on_and_can_be_taken_back() {
    let project = Project::new();
    kept(
        &project,
        "suspended",
        SUSPENDED,
        "order = \"turns\"\n[[reply]]\n[[reply]]\n[[reply]]\n[[reply]]\ntext = \"Fixed.\"\n",
    );
    is_readable(&project, SUSPENDED, "what is wrong?", "suspended");

    // The question was asked of somebody who is not there any more.
    let asked = project.say(&["resume", SUSPENDED]);
    assert_eq!(asked.code, 3, "{}", asked.stderr);
    assert!(asked.stderr.contains("+    return a + b"), "the kept patch is shown: {}", asked.stderr);
    let waiting: Vec<Value> = serde_json::from_str(&project.say(&["approvals", "--json"]).stdout).unwrap();
    let id = waiting[0]["request"]["id"].as_str().unwrap();
    assert_eq!(project.say(&["approve", id]).code, 0);
    let said = project.say(&["resume", SUSPENDED]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "Fixed.\n"), "{}", said.stderr);
    assert!(calc(&project).contains("a + b"), "the kept patch was applied");
    let undone = project.say(&["runs", "undo", SUSPENDED]);
    assert_eq!(undone.code, 0, "{}", undone.stderr);
    assert!(calc(&project).contains("a - b"));
}

#[test]
fn a_conversation_in_code_goes_on_with_its_variables() {
    let project = Project::new();
    let script = r#"
order = "turns"
[[reply]]
[[reply]]
[[reply]]
[[reply]]
[[reply]]
expect = ["and twice as many"]
text = "```python\nfinal_answer(words * len(text.splitlines()))\n```"
"#;
    kept(&project, "conversation", CONVERSATION, script);
    is_readable(&project, CONVERSATION, "how long is calc.py?", "answered");

    let said = project.say(&["resume", CONVERSATION, "and twice as many?"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "14\n"), "{}", said.stderr);
    let events = project.say(&["runs", "show", CONVERSATION, "--json"]).events();
    assert_eq!(of_type(&events, "tool.started").len(), 1, "a replay makes no call again");
    let forked = project.say(&["runs", "fork", CONVERSATION, "--at", "2"]);
    assert_eq!(forked.code, 0, "{}", forked.stderr);
}
