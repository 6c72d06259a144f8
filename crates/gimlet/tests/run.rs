//! The loop, from outside: what a run does with what a model says.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::approval::{Decision, Scope};
use gimlet::effect::{Effect, Policy, PolicyError, Verdict};
use gimlet::event::{EventKind, FinishState, Suspension};
use gimlet::guard::Redactor;
use gimlet::hook::{Check, Facts, Flow, Hook, HookError};
use gimlet::limits::Limits;
use gimlet::message::{Message, ToolCall};
use gimlet::model::ModelError;
use gimlet::state::State;
use gimlet::tool::tool;
use gimlet::{Agent, Ending, Env, Run};
use serde_json::{Value, json};
use support::*;

fn agent(model: &Arc<Pretend>) -> Arc<Agent> {
    Agent::builder(model.clone()).tool(Echo).tool(Write::default()).build().unwrap()
}

#[tokio::test]
async fn two_steps_lead_to_an_answer() {
    let model = Pretend::new([call("echo", json!({"text": "hello"})), Say::Text("It said hello.")]);
    let (env, log) = env();
    let store = env.store.clone();
    let (id, ending) = run(&agent(&model), env).await;
    let Ending::Finished(finished) = &ending else { panic!("{ending:?}") };
    assert_eq!((finished.answer.as_str(), finished.steps), ("It said hello.", 2));
    assert_eq!((finished.state, finished.usage.total()), (FinishState::Answered, 30));
    let kinds: Vec<String> = log.kinds().into_iter().filter(|kind| kind != "model.delta").collect();
    assert_eq!(
        kinds,
        [
            "run.started",
            "step.started",
            "model.message",
            "tool.requested",
            "tool.started",
            "tool.finished",
            "step.started",
            "model.message",
            "run.finished"
        ]
    );
    assert_eq!(store.load(&id).await.unwrap(), log.events(), "the log is what was shown");
    let seqs: Vec<u64> = log.events().iter().map(|event| event.seq).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn ten_calls_run_side_by_side_and_are_recorded_in_order() {
    let calls = (0..10).map(|i| {
        let text = if i == 4 { "fail".to_owned() } else { format!("n{i}") };
        ("same", "echo", json!({"text": text, "wait": 1000 - 100 * i}))
    });
    let model = Pretend::new([Say::Calls(calls.collect()), Say::Text("done")]);
    let (env, log) = env();
    let begun = tokio::time::Instant::now();
    let (_, ending) = run(&agent(&model), env).await;
    assert_eq!(answer(&ending), "done");
    assert!(begun.elapsed() < Duration::from_secs(3), "side by side: {:?}", begun.elapsed());
    let results: Vec<Value> = log.finished_tools().into_iter().map(|finished| finished.result).collect();
    assert_eq!(results.len(), 10);
    assert_eq!(results[4]["error"], "ECHO_FAILED");
    for (i, result) in results.iter().enumerate().filter(|(i, _)| *i != 4) {
        assert_eq!(result["echo"], format!("n{i}"));
    }
    let ids: Vec<String> = log.finished_tools().into_iter().map(|finished| finished.id).collect();
    assert_eq!(ids[..3], ["same", "call_1_1", "call_1_2"], "repeated ids are repaired, not collapsed");
}

#[tokio::test]
async fn a_broken_tool_is_an_observation() {
    let model = Pretend::new([
        call("echo", json!({"text": "panic"})),
        call("ekho", json!({})),
        call("echo", json!({"txt": "x"})),
        Say::Calls(vec![("", "echo", json!("{broken"))]),
        Say::Text("gave up"),
    ]);
    let (env, log) = env();
    assert_eq!(answer(&run(&agent(&model), env).await.1), "gave up");
    let errors: Vec<Value> = log.finished_tools().into_iter().map(|finished| finished.result).collect();
    assert_eq!(errors[0]["error"], "TOOL_EXCEPTION");
    assert_eq!(errors[0]["message"], "The tool broke: no echo at all");
    assert_eq!(errors[1]["error"], "UNKNOWN_TOOL");
    assert_eq!(errors[1]["message"], "there is no tool `ekho`; did you mean `echo`?");
    assert_eq!(errors[2]["message"], "there is no argument `txt`; did you mean `text`?");
    assert_eq!(errors[2]["context"]["usage"], "echo(text: str, wait: int = 0)");
    assert!(errors[3]["message"].as_str().unwrap().contains("not valid JSON"));
    assert_eq!(errors[3]["loop_detected"], true, "the second failed validation in a row");
}

#[tokio::test]
async fn the_right_shape_is_shown_once() {
    let model = Pretend::new([Say::Text(""), Say::Text("  "), Say::Cut("I was going to"), Say::Text("ok")]);
    let (env, log) = env();
    assert_eq!(answer(&run(&agent(&model), env).await.1), "ok");
    let told: Vec<String> = log
        .events()
        .into_iter()
        .filter_map(|event| match event.kind {
            EventKind::Feedback { text, .. } => Some(text),
            _ => None,
        })
        .collect();
    assert_eq!(told.len(), 3);
    assert!(told[0].contains("empty") && told[0].contains('{'), "{}", told[0]);
    assert!(!told[1].contains('{'), "{}", told[1]);
    assert!(told[2].contains("cut off"), "{}", told[2]);
}

#[tokio::test]
async fn out_of_steps_asks_for_one_last_answer_and_can_go_on() {
    let model = Pretend::new([
        call("echo", json!({"text": "a"})),
        call("echo", json!({"text": "b"})),
        Say::Text("best guess"),
        Say::Text("now I know"),
    ]);
    let limits = Limits { max_steps: 2, ..Limits::default() };
    let agent = Agent::builder(model.clone()).tool(Echo).limits(limits.clone()).build().unwrap();
    let (env, _) = env();
    let (id, ending) = run(&agent, env.clone()).await;
    let Ending::Finished(finished) = &ending else { panic!("{ending:?}") };
    assert_eq!((finished.answer.as_str(), finished.state), ("best guess", FinishState::MaxSteps));
    let more = Limits { max_steps: 5, ..limits };
    let run = Run::resume(agent.clone(), &id, env.clone(), Some(more)).await.unwrap();
    assert_eq!(answer(&run.drive().await.unwrap()), "now I know");
    assert!(Run::resume(agent, &id, env, None).await.is_err(), "an answered run is over");
}

#[tokio::test(start_paused = true)]
async fn out_of_time_or_tokens_keeps_what_there_is() {
    let model = Pretend::new([
        Say::Text("I look.\n{\"name\": \"echo\", \"arguments\": {\"text\": \"a\"}}"),
        Say::Hang,
    ]);
    let limits = Limits { max_seconds: Some(2.0), ..Limits::default() };
    let agent = Agent::builder(model).tool(Echo).limits(limits).build().unwrap();
    let (_, ending) = run(&agent, env().0).await;
    let Ending::Finished(finished) = ending else { panic!("{ending:?}") };
    assert_eq!((finished.state, finished.answer.as_str()), (FinishState::Timeout, "I look."));

    let model = Pretend::new([call("echo", json!({"text": "a"})), Say::Text("never said")]);
    let limits = Limits { max_tokens: Some(15), ..Limits::default() };
    let agent = Agent::builder(model).tool(Echo).limits(limits).build().unwrap();
    let (_, ending) = run(&agent, env().0).await;
    let Ending::Finished(finished) = ending else { panic!("{ending:?}") };
    assert_eq!(finished.state, FinishState::TokenBudget);
}

#[tokio::test]
async fn cancelling_stops_at_once_and_can_be_resumed() {
    // In the middle of a stream.
    let model = Pretend::new([Say::Hang, Say::Text("later")]);
    let agent = agent(&model);
    let (env, log) = env();
    let started = Run::start(agent.clone(), "do it", env.clone()).await.unwrap();
    let (id, handle) = (started.id().clone(), started.handle());
    let working = tokio::spawn(started.drive());
    while !log.kinds().contains(&"step.started".to_owned()) {
        tokio::task::yield_now().await;
    }
    handle.cancel();
    assert_eq!(working.await.unwrap().unwrap(), Ending::Suspended(Suspension::Interrupted));
    let resumed = Run::resume(agent, &id, env, None).await.unwrap();
    assert_eq!(answer(&resumed.drive().await.unwrap()), "later");
}

#[tokio::test]
async fn a_cancelled_tool_is_recorded_as_such() {
    let model = Pretend::new([call("write", json!({"path": "slow"})), Say::Text("stopped")]);
    let (mut env, log) = env();
    env.approver = Arc::new(gimlet::approval::ApproveAll);
    let agent = agent(&model);
    let started = Run::start(agent.clone(), "do it", env.clone()).await.unwrap();
    let (id, handle) = (started.id().clone(), started.handle());
    let working = tokio::spawn(started.drive());
    while !log.kinds().contains(&"tool.started".to_owned()) {
        tokio::task::yield_now().await;
    }
    handle.cancel();
    assert_eq!(working.await.unwrap().unwrap(), Ending::Suspended(Suspension::Interrupted));
    assert_eq!(log.finished_tools()[0].result["error"], "CANCELLED");
    let resumed = Run::resume(agent, &id, env, None).await.unwrap();
    assert_eq!(answer(&resumed.drive().await.unwrap()), "stopped");
}

#[tokio::test]
async fn nobody_to_ask_suspends_and_the_same_question_is_asked_again() {
    let model = Pretend::new([call("write", json!({"path": "a.txt"})), Say::Text("written")]);
    let written = Write::default();
    let agent = Agent::builder(model.clone()).tool(written.clone()).build().unwrap();
    let (mut env, log) = env();
    let asked = Decisions::new([]);
    env.approver = asked.clone();
    let (id, ending) = run(&agent, env.clone()).await;
    let question = asked.1.lock().unwrap()[0].clone();
    assert_eq!(ending, Ending::Suspended(Suspension::Approval { approval: question.id.clone() }));
    assert_eq!(question.preview.as_deref(), Some("+ a.txt"));
    assert!(written.0.lock().unwrap().is_empty());
    assert!(!log.kinds().contains(&"tool.started".to_owned()), "nothing has happened");

    let yes = Decisions::new([Decision::Approve { scope: Scope::Once }]);
    env.approver = yes.clone();
    let resumed = Run::resume(agent, &id, env, None).await.unwrap();
    assert_eq!(answer(&resumed.drive().await.unwrap()), "written");
    let again = yes.1.lock().unwrap()[0].clone();
    assert_eq!((again.id, again.binding), (question.id, question.binding), "the same question");
    assert_eq!(*written.0.lock().unwrap(), ["a.txt"]);
}

#[tokio::test]
async fn a_refusal_reaches_the_model_with_its_feedback() {
    let model = Pretend::new([call("write", json!({"path": "a"})), Say::Text("ok")]);
    let (mut env, log) = env();
    env.approver = Decisions::new([Decision::Deny { feedback: Some("use b instead".into()) }]);
    assert_eq!(answer(&run(&agent(&model), env).await.1), "ok");
    let result = &log.finished_tools()[0].result;
    assert_eq!(
        (result["error"].as_str(), result["advice"].as_str()),
        (Some("APPROVAL_DENIED"), Some("use b instead"))
    );
    let by_default = Pretend::new([call("write", json!({"path": "a"})), Say::Text("ok")]);
    let (env, log) = support::env();
    run(&agent(&by_default), env).await;
    assert_eq!(log.finished_tools()[0].result["error"], "APPROVAL_DENIED", "the default is no");
}

struct Rule(Result<Verdict, ()>);

impl Policy for Rule {
    fn judge(&self, _effect: &Effect) -> Result<Verdict, PolicyError> {
        self.0.clone().map_err(|()| PolicyError("broken".into()))
    }
}

#[tokio::test]
async fn no_approval_passes_a_denial_and_a_broken_policy_denies() {
    for rule in [Rule(Ok(Verdict::Deny("never".into()))), Rule(Err(()))] {
        let model = Pretend::new([call("write", json!({"path": "a"})), Say::Text("ok")]);
        let written = Write::default();
        let agent = Agent::builder(model).tool(written.clone()).policy(Arc::new(rule)).build().unwrap();
        let (mut env, log) = env();
        env.approver = Arc::new(gimlet::approval::ApproveAll);
        run(&agent, env).await;
        assert_eq!(log.finished_tools()[0].result["error"], "DENIED");
        assert!(written.0.lock().unwrap().is_empty());
    }
}

struct Grumpy;

impl Hook for Grumpy {
    fn name(&self) -> &str {
        "grumpy"
    }

    fn before_tool<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Result<Flow, HookError>> {
        let refuse = call.args["text"] == "no";
        std::future::ready(Ok(if refuse { Flow::Refuse("not that".into()) } else { Flow::Continue })).boxed()
    }
}

struct Broken;

impl Hook for Broken {
    fn name(&self) -> &str {
        "broken"
    }

    fn before_step(&self, _step: u32) -> BoxFuture<'_, Result<Flow, HookError>> {
        async { panic!("hook") }.boxed()
    }

    fn before_tool<'a>(&'a self, _call: &'a ToolCall) -> BoxFuture<'a, Result<Flow, HookError>> {
        std::future::ready(Err("no idea".into())).boxed()
    }
}

