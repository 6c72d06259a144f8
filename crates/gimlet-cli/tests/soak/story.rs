//! One run: a script of marks to make in a file, and the faults that meet it until it has its answer.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gimlet::effect::Effect;
use gimlet::event::ActionFormat;
use gimlet::ids::RunId;
use gimlet::limits::Limits;
use gimlet::model::Model;
use gimlet::run::RunError;
use gimlet::store::StoreError;
use gimlet::tool::{ToolCx, ToolError, TypedTool};
use gimlet::{Agent, Ending, Env, Run};
use gimlet_models::{Base, Keys, Providers, Script, Settings, resolve};
use gimlet_python::{PythonConfig, PythonExecutor, Warmth};
use gimlet_store::FileStore;
use gimlet_testkit::{ModelServer, Rule};

use crate::check::{Marks, assert_effects_once, assert_nothing_lost};
use crate::family::Family;
use crate::faults::{Blow, Fault, fall};
use crate::surroundings::{Acknowledged, Disk, Flaky, Jumpy, Surroundings, Watched};

pub(crate) const MARKS: usize = 5;
pub(crate) const ANSWER: &str = "All marks are made.";
/// Most faults that are planned for a run.
const MOST_BLOWS: usize = 3;
/// More than the faults of any run can ask for.
const MOST_RESUMES: u64 = 40;

/// What a mark says.
pub(crate) fn word(mark: usize) -> String {
    format!("w{mark}")
}

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

/// A run as it is planned.
#[derive(Debug)]
pub(crate) struct Story {
    number: u64,
    action: ActionFormat,
    blows: Vec<Blow>,
}

/// What came of a story.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) struck: Vec<Fault>,
    pub(crate) resumes: u64,
    pub(crate) marks: Marks,
}

/// How far an attempt at a run came.
struct Attempt {
    /// None if its program died.
    ending: Option<Result<Ending, RunError>>,
    /// What it met on its way.
    struck: Option<Blow>,
    acknowledged: Acknowledged,
}

/// What there is to work on.
enum Begun {
    Run(Run),
    /// The power was cut before the first barrier and took the run's first line too.
    Lost,
    /// It had answered before the fault, which kept only the news of it from arriving.
    Over(RunId),
}

impl Story {
    /// Everything that chance decides is decided here.
    pub(crate) fn new(number: u64, mut chance: fastrand::Rng) -> Story {
        let action = if chance.bool() { ActionFormat::Tools } else { ActionFormat::Code };
        let blows = (0..chance.usize(0..=MOST_BLOWS)).map(|_| Blow::new(action, &mut chance)).collect();
        Story { number, action, blows }
    }

    pub(crate) fn planned(&self) -> impl Iterator<Item = Fault> {
        self.blows.iter().map(|blow| blow.fault)
    }

    fn script(&self) -> Script {
        let mut text = String::from("order = \"turns\"\n");
        for mark in 0..MARKS {
            let word = word(mark);
            text += &match self.action {
                ActionFormat::Tools | ActionFormat::Guided => format!(
                    "[[reply]]\ntext = \"Mark {mark}.\"\nchunk_bytes = 4\n\
                     calls = [{{ name = \"mark\", args = {{ word = \"{word}\" }} }}]\n"
                ),
                ActionFormat::Code => format!(
                    "[[reply]]\nchunk_bytes = 16\ntext = '''\n```python\ntry:\n    print(mark(\"{word}\"))\n\
                     except ToolError as failure:\n    print(failure.error)\n```\n'''\n"
                ),
            };
        }
        let last = match self.action {
            ActionFormat::Tools | ActionFormat::Guided => format!("[[reply]]\ntext = \"{ANSWER}\"\n"),
            ActionFormat::Code => {
                format!("[[reply]]\ntext = '''\n```python\nfinal_answer(\"{ANSWER}\")\n```\n'''\n")
            }
        };
        // The interpreter can die while it answers; the model is then asked again.
        text += &last.repeat(MOST_BLOWS + 1);
        toml::from_str(&text).unwrap()
    }

