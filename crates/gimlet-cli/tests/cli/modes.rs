//! Approval modes: what each agrees to by itself, and that none passes a denial.

use serde_json::{Value, json};

use crate::pty::{Look, Pty};
use crate::support::{Project, of_type};

const SHIFT_TAB: &str = "\u{1b}[Z";

/// A project whose agent `hand` edits in one step.
fn project() -> Project {
    let project = Project::new();
    project.config(
        "[gate]\nenabled = false\n[agents.hand]\ntools = [\"read_file\", \"edit_file\", \"run_cmd\"]\n",
    );
    project
}

fn script(replies: &Value) -> String {
    toml::to_string(&json!({ "order": "turns", "reply": replies })).unwrap()
}

fn edit(old: &str, new: &str) -> Value {
    let args = json!({ "path": "calc.py", "old_text": old, "new_text": new });
    json!({ "calls": [{ "name": "edit_file", "args": args }] })
}

fn command(text: &str) -> Value {
    json!({ "calls": [{ "name": "run_cmd", "args": { "cmd": text } }] })
}

fn done() -> Value {
    json!({ "text": "Done." })
}

fn calc(project: &Project) -> String {
    std::fs::read_to_string(project.repo.path().join("calc.py")).unwrap()
}

/// Whether there is a jail here; CI has one.
fn has_jail(project: &Project) -> bool {
    let rows: Value = serde_json::from_str(&project.say(&["sandbox", "--json"]).stdout).unwrap();
    let there = rows[0]["available"] == true;
    assert!(there || std::env::var_os("CI").is_none(), "CI needs a jail: {rows}");
    there
}

#[test]
fn plan_mode_offers_nothing_that_changes_and_allows_nothing_that_changes() {
    let project = project();
    let replies = json!([edit("a - b", "a + b"), command("ls"), done()]);
    let (code, events) = project.events(&script(&replies), &["--mode", "plan", "--agent", "hand"]);
    assert_eq!(code, 0, "{events:#?}");
    assert_eq!(events[0]["tools"], json!(["read_file"]), "only what looks is offered");
    for finished in of_type(&events, "tool.finished") {
        assert_eq!(finished["result"]["error"], "UNKNOWN_TOOL", "{finished}");
    }
    let (_, events) = project.events(&script(&json!([done()])), &["--approve", "plan"]);
    let tools = events[0]["tools"].as_array().unwrap();
    for changing in ["run_cmd", "run_tests", "apply_patch", "propose_patch"] {
        assert!(!tools.contains(&json!(changing)), "{tools:?}");
    }
    // The guard holds by itself, also for what nobody would be asked about.
    let said = project.say(&["tools", "call", "run_cmd", "{\"cmd\": \"ls\"}", "--approve", "plan"]);
    assert!(said.stdout.contains("COMMAND_DENIED") && said.stdout.contains("read-only"), "{said:?}");
    assert!(calc(&project).contains("a - b"));
}

#[test]
fn accepted_edits_apply_without_a_question_and_commands_still_ask() {
    let project = project();
    let replies = json!([edit("a - b", "a + b"), command("sh -c 'touch owned'"), done()]);
    let said = project.run(&script(&replies), &["--approve", "edits", "--agent", "hand"]);
    assert_eq!(said.code, 3, "{}", said.stderr);
    assert!(calc(&project).contains("a + b"));
    assert!(!project.repo.path().join("owned").exists());
}

#[test]
fn auto_runs_what_only_changes_the_project_in_the_jail() {
    let project = project();
    if !has_jail(&project) {
        return;
    }
    let replies = json!([edit("a - b", "a + b"), command("mkdir -p a/b && touch a/b/c"), done()]);
    let said = project.run(&script(&replies), &["--approve", "auto", "--agent", "hand"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "Done.\n"), "{}", said.stderr);
    assert!(calc(&project).contains("a + b") && project.repo.path().join("a/b/c").exists());
    for asks in ["touch ../outside", "git commit --allow-empty -m x", "curl http://127.0.0.1:1"] {
        let said = project.run(&script(&json!([command(asks), done()])), &["--approve", "auto"]);
        assert_eq!(said.code, 3, "{asks}: {}", said.stderr);
    }
    let denied = project.events(&script(&json!([command("rm -rf /"), done()])), &["--approve", "auto"]);
    let finished = of_type(&denied.1, "tool.finished");
    assert_eq!(finished[0]["result"]["error"], "COMMAND_DENIED", "{finished:?}");
}

#[test]
fn a_project_can_make_the_mode_stricter_and_not_looser() {
    let project = project();
    let shown = |project: &Project| -> (String, Value) {
        let said = project.say(&["config", "show", "--json"]);
        let all: Value = serde_json::from_str(&said.stdout).unwrap();
        let rows = all["settings"].as_array().unwrap();
        (said.stderr, rows.iter().find(|row| row["key"] == "AGENT_APPROVE").unwrap().clone())
    };
    assert_eq!(shown(&project).1["value"], "ask");
    project.file("gimlet.toml", "[agent]\napprove = \"all\"\n");
    let (warned, row) = shown(&project);
    assert_eq!((&row["value"], &row["source"]), (&json!("ask"), &json!("default")));
    assert!(warned.contains("agent.approve would be \"all\""), "{warned}");
    project.file("gimlet.toml", "[agent]\napprove = \"plan\"\n");
    assert_eq!(shown(&project).1["value"], "plan");
    let said = project.say(&["config", "show"]);
    assert!(said.stdout.contains("gimlet.toml line 2"), "{}", said.stdout);
}

