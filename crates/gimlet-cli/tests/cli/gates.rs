//! Gates through the real binary: an answer to a task that asks for a change is sent back while something is missing.

use crate::pty::{Look, Pty};
use crate::support::{Project, of_type};
use serde_json::{Value, json};

const LAZY: &str = r#"
order = "turns"
aim = "change"
[[reply]]
text = "It subtracts. Done."
[[reply]]
expect = ["not looked at any file"]
calls = [{ name = "read_file", args = { path = "calc.py" } }]
[[reply]]
text = "It subtracts. Done."
[[reply]]
expect = ["nothing was changed"]
text = "I would rather not."
[[reply]]
text = "I will not change it."
"#;

fn run(project: &Project, task: &str, script: &str, more: &[&str]) -> (i32, Vec<Value>) {
    let model = project.script(script);
    let mut args = vec!["--json", "--model", &model, task];
    args.extend(more);
    let said = project.say(&args);
    (said.code, said.events())
}

#[test]
fn a_lazy_answer_is_refused_twice_for_one_reason_and_then_taken_with_a_note() {
    let (code, events) = run(&Project::new(), "Fix the bug in calc.py.", LAZY, &[]);
    assert_eq!(code, 0, "{events:#?}");
    let refused: Vec<_> = of_type(&events, "feedback").iter().map(|event| event["reason"].clone()).collect();
    assert_eq!(refused, vec![json!("answer_refused"); 3], "once for not looking, twice for not changing");
    let finished = of_type(&events, "run.finished")[0];
    assert_eq!(finished["answer"], "I will not change it.");
    assert!(finished["notes"][0].as_str().unwrap().contains("nothing was changed"), "{finished}");
    assert_eq!(finished["work"]["files_read"], json!(["calc.py"]));
}

#[test]
fn an_answer_that_is_refused_is_marked_and_never_printed_as_one() {
    let project = Project::new();
    let model = project.script(LAZY);
    let task = "Fix the bug in calc.py.";
    let said = project.say(&["--model", &model, task]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "I will not change it.\n"), "{}", said.stderr);
    let told = |text: &str| text.lines().filter(|line| line.starts_with("not accepted: ")).count();
    assert_eq!(told(&said.stderr), 1, "one line for the person: {}", said.stderr);
    assert!(!said.stderr.contains("call edit_file"), "orders are for the model: {}", said.stderr);

    let project = Project::new();
    let model = project.script(LAZY);
    let mut terminal = Pty::start(&project, &["--model", &model, task], Look::default());
    assert_eq!(terminal.end(), 0);
    terminal.wait_for("I will not change it.");
    let shown = terminal.shown();
    let (refused, told) = ("not accepted: ", "It subtracts. Done.");
    let order = [told, refused, told, "I would rather not.", "I will not"];
    let mut rest = shown.as_str();
    for text in order {
        let at = rest.find(text).unwrap_or_else(|| panic!("{text:?} is missing or out of order:\n{shown}"));
        rest = &rest[at + text.len()..];
    }
}

#[test]
fn a_question_is_never_held_up() {
    for task in ["What is wrong with calc.py?", "Explain how to fix the bug in calc.py", "hello"] {
        let (code, events) = run(&Project::new(), task, "[[reply]]\ntext = \"It subtracts.\"\n", &[]);
        assert_eq!((code, of_type(&events, "feedback").len()), (0, 0), "{task}: {events:#?}");
        assert_eq!(of_type(&events, "run.finished")[0]["notes"], Value::Null);
    }
}

#[test]
fn a_change_that_was_not_tried_is_sent_back_until_it_is() {
    let project = Project::new();
    let args = json!({
        "intent": "Add", "file_path": "calc.py",
        "original_content": "    return a - b\n", "new_content": "    return a + b\n",
    });
    let said = project.say(&["tools", "call", "propose_patch", &args.to_string()]);
    let id = said.events()[0]["patch_id"].as_str().unwrap().to_owned();
    let script = format!(
        r#"
order = "turns"
aim = "change"
[[reply]]
calls = [{{ name = "read_file", args = {{ path = "calc.py" }} }}]
[[reply]]
calls = [{{ name = "propose_patch", args = {{ intent = "Add", file_path = "calc.py", original_content = "    return a - b\n", new_content = "    return a + b\n" }} }}]
[[reply]]
text = "Proposed."
[[reply]]
expect = ["{id} was proposed and not applied"]
calls = [{{ name = "apply_patch", args = {{ patch_id = "{id}" }} }}]
[[reply]]
text = "Applied."
[[reply]]
expect = ["nothing was run since"]
calls = [{{ name = "run_cmd", args = {{ cmd = "cat calc.py" }} }}]
[[reply]]
text = "Fixed and tried."
"#
    );
    let (code, events) = run(&project, "Fix the bug in calc.py.", &script, &["--approve", "all"]);
    assert_eq!(code, 0, "{events:#?}");
    let finished = of_type(&events, "run.finished")[0];
    assert_eq!((&finished["answer"], &finished["notes"]), (&json!("Fixed and tried."), &Value::Null));
    assert_eq!(
        finished["work"],
        json!({
            "files_read": ["calc.py"], "files_changed": ["calc.py"], "searches": 0,
            "patches": { "proposed": [id], "applied": [id] },
            "commands": [{ "command": "cat calc.py", "times": 1, "exit": 0 }],
            "verification": "done",
        })
    );
}

#[test]
fn what_was_done_is_told_below_the_answer() {
    let project = Project::new();
    let script = r#"
order = "turns"
[[reply]]
calls = [{ name = "read_file", args = { path = "calc.py" } }, { name = "read_file", args = { path = "none.py" } }]
[[reply]]
calls = [{ name = "run_cmd", args = { cmd = "cat README.md" } }]
[[reply]]
text = "Here."
"#;
    let said = project.run(script, &[]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "Here.\n"), "{}", said.stderr);
    assert!(
        said.stderr.contains("read 1 file · ran `cat README.md` (exit 0) · errors: FILE_NOT_FOUND\n"),
        "{}",
        said.stderr
    );
}