    /// Runs it to its answer through whatever happens, and checks what is left behind.
    pub(crate) async fn run(&self, family: &Family) -> Told {
        let place = tempfile::tempdir().unwrap();
        let home = place.path();
        // A power cut can take back a result that a request has told already.
        let server = ModelServer::builder(self.script()).allow(Rule::Extends).start().await.unwrap();
        let clock = Arc::new(Jumpy::default());
        let mut blows = self.blows.iter().cloned();
        let mut told = Told::default();
        let mut id: Option<RunId> = None;
        let mut promised = Acknowledged::default();
        let mut stopped = String::new();
        loop {
            assert!(told.resumes < MOST_RESUMES, "run {} does not end: {stopped}", self.number);
            told.resumes += u64::from(id.is_some());
            let store = Arc::new(Watched::new(FileStore::open(home).unwrap()));
            let model = Arc::new(Flaky::new(model(&server)));
            let env =
                Env { store: store.clone(), policies: Vec::new(), clock: clock.clone(), ..Env::default() };
            let agent = self.agent(model.clone(), home, family);
            let run = match self.begin(id.as_ref(), agent, env, family).await {
                Begun::Run(run) => run,
                Begun::Lost => {
                    id = None;
                    continue;
                }
                Begun::Over(id) => {
                    told.marks = assert_effects_once(home, &id).await;
                    return told;
                }
            };
            let name = run.id().clone();
            let log = store.inner.log_path(&name);
            let around = Surroundings {
                family,
                store,
                model,
                clock: clock.clone(),
                disk: Disk::new(),
                log: log.clone(),
            };
            let Attempt { ending, mut struck, acknowledged } = attempt(run, blows.next(), around).await;
            promised = promised.and(acknowledged);
            if let Some(blow) = struck.take_if(|blow| blow.fault == Fault::PowerCut) {
                promised.event = promised.barrier;
                struck = blow.cut(&log, promised.barrier);
            }
            stopped = format!("{struck:?}, {ending:?}");
            told.struck.extend(struck.map(|blow| blow.fault));
            assert_nothing_lost(home, &name, promised.event).await;
            if let Some(Ok(Ending::Finished(_))) = ending {
                told.marks = assert_effects_once(home, &name).await;
                return told;
            }
            id = Some(name);
        }
    }

    /// Starts the run or takes it up.
    async fn begin(&self, id: Option<&RunId>, agent: Arc<Agent>, env: Env, family: &Family) -> Begun {
        let run = match id {
            None => Run::start(agent, "make the marks", env).await,
            Some(id) => Run::resume(agent, id, env, None).await,
        };
        if run.is_err() {
            // Its nest got ready for nothing.
            family.gone().await;
        }
        match run {
            Ok(run) => Begun::Run(run),
            Err(RunError::Store(StoreError::NoSuchRun(_)) | RunError::Empty(_)) => Begun::Lost,
            Err(RunError::Over(id)) => Begun::Over(id),
            Err(error) => panic!("run {}: {error}", self.number),
        }
    }

    /// As the program makes one: an agent that writes code has a nest from the beginning.
    fn agent(&self, model: Arc<Flaky>, home: &Path, family: &Family) -> Arc<Agent> {
        let agent = Agent::builder(model)
            .tool(Marker { file: home.join("marks") })
            .action(self.action)
            .limits(Limits { max_steps: 60, ..Limits::default() });
        let agent = match self.action {
            ActionFormat::Tools | ActionFormat::Guided => agent,
            ActionFormat::Code => {
                let config = PythonConfig { warmth: Warmth::Warm, ..PythonConfig::new(family.program()) };
                let executor = Arc::new(PythonExecutor::new(config));
                executor.warm_up();
                agent.executor(executor)
            }
        };
        agent.build().unwrap()
    }
}

fn model(server: &ModelServer) -> Arc<dyn Model> {
    let base = Base::User(server.url().parse().unwrap());
    let settings = Settings { base: Some(base), ..Settings::default() };
    resolve("ollama_chat/scripted", &settings, &Providers::built_in().unwrap(), &Keys::default())
        .unwrap()
        .into_model()
}

/// Goes on with a run until it ends or its program dies.
async fn attempt(run: Run, blow: Option<Blow>, around: Surroundings<'_>) -> Attempt {
    if let Some(blow) = &blow {
        around.store.ring_after(blow.after);
    }
    let mut drive = Box::pin(run.drive());
    let (ending, blow) = tokio::select! {
        // A run that has ended cannot be hit any more.
        biased;
        ending = &mut drive => (Some(ending), None),
        blow = fall(blow, &around) => match blow.fault.is_deadly() {
            true => (None, Some(blow)),
            false => (Some(drive.as_mut().await), Some(blow)),
        },
    };
    drop(drive);
    let struck = blow.filter(|blow| blow.was_felt(&around));
    Attempt { ending, struck, acknowledged: around.end().await }
}
