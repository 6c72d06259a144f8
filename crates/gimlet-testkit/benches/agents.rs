//! Many agents at work at the same time in one process, beside smolagents doing the same with threads.
//!
//! Each agent looks something up a few times and adds up what it found; its model takes a while for each reply, as models
//! do, and computes from its own conversation alone. So a wrong answer means that conversations were mixed up. Runs have a
//! durable log, as they have in life. `cargo bench-agents` runs 500; `GIMLET_BENCH_AGENTS` says otherwise. smolagents is
//! used if `GIMLET_BENCH_SMOLAGENTS` names a Python that has it. Ratios count: both are measured in the same minute.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a bench reports, and fails loudly"
)]

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, join_all};
use futures_util::{FutureExt, StreamExt, stream};
use gimlet::message::{Finish, Message, ToolCall};
use gimlet::model::{Model, ModelError, ModelEvent, ModelStream, Request};
use gimlet::tool::{ToolCx, ToolError, TypedTool};
use gimlet::{Agent, Ending, Env, Run};
use gimlet_store::FileStore;
use serde_json::json;

/// Calls of each agent before its answer.
const CALLS: u64 = 9;
/// How long a model takes for a reply.
const THINKING: Duration = Duration::from_millis(50);

/// Look a number up.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Input {
    /// Which.
    number: u64,
}

struct LookUp;

impl TypedTool for LookUp {
    const NAME: &'static str = "look_up";
    type Input = Input;
    type Output = u64;

    async fn run(&self, input: Input, _cx: &ToolCx) -> Result<u64, ToolError> {
        Ok(input.number * 3)
    }
}

/// Looks up one number after the other, beginning with that of its task, and answers with the sum of what it was told.
struct Adder;

impl Model for Adder {
    fn id(&self) -> &str {
        "adder"
    }

    fn stream(&self, request: Request) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        async move {
            tokio::time::sleep(THINKING).await;
            let (mut own, mut found) = (0, Vec::new());
            for message in &request.messages {
                match message.as_ref() {
                    Message::User { text } => own = text.rsplit(' ').next().unwrap().parse().unwrap(),
                    Message::Tool { text, .. } => found.push(text.parse::<u64>().unwrap()),
                    Message::System { .. } | Message::Assistant { .. } => {}
                }
            }
            let step = u64::try_from(found.len()).unwrap();
            let events = if step < CALLS {
                let call = ToolCall {
                    id: format!("call_{step}"),
                    name: LookUp::NAME.into(),
                    args: json!({ "number": own + step }),
                };
                vec![ModelEvent::Call(call), ModelEvent::Done(Finish::ToolCalls)]
            } else {
                let sum: u64 = found.iter().sum();
                vec![ModelEvent::Text(sum.to_string()), ModelEvent::Done(Finish::Stop)]
            };
            Ok(stream::iter(events.into_iter().map(Ok)).boxed())
        }
        .boxed()
    }
}

/// What an agent must answer.
fn expected(own: u64) -> u64 {
    (0..CALLS).map(|step| (own + step) * 3).sum()
}

/// How so many agents at once went.
#[derive(Debug, serde::Deserialize)]
struct Went {
    right: u64,
    seconds: f64,
    /// Memory before and at most, in kilobytes.
    before: u64,
    peak: u64,
}

impl Went {
    fn steps_a_second(&self, agents: u64) -> f64 {
        (agents * (CALLS + 1)) as f64 / self.seconds
    }

    fn kilobytes_an_agent(&self, agents: u64) -> f64 {
        self.peak.saturating_sub(self.before) as f64 / agents as f64
    }
}

/// A line of what the kernel says of this process.
fn memory(line: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let found = status.lines().find_map(|of| of.strip_prefix(line));
    found.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

async fn one(agent: Arc<Agent>, store: Arc<FileStore>, own: u64) -> bool {
    let env = Env { store, ..Env::default() };
    let run = Run::start(agent, &format!("begin with {own}"), env).await.unwrap();
    match run.drive().await.unwrap() {
        Ending::Finished(finished) => finished.answer == expected(own).to_string(),
        other => panic!("{other:?}"),
    }
}

async fn ours(agents: u64) -> Went {
    let home = tempfile::tempdir().unwrap();
    let store = Arc::new(FileStore::open(home.path()).unwrap());
    let agent = || Agent::builder(Arc::new(Adder)).tool(LookUp).build().unwrap();
    // What a first run loads is not what an agent costs.
    assert!(one(agent(), store.clone(), 1).await);
    let before = memory("VmRSS:");
    let begun = Instant::now();
    let work = (0..agents).map(|own| tokio::spawn(one(agent(), store.clone(), own)));
    let right = join_all(work).await.into_iter().filter(|answer| *answer.as_ref().unwrap()).count();
    let seconds = begun.elapsed().as_secs_f64();
    Went { right: u64::try_from(right).unwrap(), seconds, before, peak: memory("VmHWM:") }
}

/// smolagents with a thread for each agent; none where it is not there.
fn theirs(agents: u64) -> Option<(String, Went)> {
    let python = std::env::var("GIMLET_BENCH_SMOLAGENTS").ok()?;
    let numbers = [agents, CALLS, u64::try_from(THINKING.as_millis()).unwrap()].map(|n| n.to_string());
    let output = Command::new(python).args(["-c", include_str!("agents.py")]).args(numbers).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let told = said.lines().last().and_then(|line| line.split_once('\t'));
    let Some((name, went)) = told else {
        panic!("smolagents failed: {}", String::from_utf8_lossy(&output.stderr));
    };
    Some((name.to_owned(), serde_json::from_str(went).unwrap()))
}

fn main() {
    let agents: u64 = std::env::var("GIMLET_BENCH_AGENTS").map_or(500, |text| text.parse().unwrap());
    if cfg!(debug_assertions) {
        println!("NOT OPTIMISED: run this as a bench, or believe none of it\n");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let ours = runtime.block_on(ours(agents));
    let steps = CALLS + 1;
    println!("{agents} agents at once, {steps} steps each, {} ms a reply:", THINKING.as_millis());
    let show = |name: &str, went: &Went| {
        println!(
            "{name:<20} {:>4} right  {:>8.0} steps/s  {:>8.1} kB an agent  {:>7.2} s",
            went.right,
            went.steps_a_second(agents),
            went.kilobytes_an_agent(agents),
            went.seconds
        );
    };
    show("gimlet", &ours);
    assert_eq!(ours.right, agents, "every agent must answer its own question");
    let Some((name, theirs)) = theirs(agents) else {
        println!("smolagents is not measured: GIMLET_BENCH_SMOLAGENTS names no Python");
        return;
    };
    show(&name, &theirs);
    println!(
        "{:.1} times the steps a second, {:.1} times less memory an agent",
        ours.steps_a_second(agents) / theirs.steps_a_second(agents),
        theirs.kilobytes_an_agent(agents) / ours.kilobytes_an_agent(agents)
    );
}