#[tokio::test]
async fn a_hook_may_refuse_and_a_failing_one_stops_nobody() {
    let model = Pretend::new([
        call("echo", json!({"text": "no"})),
        call("echo", json!({"text": "yes"})),
        Say::Text("ok"),
    ]);
    let agent = Agent::builder(model).tool(Echo).hook(Broken).hook(Grumpy).build().unwrap();
    let (env, log) = env();
    assert_eq!(answer(&run(&agent, env).await.1), "ok");
    let results = log.finished_tools();
    assert_eq!((results[0].result["error"].as_str(), results[1].ok), (Some("HOOK_REFUSED"), true));
    assert_eq!(log.kinds().iter().filter(|kind| *kind == "warning").count(), 5, "three steps and two calls");
}

struct Never;

impl Check for Never {
    fn check<'a>(&'a self, _answer: &'a str, facts: Facts<'a>) -> BoxFuture<'a, Result<(), String>> {
        std::future::ready(Err(format!("no tests were run ({} calls)", facts.calls.len()))).boxed()
    }
}

#[tokio::test]
async fn an_answer_is_refused_twice_and_then_taken_with_a_note() {
    let model = Pretend::new([Say::Text("one"), Say::Text("two"), Say::Text("three")]);
    let agent = Agent::builder(model.clone()).check(Never).build().unwrap();
    let (_, ending) = run(&agent, env().0).await;
    let Ending::Finished(finished) = &ending else { panic!("{ending:?}") };
    assert_eq!(
        (finished.answer.as_str(), finished.notes.as_slice()),
        ("three", &["no tests were run (0 calls)".into()][..])
    );
    assert!(last_messages(&model).iter().any(|text| text.contains("not accepted yet:\n- no tests were run")));
}

