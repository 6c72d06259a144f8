//! One run: a script of marks to make in a file, the faults that meet it, and what must be true at its end.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gimlet::cell::CellEnd;
use gimlet::effect::Effect;
use gimlet::event::{ActionFormat, Event, EventKind};
use gimlet::ids::RunId;
use gimlet::limits::Limits;
use gimlet::run::RunError;
use gimlet::store::{Store, StoreError};
use gimlet::tool::{ToolCx, ToolError, TypedTool, code};
use gimlet::{Agent, Ending, Env, Run};
use gimlet_models::{Base, Keys, Providers, Script, Settings, resolve};
use gimlet_python::{Program, PythonConfig, PythonExecutor};
use gimlet_store::FileStore;
use gimlet_testkit::{ModelServer, Rule};
use rustix::process::{Pid, Signal, kill_process};

use crate::faults::{Acknowledged, Fault, Flaky, FullDisk, Jumpy, Watched};
use crate::gauge;

const MARKS: usize = 5;
const ANSWER: &str = "All marks are made.";
/// More than the faults of any run can ask for.
const MOST_RESUMES: u64 = 40;

/// Make a mark.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Mark {
    /// What it says.
    word: String,
}

/// Adds a line to a file: done twice, it shows.
struct Marker {
    file: PathBuf,
}

impl TypedTool for Marker {
    const NAME: &'static str = "mark";
    type Input = Mark;
    type Output = String;

    fn effects(&self, _input: &Mark) -> Result<Vec<Effect>, ToolError> {
        Ok(vec![Effect::Write { path: "marks".into(), digest: None }])
    }

    async fn run(&self, input: Mark, _cx: &ToolCx) -> Result<String, ToolError> {
        let write = || {
            let mut file = OpenOptions::new().create(true).append(true).open(&self.file)?;
            file.write_all(format!("{}\n", input.word).as_bytes())
        };
        write().map_err(|error: std::io::Error| ToolError::failed("MARK_FAILED", error.to_string()))?;
        // A place to die in between the effect and its record.
        tokio::task::yield_now().await;
        Ok("made".into())
    }
}

pub(crate) struct Story {
    number: u64,
    action: ActionFormat,
}

/// What came of a story.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) faults: Vec<Fault>,
    pub(crate) resumes: u64,
    pub(crate) unknown: u64,
}

impl Story {
    pub(crate) fn new(number: u64, chance: &mut fastrand::Rng) -> Story {
        Story { number, action: if chance.bool() { ActionFormat::Tools } else { ActionFormat::Code } }
    }

    fn script(&self) -> Script {
        let mut text = String::from("order = \"turns\"\n");
        for mark in 0..MARKS {
            text += &match self.action {
                ActionFormat::Tools => format!(
                    "[[reply]]\ntext = \"Mark {mark}.\"\nchunk_bytes = 4\n\
                     calls = [{{ name = \"mark\", args = {{ word = \"w{mark}\" }} }}]\n"
                ),
                ActionFormat::Code => format!(
                    "[[reply]]\nchunk_bytes = 16\ntext = '''\n```python\ntry:\n    print(mark(\"w{mark}\"))\n\
                     except ToolError as failure:\n    print(failure.error)\n```\n'''\n"
                ),
            };
        }
        let last = match self.action {
            ActionFormat::Tools => format!("[[reply]]\ntext = \"{ANSWER}\"\n"),
            ActionFormat::Code => {
                format!("[[reply]]\ntext = '''\n```python\nfinal_answer(\"{ANSWER}\")\n```\n'''\n")
            }
        };
        // The interpreter can die while it answers; the model is then asked again.
        text += &last.repeat(4);
        toml::from_str(&text).unwrap()
    }

