//! Care for small models: a conversation that outgrows the window, replies that keep no form, servers that count.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;

use gimlet::context::{Window, bytes};
use gimlet::event::{ActionFormat, Dialect, EventKind, FeedbackReason, Pruned};
use gimlet::limits::Limits;
use gimlet::message::Message;
use gimlet::model::{ModelError, Request};
use gimlet::state::State;
use gimlet::tool::{ToolCx, ToolError, TypedTool};
use gimlet::{Agent, Ending, Run};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use support::*;

const SMALL: Window = Window { tokens: 4096, reply: 512, longest_reply: 512 };

/// As a real tokenizer counts source code, about.
fn four_bytes_a_token(request: &Request) -> u64 {
    request.messages.iter().map(|message| bytes(message) as u64).sum::<u64>() / 4
}

fn long(n: usize) -> String {
    format!("line {n} of a long file\n").repeat(90)
}

/// Shows a long file.
#[derive(Deserialize, JsonSchema)]
struct LookInput {
    /// Which.
    n: usize,
}

struct Look;

impl TypedTool for Look {
    const NAME: &'static str = "look";
    type Input = LookInput;
    type Output = String;

    async fn run(&self, input: LookInput, _cx: &ToolCx) -> Result<String, ToolError> {
        Ok(long(input.n))
    }
}

/// Ten steps that each bring about 2000 characters, then an answer.
fn looks() -> Vec<Say> {
    let look = |n: usize| call("look", json!({ "n": n }));
    (0..10).map(look).chain([Say::Text("done")]).collect()
}

fn agent(model: &Arc<Pretend>, dialect: Dialect) -> Arc<Agent> {
    Agent::builder(model.clone()).tool(Look).tool(Echo).dialect(dialect).build().unwrap()
}

fn prunings(log: &Log) -> Vec<Pruned> {
    let pruned = log.events().into_iter().filter_map(|event| match event.kind {
        EventKind::ContextPruned(pruned) => Some(pruned),
        _ => None,
    });
    pruned.collect()
}

fn text(message: &Message) -> &str {
    match message {
        Message::System { text } | Message::User { text } | Message::Tool { text, .. } => text,
        Message::Assistant { text, .. } => text,
    }
}

fn is_stub(message: &Message) -> bool {
    text(message).starts_with("[elided")
}

#[tokio::test]
async fn old_observations_give_way_and_the_rest_stays() {
    for dialect in [Dialect::Native, Dialect::Text] {
        let model = Pretend::with_window(looks(), Some(SMALL), four_bytes_a_token);
        let (env, log) = env();
        let store = env.store.clone();
        let (id, ending) = run(&agent(&model, dialect), env).await;
        assert_eq!(answer(&ending), "done");
        let pruned = prunings(&log);
        assert!(!pruned.is_empty(), "{dialect:?}: about 5000 tokens do not fit");
        assert!(
            pruned.iter().all(|pruned| pruned.kept_steps == 3 && pruned.after < pruned.before),
            "{pruned:?}"
        );
        let requests = model.requests.lock().unwrap().clone();
        let first = &requests[0].messages;
        for request in requests.iter() {
            assert!(
                four_bytes_a_token(request) < u64::from(SMALL.tokens - SMALL.reply),
                "it is sent only when it fits"
            );
            assert_eq!(request.messages[..2], first[..2], "instructions and task stay");
            let observations: Vec<_> = request
                .messages
                .iter()
                .skip(2)
                .filter(|message| !matches!(message.as_ref(), Message::Assistant { .. }))
                .collect();
            for (back, observation) in observations.iter().rev().enumerate() {
                let n = observations.len() - 1 - back;
                if is_stub(observation) {
                    assert!(back >= 3, "the last three steps stay word for word");
                    assert_eq!(text(observation).lines().count(), 1);
                    let words = format!("the result of look(n={n}) in step {}, ", n + 1);
                    assert!(text(observation).contains(&words), "{}", text(observation));
                } else {
                    assert!(text(observation).contains(&format!("line {n} of")), "{}", text(observation));
                }
            }
        }
        // A resumed run would send exactly what was sent.
        let events = store.load(&id).await.unwrap();
        let state = State::fold(&events, &Default::default());
        let last = &requests.last().unwrap().messages;
        assert_eq!(state.messages[..last.len()], last[..]);
    }
}