#[tokio::test]
async fn going_in_circles_is_noticed_until_something_changes() {
    let same = || call("echo", json!({"text": "x"}));
    let model =
        Pretend::new([same(), same(), same(), call("write", json!({"path": "a"})), same(), Say::Text("ok")]);
    let (mut env, log) = env();
    env.approver = Arc::new(gimlet::approval::ApproveAll);
    run(&agent(&model), env).await;
    let results = log.finished_tools();
    let ok: Vec<bool> = results.iter().map(|finished| finished.ok).collect();
    assert_eq!(ok, [true, true, false, true, true]);
    assert_eq!(results[2].result["error"], "LOOP_DETECTED");
}

#[tokio::test]
async fn a_call_that_was_started_and_never_finished_is_not_made_again() {
    let model = Pretend::new([call("write", json!({"path": "a"})), Say::Text("looked")]);
    let written = Write::default();
    let agent = Agent::builder(model).tool(written.clone()).build().unwrap();
    let (mut env, _) = env();
    env.approver = Arc::new(gimlet::approval::ApproveAll);
    let (id, _) = run(&agent, env.clone()).await;
    // The log of a process that died while the tool ran.
    let events = env.store.load(&id).await.unwrap();
    let until = events.iter().position(|event| type_of(event) == "tool.finished").unwrap();
    let (mut after, log) = support::env();
    for event in &events[..until] {
        after.store.append(event).await.unwrap();
    }
    after.approver = Arc::new(gimlet::approval::ApproveAll);
    let model = Pretend::new([Say::Text("looked")]);
    let agent = Agent::builder(model).tool(written.clone()).build().unwrap();
    let resumed = Run::resume(agent, &id, after, None).await.unwrap();
    assert_eq!(answer(&resumed.drive().await.unwrap()), "looked");
    assert_eq!(log.finished_tools()[0].result["error"], "OUTCOME_UNKNOWN");
    assert_eq!(written.0.lock().unwrap().len(), 1, "made once, by the first process");
}

