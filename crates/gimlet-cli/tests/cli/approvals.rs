//! Approvals through the real binary: asked, suspended, given elsewhere, carried on; in both action formats.

use crate::pty::{Look, Pty};
use crate::support::{Project, of_type};
use serde_json::{Value, json};

const FIX: &str = r#"
order = "turns"
[[reply]]
calls = [{ name = "propose_patch", args = { intent = "Add", file_path = "calc.py", original_content = "    return a - b\n", new_content = "    return a + b\n" } }]
[[reply]]
expect = ["patch_"]
calls = [{ name = "apply_patch", args = { patch_id = "PATCH" } }]
[[reply]]
text = "Fixed."
"#;

/// The script with the id that this very patch has.
pub(crate) fn fix(project: &Project) -> String {
    let args = json!({
        "intent": "Add", "file_path": "calc.py",
        "original_content": "    return a - b\n", "new_content": "    return a + b\n",
    });
    let said = project.say(&["tools", "call", "propose_patch", &args.to_string()]);
    let id = said.events()[0]["patch_id"].as_str().unwrap_or_else(|| panic!("{said:?}")).to_owned();
    FIX.replace("PATCH", &id)
}

fn calc(project: &Project) -> String {
    std::fs::read_to_string(project.repo.path().join("calc.py")).unwrap()
}

#[test]
fn nobody_to_ask_suspends_and_a_yes_elsewhere_carries_on() {
    let project = Project::new();
    let script = fix(&project);
    let said = project.run(&script, &[]);
    assert_eq!(said.code, 3, "{}", said.stderr);
    assert!(said.stderr.contains("+    return a + b"), "the change is shown: {}", said.stderr);
    assert!(calc(&project).contains("a - b"), "nothing is changed before the yes");

    let waiting: Vec<Value> = serde_json::from_str(&project.say(&["approvals", "--json"]).stdout).unwrap();
    let id = waiting[0]["request"]["id"].as_str().unwrap();
    assert!(said.stderr.contains(&format!("gimlet approve {id}")), "{}", said.stderr);
    assert_eq!(project.say(&["approve", id]).code, 0);

    let said = project.say(&["resume", "last"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "Fixed.\n"), "{}", said.stderr);
    assert!(calc(&project).contains("a + b"));
    assert_eq!(project.say(&["approve", id]).code, 2, "an answer is used once");
    assert!(project.say(&["approvals"]).stderr.contains("nothing waits"));
}

/// A command that lacks a permission: the person reads why, too, and one yes with that permission runs it.
#[test]
fn a_missing_permission_is_told_and_takes_one_yes() {
    let project = Project::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    project.file("call.sh", &format!("bash -c 'echo hi > /dev/tcp/127.0.0.1/{port}'\n"));
    let script = r#"
order = "turns"
[[reply]]
calls = [{ name = "run_cmd", args = { cmd = "sh call.sh" } }]
[[reply]]
expect = ['"permission":"network"']
calls = [{ name = "run_cmd", args = { cmd = "sh call.sh", permissions = ["network"] } }]
[[reply]]
text = "Called."
"#;
    let yes = || {
        let waiting: Vec<Value> =
            serde_json::from_str(&project.say(&["approvals", "--json"]).stdout).unwrap();
        assert_eq!(waiting.len(), 1, "{waiting:?}");
        assert_eq!(project.say(&["approve", waiting[0]["request"]["id"].as_str().unwrap()]).code, 0);
        project.say(&["resume", "last"])
    };
    assert_eq!(project.run(script, &[]).code, 3, "the command itself is asked for");
    let refused = yes();
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("the jail did not allow `sh call.sh` to use the network"),
        "{}",
        refused.stderr
    );
    assert!(listener.accept().is_err());
    let granted = yes();
    assert_eq!((granted.code, granted.stdout.as_str()), (0, "Called.\n"), "{}", granted.stderr);
    assert!(listener.accept().is_ok());
}

