//! A conversation of many turns in one process: the interpreter is kept, so that no cell runs twice.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use gimlet::event::{ActionFormat, EventKind};
use gimlet::feed::After;
use gimlet::{Agent, Env, Run};
use gimlet_models::{Script, ScriptedModel};
use gimlet_testkit::ScriptedExecutor;

const TURNS: usize = 10;

#[tokio::test]
async fn ten_messages_in_code_run_each_cell_once() {
    let mut text = String::from("order = \"turns\"\n");
    for turn in 0..TURNS {
        text += &format!(
            "[[reply]]\ntext = \"\"\"\n```python\nset kept_{turn} \"{turn}\"\nanswer \"{turn}\"\n```\n\"\"\"\n"
        );
    }
    let script: Script = toml::from_str(&text).unwrap();
    let executor = ScriptedExecutor::new();
    let agent = Agent::builder(Arc::new(ScriptedModel::new("scripted", script)))
        .action(ActionFormat::Code)
        .executor(Arc::new(executor.clone()))
        .build()
        .unwrap();
    let env = Env::default();
    let mut run = Run::start(agent.clone(), "turn 0", env.clone()).await.unwrap();
    run.turn().await.unwrap();
    for turn in 1..TURNS {
        let id = run.id().clone();
        let said = format!("turn {turn}");
        let next = Run::converse_after(Some(run), agent.clone(), &id, &said, env.clone(), None);
        run = next.await.unwrap();
        run.turn().await.unwrap();
    }
    assert_eq!((executor.cells().len(), executor.sessions()), (TURNS, 1));

    // One stream of events, from the first turn to the last, without a gap.
    let mut events = run.handle().events(After::Start);
    let mut seen = Vec::new();
    while let Some(event) = events.next_now() {
        seen.push(event);
    }
    let numbers: Vec<u64> = seen.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=seen.len() as u64).collect::<Vec<_>>());
    let answers = seen.iter().filter(|event| matches!(event.kind, EventKind::RunFinished(_))).count();
    assert_eq!(answers, TURNS);
}
