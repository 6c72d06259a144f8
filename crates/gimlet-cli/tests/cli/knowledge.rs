//! Skills and commands: a person's own are on, a project's are off until they are trusted as they are.

use serde_json::Value;

use crate::pty::{Look, Pty};
use crate::support::{Project, of_type};

const ANSWER: &str = "[[reply]]\ntext = \"ok\"\n";
const SKILL: &str =
    "---\nname: release\ndescription: How to make a release.\n---\n# Release\n\nRun the script, then tag.\n";

fn put(folder: &std::path::Path, path: &str, text: &str) {
    let path = folder.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn with_skill() -> Project {
    let project = Project::new();
    put(project.repo.path(), ".gimlet/skills/release/SKILL.md", SKILL);
    put(project.repo.path(), ".gimlet/skills/release/scripts/tag.sh", "git tag v1\n");
    project
}

fn context(project: &Project) -> String {
    let (_, events) = project.events(ANSWER, &[]);
    events[0]["context"].as_str().unwrap_or_default().to_owned()
}

/// A script that calls `read_skill` with these arguments and then answers.
fn reading(arguments: &str) -> String {
    format!("[[reply]]\ncalls = [{{ name = \"read_skill\", args = {arguments} }}]\n{ANSWER}")
}

fn result(project: &Project, arguments: &str) -> Value {
    let (code, events) = project.events(&reading(arguments), &[]);
    assert_eq!(code, 0);
    of_type(&events, "tool.finished")[0].clone()
}

#[test]
fn a_projects_skill_is_off_until_it_is_trusted() {
    let project = with_skill();
    assert!(!context(&project).contains("release"));
    let said = project.run(ANSWER, &[]);
    assert!(
        said.stderr.contains("1 skill of this project is off; to use them: gimlet trust"),
        "{}",
        said.stderr
    );
    let (_, events) = project.events(&reading("{ name = \"release\" }"), &[]);
    assert_eq!(of_type(&events, "tool.finished")[0]["result"]["error"], "UNKNOWN_TOOL", "{events:?}");
    assert!(project.say(&["skills"]).stdout.contains("off: .gimlet/skills/release/SKILL.md is not trusted"));

    let trusted = project.say(&["trust", "--yes"]);
    assert_eq!(trusted.code, 0, "{}", trusted.stderr);
    assert!(
        trusted.stderr.contains("comes with .gimlet/skills/release/scripts/tag.sh"),
        "{}",
        trusted.stderr
    );
    let told = context(&project);
    assert!(told.contains("- release: How to make a release."), "{told}");
    assert!(!told.contains("Run the script"), "the body is read on demand: {told}");
    assert!(project.say(&["skills"]).stdout.contains("How to make a release."));

    // A change to the skill, or to a file beside it, asks again.
    put(project.repo.path(), ".gimlet/skills/release/scripts/tag.sh", "git push --force\n");
    assert!(!context(&project).contains("release"));
    assert!(project.say(&["skills"]).stdout.contains("is not as it was trusted"));
}

#[test]
fn the_model_reads_a_skill_and_the_files_beside_it() {
    let project = with_skill();
    put(project.repo.path(), ".gimlet/skills/release/.hidden", "no\n");
    put(project.repo.path(), ".gimlet/skills/release/id_rsa", "key\n");
    let outside = project.home.path().join("outside.txt");
    std::fs::write(&outside, "private words").unwrap();
    std::os::unix::fs::symlink(&outside, project.repo.path().join(".gimlet/skills/release/link.txt"))
        .unwrap();
    assert_eq!(project.say(&["trust", "--yes"]).code, 0);

    let whole = result(&project, "{ name = \"release\" }")["result"].clone();
    assert_eq!(whole["text"], "# Release\n\nRun the script, then tag.");
    assert_eq!(whole["folder"], ".gimlet/skills/release");
    assert_eq!(whole["files"], serde_json::json!(["scripts/tag.sh"]), "no links, no secrets, nothing hidden");
    let file = result(&project, "{ name = \"release\", file = \"scripts/tag.sh\" }");
    assert_eq!(file["result"]["text"], "git tag v1");
    for bad in ["link.txt", "id_rsa", "../../../README.md", "/etc/hosts", "scripts/../../release/id_rsa"] {
        let refused = result(&project, &format!("{{ name = \"release\", file = \"{bad}\" }}"));
        assert_eq!(refused["result"]["error"], "FILE_NOT_FOUND", "{bad}: {refused}");
    }
    assert_eq!(result(&project, "{ name = \"nope\" }")["result"]["context"]["skills"][0], "release");
    let list = result(&project, "{ name = \"\" }");
    assert_eq!(list["result"]["text"], "release: How to make a release.");
}

#[test]
fn other_places_for_skills_and_the_persons_own() {
    let project = Project::new();
    put(project.repo.path(), ".claude/skills/deploy/SKILL.md", "---\ndescription: Deploys.\n---\nBody\n");
    put(project.repo.path(), ".agents/skills/check/SKILL.md", "---\ndescription: Checks.\n---\nBody\n");
    put(project.repo.path(), ".agents/skills/mine/SKILL.md", "---\ndescription: Not this one.\n---\nBody\n");
    put(project.home.path(), "skills/mine/SKILL.md", "---\ndescription: My own.\n---\nMine\n");
    let listed: Value = serde_json::from_str(&project.say(&["skills", "--json"]).stdout).unwrap();
    let states: Vec<(&str, &str)> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["name"].as_str().unwrap(), row["state"].as_str().unwrap()))
        .collect();
    assert_eq!(states, [("check", "not_trusted"), ("deploy", "not_trusted"), ("mine", "yours")]);
    let told = context(&project);
    assert!(told.contains("- mine: My own.") && !told.contains("deploy"), "{told}");
    assert_eq!(result(&project, "{ name = \"mine\" }")["result"]["text"], "Mine");
    assert_eq!(project.say(&["trust", "--yes"]).code, 0);
    assert!(context(&project).contains("- deploy: Deploys."));
}

