//! The hardest seam: a run stops for an approval in the middle of a piece of code, its process ends, the approval is
//! given, and a new process carries on from that very call. And more generally: whatever event a process dies after, a
//! new one reaches the same end.
//!
//! Processes are real: the test binary starts itself again with a stage in its environment.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use gimlet::approval::{ApproveAll, DeferAll};
use gimlet::effect::Effect;
use gimlet::event::{ActionFormat, Event, EventKind, Suspension};
use gimlet::tool::{ToolCx, ToolError, TypedTool};
use gimlet::{Agent, Ending, Env, Run};
use gimlet_models::{Script, ScriptedModel};
use gimlet_store::FileStore;
use gimlet_testkit::ScriptedExecutor;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

const HOME: &str = "GIMLET_SEAM_HOME";
const STAGE: &str = "GIMLET_SEAM_STAGE";

/// Two cells. The first keeps a variable; the second makes three calls, of which the middle one asks.
const SCRIPT: &str = r#"
order = "turns"
[[reply]]
text = """
I remember a number.
```python
n = call note {"text": "first"}
set kept "kept from the first cell"
print noted $n
```
"""
[[reply]]
text = """
```python
print before
a = call note {"text": "second"}
b = call write {"path": "out.txt"}
c = call note {"text": "third"}
print $kept
answer {"a": "$a", "b": "$b", "c": "$c", "kept": "$kept"}
```
"""
"#;

/// Note something down.
#[derive(Deserialize, JsonSchema)]
struct NoteInput {
    /// What.
    text: String,
}

/// Appends to a file, so that every process can see how often it was called.
struct Note(PathBuf);

impl TypedTool for Note {
    const NAME: &'static str = "note";
    type Input = NoteInput;
    type Output = Value;

    async fn run(&self, input: NoteInput, _cx: &ToolCx) -> Result<Value, ToolError> {
        Ok(json!(append(&self.0, &input.text)))
    }
}

/// Write a file.
#[derive(Deserialize, JsonSchema)]
struct WriteInput {
    /// Where.
    path: String,
}

struct Write(PathBuf);

impl TypedTool for Write {
    const NAME: &'static str = "write";
    type Input = WriteInput;
    type Output = Value;

    fn effects(&self, input: &WriteInput) -> Result<Vec<Effect>, ToolError> {
        Ok(vec![Effect::Write { path: input.path.clone().into(), digest: None }])
    }

    async fn run(&self, input: WriteInput, _cx: &ToolCx) -> Result<Value, ToolError> {
        Ok(json!(append(&self.0, &input.path)))
    }
}

fn append(file: &Path, line: &str) -> usize {
    let before = std::fs::read_to_string(file).unwrap_or_default();
    std::fs::write(file, format!("{before}{line}\n")).unwrap();
    before.lines().count() + 1
}

fn lines(file: &Path) -> Vec<String> {
    std::fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn agent(home: &Path) -> (Arc<Agent>, ScriptedExecutor) {
    let executor = ScriptedExecutor::new();
    let script: Script = toml::from_str(SCRIPT).unwrap();
    let agent = Agent::builder(Arc::new(ScriptedModel::new("scripted", script)))
        .tool(Note(home.join("notes")))
        .tool(Write(home.join("writes")))
        .action(ActionFormat::Code)
        .executor(Arc::new(executor.clone()))
        .build()
        .unwrap();
    (agent, executor)
}

fn env(home: &Path) -> Env {
    Env { store: Arc::new(FileStore::open(home).unwrap()), ..Env::default() }
}

/// Starts this test binary again, at a stage, and waits for its end.
fn process(stage: &str, home: &Path) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "another_process", "--nocapture"])
        .env(STAGE, stage)
        .env(HOME, home)
        .output()
        .unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stage}: {text}");
    assert!(text.contains("1 passed"), "{stage} did not run: {text}");
}

