//! Planning: when a plan is asked for, what becomes of it, and that nothing about it ends a run or happens twice.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::num::NonZeroU32;
use std::sync::Arc;

use gimlet::event::{ActionFormat, Dialect, EventKind};
use gimlet::limits::Limits;
use gimlet::message::Message;
use gimlet::model::ModelError;
use gimlet::plan::{Plan, Planning};
use gimlet::state::State;
use gimlet::{Agent, Ending, Run};
use serde_json::json;
use support::*;

const PLAN: &str = "Facts known:\n- it is to be done\nFacts to find:\n- how\nSteps:\n1. echo\n2. answer";

fn every(steps: u32) -> Planning {
    Planning::Every(NonZeroU32::new(steps).unwrap())
}

fn agent(model: &Arc<Pretend>, plan: Planning) -> Arc<Agent> {
    Agent::builder(model.clone()).tool(Echo).plan(plan).build().unwrap()
}

fn echo() -> Say {
    call("echo", json!({ "text": "hello" }))
}

fn plans(log: &Log) -> Vec<Plan> {
    let plans = log.events().into_iter().filter_map(|event| match event.kind {
        EventKind::Plan(plan) => Some(*plan),
        _ => None,
    });
    plans.collect()
}

#[tokio::test]
async fn a_plan_comes_first_and_again_after_so_many_steps() {
    let replies = [Say::Text(PLAN), echo(), echo(), Say::Text("Steps:\n- finish"), echo(), Say::Text("done")];
    let model = Pretend::new(replies);
    let (env, log) = env();
    let (_, ending) = run(&agent(&model, every(2)), env).await;
    assert_eq!(answer(&ending), "done");
    let plans = plans(&log);
    assert_eq!(plans.iter().map(|plan| plan.step).collect::<Vec<_>>(), [0, 2]);
    assert_eq!(plans[0].steps, ["echo", "answer"]);
    assert_eq!((plans[0].known.len(), plans[0].to_find.len()), (1, 1));
    assert_eq!(plans[1].steps, ["finish"]);
    let Ending::Finished(finished) = ending else { panic!() };
    assert_eq!((finished.steps, finished.usage.input), (4, 60), "a plan is no step, and costs like one");
    // A conversation that only grows, also over plans.
    let requests = model.requests.lock().unwrap();
    for pair in requests.windows(2) {
        assert!(pair[1].messages.len() > pair[0].messages.len());
        assert_eq!(pair[1].messages[..pair[0].messages.len()], pair[0].messages[..]);
    }
    let last = requests.last().unwrap();
    let plans = last.messages.iter().filter(
        |message| matches!(message.as_ref(), Message::Assistant { text, .. } if text.contains("Steps:")),
    );
    assert_eq!(plans.count(), 2, "the model reads its plans as its own words");
    assert!(
        last.messages
            .iter()
            .any(|m| matches!(m.as_ref(), Message::User { text } if text.starts_with("Stop and plan anew")))
    );
}

#[tokio::test]
async fn nobody_plans_unasked() {
    let model = Pretend::new([echo(), Say::Text("done")]);
    let (env, log) = env();
    run(&agent(&model, Planning::Never), env).await;
    assert!(plans(&log).is_empty());
    let started = serde_json::to_value(&log.events()[0]).unwrap();
    assert!(started.get("plan").is_none(), "{started}");
}

#[tokio::test]
async fn a_bad_plan_is_words_and_no_plan_ends_no_run() {
    for (reply, text, failed) in [
        (Say::Text("I would look first."), "I would look first.", false),
        (Say::Cut("Steps:\n1. lo"), "Steps:\n1. lo", false),
        (echo(), "", false),
        (Say::Text(""), "", false),
        (Say::Fail(ModelError::Cut), "", true),
    ] {
        let model = Pretend::new([reply, echo(), Say::Text("done")]);
        let (env, log) = env();
        assert_eq!(answer(&run(&agent(&model, every(5)), env).await.1), "done");
        let plans = plans(&log);
        assert_eq!((plans.len(), plans[0].text.as_str()), (1, text));
        assert_eq!(plans[0].failure.is_some(), failed);
        let second = &model.requests.lock().unwrap()[1];
        assert_eq!(second.messages.len(), if text.is_empty() { 2 } else { 4 }, "nothing is left of no plan");
    }
}