#[test]
fn an_edit_is_what_was_shown_or_nothing() {
    let project = Project::new();
    let edit = json!({ "path": "calc.py", "old_text": "a - b", "new_text": "a + b" }).to_string();
    let other = "# Mine.\ndef add(a, b):\n    return a - b\n";
    let mut pty = Pty::start(&project, &["tools", "call", "edit_file", &edit], Look::default());
    pty.wait_for("+    return a + b");
    pty.wait_for("[q]uit");
    project.file("calc.py", other);
    pty.press("y");
    pty.wait_for("has changed since this edit was shown");
    assert_ne!(pty.end(), 0);
    assert_eq!(calc(&project), other);

    let mut pty = Pty::start(&project, &["tools", "call", "edit_file", &edit], Look::default());
    pty.wait_for("[q]uit");
    pty.press("y");
    assert_eq!(pty.end(), 0);
    assert_eq!(calc(&project), other.replace("a - b", "a + b"));
}

#[test]
fn an_edit_that_does_not_fit_shows_a_short_file_without_its_secrets() {
    let project = Project::new();
    let key = format!("sk-{}", "a".repeat(40));
    project.file("short.py", &format!("KEY = '{key}'\nsum = 1\n"));
    project.file("long.py", &"x = 1\n".repeat(61));
    let edit = |path: &str, old: &str, new: &str| {
        let args = json!({ "path": path, "old_text": old, "new_text": new }).to_string();
        project.say(&["tools", "call", "edit_file", &args, "--approve", "all"])
    };
    let misfit = edit("short.py", "sum = 2", "sum = 3");
    assert_ne!(misfit.code, 0);
    let told = format!("{}{}", misfit.stdout, misfit.stderr);
    assert!(told.contains("sum = 1") && told.contains("[redacted]") && !told.contains(&key), "{told}");

    assert_eq!(edit("short.py", "", "sum = 4\n").code, 0, "a short file is written as a whole");
    assert_eq!(std::fs::read_to_string(project.repo.path().join("short.py")).unwrap(), "sum = 4\n");
    let long = edit("long.py", "", "x = 2\n");
    assert!(long.code != 0 && !format!("{}{}", long.stdout, long.stderr).contains("x = 1"), "{long:?}");
    assert_ne!(edit("short.py", "", "").code, 0, "nothing is no file");
}

#[test]
fn a_refused_edit_is_not_asked_for_again() {
    let project = Project::new();
    project.config("[agents.editor]\ndescription = \"edits\"\ntools = [\"read_file\", \"edit_file\"]\n");
    let script = r#"
    order = "turns"
    [[reply]]
    calls = [{ name = "read_file", args = { path = "calc.py" } }]
    [[reply]]
    calls = [{ name = "edit_file", args = { path = "calc.py", old_text = "a - b", new_text = "a + b" } }]
    [[reply]]
    expect = ["APPROVAL_DENIED"]
    text = "I leave it."
    "#;
    let (code, events) = project.events(script, &["--agent", "editor", "--approve", "never"]);
    assert_eq!(code, 0, "{events:#?}");
    assert!(of_type(&events, "feedback").is_empty(), "a person said no, so nothing is missing");
    assert!(calc(&project).contains("a - b"));
}

#[test]
fn a_no_reaches_the_model_with_its_feedback() {
    let project = Project::new();
    let script = fix(&project).replace(
        "[[reply]]\ntext = \"Fixed.\"",
        "[[reply]]\nexpect = [\"use subtraction\"]\ntext = \"As you wish.\"",
    );
    let said = project.run(&script, &[]);
    assert_eq!(said.code, 3);
    let waiting: Vec<Value> = serde_json::from_str(&project.say(&["approvals", "--json"]).stdout).unwrap();
    let id = waiting[0]["request"]["id"].as_str().unwrap();
    assert_eq!(project.say(&["deny", id, "--feedback", "use subtraction"]).code, 0);
    let said = project.say(&["resume", "last"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "As you wish.\n"), "{}", said.stderr);
    assert!(calc(&project).contains("a - b"));
}

