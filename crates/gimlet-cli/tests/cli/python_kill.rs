//! The program, or only its Python worker, killed at every host call of a script in turn: what it answers and what it
//! leaves behind are those of a run that nobody disturbed.
//!
//! The script is written as a careful model would write it: a call whose outcome is unknown is looked at before it is
//! made again. So it does not matter where exactly a kill lands, and no clock is involved.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Project, of_type};

/// The first reply leaves a variable behind that a replay must bring back exactly; the second does the work and is given
/// again when its cell crashed.
const SETUP: &str = "import random\nlucky = random.random()\nprint('ready')";
const WORK: &str = r#"
def text_of(name):
    for attempt in range(2):
        try:
            return read_file(name)["lines"]
        except ToolError as error:
            if error.error != "OUTCOME_UNKNOWN":
                return None

def written(name, text):
    while (found := text_of(name)) is None:
        try:
            apply_patch(propose_patch("write " + name, name, "", text)["patch_id"])
        except ToolError as error:
            if error.error != "OUTCOME_UNKNOWN":
                raise
    return found

one = written("one.txt", "1\n")
same = written("lucky.txt", f"{lucky!r}\n") == f"{lucky!r}\n"
two = written("two.txt", "2\n")
print("written")
final_answer({"one": one, "two": two, "same": same})
"#;

fn script() -> String {
    let reply = |code: &str| format!("[[reply]]\ntext = '''\n```python\n{code}\n```\n'''\n");
    format!("order = \"turns\"\n{}{}", reply(SETUP), reply(WORK).repeat(3))
}

fn answer() -> Value {
    json!({"one": "1\n", "two": "2\n", "same": true})
}

/// A code agent at work, its events read as they come.
struct Running {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Running {
    fn start(project: &Project) -> Self {
        let model = project.script(&script());
        let mut child = project
            .gimlet(&["--json", "-a", "code", "--approve", "all", "-m", &model, "write two files"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Running { child, lines }
    }

    fn next(&mut self) -> Option<Value> {
        self.lines.next().map(|line| serde_json::from_str(&line.unwrap()).unwrap())
    }

    /// Reads on until so many events of this type have come; false if there are fewer.
    fn reach(&mut self, kind: &str, count: usize) -> bool {
        let mut seen = 0;
        while seen < count {
            let Some(event) = self.next() else { return false };
            seen += usize::from(event["type"] == kind);
        }
        true
    }

    /// The rest of the events, to the program's own end.
    fn rest(mut self) -> Vec<Value> {
        let events = std::iter::from_fn(|| self.next()).collect();
        self.child.wait().unwrap();
        events
    }
}

/// The files a run leaves, but for the one whose content is chance.
fn effects(project: &Project) -> BTreeMap<String, String> {
    std::fs::read_dir(project.repo.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), path))
        .map(|(name, path)| {
            let text =
                if name == "lucky.txt" { String::new() } else { std::fs::read_to_string(path).unwrap() };
            (name, text)
        })
        .collect()
}

fn finished(events: &[Value]) -> &Value {
    match of_type(events, "run.finished").as_slice() {
        [finished] => &finished["value"],
        other => panic!("{} ends in {events:#?}", other.len()),
    }
}

/// An undisturbed run: how many calls it makes and what it leaves.
fn undisturbed() -> (usize, BTreeMap<String, String>) {
    let project = Project::new().ungated();
    let events = Running::start(&project).rest();
    assert_eq!(finished(&events), &answer());
    let calls = of_type(&events, "tool.requested").len();
    assert!(calls >= 10, "{calls}");
    (calls, effects(&project))
}

#[test]
fn the_program_killed_at_every_host_call_goes_on_as_if_nothing_had_happened() {
    let (calls, left) = undisturbed();
    for kind in ["tool.requested", "tool.finished"] {
        for call in 1..=calls {
            let project = Project::new().ungated();
            let mut running = Running::start(&project);
            assert!(running.reach(kind, call), "{kind} {call}");
            running.child.kill().unwrap();
            running.child.wait().unwrap();
            let said = project.say(&["resume", "last", "--json", "--approve", "all"]);
            // The kill may come after the last event; then there is nothing to resume.
            let events = if said.code == 0 {
                said.events()
            } else {
                assert!(said.stderr.contains("is finished"), "{kind} {call}: {}", said.stderr);
                project.say(&["runs", "show", "last", "--json"]).events()
            };
            assert_eq!(finished(&events), &answer(), "{kind} {call}");
            assert_eq!(effects(&project), left, "{kind} {call}");
        }
    }
}

#[test]
fn a_worker_killed_at_every_host_call_is_replaced() {
    let (calls, left) = undisturbed();
    let mut crashed = 0;
    for call in 1..=calls {
        let project = Project::new().ungated();
        let mut running = Running::start(&project);
        assert!(running.reach("tool.requested", call), "{call}");
        for pid in descendants(running.child.id()) {
            // One that has ended meanwhile is as good as killed.
            let _ = Command::new("kill").args(["-9", &pid]).stderr(Stdio::null()).status().unwrap();
        }
        let events = running.rest();
        assert_eq!(finished(&events), &answer(), "{call}");
        assert_eq!(effects(&project), left, "{call}");
        crashed += of_type(&events, "cell.finished").iter().filter(|cell| cell["end"] == "crashed").count();
    }
    assert!(crashed > 0, "no kill met a running cell");
}

/// All processes below one, the nearest last.
fn descendants(of: u32) -> Vec<String> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{of}/task")) else { return Vec::new() };
    let mut found = Vec::new();
    for task in tasks.flatten() {
        let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace() {
            found.extend(child.parse().map(descendants).unwrap_or_default());
            found.push(child.to_owned());
        }
    }
    found
}
