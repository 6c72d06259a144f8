//! What a person sees before saying yes: text from a model, a file or a server cannot forge it, and keys that were
//! pressed for something else do not answer.

use crate::pty::{Look, Pty};
use crate::support::Project;
use serde_json::{Value, json};

/// Clears the screen, moves the cursor, writes to the clipboard, changes the title.
const HOSTILE: &str =
    "before \u{1b}[2J\u{1b}[1;1Hforged \u{1b}]52;c;eA==\u{7}\u{1b}]0;title\u{7}\u{9b}2J after";

fn reply(reply: &Value) -> String {
    let toml = toml::to_string(&json!({ "order": "turns", "reply": reply })).unwrap();
    format!("{toml}\n")
}

fn pending(project: &Project) -> Vec<Value> {
    serde_json::from_str(&project.say(&["approvals", "--json"]).stdout).unwrap()
}

/// A script that calls a tool with these arguments and ends.
fn calling(tool: &str, args: &Value) -> String {
    reply(&json!([{ "calls": [{ "name": tool, "args": args }] }, { "text": "Done." }]))
}

#[test]
fn finding_01_a_command_with_control_characters_is_refused_before_anybody_is_asked() {
    let project = Project::new();
    for command in ["touch owned #\u{1b}[2K\rrun make test", "touch owned\u{8}\u{8}", "touch owned\u{9b}2K"] {
        let (_, events) = project.events(&calling("run_cmd", &json!({ "cmd": command })), &[]);
        assert!(events.iter().all(|event| event["type"] != "approval.requested"), "{events:#?}");
        let refused = events.iter().find(|event| event["type"] == "tool.finished").unwrap();
        assert_eq!(refused["result"]["error"], "VALIDATION_FAILED");
        assert!(refused["result"]["message"].as_str().unwrap().contains("control character"), "{refused}");
    }
}