#[test]
fn a_command_is_a_task_with_arguments() {
    let project = Project::new();
    put(
        project.repo.path(),
        ".gimlet/commands/fix.md",
        "---\ndescription: Fix a file\nargument-hint: FILE WHY\n---\nFix $1 because: $2. All: $ARGUMENTS\n",
    );
    put(project.home.path(), "commands/hi.md", "Say hi and read @README.md.\n");
    let model = project.script(ANSWER);
    let task = |args: &[&str]| {
        let said = project.say(&[&["--json", "-m", &model][..], args].concat());
        assert_eq!(said.code, 0, "{}", said.stderr);
        said.events()[0]["task"].as_str().unwrap().to_owned()
    };
    let refused = project.say(&["-m", &model, "/fix", "a.py"]);
    assert_eq!(refused.code, 2);
    assert!(
        refused.stderr.contains("the command /fix is off: .gimlet/commands/fix.md is not trusted"),
        "{}",
        refused.stderr
    );
    assert!(refused.stderr.contains("hint: read it, then run: gimlet trust .gimlet/commands/fix.md"));
    assert_eq!(project.say(&["trust", ".gimlet/commands/fix.md", "--yes"]).code, 0);
    assert_eq!(
        task(&["/fix", "a.py", "it is wrong"]),
        "Fix a.py because: it is wrong. All: a.py \"it is wrong\""
    );
    assert_eq!(task(&["/fix a.py twice"]), "Fix a.py because: twice. All: a.py twice");
    assert_eq!(task(&["run", "/fix", "a.py", "b"]), "Fix a.py because: b. All: a.py b");
    assert!(task(&["/hi"]).contains("README.md:\n```\n# Calc"), "files are attached as in any task");
    assert_eq!(task(&["/etc/hosts is wrong"]), "/etc/hosts is wrong");
    assert_eq!(task(&["/tmp is full"]), "/tmp is full");
    let typo = project.say(&["-m", &model, "/fxi", "a.py"]);
    assert_eq!(typo.code, 2);
    assert!(typo.stderr.contains("did you mean /fix?"), "{}", typo.stderr);
    let listed = project.say(&["commands"]).stdout;
    assert!(listed.contains("/fix FILE WHY  Fix a file") && listed.contains("/hi"), "{listed}");
    project.file(".gimlet/commands/fix.md", "Delete everything.\n");
    assert_eq!(project.say(&["-m", &model, "/fix", "a.py"]).code, 2, "a change asks again");
}

#[test]
fn a_session_completes_lists_and_runs_commands() {
    let project = with_skill();
    put(
        project.repo.path(),
        ".gimlet/commands/explain.md",
        "---\ndescription: Explain a file\n---\nExplain $1 to me.\n",
    );
    assert_eq!(project.say(&["trust", "--yes"]).code, 0);
    let model = project
        .script("order = \"turns\"\n[[reply]]\nexpect = [\"Explain calc.py to me.\"]\ntext = \"It adds.\"\n");
    let pty = Pty::start(&project, &["--model", &model], Look::default());
    pty.wait_for_prompt();
    pty.enter("/skills");
    pty.wait_for("release  How to make a release.");
    pty.wait_for_prompt();
    pty.enter("/help");
    pty.wait_for("/explain  Explain a file");
    pty.wait_for_prompt();
    pty.enter("/explian calc.py");
    pty.wait_for("did you mean /explain?");
    pty.wait_for_prompt();
    pty.press("/expl\tcalc.py\r");
    pty.wait_for("It adds.");
}