#[tokio::test]
async fn a_run_that_stopped_at_a_plan_plans_once() {
    let model = Pretend::new([Say::Hang]);
    let (first, log) = env();
    let store = first.store.clone();
    let cancel = first.cancel.clone();
    let begun = Run::start(agent(&model, every(3)), "do it", first).await.unwrap();
    let id = begun.id().clone();
    let work = tokio::spawn(begun.drive());
    while model.requests.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    cancel.cancel();
    assert!(matches!(work.await.unwrap().unwrap(), Ending::Suspended(_)));
    assert!(plans(&log).is_empty() && log.kinds().contains(&"model.asked".to_owned()));

    let model = Pretend::new([Say::Text(PLAN), echo(), Say::Text("done")]);
    let (env, log) = env();
    let env = gimlet::Env { store: store.clone(), ..env };
    let resumed = Run::resume(agent(&model, every(3)), &id, env, None).await.unwrap();
    assert_eq!(answer(&resumed.drive().await.unwrap()), "done");
    assert_eq!(plans(&log).len(), 1);

    // Killed right behind the plan: it is there, and is not made again.
    let mut events = store.load(&id).await.unwrap();
    let at = events.iter().position(|event| matches!(event.kind, EventKind::Plan(_))).unwrap();
    events.truncate(at + 1);
    let state = State::fold(&events, &Default::default());
    assert!(matches!(gimlet::action::next_action(&state), gimlet::action::Action::Sample { step: 1, .. }));
    assert_eq!(state.plan.unwrap().steps, ["echo", "answer"]);
}

#[tokio::test]
async fn what_is_said_while_a_plan_is_made_comes_after_it() {
    let model = Pretend::new([Say::Text(PLAN), Say::Text("done")]);
    let (env, log) = env();
    let begun = Run::start(agent(&model, Planning::AtStart), "do it", env).await.unwrap();
    begun.drive().await.unwrap();
    let events = log.events();
    let asked = events.iter().position(|event| matches!(event.kind, EventKind::ModelAsked { .. })).unwrap();
    let mut state = State::fold(&events[..=asked], &Default::default());
    let said = gimlet::event::Event {
        kind: EventKind::UserMessage { text: "mind the gap".into() },
        ..events[asked].clone()
    };
    state.apply(&said);
    state.apply(&events[asked + 1]);
    let texts: Vec<String> = state.messages.iter().map(|message| format!("{message:?}")).collect();
    assert!(texts[1].contains("plan") && !texts[1].contains("gap"), "{texts:?}");
    assert!(texts[3].contains("act on the plan") && texts[3].contains("mind the gap"), "{texts:?}");
}

#[tokio::test]
async fn a_person_can_ask_for_a_plan_and_a_budget_holds_for_it() {
    let model = Pretend::new([Say::Text(PLAN), Say::Text("done")]);
    let (first, log) = env();
    let begun = Run::start(agent(&model, Planning::Never), "do it", first).await.unwrap();
    begun.handle().replan().await.unwrap();
    assert_eq!(answer(&begun.drive().await.unwrap()), "done");
    assert_eq!(plans(&log).len(), 1);

    let model = Pretend::new([Say::Text(PLAN)]);
    let limits = Limits { max_tokens: Some(10), ..Limits::default() };
    let spender = Agent::builder(model).tool(Echo).plan(Planning::AtStart).limits(limits).build().unwrap();
    let (_, ending) = run(&spender, env().0).await;
    let Ending::Finished(finished) = ending else { panic!("{ending:?}") };
    assert_eq!(finished.state, gimlet::event::FinishState::TokenBudget, "the plan has spent it");
}

#[tokio::test]
async fn every_dialect_takes_turns_over_a_plan() {
    for dialect in [Dialect::Native, Dialect::Text] {
        let echo = match dialect {
            Dialect::Native => echo(),
            Dialect::Text => Say::Text(r#"{"name": "echo", "arguments": {"text": "hello"}}"#),
        };
        let model = Pretend::new([
            Say::Text(PLAN),
            echo.clone(),
            Say::Text(PLAN),
            echo,
            Say::Text(PLAN),
            Say::Text("so"),
        ]);
        let agent = Agent::builder(model.clone())
            .tool(Echo)
            .action(ActionFormat::Tools)
            .dialect(dialect)
            .plan(every(1))
            .build()
            .unwrap();
        assert_eq!(answer(&run(&agent, env().0).await.1), "so");
        for request in model.requests.lock().unwrap().iter() {
            let user = |message: &Message| matches!(message, Message::User { .. });
            assert!(
                request.messages.windows(2).all(|pair| !(user(&pair[0]) && user(&pair[1]))),
                "{dialect:?}"
            );
        }
    }
}