#[test]
fn modes_answer_for_the_person_but_never_pass_a_denial() {
    let project = Project::new();
    let script = fix(&project);
    assert_eq!(project.run(&script, &["--approve", "all"]).stdout, "Fixed.\n");
    assert!(calc(&project).contains("a + b"));

    let project = Project::new();
    let (code, events) = project.events(&fix(&project), &["--approve", "never"]);
    assert_eq!(code, 0);
    assert_eq!(of_type(&events, "tool.finished")[1]["result"]["error"], "APPROVAL_DENIED");
    assert!(calc(&project).contains("a - b"));

    let dangerous = "[[reply]]\ncalls = [{ name = \"run_cmd\", args = { cmd = \"rm -rf /\" } }]\n[[reply]]\ntext = \"no\"\n";
    let (_, events) = project.events(dangerous, &["--approve", "all"]);
    assert_eq!(of_type(&events, "tool.finished")[0]["result"]["error"], "COMMAND_DENIED");
    assert!(of_type(&events, "approval.requested").is_empty(), "a denial is not even asked");
    assert!(of_type(&events, "tool.started").is_empty());
}

#[test]
fn a_yes_for_the_session_is_asked_once() {
    let project = Project::new();
    let script = r#"
    order = "turns"
    [[reply]]
    calls = [{ name = "run_cmd", args = { cmd = "sh -c 'echo one > made.txt'" } }]
    [[reply]]
    calls = [{ name = "read_file", args = { path = "calc.py" } }, { name = "run_cmd", args = { cmd = "sh -c 'echo one > made.txt'" } }]
    [[reply]]
    text = "twice"
    "#;
    let said = project.run(script, &[]);
    assert_eq!(said.code, 3, "{}", said.stderr);
    let waiting: Vec<Value> = serde_json::from_str(&project.say(&["approvals", "--json"]).stdout).unwrap();
    let id = waiting[0]["request"]["id"].as_str().unwrap();
    assert_eq!(project.say(&["approve", id, "--session"]).code, 0);
    let said = project.say(&["resume", "last"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "twice\n"), "{}", said.stderr);
}

#[test]
fn code_that_waits_for_a_yes_in_the_middle_of_a_line_is_carried_on() {
    let project = Project::new();
    let id = fix(&project)
        .lines()
        .find_map(|line| line.split("patch_id = \"").nth(1)?.split('"').next().map(str::to_owned))
        .unwrap();
    let script = format!(
        r#"
order = "turns"
[[reply]]
text = '''
```python
before = read_file("calc.py")["lines"]
patch = propose_patch("Add", "calc.py", "    return a - b\n", "    return a + b\n")
print("proposed", patch["patch_id"])
done = [before.count("-"), apply_patch("{id}")["ok"], read_file("calc.py")["lines"].count("+")]
final_answer(done)
```
'''
"#
    );
    let said = project.run(&script, &["--action", "code"]);
    assert_eq!(said.code, 3, "{}", said.stderr);
    let waiting: Vec<Value> = serde_json::from_str(&project.say(&["approvals", "--json"]).stdout).unwrap();
    assert_eq!(project.say(&["approve", waiting[0]["request"]["id"].as_str().unwrap()]).code, 0);
    let said = project.say(&["resume", "last"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "[1,true,1]\n"), "{}", said.stderr);
    let shown = project.say(&["runs", "show", "last", "--json"]).events();
    assert_eq!(
        of_type(&shown, "tool.started").iter().filter(|event| event["tool"] == "read_file").count(),
        2,
        "nothing ran twice"
    );
}

/// A script that runs a command which asks, and then answers.
const INSTALL: &str = r#"
order = "turns"
[[reply]]
calls = [{ name = "run_cmd", args = { cmd = "sh -c 'echo made > made.txt'" } }]
[[reply]]
text = "ran"
"#;

fn waiting(project: &Project) -> String {
    let waiting: Vec<Value> = serde_json::from_str(&project.say(&["approvals", "--json"]).stdout).unwrap();
    waiting[0]["request"]["id"].as_str().unwrap_or_else(|| panic!("{waiting:?}")).to_owned()
}

