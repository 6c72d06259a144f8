//! `kill -9` at random moments of a run that patches files and runs commands, in both action formats. Whatever the
//! moment: the run goes on, nothing is done twice, and a call that was cut off is told as one of unknown outcome.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::support::{Project, Said, of_type};
use serde_json::{Value, json};

/// Kills in each action format.
const KILLS: usize = 50;
/// Groups of a command, a proposed patch and an applied one. With a last look and the answer: twenty steps.
const GROUPS: usize = 6;

/// Random numbers that can be had again: xorshift.
struct Random(u64);

impl Random {
    fn new() -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let seed = match std::env::var("GIMLET_KILL_SEED") {
            Ok(seed) => seed.parse().unwrap(),
            Err(_) => now.as_nanos() as u64 | 1,
        };
        println!("GIMLET_KILL_SEED={seed}");
        Random(seed)
    }

    /// From 0 to 1.
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn new_project() -> Project {
    let project = Project::new().ungated();
    for group in 1..=GROUPS {
        project.file(&format!("file{group}.txt"), "before\n");
    }
    project
}

/// What a run did to its folder.
fn files(project: &Project) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(project.repo.path()).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if name != ".git" {
            files.insert(name, std::fs::read_to_string(entry.path()).unwrap());
        }
    }
    files
}

fn command(group: usize) -> String {
    format!("sh -c 'echo {group} >> effects.txt'")
}

fn script_of_tools(project: &Project) -> String {
    let mut script = String::from("order = \"turns\"\n");
    let mut step = |name: &str, args: Value| {
        let args = toml_of(&args);
        script.push_str(&format!("[[reply]]\ncalls = [{{ name = \"{name}\", args = {args} }}]\n"));
    };
    for group in 1..=GROUPS {
        let patch = json!({
            "intent": "Change", "file_path": format!("file{group}.txt"),
            "original_content": "before\n", "new_content": "after\n",
        });
        let said = project.say(&["tools", "call", "propose_patch", &patch.to_string()]);
        let id = said.events()[0]["patch_id"].clone();
        step("run_cmd", json!({ "cmd": command(group) }));
        step("propose_patch", patch);
        step("apply_patch", json!({ "patch_id": id }));
    }
    step("read_file", json!({ "path": "effects.txt" }));
    script + "[[reply]]\ntext = \"All done.\"\n"
}

/// An object of strings as a TOML inline table.
fn toml_of(args: &Value) -> String {
    let fields: Vec<String> =
        args.as_object().unwrap().iter().map(|(key, value)| format!("{key} = {value}")).collect();
    format!("{{ {} }}", fields.join(", "))
}

fn script_of_code() -> String {
    let mut script = String::from("order = \"turns\"\n");
    let mut cell = |code: &str| {
        script.push_str(&format!("[[reply]]\ntext = '''\n```python\n{code}\n```\n'''\n"));
    };
    for group in 1..=GROUPS {
        cell(&format!("done = run_cmd(\"{}\")\nprint(done[\"exit\"])", command(group)));
        cell(&format!("patch = propose_patch(\"Change\", \"file{group}.txt\", \"before\\n\", \"after\\n\")"));
        cell("print(apply_patch(patch[\"patch_id\"])[\"ok\"])");
    }
    cell("print(read_file(\"effects.txt\")[\"lines\"])");
    script + "[[reply]]\ntext = \"All done.\"\n"
}

/// The log as a killed process left it; a torn last line was never acted on.
fn log(project: &Project) -> Vec<Value> {
    let Ok(mut runs) = std::fs::read_dir(project.home.path().join("runs")) else { return Vec::new() };
    let Some(Ok(run)) = runs.next() else { return Vec::new() };
    let text = std::fs::read_to_string(run.path().join("log.jsonl")).unwrap_or_default();
    text.split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn open_calls(events: &[Value]) -> usize {
    let ids = |kind| of_type(events, kind).into_iter().map(|event| event["id"].clone()).collect::<Vec<_>>();
    let finished = ids("tool.finished");
    ids("tool.started").into_iter().filter(|id| !finished.contains(id)).count()
}

/// One undisturbed run: what it says, what it leaves behind, how long it takes.
fn undisturbed(script: &str, action: &str) -> (Said, BTreeMap<String, String>, Duration) {
    let project = new_project();
    let model = project.script(script);
    let begun = Instant::now();
    let said = project.say(&["-m", &model, "-a", action, "--approve", "all", "work"]);
    let took = begun.elapsed();
    assert_eq!((said.code, said.stdout.as_str()), (0, "All done.\n"), "{}", said.stderr);
    assert!(said.stderr.contains("20 steps"), "{}", said.stderr);
    let files = files(&project);
    assert_eq!(files["effects.txt"], "1\n2\n3\n4\n5\n6\n");
    assert!((1..=GROUPS).all(|group| files[&format!("file{group}.txt")] == "after\n"));
    (said, files, took)
}

/// Kills a run after a while, resumes it, and checks all that must hold. Returns how many calls the kill cut off, or
/// none when it came before the run had begun or after it was over.
fn kill_once(
    script: &str,
    action: &str,
    after: Duration,
    whole: &(Said, BTreeMap<String, String>),
) -> Option<usize> {
    let project = new_project();
    let model = project.script(script);
    let mut child = project
        .gimlet(&["-m", &model, "-a", action, "--approve", "all", "work"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    let before = log(&project);
    if before.is_empty() || !of_type(&before, "run.finished").is_empty() {
        return None;
    }
    let cut = open_calls(&before);
    let said = project.say(&["resume", "last", "--approve", "all"]);
    let context = || format!("killed after {after:?} with {cut} calls open\n{}", said.stderr);
    assert_eq!(said.code, 0, "{}", context());
    let events = project.say(&["runs", "show", "last", "--json"]).events();
    let unknown = of_type(&events, "tool.finished")
        .into_iter()
        .filter(|event| event["result"]["error"] == "OUTCOME_UNKNOWN")
        .count();
    assert_eq!(unknown, cut, "{}", context());
    assert!(cut <= 1, "{}", context());
    let files = files(&project);
    if cut == 0 {
        assert_eq!(said.stdout, whole.0.stdout, "{}", context());
        assert_eq!(files, whole.1, "{}", context());
    }
    let effects = files.get("effects.txt").cloned().unwrap_or_default();
    let mut seen: Vec<&str> = effects.lines().collect();
    seen.dedup();
    assert_eq!(seen.len(), effects.lines().count(), "a command ran twice: {effects:?}\n{}", context());
    Some(cut)
}

fn kill_often(script: &str, action: &str) {
    let (said, files, took) = undisturbed(script, action);
    let whole = (said, files);
    let mut random = Random::new();
    let (mut kills, mut cut) = (0, 0);
    // A kill that comes too early or too late is none; most do not.
    for _ in 0..KILLS * 4 {
        if let Some(open) = kill_once(script, action, took.mul_f64(random.next()), &whole) {
            kills += 1;
            cut += open;
        }
        if kills == KILLS {
            println!("{action}: {kills} kills, {cut} of them inside a call");
            return;
        }
    }
    panic!("only {kills} kills came in time");
}

#[test]
fn a_run_of_tool_calls_survives_kills() {
    let project = new_project();
    kill_often(&script_of_tools(&project), "tools");
}

#[test]
fn a_run_of_code_survives_kills() {
    kill_often(&script_of_code(), "code");
}
