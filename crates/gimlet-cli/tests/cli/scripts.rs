//! Python files as tools, through the real binary: `--tools FILE.py` and the table `[tools]`.

use crate::support::{Project, has_python};

const NOTES: &str = r#"
import os
from dataclasses import dataclass
from gimlet import tool, ToolError

print("this is not the protocol")


@dataclass
class Note:
    text: str
    stars: int = 1


@tool(reads_only=True)
def add_up(notes: list[Note], factor: int = 2) -> dict[str, int]:
    """Add up stars.

    Args:
        notes: the notes
    """
    return {"stars": factor * sum(note.stars for note in notes)}


@tool
def crash() -> str:
    """Ends its own process."""
    os._exit(3)


@tool
def fail(word: str) -> str:
    """Fails."""
    if word == "known":
        raise ToolError("NOTE_MISSING", "there is no such note")
    raise ValueError(word)
"#;

const TRY: &str = r#"
[[reply]]
calls = [{ name = "notes__add_up", args = { notes = [{ text = "a", stars = 3 }, { text = "b" }] } }]
[[reply]]
expect = ['8']
calls = [{ name = "notes__fail", args = { word = "known" } }]
[[reply]]
expect = ["NOTE_MISSING: there is no such note"]
calls = [{ name = "notes__crash", args = {} }]
[[reply]]
expect = ["error"]
calls = [{ name = "notes__add_up", args = { notes = [], factor = 7 } }]
[[reply]]
expect = ['0']
text = "Tried."
"#;

#[test]
fn functions_of_a_file_are_tools_and_a_crash_is_an_observation() {
    if !has_python() {
        return;
    }
    let project = Project::new();
    let elsewhere = tempfile::tempdir().unwrap();
    let file = elsewhere.path().join("notes.py");
    std::fs::write(&file, NOTES).unwrap();
    let file = file.display().to_string();
    let model = project.script(TRY);
    let said = project.say(&["--model", &model, "--tools", &file, "--approve", "all", "try them"]);
    assert_eq!((said.code, said.stdout.trim()), (0, "Tried."), "{}", said.stderr);
    let shown = project.say(&["tools", "show", "notes__add_up", "--mcp", &file]);
    assert!(shown.stdout.contains("\"the notes\""), "{}", shown.stdout);
}

#[test]
fn a_projects_file_of_tools_needs_trust_and_is_jailed() {
    if !has_python() {
        return;
    }
    let project = Project::new();
    let spy = r#"
def look(path: str) -> str:
    """Look at a file of the machine."""
    try:
        open("made.txt", "w").write("x")
        wrote = "wrote"
    except OSError:
        wrote = "read-only"
    return wrote

def _hidden() -> str:
    """Not a tool."""
"#;
    std::fs::create_dir(project.repo.path().join("tools")).unwrap();
    project.file("tools/spy.py", spy);
    let script = "[[reply]]\ncalls = [{ name = \"spy__look\", args = { path = \"x\" } }]\n[[reply]]\nexpect = [\"read-only\"]\ntext = \"Seen.\"";
    let model = project.script(script);
    let go = ["--model", &model, "--tools", "tools/*.py", "--approve", "all", "look"];
    let refused = project.say(&go);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("gimlet trust tools/spy.py"), "{}", refused.stderr);
    project.say(&["trust", "--yes", "tools/spy.py"]);
    let said = project.say(&go);
    assert_eq!((said.code, said.stdout.trim()), (0, "Seen."), "{}", said.stderr);
    assert!(!project.repo.path().join("made.txt").exists());
    project.file("tools/spy.py", &spy.replace("read-only", "changed"));
    assert_eq!(project.say(&go).code, 2, "what changed is not trusted");
}

#[test]
fn a_table_names_files_of_tools() {
    if !has_python() {
        return;
    }
    let project = Project::new();
    std::fs::create_dir(project.repo.path().join("tools")).unwrap();
    project.file(
        "tools/greet.py",
        "def greet(name: str) -> str:\n    \"\"\"Greet.\"\"\"\n    return 'hello ' + name\n",
    );
    project.file("gimlet.toml", "[tools]\nfiles = [\"tools/*.py\"]\n");
    let script = "[[reply]]\ncalls = [{ name = \"greet__greet\", args = { name = \"Ada\" } }]\n[[reply]]\nexpect = [\"hello Ada\"]\ntext = \"Greeted.\"";
    let model = project.script(script);
    let go = ["--model", &model, "--approve", "all", "greet"];
    assert!(!project.say(&go).stdout.contains("Greeted."), "an untrusted table starts nothing");
    project.say(&["trust", "--yes", "gimlet.toml"]);
    let said = project.say(&go);
    assert_eq!(said.stdout.trim(), "Greeted.", "{}", said.stderr);
    project
        .file("tools/greet.py", "def greet(name: str) -> str:\n    \"\"\"Greet.\"\"\"\n    return 'bye'\n");
    let said = project.say(&go);
    assert!(said.stderr.contains("is not as it was"), "{}", said.stderr);
}

#[test]
fn the_tools_of_a_run_can_be_named() {
    let project = Project::new();
    let script = "[[reply]]\ncalls = [{ name = \"git_log\", args = {} }]\n[[reply]]\nexpect = [\"there is no tool\"]\ncalls = [{ name = \"read_file\", args = { path = \"calc.py\" } }]\n[[reply]]\nexpect = [\"a - b\"]\ntext = \"Read.\"";
    let model = project.script(script);
    let said = project.say(&["--model", &model, "--tools", "read_*,list_files", "read"]);
    assert_eq!(said.stdout.trim(), "Read.", "{}", said.stderr);
    let wrong = project.say(&["--model", &model, "--tools", "read_fil", "read"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("did you mean `read_file`?"), "{}", wrong.stderr);
}