#[test]
fn shift_tab_and_mode_switch_and_the_prompt_shows_it() {
    let project = project();
    let model = project.script(&script(&json!([edit("a - b", "a + b"), done()])));
    let mut pty = Pty::start(&project, &["--model", &model, "--agent", "hand"], Look::default());
    pty.wait_for_prompt();
    pty.press("half a");
    pty.wait_for("› half a");
    for mode in ["edits", "auto", "plan"] {
        pty.press(SHIFT_TAB);
        pty.wait_for(&format!("{mode} › half a"));
    }
    pty.press(" line\u{15}");
    pty.wait_until("the mode before an empty line", |shown| shown.trim_end().ends_with("plan ›"));
    pty.enter("/mode nonsense");
    pty.wait_for("there is no mode `nonsense`");
    pty.wait_for_prompt();
    pty.enter("/mode edits");
    pty.wait_for("▸ edits");
    pty.wait_until("the new mode", |shown| shown.trim_end().ends_with("edits ›"));
    pty.enter("fix it");
    pty.wait_for("Done.");
    pty.wait_for_prompt();
    assert!(calc(&project).contains("a + b"), "{}", pty.shown());
    pty.press("\u{4}");
    assert_eq!(pty.end(), 0);
}

#[test]
fn plan_mode_in_the_middle_of_a_conversation_takes_the_tools_away() {
    let project = project();
    let replies = json!([
        { "text": "Hello." },
        { "calls": [{ "name": "edit_file", "args": { "path": "calc.py", "old_text": "a - b", "new_text": "a + b" } }] },
        { "text": "I would add." },
        { "expect": ["Plan mode is over"], "text": "Good." },
    ]);
    let model = project.script(&script(&replies));
    let pty = Pty::start(&project, &["--model", &model, "--agent", "hand"], Look::default());
    pty.wait_for_prompt();
    pty.enter("hello");
    pty.wait_for("Hello.");
    pty.wait_for_prompt();
    pty.enter("/mode plan");
    pty.wait_until("plan mode", |shown| shown.trim_end().ends_with("plan ›"));
    pty.enter("fix it");
    pty.wait_for("I would add.");
    pty.wait_for_prompt();
    assert!(pty.shown().contains("UNKNOWN_TOOL"), "{}", pty.shown());
    assert!(calc(&project).contains("a - b"));
    pty.enter("/mode ask");
    pty.wait_until("ask mode", |shown| shown.trim_end().ends_with("\n›"));
    pty.enter("go on");
    pty.wait_for("Good.");
}

#[test]
fn a_patch_is_edited_before_it_is_approved() {
    let project = project();
    let model = project.script(&script(&json!([edit("a - b", "a + b"), done()])));
    project.file("edit.sh", "sed -i 's/a + b/b + a/' \"$1\"\n");
    let editor = format!("sh {}/edit.sh", project.root());
    let args = ["--model", &model, "--agent", "hand", "fix it"];
    let mut pty = Pty::start_with(&project, &args, Look::default(), &[("EDITOR", &editor)]);
    pty.wait_for("[e]dit");
    pty.press("e");
    pty.wait_for("approved with an edited patch");
    assert_eq!(pty.end(), 0);
    assert!(calc(&project).contains("b + a"), "{}", calc(&project));
    let said = project.say(&["runs", "show", "last", "--json"]);
    assert!(said.stdout.contains("The person changed your patch"), "{}", said.stdout);
    // A patch that is left as it is asks again.
    project.file("calc.py", "def add(a, b):\n    return a - b\n");
    let mut pty = Pty::start_with(&project, &args, Look::default(), &[("EDITOR", "true")]);
    pty.wait_for("[e]dit");
    pty.press("e");
    pty.wait_for("the patch is as it was");
    pty.wait_until("the question again", |shown| shown.matches("[q]uit").count() == 2);
    pty.press("q");
    assert_eq!(pty.end(), 130);
    assert!(calc(&project).contains("a - b"));
}

#[test]
fn a_yes_to_an_edit_for_the_session_is_a_yes_to_edits_of_this_project() {
    let project = project();
    let replies =
        json!([edit("a - b", "a + b"), edit("a + b", "b + a"), command("sh -c 'touch owned'"), done(),]);
    let model = project.script(&script(&replies));
    let args = ["--model", &model, "--agent", "hand", "fix it"];
    let mut pty = Pty::start(&project, &args, Look::default());
    pty.wait_for("[q]uit");
    pty.press("s");
    pty.wait_for("all edits to this project, for the rest of this session?");
    pty.press("y");
    pty.wait_for("sh -c 'touch owned'");
    assert!(calc(&project).contains("b + a"), "the second edit was not asked about: {}", pty.shown());
    pty.wait_until("a question about the command", |shown| shown.matches("[q]uit").count() >= 2);
    pty.press("q");
    assert_eq!(pty.end(), 130);
    assert!(!project.repo.path().join("owned").exists());
}