#[tokio::test]
async fn every_prefix_of_a_log_folds_to_a_state_that_can_go_on() {
    let model = Pretend::new([
        call("echo", json!({"text": "a"})),
        Say::Text("{\"name\": \"echo\", \"arguments\": {\"text\": \"b\"}}"),
        Say::Text(""),
        call("write", json!({"path": "p"})),
        Say::Text("end"),
    ]);
    let (mut env, _) = env();
    env.approver = Arc::new(gimlet::approval::ApproveAll);
    let (id, ending) = run(&agent(&model), env.clone()).await;
    let events = env.store.load(&id).await.unwrap();
    let replies = [
        call("echo", json!({"text": "a"})),
        Say::Text("{\"name\": \"echo\", \"arguments\": {\"text\": \"b\"}}"),
        Say::Text(""),
        call("write", json!({"path": "p"})),
        Say::Text("end"),
    ];
    for cut in 1..events.len() {
        let (mut env, _) = support::env();
        env.approver = Arc::new(gimlet::approval::ApproveAll);
        for event in &events[..cut] {
            env.store.append(event).await.unwrap();
        }
        let heard = events[..cut].iter().filter(|event| type_of(event) == "model.message").count();
        let model = Pretend::new(replies[heard..].iter().cloned());
        let resumed = Run::resume(agent(&model), &id, env, None).await.unwrap();
        let again = resumed.drive().await.unwrap();
        assert_eq!(answer(&again), answer(&ending), "cut after event {cut}");
    }
}