    /// Runs it to its answer through whatever happens, and checks what is left behind.
    pub(crate) async fn run(&self, chance: &mut fastrand::Rng) -> Told {
        let place = tempfile::tempdir().unwrap();
        // A power cut can take back a result that a request has told already.
        let server = ModelServer::builder(self.script()).allow(Rule::Extends).start().await.unwrap();
        let clock = Arc::new(Jumpy::default());
        let mut told = Told::default();
        let mut id: Option<RunId> = None;
        let mut promised = Acknowledged::default();
        let mut stopped = String::new();
        let mut left = chance.usize(0..=3);
        loop {
            assert!(told.resumes < MOST_RESUMES, "run {} does not end: {stopped}", self.number);
            let fault = (left > 0).then(|| *chance.choice(&Fault::ALL).unwrap());
            left = left.saturating_sub(1);
            let ring_at = promised.event + chance.u64(2..20);
            let store = Arc::new(Watched::new(FileStore::open(place.path()).unwrap(), ring_at));
            let flaky = Arc::new(Flaky { inner: self.model(&server), breaks: Mutex::default() });
            let agent = self.agent(flaky.clone(), place.path());
            let env =
                Env { store: store.clone(), policies: Vec::new(), clock: clock.clone(), ..Env::default() };
            let run = match &id {
                None => Run::start(agent, "make the marks", env).await,
                Some(id) => {
                    told.resumes += 1;
                    Run::resume(agent, id, env, None).await
                }
            };
            let run = match run {
                Ok(run) => run,
                // Nothing of a run whose first line the disk refused.
                Err(RunError::Store(StoreError::NoSuchRun(_)) | RunError::Empty(_)) => {
                    id = None;
                    continue;
                }
                // It had answered before the fault, which kept only the news of it from arriving.
                Err(RunError::Over(id)) => {
                    told.unknown = self.assert_effects_once(place.path(), &id).await;
                    return told;
                }
                Err(error) => panic!("run {}: {error}", self.number),
            };
            let name = run.id().clone();
            let mut disk = None;
            let mut drive = Box::pin(run.drive());
            let ending = tokio::select! {
                ending = &mut drive => Some(ending),
                () = store.bell.notified(), if fault.is_some() => match fault {
                    Some(Fault::Crash | Fault::PowerCut) | None => None,
                    Some(Fault::DiskFull) => {
                        let length = std::fs::metadata(store.inner.log_path(&name)).unwrap().len();
                        disk = Some(FullDisk::beyond(length + chance.u64(0..400)));
                        Some(drive.as_mut().await)
                    }
                    Some(Fault::WorkerKilled) => {
                        kill_workers();
                        Some(drive.as_mut().await)
                    }
                    Some(Fault::ModelFails) => {
                        *flaky.breaks.lock().unwrap() = (0..chance.usize(1..4)).map(|_| chance.usize(0..4)).collect();
                        Some(drive.as_mut().await)
                    }
                    Some(Fault::ClockJumps) => {
                        clock.jump(chance.i64(-90_000..90_000));
                        Some(drive.as_mut().await)
                    }
                },
            };
            drop((drive, disk));
            told.faults.extend(fault);
            let log = store.inner.log_path(&name);
            promised = promised.and(last_words(store).await);
            if fault == Some(Fault::PowerCut) {
                cut_power(&log, promised.barrier, chance);
                promised.event = promised.barrier;
            }
            self.assert_nothing_lost(place.path(), &name, promised.event).await;
            id = Some(name.clone());
            stopped = format!("{fault:?}, {ending:?}");
            if let Some(Ok(Ending::Finished(_))) = ending {
                told.unknown = self.assert_effects_once(place.path(), &name).await;
                return told;
            }
        }
    }

    fn model(&self, server: &ModelServer) -> Arc<dyn gimlet::model::Model> {
        let base = Base::User(server.url().parse().unwrap());
        let settings = Settings { base: Some(base), ..Settings::default() };
        resolve("ollama_chat/scripted", &settings, &Providers::built_in().unwrap(), &Keys::default())
            .unwrap()
            .into_model()
    }

    fn agent(&self, model: Arc<Flaky>, place: &Path) -> Arc<Agent> {
        let worker =
            Program { path: env!("CARGO_BIN_EXE_gimlet").into(), args: vec!["__python-worker".into()] };
        Agent::builder(model)
            .tool(Marker { file: place.join("marks") })
            .action(self.action)
            .executor(Arc::new(PythonExecutor::new(PythonConfig::new(worker))))
            .limits(Limits { max_steps: 60, ..Limits::default() })
            .build()
            .unwrap()
    }

