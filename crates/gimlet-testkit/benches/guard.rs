//! What the guard costs around a call that does next to nothing, without a disk: validation, policy, redaction,
//! truncation, events and their fold.
//!
//! A run that makes many calls is measured in turns with one that makes a single call and with the bare work, all in one
//! process, so the result is a difference.
#![expect(clippy::print_stdout, clippy::panic, reason = "a bench reports, and fails loudly")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use gimlet::tool::{ToolCx, ToolError, TypedTool};
use gimlet::{Agent, Ending};
use gimlet_models::{Script, ScriptedModel};

const CALLS: usize = 500;
const ROUNDS: usize = 20;
const MOST: Duration = Duration::from_micros(20);

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
        Ok(look_up(&input.word))
    }
}

fn look_up(word: &str) -> String {
    format!("{word}: {}", "a line of what was found\n".repeat(10))
}

/// A reply that makes so many calls, then an answer.
fn script(calls: usize) -> String {
    let made: Vec<String> =
        (0..calls).map(|n| format!("{{ name = \"look_up\", args = {{ word = \"w{n}\" }} }}")).collect();
    let calls = if made.is_empty() { String::new() } else { format!("calls = [{}]\n", made.join(", ")) };
    format!("order = \"turns\"\n[[reply]]\ntext = \"working\"\n{calls}[[reply]]\ntext = \"done\"\n")
}

/// How long a run takes that makes so many calls.
async fn run(calls: usize) -> Duration {
    let script: Script = match toml::from_str(&script(calls)) {
        Ok(script) => script,
        Err(error) => panic!("{error}"),
    };
    let model = Arc::new(ScriptedModel::new("scripted", script));
    let agent = match Agent::builder(model).tool(LookUp).build() {
        Ok(agent) => agent,
        Err(error) => panic!("{error}"),
    };
    let began = Instant::now();
    match agent.run("look things up").await {
        Ok(Ending::Finished(_)) => began.elapsed(),
        other => panic!("{other:?}"),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut costs = Vec::new();
    for _ in 0..ROUNDS {
        let without = run(1).await;
        let with = run(CALLS + 1).await;
        let began = Instant::now();
        for n in 0..CALLS {
            std::hint::black_box(look_up(&format!("w{n}")));
        }
        let bare = began.elapsed();
        costs.push(with.saturating_sub(without).saturating_sub(bare) / CALLS as u32);
    }
    costs.sort();
    println!(
        "the guard around a call: {:?} in the best of {ROUNDS} rounds, {:?} in the median one, budget {MOST:?}",
        costs[0],
        costs[costs.len() / 2]
    );
}
