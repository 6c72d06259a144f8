//! `gimlet runs undo` through the real binary.

use crate::support::{Project, Said, of_type};
use serde_json::{Value, json};

/// A run that applied two patches, one above the other, and created a file.
fn patched() -> (Project, [String; 2]) {
    let project = Project::new();
    let propose = |args: &Value| {
        let said = project.say(&["tools", "call", "propose_patch", &args.to_string()]);
        said.events()[0]["patch_id"].as_str().unwrap_or_else(|| panic!("{said:?}")).to_owned()
    };
    let add = json!({ "intent": "Add", "file_path": "calc.py", "original_content": "    return a - b\n", "new_content": "    return a + b\n" });
    let new = json!({ "intent": "New", "file_path": "docs/new.md", "original_content": "", "new_content": "# New\n" });
    let ids = [propose(&add), propose(&new)];
    let mut script = String::from("order = \"turns\"\n");
    for (args, id) in [(&add, &ids[0]), (&new, &ids[1])] {
        let text = |key: &str| args[key].to_string();
        script += &format!(
            "[[reply]]\ncalls = [{{ name = \"propose_patch\", args = {{ intent = {}, file_path = {}, original_content = {}, new_content = {} }} }}]\n\
             [[reply]]\ncalls = [{{ name = \"apply_patch\", args = {{ patch_id = \"{id}\" }} }}]\n",
            text("intent"),
            text("file_path"),
            text("original_content"),
            text("new_content"),
        );
    }
    script += "[[reply]]\ntext = \"Done.\"\n";
    let said = project.run(&script, &["--approve", "all"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "Done.\n"), "{}", said.stderr);
    assert!(calc(&project).contains("a + b") && project.repo.path().join("docs/new.md").exists());
    (project, ids)
}

fn calc(project: &Project) -> String {
    std::fs::read_to_string(project.repo.path().join("calc.py")).unwrap()
}

fn undo(project: &Project, more: &[&str]) -> Said {
    project.say(&[&["runs", "undo", "last"][..], more].concat())
}

#[test]
fn fault_10_a_file_that_a_patch_created_is_removed_and_not_restored() {
    let (project, [_, new]) = patched();
    let said = undo(&project, &[&new]);
    assert_eq!(said.stdout, format!("undone {new} (New): removed docs/new.md\n"), "{}", said.stderr);
}

#[test]
fn everything_a_run_applied_is_taken_back_newest_first() {
    let (project, [add, new]) = patched();
    let said = undo(&project, &["--json"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let told = &said.events()[0];
    assert_eq!(
        told["patches"],
        json!([
            { "patch": new, "intent": "New", "restored": ["docs/new.md"], "removed": ["docs/new.md"] },
            { "patch": add, "intent": "Add", "restored": ["calc.py"] },
        ])
    );
    assert!(calc(&project).contains("a - b"));
    assert!(!project.repo.path().join("docs").exists(), "a folder the patch made is gone with it");

    let shown = project.say(&["runs", "show", "last", "--json"]).events();
    let noted = of_type(&shown, "warning");
    assert!(noted[0]["message"].as_str().unwrap().contains(&new), "it is in the log: {noted:?}");
    assert!(project.say(&["runs"]).stdout.contains("answered"), "the run is still what it was");

    let again = undo(&project, &[]);
    assert_eq!(again.code, 2, "{}", again.stdout);
    assert!(again.stderr.contains("no applied patch"), "{}", again.stderr);
}

#[test]
fn one_patch_can_be_named() {
    let (project, [add, new]) = patched();
    let said = undo(&project, &[&add]);
    assert_eq!((said.code, said.stderr.as_str()), (0, ""));
    assert_eq!(said.stdout, format!("undone {add} (Add): restored calc.py\n"));
    assert!(calc(&project).contains("a - b") && project.repo.path().join("docs/new.md").exists());
    assert_eq!(undo(&project, &[&add]).code, 2, "it is taken back already");
    assert_eq!(undo(&project, &["patch_none"]).code, 2);
    assert!(undo(&project, &[]).stdout.contains(&new), "the other is still there to take back");
}

#[test]
fn later_work_is_never_overwritten() {
    let (project, [add, new]) = patched();
    project.file("calc.py", "# mine\n");
    let said = undo(&project, &[]);
    assert_eq!(said.code, 1, "{}", said.stderr);
    assert!(said.stdout.contains(&format!("undone {new}")), "{}", said.stdout);
    let refused =
        format!("not undone {add}: calc.py has changed since the patch was applied; nothing was changed\n");
    assert!(said.stdout.ends_with(&refused), "{}", said.stdout);
    assert_eq!(calc(&project), "# mine\n");
}