#[tokio::test]
async fn what_the_person_adds_is_read_at_the_next_turn() {
    let model = Pretend::new([call("write", json!({"path": "slow"})), Say::Text("as you wish")]);
    let agent = Agent::builder(model.clone()).tool(Write::default()).tool(Echo).build().unwrap();
    let (mut env, log) = env();
    env.approver = Arc::new(gimlet::approval::ApproveAll);
    let started = Run::start(agent.clone(), "do it", env.clone()).await.unwrap();
    let (id, handle) = (started.id().clone(), started.handle());
    let working = tokio::spawn(started.drive());
    while !log.kinds().contains(&"tool.started".to_owned()) {
        tokio::task::yield_now().await;
    }
    handle.say("hurry up").await.unwrap();
    handle.cancel();
    working.await.unwrap().unwrap();
    let resumed = Run::resume(agent, &id, env, None).await.unwrap();
    assert_eq!(answer(&resumed.drive().await.unwrap()), "as you wish");
    let messages = last_messages(&model);
    assert!(messages[3].starts_with("tool ") && messages[4] == "user: hurry up", "{messages:?}");
}

#[tokio::test]
async fn a_long_result_is_cut_stored_and_its_address_told() {
    let long = "line\n".repeat(200_000);
    let model = Pretend::new([call("echo", json!({"text": long})), Say::Text("long")]);
    let (env, log) = env();
    run(&agent(&model), env.clone()).await;
    let finished = &log.finished_tools()[0];
    assert!(finished.truncated && finished.result["truncated"] == true);
    assert!(finished.result.to_string().len() < 6000);
    let whole = env.store.get(&finished.stored[0]).await.unwrap();
    assert_eq!(whole, long.as_bytes());
    assert!(finished.result["truncation"].as_str().unwrap().contains(&finished.stored[0].to_string()));
}

#[tokio::test]
async fn secrets_never_reach_model_log_or_store() {
    let secret = "hunter2-hunter2";
    let key = format!("sk-ant-{}", "a1".repeat(20));
    let text = format!("{secret} and {key} {}", "x\n".repeat(9000));
    let model = Pretend::new([call("echo", json!({"text": text})), Say::Text("ok")]);
    let (mut env, log) = env();
    env.redactor = Arc::new(Redactor::new([secret.to_owned()]));
    run(&agent(&model), env.clone()).await;
    let finished = &log.finished_tools()[0];
    let whole = String::from_utf8(env.store.get(&finished.stored[0]).await.unwrap()).unwrap();
    for seen in [finished.result.to_string(), whole, last_messages(&model)[3].clone()] {
        assert!(
            !seen.contains(secret) && !seen.contains(&key) && seen.contains("[redacted] and [redacted]"),
            "{seen}"
        );
    }
}