#[tokio::test]
async fn between_two_prunings_a_conversation_only_grows() {
    let model = Pretend::with_window(looks(), Some(SMALL), four_bytes_a_token);
    let (env, log) = env();
    run(&agent(&model, Dialect::Native), env).await;
    let requests = model.requests.lock().unwrap();
    let broken = requests.windows(2).filter(|pair| !pair[1].messages.starts_with(&pair[0].messages)).count();
    assert_eq!(broken, prunings(&log).len(), "each announced, and none besides");
    assert!(broken <= 3, "more gives way than must, so that it happens seldom: {broken}");
}

#[tokio::test]
async fn what_a_person_said_never_gives_way() {
    let model = Pretend::with_window(looks(), Some(SMALL), four_bytes_a_token);
    let agent = agent(&model, Dialect::Text);
    let run = Run::start(agent, "do it", env().0).await.unwrap();
    run.handle().say("mind the gap").await.unwrap();
    run.drive().await.unwrap();
    for request in model.requests.lock().unwrap().iter() {
        assert!(request.messages.iter().any(|message| text(message).contains("mind the gap")));
    }
}

#[tokio::test]
async fn fewer_steps_are_kept_where_three_do_not_fit() {
    let window = Window { tokens: 2048, reply: 512, longest_reply: 512 };
    let model = Pretend::with_window(looks(), Some(window), four_bytes_a_token);
    let (env, log) = env();
    assert_eq!(answer(&run(&agent(&model, Dialect::Native), env).await.1), "done");
    assert!(prunings(&log).iter().any(|pruned| pruned.kept_steps < 3));
    for request in model.requests.lock().unwrap().iter() {
        let last = request.messages.last().unwrap();
        assert!(!is_stub(last), "what it just looked at, it sees");
    }
}

#[tokio::test]
async fn a_server_that_says_it_is_too_long_gets_less() {
    let too_long = || Say::Fail(ModelError::ContextLength { message: "4097 > 4096".into() });
    let mut replies = looks();
    replies.insert(6, too_long());
    let model = Pretend::new(replies);
    let (env, log) = env();
    assert_eq!(answer(&run(&agent(&model, Dialect::Native), env).await.1), "done");
    assert_eq!(prunings(&log).len(), 1);
    assert_eq!(prunings(&log)[0].elided.len(), 3, "all but the last three steps");

    let model = Pretend::new([too_long()]);
    let (_, ending) = run(&agent(&model, Dialect::Native), support::env().0).await;
    let Ending::Failed(failure) = ending else { panic!("{ending:?}") };
    assert_eq!(failure.error, "CONTEXT_LENGTH", "nothing can give way");
}

#[tokio::test]
async fn a_server_that_drops_the_beginning_is_found_out_once() {
    // Counts up to its window and no further, as a server does that cuts silently.
    let model = Pretend::with_window(looks(), None, |request| {
        let count = four_bytes_a_token(request);
        if count > 2000 { 1500 } else { count }
    });
    let (env, log) = env();
    run(&agent(&model, Dialect::Native), env).await;
    let warnings: Vec<String> = log
        .events()
        .into_iter()
        .filter_map(|event| match event.kind {
            EventKind::Warning { message } => Some(message),
            _ => None,
        })
        .collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("1500 tokens, fewer than it was sent"), "{}", warnings[0]);
}

const BROKEN: &str = r#"<tool_call>{"name": "echo", "arguments": {"text": </tool_call>"#;
const ECHO: &str = r#"{"name": "echo", "arguments": {"text": "hello"}}"#;