/// What the other processes do. Does nothing when the tests are run by a person.
#[tokio::test]
async fn another_process() {
    let (Ok(stage), Some(home)) = (std::env::var(STAGE), std::env::var_os(HOME)) else { return };
    let home = PathBuf::from(home);
    let (agent, executor) = agent(&home);
    match stage.as_str() {
        "begin" => {
            let env = Env { approver: Arc::new(DeferAll), ..env(&home) };
            let run = Run::start(agent, "remember and write", env).await.unwrap();
            std::fs::write(home.join("run"), run.id().as_str()).unwrap();
            let ending = run.drive().await.unwrap();
            assert!(matches!(ending, Ending::Suspended(Suspension::Approval { .. })), "{ending:?}");
            assert_eq!(executor.sessions(), 1);
        }
        "carry on" => {
            let id = std::fs::read_to_string(home.join("run")).unwrap().parse().unwrap();
            let env = Env { approver: Arc::new(ApproveAll), ..env(&home) };
            let run = Run::resume(agent, &id, env, None).await.unwrap();
            let Ending::Finished(finished) = run.drive().await.unwrap() else { panic!("not finished") };
            let kept = "kept from the first cell";
            assert_eq!(finished.value, Some(json!({"a": 2, "b": 1, "c": 3, "kept": kept})));
        }
        other => panic!("no such stage: {other}"),
    }
}

#[test]
fn a_run_suspended_in_the_middle_of_code_is_finished_by_another_process() {
    let home = tempfile::tempdir().unwrap();
    process("begin", home.path());
    assert_eq!(lines(&home.path().join("notes")), ["first", "second"]);
    assert!(lines(&home.path().join("writes")).is_empty(), "nothing is written before the approval");
    process("carry on", home.path());
    assert_eq!(lines(&home.path().join("notes")), ["first", "second", "third"], "no call was made twice");
    assert_eq!(lines(&home.path().join("writes")), ["out.txt"]);
}

/// The log of an undisturbed run, and its answer.
async fn undisturbed(home: &Path) -> (Vec<Event>, Value) {
    let (agent, _) = agent(home);
    let env = Env { approver: Arc::new(ApproveAll), ..env(home) };
    let store = env.store.clone();
    let run = Run::start(agent, "remember and write", env).await.unwrap();
    let id = run.id().clone();
    let Ending::Finished(finished) = run.drive().await.unwrap() else { panic!("not finished") };
    (store.load(&id).await.unwrap(), finished.value.unwrap())
}

#[tokio::test]
async fn a_process_may_die_after_any_event() {
    let home = tempfile::tempdir().unwrap();
    let (events, answer) = undisturbed(home.path()).await;
    for cut in 1..events.len() {
        let home = tempfile::tempdir().unwrap();
        let mut env = Env { approver: Arc::new(ApproveAll), ..env(home.path()) };
        for event in &events[..cut] {
            env.store.append(event).await.unwrap();
            // The world is as far as the log says: calls that finished have had their effect.
            if let EventKind::ToolFinished(finished) = &event.kind {
                let file = if finished.tool == "write" { "writes" } else { "notes" };
                append(&home.path().join(file), "before the death");
            }
        }
        let seen = Arc::new(Seen::default());
        env.observers.push(seen.clone());
        let run = Run::resume(agent(home.path()).0, &events[0].run, env, None).await.unwrap();
        let ending = run.drive().await.unwrap();
        let in_flight = matches!(events[cut - 1].kind, EventKind::ToolStarted { .. });
        if in_flight {
            // Nobody knows what the call did: the code is told once, and it is not made again.
            assert_eq!(seen.unknown(), 1, "cut after event {cut}");
        } else {
            let Ending::Finished(finished) = ending else { panic!("cut after event {cut}: {ending:?}") };
            assert_eq!(finished.value.as_ref(), Some(&answer), "cut after event {cut}");
            assert_eq!(lines(&home.path().join("notes")).len(), 3, "cut after event {cut}");
            assert_eq!(lines(&home.path().join("writes")).len(), 1, "cut after event {cut}");
        }
    }
}