#[tokio::test]
async fn a_model_that_fails_ends_the_run_and_can_be_tried_again() {
    let error = ModelError::Connect { host: "127.0.0.1:1".into(), reason: "refused".into() };
    let model = Pretend::new([call("echo", json!({"text": "a"})), Say::Fail(error), Say::Text("back again")]);
    let agent = agent(&model);
    let (env, _) = env();
    let (id, ending) = run(&agent, env.clone()).await;
    let Ending::Failed(failure) = ending else { panic!("{ending:?}") };
    assert_eq!(failure.error, "MODEL_UNREACHABLE");
    assert!(failure.hint.is_some());
    let resumed = Run::resume(agent, &id, env, None).await.unwrap();
    assert_eq!(answer(&resumed.drive().await.unwrap()), "back again");
}

#[tokio::test]
async fn requests_only_ever_grow() {
    let model = Pretend::new(
        (0..20).map(|i| call("echo", json!({"text": format!("{i}")}))).chain([Say::Text("end")]),
    );
    run(&agent(&model), env().0).await;
    let requests = model.requests.lock().unwrap();
    for pair in requests.windows(2) {
        let (before, after) = (&pair[0].messages, &pair[1].messages);
        assert!(after.len() > before.len());
        assert!(
            before.iter().zip(after).all(|(a, b)| Arc::ptr_eq(a, b)),
            "sent messages are shared, not rebuilt"
        );
        assert!(Arc::ptr_eq(&pair[0].tools, &pair[1].tools));
    }
}

fn researcher(replies: impl IntoIterator<Item = Say>) -> Arc<Agent> {
    Agent::builder(Pretend::new(replies))
        .name("researcher")
        .description("Looks things up.")
        .tool(Echo)
        .tool(Write::default())
        .build()
        .unwrap()
}

#[tokio::test]
async fn an_agent_calls_agents_as_tools() {
    let child = researcher([call("echo", json!({"text": "deep"})), Say::Text("found it")]);
    let model =
        Pretend::new([call("researcher", json!({"task": "look", "context": "here"})), Say::Text("thanks")]);
    let manager = Agent::builder(model.clone()).agent(child).build().unwrap();
    let (env, log) = env();
    let (id, ending) = run(&manager, env.clone()).await;
    let Ending::Finished(finished) = &ending else { panic!("{ending:?}") };
    assert_eq!(finished.usage.total(), 60, "what a sub-agent spends counts");
    assert_eq!(log.finished_tools().last().unwrap().result, json!({"answer": "found it"}));
    let nested: Vec<String> = log
        .events()
        .iter()
        .filter(|event| event.path.as_str() == "researcher:call_1_0" && type_of(event) != "model.delta")
        .map(type_of)
        .collect();
    assert_eq!(nested.first().map(String::as_str), Some("agent.started"));
    assert_eq!(nested.last().map(String::as_str), Some("agent.finished"));
    let events = env.store.load(&id).await.unwrap();
    let folded = State::fold(&events, &Default::default());
    assert_eq!(folded.usage.total(), 60, "and is found again in the log");
}

#[tokio::test]
async fn a_sub_agent_that_waits_for_a_person_suspends_the_whole_run() {
    let replies = || [call("write", json!({"path": "deep"})), Say::Text("child done")];
    let ask = || call("researcher", json!({"task": "write it"}));
    let manager = |parent: Vec<Say>, child: Vec<Say>| {
        Agent::builder(Pretend::new(parent)).agent(researcher(child)).build().unwrap()
    };
    let (mut env, _) = env();
    let asked = Decisions::new([]);
    env.approver = asked.clone();
    let first = manager(vec![ask()], vec![replies()[0].clone()]);
    let (id, ending) = run(&first, env.clone()).await;
    assert!(matches!(ending, Ending::Suspended(Suspension::Approval { .. })), "{ending:?}");
    assert_eq!(asked.1.lock().unwrap()[0].asker, "researcher:call_1_0");

    env.approver = Arc::new(gimlet::approval::ApproveAll);
    let second = manager(vec![Say::Text("all done")], vec![replies()[1].clone()]);
    let resumed = Run::resume(second, &id, env, None).await.unwrap();
    assert_eq!(answer(&resumed.drive().await.unwrap()), "all done");
}

