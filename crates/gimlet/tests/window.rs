//! Whatever happens in a run, no request is larger than the model's window.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use gimlet::context::{Window, bytes};
use gimlet::event::{Dialect, EventKind};
use gimlet::limits::Limits;
use gimlet::message::{Finish, Message, ToolCall, Usage};
use gimlet::model::{Model, ModelError, ModelEvent, ModelStream, Request};
use gimlet::plan::Planning;
use gimlet::state::State;
use gimlet::tool::{ToolCx, ToolError, TypedTool};
use gimlet::{Agent, Ending, Run};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use support::{Log, env};

/// Random numbers that can be had again: xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// Says and does anything, at any length.
struct Anything {
    random: Mutex<Random>,
    window: Window,
    steps: u64,
    requests: Mutex<Vec<Request>>,
}

impl Anything {
    fn reply(&self, request: &Request) -> Result<Vec<ModelEvent>, ModelError> {
        let mut random = self.random.lock().unwrap();
        let sent: usize = request.messages.iter().map(|message| bytes(message)).sum();
        // Servers count in their own ways.
        let input = match random.below(3) {
            0 => 0,
            1 => sent as u64 / 4,
            _ => sent as u64 / 3,
        };
        let usage = ModelEvent::Usage(Usage { input, output: 9, ..Usage::default() });
        let words = |random: &mut Random, most| "word ".repeat(random.below(most) as usize);
        let Some(Message::User { text: first }) = request.messages.get(1).map(AsRef::as_ref) else {
            panic!()
        };
        if first.starts_with("Sum up this run") {
            return match random.below(4) {
                0 => Err(ModelError::Cut),
                1 => {
                    Ok(vec![ModelEvent::Text(words(&mut random, 300)), usage, ModelEvent::Done(Finish::Stop)])
                }
                _ => {
                    let text = format!("Goal:\n- it\nDecisions:\n- {}\n", words(&mut random, 2000));
                    Ok(vec![ModelEvent::Text(text), usage, ModelEvent::Done(Finish::Stop)])
                }
            };
        }
        if self.requests.lock().unwrap().len() as u64 > self.steps {
            return Ok(vec![ModelEvent::Text("done".into()), usage, ModelEvent::Done(Finish::Stop)]);
        }
        let mut events = vec![ModelEvent::Text(words(&mut random, 200))];
        for _ in 0..=random.below(4) {
            let args = json!({ "chars": random.below(9000) });
            events.push(ModelEvent::Call(ToolCall { id: String::new(), name: "produce".into(), args }));
        }
        events.extend([usage, ModelEvent::Done(Finish::ToolCalls)]);
        Ok(events)
    }
}

impl Model for Anything {
    fn id(&self) -> &str {
        "anything"
    }

    fn window(&self) -> Option<Window> {
        Some(self.window)
    }

    fn stream(&self, request: Request) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        self.requests.lock().unwrap().push(request.clone());
        let reply = self.reply(&request);
        async move { Ok(stream::iter(reply?.into_iter().map(Ok)).boxed()) }.boxed()
    }
}

/// Produces a long text.
#[derive(Deserialize, JsonSchema)]
struct ProduceInput {
    /// How long.
    chars: usize,
}

struct Produce;

impl TypedTool for Produce {
    const NAME: &'static str = "produce";
    type Input = ProduceInput;
    type Output = String;

    async fn run(&self, input: ProduceInput, _cx: &ToolCx) -> Result<String, ToolError> {
        Ok("thing ".repeat(input.chars / 6))
    }
}

/// The most tokens that a request can be: no server packs fewer bytes of such a text into one.
fn tokens(request: &Request) -> u64 {
    request.messages.iter().map(|message| bytes(message) as u64).sum::<u64>() / 4
}

async fn any_run(seed: u64) -> (Arc<Anything>, Ending, Arc<Log>, State) {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let reply = 256 << random.below(4);
    let window = Window { tokens: 1024 << random.below(5), reply, longest_reply: reply };
    let dialect = if random.below(2) == 0 { Dialect::Native } else { Dialect::Text };
    let plan = if random.below(3) == 0 { Planning::from(Some(4)) } else { Planning::Never };
    let task = format!("do it {}", "please ".repeat(random.below(200) as usize));
    let steps = 5 + random.below(30);
    let model = Arc::new(Anything { random: Mutex::new(random), window, steps, requests: Mutex::default() });
    let limits = Limits { max_steps: 60, ..Limits::default() };
    let agent = Agent::builder(model.clone()).tool(Produce).dialect(dialect).plan(plan).limits(limits);
    let (env, log) = env();
    let store = env.store.clone();
    let run = Run::start(agent.build().unwrap(), &task, env).await.unwrap();
    let id = run.id().clone();
    run.handle().say("and mind the gap").await.unwrap();
    let ending = run.drive().await.unwrap();
    let state = State::fold(&store.load(&id).await.unwrap(), &Default::default());
    (model, ending, log, state)
}

#[tokio::test]
async fn no_request_is_larger_than_the_window() {
    let (mut pruned, mut compacted, mut hopeless) = (0, 0, 0);
    for seed in 1..=60 {
        let (model, ending, log, state) = any_run(seed).await;
        for request in model.requests.lock().unwrap().iter() {
            let most = u64::from(model.window.tokens);
            assert!(tokens(request) <= most, "seed {seed}: {} of {most}", tokens(request));
            let user = |message: &Message| matches!(message, Message::User { .. });
            assert!(
                request.messages.windows(2).all(|pair| !(user(&pair[0]) && user(&pair[1]))),
                "seed {seed}: two of the user side in a row"
            );
        }
        for event in log.events() {
            match event.kind {
                EventKind::ContextPruned(_) => pruned += 1,
                EventKind::ContextCompacted(made) => {
                    compacted += 1;
                    assert!(made.text.contains("mind the gap"), "seed {seed}: {}", made.text);
                }
                _ => {}
            }
        }
        match ending {
            Ending::Finished(_) => {
                // What a resumed run would send is what was sent.
                let requests = model.requests.lock().unwrap();
                let last = requests.last().unwrap();
                assert_eq!(state.messages[..last.messages.len()], last.messages[..], "seed {seed}");
            }
            Ending::Failed(failure) => {
                assert_eq!(failure.error, "CONTEXT_LENGTH", "seed {seed}");
                hopeless += 1;
            }
            Ending::Suspended(_) => panic!("seed {seed}"),
        }
    }
    assert!(pruned > 40 && compacted > 20, "{pruned} prunings, {compacted} summaries");
    assert!(hopeless < 20, "{hopeless} of 60 runs could not be helped");
}