#[tokio::test]
async fn a_replay_that_goes_another_way_is_noticed() {
    let home = tempfile::tempdir().unwrap();
    let (events, _) = undisturbed(home.path()).await;
    let until = events.iter().position(|event| matches!(event.kind, EventKind::CellFinished { .. })).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let env = env(elsewhere.path());
    for event in &events[..=until] {
        let mut event = event.clone();
        if let EventKind::ToolRequested { call } = &mut event.kind {
            call.args = json!({"text": "something else"});
        }
        env.store.append(&event).await.unwrap();
    }
    let run = Run::resume(agent(elsewhere.path()).0, &events[0].run, env, None).await.unwrap();
    let ending = run.drive().await.unwrap();
    let Ending::Suspended(Suspension::Diverged { message }) = ending else { panic!("{ending:?}") };
    assert!(message.contains("something else"), "{message}");
}

#[tokio::test]
async fn a_session_that_crashed_is_rebuilt_up_to_the_call_before_the_crash() {
    let home = tempfile::tempdir().unwrap();
    let script: Script = toml::from_str(
        r#"
        [[reply]]
        text = """
        ```python
        set kept 1
        a = call note {"text": "a"}
        b = call note {"text": "b"}
        crash out of memory
        ```
        """
        [[reply]]
        expect = ["out of memory"]
        text = """
        ```python
        answer ["$kept", "$a"]
        ```
        """
        "#,
    )
    .unwrap();
    let executor = ScriptedExecutor::new();
    let agent = Agent::builder(Arc::new(ScriptedModel::new("scripted", script)))
        .tool(Note(home.path().join("notes")))
        .action(ActionFormat::Code)
        .executor(Arc::new(executor.clone()))
        .build()
        .unwrap();
    let Ending::Finished(finished) = agent.run("crash").await.unwrap() else { panic!("not finished") };
    assert_eq!(finished.value, Some(json!([1, 1])));
    assert_eq!(executor.sessions(), 2);
    assert_eq!(lines(&home.path().join("notes")), ["a", "b"], "a replay calls nothing");
}

#[tokio::test]
async fn a_cell_is_stopped_at_once_and_can_go_on() {
    let home = tempfile::tempdir().unwrap();
    let script: Script = toml::from_str(
        "order = \"turns\"\n[[reply]]\ntext = \"```python\\nx = call note {\\\"text\\\": \\\"a\\\"}\\nhang\\n```\"",
    )
    .unwrap();
    let agent = Agent::builder(Arc::new(ScriptedModel::new("scripted", script)))
        .tool(Note(home.path().join("notes")))
        .action(ActionFormat::Code)
        .executor(Arc::new(ScriptedExecutor::new()))
        .build()
        .unwrap();
    let seen = Arc::new(Seen::default());
    let env = Env { observers: vec![seen.clone()], ..env(home.path()) };
    let run = Run::start(agent, "hang", env).await.unwrap();
    let handle = run.handle();
    let working = tokio::spawn(run.drive());
    while !seen.0.lock().unwrap().iter().any(|event| matches!(event.kind, EventKind::ToolFinished(_))) {
        tokio::task::yield_now().await;
    }
    handle.cancel();
    assert_eq!(working.await.unwrap().unwrap(), Ending::Suspended(Suspension::Interrupted));
}

/// Keeps every event.
#[derive(Default)]
struct Seen(Mutex<Vec<Event>>);

impl gimlet::journal::Observer for Seen {
    fn observe(&self, event: &Event) {
        self.0.lock().unwrap().push(event.clone());
    }
}

impl Seen {
    fn unknown(&self) -> usize {
        let unknown = |event: &&Event| matches!(&event.kind, EventKind::ToolFinished(finished) if finished.result["error"] == "OUTCOME_UNKNOWN");
        self.0.lock().unwrap().iter().filter(unknown).count()
    }
}