#[test]
fn finding_01_an_added_line_with_control_characters_is_refused() {
    let project = Project::new();
    let edit = |new: &str| json!({ "path": "calc.py", "old_text": "a - b", "new_text": new }).to_string();
    let said = project.say(&["tools", "call", "edit_file", &edit("evil()\u{1b}[2K\u{1b}[1A")]);
    assert!(said.stdout.contains("control character, ␛"), "{said:?}");
    assert!(pending(&project).is_empty());
    // What a file holds already is not the patch's doing, and Windows line ends are text.
    project.file("calc.py", "# \u{1b}[1m\r\ndef add(a, b):\r\n    return a - b\r\n");
    let said = project.say(&["tools", "call", "edit_file", &edit("a + b"), "--approve", "all"]);
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn finding_01_newlines_cannot_push_a_command_off_the_screen() {
    let project = Project::new();
    let command = format!("touch owned{}: run make test", "\n".repeat(60));
    let model = project.script(&calling("run_cmd", &json!({ "cmd": command })));
    let mut pty = Pty::start(&project, &["--model", &model, "go"], Look::default());
    pty.wait_for("[q]uit");
    let shown = pty.shown();
    assert!(shown.contains("run touch owned⏎⏎"), "{shown}");
    assert!(shown.contains("lines are not shown here"), "{shown}");
    assert!(shown.contains("[v]iew all"), "{shown}");
    pty.press("v");
    pty.wait_for("lines 1 to");
    pty.press("q");
    assert_eq!(pty.end(), 130);
    let said = project.run(&calling("run_cmd", &json!({ "cmd": command })), &[]);
    assert_eq!(said.code, 3);
    // The question that was left with `q` waits, too.
    let waiting = pending(&project);
    assert_eq!(waiting.len(), 2, "{waiting:?}");
    let ids = waiting.iter().map(|question| question["request"]["id"].as_str().unwrap());
    let id = ids.into_iter().find(|id| said.stderr.contains(&format!("gimlet approvals show {id}")));
    let id = id.unwrap_or_else(|| panic!("{}", said.stderr)).to_owned();
    let whole = project.say(&["approvals", "show", &id]).stdout;
    assert!(whole.lines().count() > 60, "{whole}");
}

#[test]
fn finding_01_a_forged_line_break_stays_one_line() {
    let project = Project::new();
    let command = "touch owned;\n\napproval needed: run_cmd, because it is harmless\n  run make test";
    let model = project.script(&calling("run_cmd", &json!({ "cmd": command })));
    let pty = Pty::start(&project, &["--model", &model, "go"], Look::default());
    pty.wait_for("[q]uit");
    let shown = pty.shown();
    let forged = shown.lines().filter(|line| line.trim_start().starts_with("run ")).collect::<Vec<_>>();
    assert!(forged[0].contains("run touch owned;⏎⏎approval needed"), "{shown}");
    let headers = shown.lines().filter(|line| line.starts_with("approval needed")).count();
    assert_eq!(headers, 1, "{shown}");
}

#[test]
fn finding_01_answers_and_logs_show_what_a_terminal_would_obey() {
    let project = Project::new();
    let hostile = reply(&json!([
        { "calls": [{ "name": "read_file", "args": { "path": HOSTILE } }], "text": HOSTILE },
        { "text": HOSTILE },
    ]));
    let model = project.script(&hostile);
    let mut pty = Pty::start(&project, &["--model", &model, "look", "--no-trace"], Look::default());
    assert_eq!(pty.end(), 0);
    pty.wait_for("after");
    assert!(pty.shown().contains("before ␛[2J␛[1;1Hforged ␛]52;c;eA==␇"), "{}", pty.shown());
    for args in [
        &["runs", "show", "last"][..],
        &["runs", "replay", "last", "--speed", "1000"],
        &["runs", "export", "last"],
        &["runs"],
    ] {
        let mut pty = Pty::start(&project, args, Look::default());
        assert_eq!(pty.end(), 0);
        let said = project.say(args);
        for text in [&said.stdout, &said.stderr] {
            let raw = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
            assert_eq!(raw, None, "{args:?}: {text:?}");
        }
        assert!(!pty.shown().trim().is_empty());
    }
    let said = project.say(&["runs", "show", "last", "--json"]);
    assert!(!said.stdout.chars().any(|c| c.is_control() && c != '\n'), "{}", said.stdout);
    assert!(said.events().iter().any(|event| event["text"] == HOSTILE), "the data is as it was");
    let said = project.run(&reply(&json!([{ "text": HOSTILE }])), &[]);
    assert!(said.stdout.starts_with("before ␛[2J"), "{}", said.stdout);
}

#[test]
fn finding_01_the_diff_of_a_file_shows_bidirectional_controls() {
    let project = Project::new();
    let edit = json!({ "path": "calc.py", "old_text": "a - b", "new_text": "a + b # \u{202e}evil\u{200b}" });
    let said = project.say(&["tools", "call", "edit_file", &edit.to_string()]);
    assert_ne!(said.code, 0);
    let said = project.say(&["approvals"]);
    assert!(said.stdout.contains("# ⟨U+202E⟩evil⟨U+200B⟩"), "{}", said.stdout);
}

/// The question appears only after the command before it has ended, and that waits for the test.
fn blocked(project: &Project) -> String {
    project.file("wait.sh", "while [ ! -e go ]; do sleep 0.05; done\n");
    reply(&json!([
        { "calls": [{ "name": "run_cmd", "args": { "cmd": "sh wait.sh" } }] },
        { "calls": [{ "name": "run_cmd", "args": { "cmd": "sh -c 'touch owned'" } }] },
        { "text": "Done." },
    ]))
}

#[test]
fn finding_06_keys_typed_before_a_question_do_not_answer_it() {
    let project = Project::new();
    let model = project.script(&blocked(&project));
    let mut pty = Pty::start(&project, &["--model", &model, "go"], Look::default());
    pty.wait_for("[q]uit");
    pty.press("y");
    pty.wait_for("approved");
    // Typed ahead: for the next shell prompt, or out of impatience.
    pty.press("yals\r");
    project.file("go", "");
    pty.wait_until("the second question", |shown| shown.matches("[q]uit").count() == 2);
    assert!(!pty.shown().contains("approved for the session"), "{}", pty.shown());
    pty.press("q");
    assert_eq!(pty.end(), 130);
    assert!(!project.repo.path().join("owned").exists());
}

#[test]
fn fault_01_text_typed_to_steer_survives_a_question() {
    let project = Project::new();
    let model = project.script(&blocked(&project));
    let mut pty = Pty::start(&project, &["--model", &model], Look::default());
    pty.wait_for_prompt();
    pty.enter("go");
    pty.wait_for("[q]uit");
    pty.press("y");
    pty.wait_for("approved");
    pty.press("please say always");
    pty.wait_for("› please say always");
    project.file("go", "");
    pty.wait_until("the second question", |shown| shown.matches("[q]uit").count() == 2);
    pty.press("n");
    pty.wait_for("instead?");
    pty.press("\r");
    pty.wait_for("Done.");
    pty.wait_until("what was typed", |shown| shown.trim_end().ends_with("› please say always"));
    pty.press("\u{3}");
    pty.wait_for_prompt();
    pty.press("\u{4}");
    assert_eq!(pty.end(), 0);
}

#[test]
fn fault_01_a_yes_for_longer_than_once_takes_a_second_key() {
    let project = Project::new();
    let model = project.script(&calling("run_cmd", &json!({ "cmd": "sh -c 'touch owned'" })));
    let mut pty = Pty::start(&project, &["--model", &model, "go"], Look::default());
    pty.wait_for("[q]uit");
    pty.press("a");
    pty.wait_for("from now on, in every run?");
    pty.press("x");
    pty.wait_until("the question again", |shown| shown.matches("[q]uit").count() == 2);
    pty.press("s");
    pty.wait_for("for the rest of this session?");
    pty.press("y");
    pty.wait_for("approved for the session");
    assert_eq!(pty.end(), 0);
    assert!(project.repo.path().join("owned").exists());
}

#[test]
fn fault_07_a_reader_that_went_away_is_no_error() {
    let project = Project::new();
    project.run(&reply(&json!([{ "text": "Hello." }])), &[]);
    for args in [&["completions", "bash"][..], &["runs"], &["runs", "show", "last"], &["tools", "list"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = project.gimlet(args).stdout(writer).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), told.as_ref()), (Some(0), ""), "{args:?}");
    }
}