    /// Every event that was called safe is in the log, in its place.
    async fn assert_nothing_lost(&self, home: &Path, run: &RunId, safe: u64) {
        match load(home, run).await {
            Ok(events) => {
                assert!(
                    events.len() as u64 >= safe,
                    "run {}: {safe} events, {} left",
                    self.number,
                    events.len()
                );
            }
            Err(StoreError::NoSuchRun(_)) if safe == 0 => {}
            Err(error) => panic!("run {}: {error}", self.number),
        }
    }

    /// Every mark is there once; one of which the model was told that nobody knows, or that its interpreter died
    /// before, once or not at all. Tells of how many nobody knows.
    async fn assert_effects_once(&self, home: &Path, run: &RunId) -> u64 {
        let events = load(home, run).await.unwrap();
        let answered = events.iter().any(|event| match &event.kind {
            EventKind::RunFinished(finished) => finished.answer == ANSWER,
            _ => false,
        });
        assert!(answered, "run {}: no answer\n{}", self.number, outline(&events));
        let marks = std::fs::read_to_string(home.join("marks")).unwrap_or_default();
        let mut unknown = 0;
        for mark in 0..MARKS {
            let word = format!("w{mark}");
            let times = marks.lines().filter(|line| *line == word).count();
            let doubtful = events.iter().filter(|event| is_unknown(event, &events, &word)).count();
            unknown += doubtful as u64;
            assert!(doubtful <= 1, "run {}: {word} is told as unknown {doubtful} times", self.number);
            let excused = doubtful == 1 || events.iter().any(|event| is_crash(event, &events, &word));
            assert!(
                times == 1 || (times == 0 && excused),
                "run {}: {word} made {times} times\n{}",
                self.number,
                outline(&events)
            );
        }
        unknown
    }
}

/// Whether the event tells that nobody knows what came of the call that makes this mark.
fn is_unknown(event: &Event, events: &[Event], word: &str) -> bool {
    let EventKind::ToolFinished(finished) = &event.kind else { return false };
    let failed =
        finished.result["error"] == code::OUTCOME_UNKNOWN || finished.result["error"] == "MARK_FAILED";
    failed
        && events.iter().any(|other| match &other.kind {
            EventKind::ToolStarted { id, .. } => *id == finished.id,
            _ => false,
        })
        && events.iter().any(|other| match &other.kind {
            EventKind::ToolRequested { call } => call.id == finished.id && call.args["word"] == word,
            _ => false,
        })
}

/// Whether the event tells that the interpreter died in the cell that makes this mark.
fn is_crash(event: &Event, events: &[Event], word: &str) -> bool {
    let EventKind::CellFinished { cell, end: CellEnd::Crashed { .. }, .. } = &event.kind else {
        return false;
    };
    events.iter().any(|other| match &other.kind {
        EventKind::CellStarted { cell: started, code } => started == cell && code.contains(word),
        _ => false,
    })
}

/// The log for someone who looks for what went wrong.
fn outline(events: &[Event]) -> String {
    let lines =
        events.iter().filter(|event| !matches!(event.kind, EventKind::ModelDelta { .. })).map(|event| {
            let line = serde_json::to_string(event).unwrap();
            line.chars().take(300).collect::<String>()
        });
    lines.collect::<Vec<_>>().join("\n")
}

async fn load(home: &Path, run: &RunId) -> Result<Vec<Event>, StoreError> {
    FileStore::open(home).unwrap().load(run).await
}

/// Waits until nothing of the run is left, as after the death of its process, and tells what it was promised.
async fn last_words(store: Arc<Watched>) -> Acknowledged {
    for _ in 0..5000 {
        if Arc::strong_count(&store) == 1 {
            return store.acknowledged();
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("something of a run that was dropped goes on");
}

/// Takes away the end of a log that was never synced, from somewhere in it on.
fn cut_power(log: &Path, synced: u64, chance: &mut fastrand::Rng) {
    let Ok(bytes) = std::fs::read(log) else { return };
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').take(synced as usize);
    let length = chance.usize(lines.map(<[u8]>::len).sum()..=bytes.len());
    OpenOptions::new().write(true).open(log).unwrap().set_len(length as u64).unwrap();
}

fn kill_workers() {
    for child in gauge::children() {
        let command = std::fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
        if command.windows(15).any(|word| word == b"__python-worker") {
            let _ = kill_process(Pid::from_raw(child).unwrap(), Signal::KILL);
        }
    }
}
