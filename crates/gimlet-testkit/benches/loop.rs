//! What a step of the loop costs beside the HTTP round trip it cannot avoid.
//!
//! A 60-step run against the scripted server on loopback, with the durable log, and the very same requests sent bare.
//! Both are measured in one process, step by step, so the result is a difference and a ratio, not a time. The first and
//! the last twenty steps are compared: the loop must not grow with the conversation.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a bench reports, and fails loudly"
)]

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gimlet::event::{Event, EventKind};
use gimlet::journal::Observer;
use gimlet::limits::Limits;
use gimlet::tool::{ToolCx, ToolError, TypedTool};
use gimlet::{Agent, Ending, Env, Run};
use gimlet_models::{Base, Keys, Providers, Script, Settings, resolve};
use gimlet_store::FileStore;
use gimlet_testkit::ModelServer;

const STEPS: usize = 60;
const ROUNDS: usize = 5;

/// Look something up.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Input {
    /// What.
    word: String,
}

struct LookUp;

impl TypedTool for LookUp {
    const NAME: &'static str = "look_up";
    type Input = Input;
    type Output = String;

    async fn run(&self, input: Input, _cx: &ToolCx) -> Result<String, ToolError> {
        Ok(format!("{}: {}", input.word, "a line of what was found\n".repeat(40)))
    }
}

/// When each step began.
#[derive(Default)]
struct Steps(Mutex<Vec<Instant>>);

impl Observer for Steps {
    fn observe(&self, event: &Event) {
        if matches!(event.kind, EventKind::StepStarted { .. } | EventKind::RunFinished(_)) {
            self.0.lock().unwrap().push(Instant::now());
        }
    }
}

fn script() -> Script {
    let mut text = String::from("order = \"turns\"\n");
    for step in 0..STEPS - 1 {
        text += &format!(
            "[[reply]]\ntext = \"Step {step}.\"\ncalls = [{{ name = \"look_up\", args = {{ word = \"w{step}\" }} }}]\n"
        );
    }
    text += "[[reply]]\ntext = \"Done.\"\n";
    toml::from_str(&text).unwrap()
}

/// Seconds of each step of a run through the loop.
async fn through_the_loop(server: &ModelServer, home: &std::path::Path) -> Vec<f64> {
    let base = Base::User(server.url().parse().unwrap());
    let settings = Settings { base: Some(base), ..Settings::default() };
    let model = resolve("ollama_chat/scripted", &settings, &Providers::built_in().unwrap(), &Keys::default())
        .unwrap();
    let limits = Limits { max_steps: 100, ..Limits::default() };
    let agent = Agent::builder(model.into_model()).tool(LookUp).limits(limits).build().unwrap();
    let steps = Arc::new(Steps::default());
    let env = Env {
        store: Arc::new(FileStore::open(home).unwrap()),
        observers: vec![steps.clone()],
        ..Env::default()
    };
    let run = Run::start(agent, "look everything up", env).await.unwrap();
    let ending = run.drive().await.unwrap();
    let Ending::Finished(finished) = ending else { panic!("{ending:?}") };
    assert_eq!(finished.steps as usize, STEPS);
    let begun = steps.0.lock().unwrap().clone();
    begun.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect()
}

/// Seconds of each of the same requests, sent bare.
async fn bare(server: &ModelServer, bodies: &[Vec<u8>]) -> Vec<f64> {
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(10)).build().unwrap();
    let url = format!("{}/api/chat", server.url());
    let mut seconds = Vec::new();
    for body in bodies {
        let begun = Instant::now();
        let answer = client
            .post(&url)
            .header("content-type", "application/json")
            .body(body.clone())
            .send()
            .await
            .unwrap();
        assert!(answer.status().is_success());
        answer.bytes().await.unwrap();
        seconds.push(begun.elapsed().as_secs_f64());
    }
    seconds
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (mut with, mut without) = (vec![Vec::new(); STEPS], vec![Vec::new(); STEPS]);
        for _ in 0..ROUNDS {
            let home = tempfile::tempdir().unwrap();
            let server = ModelServer::start(script()).await;
            let steps = through_the_loop(&server, home.path()).await;
            server.assert_no_violations();
            let bodies: Vec<Vec<u8>> =
                server.requests().iter().map(|request| request.body.to_string().into_bytes()).collect();
            let again = ModelServer::builder(script()).lenient().start().await.unwrap();
            let round_trips = bare(&again, &bodies).await;
            for step in 0..STEPS {
                with[step].push(steps[step]);
                without[step].push(round_trips[step]);
            }
        }
        let with: Vec<f64> = with.iter().map(|rounds| median(rounds)).collect();
        let without: Vec<f64> = without.iter().map(|rounds| median(rounds)).collect();
        let report = |name: &str, range: std::ops::Range<usize>| {
            let (step, trip) = (median(&with[range.clone()]), median(&without[range.clone()]));
            let over: Vec<f64> = range.map(|at| with[at] - without[at]).collect();
            println!(
                "{name:<12} {:>6.2}x the bare round trip, {:>7.3} ms beside it",
                step / trip,
                median(&over) * 1000.0
            );
        };
        println!("a step of the loop, median of {ROUNDS} runs of {STEPS} steps:");
        report("all", 0..STEPS);
        report("first twenty", 0..20);
        report("last twenty", STEPS - 20..STEPS);
    });
}