#[test]
fn a_yes_for_always_holds_in_later_runs_until_it_is_forgotten() {
    let project = Project::new();
    assert_eq!(project.run(INSTALL, &[]).code, 3);
    assert_eq!(project.say(&["approve", &waiting(&project), "--always"]).code, 0);
    assert_eq!(project.say(&["resume", "last"]).code, 0);
    let said = project.run(INSTALL, &[]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "ran\n"), "{}", said.stderr);

    let shown = project.say(&["policy", "show"]).stdout;
    let rule = shown.lines().find(|line| line.contains("always-")).unwrap_or_else(|| panic!("{shown}"));
    assert!(rule.contains("run sh -c 'echo made > made.txt'"), "{rule}");
    let name = rule.split_whitespace().find(|word| word.starts_with("always-")).unwrap();
    let checked = project.say(&["policy", "check", "--", "sh -c 'echo made > made.txt'"]).stdout;
    assert!(checked.starts_with("allow\t") && checked.contains(name), "{checked}");
    let other = project.say(&["policy", "check", "--", "sh -c 'echo made > other.txt'"]).stdout;
    assert!(other.starts_with("require_approval\t"), "{other}");

    assert_eq!(project.say(&["policy", "forget", name]).code, 0);
    assert_eq!(project.say(&["policy", "forget", name]).code, 2);
    assert_eq!(project.run(INSTALL, &[]).code, 3, "it asks again");
}

#[test]
fn a_yes_for_a_session_does_not_reach_another() {
    let project = Project::new();
    assert_eq!(project.run(INSTALL, &["--session", "mine"]).code, 3);
    assert_eq!(project.say(&["approve", &waiting(&project), "--session"]).code, 0);
    assert_eq!(project.say(&["resume", "last", "--session", "mine"]).code, 0);
    // The same conversation goes on, so the script does too.
    let again = format!("{INSTALL}{}", INSTALL.replace("order = \"turns\"", ""));
    assert_eq!(project.run(&again, &["--session", "mine"]).code, 0);
    assert_eq!(project.run(INSTALL, &["--session", "yours"]).code, 3);
}

#[test]
fn a_file_changed_after_the_yes_is_looked_at_again_and_asked_again() {
    let project = Project::new();
    let second = json!({
        "intent": "Add", "file_path": "calc.py",
        "original_content": "    return a - b\n", "new_content": "    return a + b\n",
    });
    // What the patch will be called once the file has changed.
    let before = calc(&project);
    project.file("calc.py", &format!("# mine\n{before}"));
    let said = project.say(&["tools", "call", "propose_patch", &second.to_string()]);
    let later = said.events()[0]["patch_id"].as_str().unwrap().to_owned();
    project.file("calc.py", &before);

    let again = format!(
        "[[reply]]\nexpect = [\"has changed since the patch was proposed\"]\n\
         calls = [{{ name = \"propose_patch\", args = {{ intent = \"Add\", file_path = \"calc.py\", original_content = \"    return a - b\\n\", new_content = \"    return a + b\\n\" }} }}]\n\
         [[reply]]\ncalls = [{{ name = \"apply_patch\", args = {{ patch_id = \"{later}\" }} }}]\n\
         [[reply]]\ntext = \"Fixed.\"",
    );
    let script = fix(&project).replace("[[reply]]\ntext = \"Fixed.\"", &again);
    assert_eq!(project.run(&script, &[]).code, 3);
    let first = waiting(&project);
    assert_eq!(project.say(&["approve", &first]).code, 0);
    project.file("calc.py", &format!("# mine\n{before}"));

    let said = project.say(&["resume", "last"]);
    assert_eq!(said.code, 3, "the new patch is asked about: {}", said.stderr);
    assert_eq!(calc(&project), format!("# mine\n{before}"), "nothing was changed by the old yes");
    let next = waiting(&project);
    assert_ne!(first, next);
    assert_eq!(project.say(&["approve", &next]).code, 0);
    let said = project.say(&["resume", "last"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "Fixed.\n"), "{}", said.stderr);
    assert!(calc(&project).starts_with("# mine\n") && calc(&project).contains("a + b"));
}