#[tokio::test]
async fn failing_and_bottomless_sub_agents_are_observations() {
    let child = researcher([Say::Fail(ModelError::Cut)]);
    let model = Pretend::new([call("researcher", json!({"task": "look"})), Say::Text("alone then")]);
    let manager = Agent::builder(model).agent(child).build().unwrap();
    let (env, log) = env();
    assert_eq!(answer(&run(&manager, env).await.1), "alone then");
    assert_eq!(log.finished_tools()[0].result["error"], "AGENT_FAILED");

    let child = researcher([Say::Text("unreachable")]);
    let model = Pretend::new([call("researcher", json!({"task": "look"})), Say::Text("alone then")]);
    let limits = Limits { max_depth: 0, ..Limits::default() };
    let manager = Agent::builder(model).agent(child).limits(limits).build().unwrap();
    let (env, log) = support::env();
    run(&manager, env).await;
    assert_eq!(log.finished_tools()[0].result["error"], "AGENT_TOO_DEEP");
}

#[tokio::test]
async fn the_same_agent_called_twice_at_once_is_two_agents() {
    let replies = [Say::Text("one"), Say::Text("two")];
    let child = researcher(replies);
    let calls = vec![("a", "researcher", json!({"task": "1"})), ("b", "researcher", json!({"task": "2"}))];
    let model = Pretend::new([Say::Calls(calls), Say::Text("both")]);
    let manager = Agent::builder(model).agent(child).build().unwrap();
    let (env, log) = env();
    assert_eq!(answer(&run(&manager, env).await.1), "both");
    let paths: std::collections::BTreeSet<String> =
        log.events().iter().map(|event| event.path.as_str().to_owned()).collect();
    assert_eq!(paths.into_iter().collect::<Vec<_>>(), ["", "researcher:a", "researcher:b"]);
}

#[tokio::test]
async fn one_call_outside_of_a_run_goes_through_the_whole_guard() {
    use gimlet::run::{Invocation, invoke};
    let agent = agent(&Pretend::new([]));
    let call = |name: &str, args| ToolCall { id: "cli".into(), name: name.into(), args };
    let done = invoke(&agent, Env::default(), call("echo", json!({"text": "hi", "wait": null}))).await;
    assert_eq!(done, Invocation::Done(json!({"echo": "hi"})));
    let refused = invoke(&agent, Env::default(), call("write", json!({"path": "a"}))).await;
    assert!(
        matches!(refused, Invocation::Failed(failure) if failure.error == "APPROVAL_DENIED" && failure.tool == "write")
    );
}

#[test]
fn names_that_cannot_be_called_are_refused() {
    let twice = Agent::builder(Pretend::new([])).tools([tool(Echo), tool(Echo)]).build();
    assert_eq!(twice.err().unwrap().to_string(), "two tools are called `echo`");
    for name in ["", "1st", "class", "final_answer", "a-b", "ä"] {
        assert!(Agent::builder(Pretend::new([])).name(name).build().is_err(), "{name}");
    }
}

#[tokio::test]
async fn a_call_in_text_is_answered_natively() {
    let model = Pretend::new([
        Say::Text("I look.\n```json\n{\"name\": \"echo\", \"arguments\": {\"text\": \"a\"}}\n```"),
        Say::Text("done"),
    ]);
    run(&agent(&model), env().0).await;
    let requests = model.requests.lock().unwrap();
    let messages = &requests.last().unwrap().messages;
    let Message::Assistant { text, calls, .. } = messages[2].as_ref() else { panic!() };
    assert_eq!((text.as_str(), calls[0].name.as_str()), ("I look.", "echo"));
    assert!(matches!(messages[3].as_ref(), Message::Tool { id, .. } if *id == calls[0].id));
}