fn constrained(model: &Pretend) -> Vec<bool> {
    model.requests.lock().unwrap().iter().map(|request| request.sampling.schema.is_some()).collect()
}

#[tokio::test]
async fn two_unreadable_replies_in_a_row_bring_the_schema() {
    let answer_call = r#"{"name": "final_answer", "arguments": {"answer": "hello"}}"#;
    let other = r#"{"name": "echo", "arguments": {"text": "hello again"}}"#;
    // Not a call that was made before: whoever goes round in circles is let go.
    let third = r#"{"name": "echo", "arguments": {"text": "hello once more"}}"#;
    let says = [BROKEN, ECHO, BROKEN, "", other, third, answer_call].map(Say::Text);
    let model = Pretend::new(says);
    let (env, log) = env();
    assert_eq!(answer(&run(&agent(&model, Dialect::Text), env).await.1), "hello");
    // One failure is forgiven; after two in a row the model is held to the form for good.
    assert_eq!(constrained(&model), [false, false, false, false, true, true, true]);
    let requests = model.requests.lock().unwrap();
    let schema = requests.last().unwrap().sampling.schema.clone().unwrap();
    let names: Vec<&str> = schema["oneOf"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| call["properties"]["name"]["const"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["look", "echo", "final_answer"]);
    let marked = log
        .events()
        .iter()
        .filter(|event| matches!(&event.kind, EventKind::ModelMessage(m) if m.constrained))
        .count();
    assert_eq!(marked, 3, "the log says which replies were held");
}

#[tokio::test]
async fn a_cut_reply_is_no_sign_of_a_bad_form_and_the_last_answer_is_prose() {
    let model = Pretend::new([
        Say::Cut(BROKEN),
        Say::Cut(BROKEN),
        Say::Text(BROKEN),
        Say::Text(BROKEN),
        Say::Text("so"),
    ]);
    let limits = Limits { max_steps: 4, ..Limits::default() };
    let agent = Agent::builder(model.clone()).tool(Echo).limits(limits).build().unwrap();
    run(&agent, env().0).await;
    assert_eq!(constrained(&model), [false; 5]);
}

#[tokio::test]
async fn a_model_may_be_held_to_the_form_from_the_start() {
    use gimlet::constrain::Constrain;
    for (when, expected) in [(Constrain::Always, true), (Constrain::Never, false)] {
        let model = Pretend::new([BROKEN, BROKEN, BROKEN, "well then"].map(Say::Text));
        let agent = Agent::builder(model.clone()).tool(Echo).constrain(when).build().unwrap();
        run(&agent, env().0).await;
        assert_eq!(constrained(&model), [expected; 4]);
    }
}

#[tokio::test]
async fn a_model_that_has_looked_or_goes_in_circles_is_let_go() {
    use gimlet::constrain::Constrain;
    let echo = |text: &'static str| call("echo", json!({ "text": text }));
    let begin = |says: Vec<Say>, when: Constrain| {
        let model = Pretend::new(says);
        let builder = Agent::builder(model.clone()).tool(Echo).constrain(when).dialect(Dialect::Text);
        (model, builder.build().unwrap())
    };

    // Too small to begin by itself: held until a call has brought something.
    let (model, agent) =
        begin(vec![call("nothing", json!({})), echo("x"), Say::Text("x, it says")], Constrain::Always);
    assert_eq!(answer(&run(&agent, env().0).await.1), "x, it says");
    assert_eq!(constrained(&model), [true, true, false]);

    // Held for having kept no form: let go when it makes the same call again, and told to answer at last.
    let says = vec![
        Say::Text(BROKEN),
        Say::Text(BROKEN),
        echo("x"),
        echo("x"),
        echo("x"),
        echo("x"),
        Say::Text("x, as I was told"),
    ];
    let (model, agent) = begin(says, Constrain::AfterFailures);
    let (env, log) = env();
    assert_eq!(answer(&run(&agent, env).await.1), "x, as I was told");
    assert_eq!(constrained(&model), [false, false, true, true, false, false, false]);
    let refused: Vec<_> = log.finished_tools().into_iter().filter(|finished| !finished.ok).collect();
    assert_eq!(refused.len(), 2);
    assert!(refused[0].result["advice"].as_str().unwrap().starts_with("Use the result you already have"));
    assert!(refused[1].result["advice"].as_str().unwrap().starts_with("Do not call tools any more"));
}

#[tokio::test]
async fn a_reply_that_breaks_off_begins_again_from_the_log() {
    let broken = || Say::BreakOff("I would", ModelError::Cut);
    let model = Pretend::new([broken(), broken(), Say::Text("said whole")]);
    let (env, log) = env();
    assert_eq!(answer(&run(&agent(&model, Dialect::Native), env).await.1), "said whole");
    let requests = model.requests.lock().unwrap().clone();
    assert!(requests.windows(2).all(|pair| pair[0].messages == pair[1].messages), "nothing of it stays");
    assert_eq!(log.kinds().iter().filter(|kind| *kind == "step.started").count(), 1);
    assert_eq!(log.kinds().iter().filter(|kind| *kind == "warning").count(), 2);

    let model = Pretend::new([broken(), broken(), broken()]);
    let (_, ending) = run(&agent(&model, Dialect::Native), support::env().0).await;
    assert!(matches!(&ending, Ending::Failed(failure) if failure.error == "MODEL_REPLY_CUT"), "{ending:?}");
    let model = Pretend::new([Say::BreakOff("I would", ModelError::Auth { message: "no".into() })]);
    let (_, ending) = run(&agent(&model, Dialect::Native), support::env().0).await;
    assert!(matches!(&ending, Ending::Failed(failure) if failure.error == "MODEL_AUTH"), "{ending:?}");
}

#[tokio::test]
async fn the_last_answer_says_when_it_was_cut() {
    let model = Pretend::new([call("echo", json!({"text": "a"})), Say::Cut("The result is that")]);
    let limits = Limits { max_steps: 1, ..Limits::default() };
    let agent = Agent::builder(model).tool(Echo).limits(limits).build().unwrap();
    let (_, ending) = run(&agent, env().0).await;
    let Ending::Finished(finished) = ending else { panic!("{ending:?}") };
    assert_eq!(finished.notes, ["the answer was cut off at the token limit"]);
}

/// A tool with a name that is no everyday word.
struct ReadFile;

impl TypedTool for ReadFile {
    const NAME: &'static str = "read_file";
    type Input = EchoInput;
    type Output = Value;

    async fn run(&self, input: EchoInput, _cx: &ToolCx) -> Result<Value, ToolError> {
        Ok(json!(input.text))
    }
}

#[tokio::test]
async fn a_call_that_is_only_announced_is_asked_for() {
    let announce = "To see it, you can use the `read_file` tool with the path.";
    let model = Pretend::new([Say::Text(announce), Say::Text("It is a file.")]);
    let build = |model: &Arc<Pretend>, dialect| {
        Agent::builder(model.clone())
            .tool(ReadFile)
            .action(ActionFormat::Tools)
            .dialect(dialect)
            .build()
            .unwrap()
    };
    let (env, log) = env();
    assert_eq!(answer(&run(&build(&model, Dialect::Text), env).await.1), "It is a file.");
    let told = log.events().into_iter().find_map(|event| match event.kind {
        EventKind::Feedback { reason: FeedbackReason::Malformed, text } => Some(text),
        _ => None,
    });
    assert!(told.unwrap().starts_with("You spoke of read_file but did not call it."));

    let model = Pretend::new([announce, announce, announce].map(Say::Text));
    assert_eq!(
        answer(&run(&build(&model, Dialect::Text), support::env().0).await.1),
        announce,
        "it means it"
    );
    let model = Pretend::new([Say::Text(announce)]);
    assert_eq!(answer(&run(&build(&model, Dialect::Native), support::env().0).await.1), announce);
}
