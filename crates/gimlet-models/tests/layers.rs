//! Wrappers around a model: each does its one thing, on a clock that the test moves.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use gimlet::message::{Message, Usage};
use gimlet::model::{Model, ModelError, ModelEvent, ModelStream, Request};
use gimlet_models::layer::{
    Budget, Concurrency, Ledger, Limits, RateLimit, Rates, Recorder, Replayer, Retry, RetryPolicy, Router,
    Strategy,
};
use gimlet_models::providers::{Cost, Price};
use gimlet_models::{Script, ScriptedModel};
use tokio::time::Instant;

fn scripted(id: &str, script: &str) -> Arc<dyn Model> {
    let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    std::fs::write(file.path(), script).unwrap();
    Arc::new(ScriptedModel::new(id, Script::load(file.path()).unwrap()))
}

const GOOD: &str = "[[reply]]\ntext = \"fine\"\nusage = { input = 100, output = 20 }\n";
const BUSY: &str = "[[reply]]\nfault = { kind = \"status\", status = 529 }\n";
const LIMIT_30: &str = "[[reply]]\nfault = { kind = \"status\", status = 429, retry_after = 30 }\n";
const LIMIT_1000: &str = "[[reply]]\nfault = { kind = \"status\", status = 429, retry_after = 1000 }\n";
const NO_KEY: &str = "[[reply]]\nfault = { kind = \"status\", status = 401 }\n";
const BAD: &str = "[[reply]]\nfault = { kind = \"status\", status = 400 }\n";
const CUT_AT_ONCE: &str = "[[reply]]\ntext = \"lost\"\nfault = { kind = \"drop\" }\n";
const CUT_LATE: &str = "[[reply]]\ntext = \"half of it\"\nfault = { kind = \"drop\", after_bytes = 4 }\n";

fn ask_for(task: &str) -> Request {
    Request { messages: vec![Arc::new(Message::user(task))], ..Request::default() }
}

struct Heard {
    text: String,
    notices: Vec<String>,
    error: Option<ModelError>,
}

async fn ask(model: &dyn Model, request: Request) -> Heard {
    let mut heard = Heard { text: String::new(), notices: Vec::new(), error: None };
    match model.stream(request).await {
        Err(error) => heard.error = Some(error),
        Ok(mut stream) => {
            while let Some(event) = stream.next().await {
                match event {
                    Ok(ModelEvent::Text(text)) => heard.text.push_str(&text),
                    Ok(ModelEvent::Notice(text)) => heard.notices.push(text),
                    Ok(_) => {}
                    Err(error) => heard.error = Some(error),
                }
            }
        }
    }
    heard
}

fn retry(script: &str) -> Retry {
    Retry::new(scripted("m", script), RetryPolicy::new(7))
}

#[tokio::test(start_paused = true)]
async fn retries_what_may_succeed_later_and_says_so() {
    let start = Instant::now();
    let heard = ask(&retry(&[BUSY, CUT_AT_ONCE, GOOD].concat()), ask_for("x")).await;
    assert_eq!((heard.text.as_str(), heard.notices.len()), ("fine", 2), "{:?}", heard.error);
    assert!(heard.notices[0].contains("529") && heard.notices[0].contains("(1 of 3)"), "{:?}", heard.notices);
    let waited = start.elapsed();
    assert!((Duration::from_millis(1500)..Duration::from_secs(4)).contains(&waited), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn the_servers_own_delay_wins() {
    let start = Instant::now();
    assert_eq!(ask(&retry(&[LIMIT_30, GOOD].concat()), ask_for("x")).await.text, "fine");
    assert_eq!(start.elapsed().as_secs(), 30);

    let start = Instant::now();
    let heard = ask(&retry(&[LIMIT_1000, GOOD].concat()), ask_for("x")).await;
    assert_eq!(heard.error.unwrap().code(), "MODEL_RATE_LIMITED", "nobody waits a quarter of an hour");
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn retries_end() {
    let heard = ask(&retry(&BUSY.repeat(9)), ask_for("x")).await;
    assert_eq!((heard.notices.len(), heard.error.unwrap().code()), (3, "MODEL_SERVER_ERROR"));
    for hopeless in [NO_KEY, BAD] {
        let heard = ask(&retry(&[hopeless, GOOD].concat()), ask_for("x")).await;
        assert!(heard.error.is_some() && heard.notices.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_shown_is_never_said_twice() {
    let model = retry(&[CUT_LATE, GOOD].concat());
    let heard = ask(&model, ask_for("x")).await;
    assert_eq!((heard.text.as_str(), heard.error.unwrap().code()), ("half", "MODEL_REPLY_CUT"));
    assert_eq!(ask(&model, ask_for("x")).await.text, "fine", "the step begins again, cleanly");
}

fn router(scripts: &[&str], strategy: Strategy) -> Router {
    let models = scripts.iter().enumerate().map(|(n, script)| scripted(&format!("m{n}"), script)).collect();
    Router::new("both", models, strategy, Duration::from_secs(60), 1).unwrap()
}

fn saying(text: &str) -> String {
    format!("[[reply]]\ntext = \"{text}\"\n").repeat(9)
}

#[tokio::test(start_paused = true)]
async fn the_router_takes_the_first_that_can_and_lets_the_others_rest() {
    for fault in [NO_KEY, BUSY, LIMIT_30, CUT_AT_ONCE] {
        let router = router(&[&[fault, &saying("first")].concat(), &saying("second")], Strategy::Ordered);
        let heard = ask(&router, ask_for("x")).await;
        assert_eq!(heard.text, "second", "{fault}");
        assert!(heard.notices[0].contains("switching from m0 to m1"), "{:?}", heard.notices);
        assert_eq!(ask(&router, ask_for("x")).await.text, "second", "{fault}: the first rests");
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(ask(&router, ask_for("x")).await.text, "first", "{fault}: it is well again");
    }
}

/// Fails the same way every time.
struct Failing(ModelError);

impl Model for Failing {
    fn id(&self) -> &str {
        "failing"
    }

    fn stream(&self, _request: Request) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        let error = self.0.clone();
        Box::pin(async move { Err(error) })
    }
}

#[tokio::test(start_paused = true)]
async fn what_another_model_could_do_goes_to_another() {
    let second = saying("second");
    let route = |error| {
        let models: Vec<Arc<dyn Model>> = vec![Arc::new(Failing(error)), scripted("m1", &second)];
        Router::new("both", models, Strategy::Ordered, Duration::from_secs(60), 1).unwrap()
    };
    let too_long = route(ModelError::ContextLength { message: "8000 tokens".into() });
    for _ in 0..2 {
        let heard = ask(&too_long, ask_for("x")).await;
        assert_eq!((heard.text.as_str(), heard.notices.len()), ("second", 1), "asked again: it is well");
    }
    let refused = route(ModelError::Refused { status: 400, message: "nonsense".into() });
    assert_eq!(ask(&refused, ask_for("x")).await.error.unwrap().code(), "MODEL_REFUSED_REQUEST");
}

#[tokio::test(start_paused = true)]
async fn a_switch_never_happens_in_the_middle_of_a_reply() {
    let router = router(&[&[CUT_LATE, GOOD].concat(), &saying("second")], Strategy::Ordered);
    let heard = ask(&router, ask_for("x")).await;
    assert_eq!((heard.text.as_str(), heard.error.unwrap().code()), ("half", "MODEL_REPLY_CUT"));
    assert_eq!(ask(&router, ask_for("x")).await.text, "second", "the next step is with the other");
}

#[tokio::test(start_paused = true)]
async fn when_all_rest_the_one_that_is_well_soonest_is_asked() {
    let router =
        router(&[&[LIMIT_1000, GOOD].concat(), &[BUSY, &saying("second")].concat()], Strategy::Ordered);
    assert!(ask(&router, ask_for("x")).await.error.is_some());
    assert_eq!(ask(&router, ask_for("x")).await.text, "second");
}

#[tokio::test(start_paused = true)]
async fn shuffle_spreads_conversations_but_keeps_each_together() {
    let router = router(&[&saying("a").repeat(9), &saying("b").repeat(9)], Strategy::Shuffle);
    let mut seen = std::collections::HashMap::<String, usize>::new();
    for task in 0..20 {
        let first = ask(&router, ask_for(&format!("task {task}"))).await.text;
        let mut longer = ask_for(&format!("task {task}"));
        longer.messages.push(Arc::new(Message::user("more")));
        assert_eq!(ask(&router, longer).await.text, first);
        *seen.entry(first).or_default() += 1;
    }
    assert!(seen.len() == 2 && seen.values().all(|count| *count >= 3), "{seen:?}");
}

#[test]
fn a_router_needs_a_model() {
    assert!(Router::new("none", Vec::new(), Strategy::Ordered, Duration::ZERO, 0).is_none());
}

#[tokio::test(start_paused = true)]
async fn requests_are_spaced() {
    let rates = Rates { requests: NonZeroU32::new(60), tokens: None };
    let model = RateLimit::new(scripted("m", &GOOD.repeat(5)), rates);
    let start = Instant::now();
    for expected in 0..5 {
        assert_eq!(ask(&model, ask_for("x")).await.text, "fine");
        assert_eq!(start.elapsed().as_secs_f32().round() as u64, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn tokens_are_paid_for_by_the_next_request() {
    // Each reply costs 120 tokens: after the first, 240 a minute leave 120, and the third must wait.
    let rates = Rates { requests: None, tokens: NonZeroU32::new(240) };
    let model = RateLimit::new(scripted("m", &GOOD.repeat(4)), rates);
    let start = Instant::now();
    for _ in 0..2 {
        ask(&model, ask_for("x")).await;
    }
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    for _ in 0..2 {
        ask(&model, ask_for("x")).await;
    }
    assert!(start.elapsed() > Duration::from_secs(25), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn one_at_a_time_means_until_the_reply_is_over() {
    let model = Concurrency::new(scripted("m", &GOOD.repeat(3)), 1);
    let first = model.stream(ask_for("x")).await.unwrap();
    let waiting = tokio::time::timeout(Duration::from_secs(5), model.stream(ask_for("y"))).await;
    assert!(waiting.is_err(), "the second waits");
    drop(first);
    assert_eq!(ask(&model, ask_for("z")).await.text, "fine");
}

#[tokio::test]
async fn a_budget_ends_the_spending() {
    let ledger = Ledger::new(Limits { tokens: Some(200), dollars: None });
    let model = Budget::new(scripted("m", &GOOD.repeat(3)), Arc::clone(&ledger), Cost::Free);
    assert!(ask(&model, ask_for("x")).await.error.is_none());
    assert!(ask(&model, ask_for("x")).await.error.is_none());
    let error = ask(&model, ask_for("x")).await.error.unwrap();
    assert_eq!(error.to_string(), "the budget is used up: 240 of 200 tokens");
    assert_eq!(ledger.spent().usage, Usage { input: 200, output: 40, ..Usage::default() });

    let ledger = Ledger::new(Limits { tokens: None, dollars: Some(0.001) });
    let price = Price { input: 3.0, output: 15.0, cached: None };
    let model = Budget::new(scripted("m", &GOOD.repeat(3)), Arc::clone(&ledger), Cost::Known(price));
    assert!(ask(&model, ask_for("x")).await.error.is_none());
    assert!(ask(&model, ask_for("x")).await.error.is_none());
    assert!((ledger.spent().dollars - 0.0012).abs() < 1e-9, "{:?}", ledger.spent());
    assert_eq!(ask(&model, ask_for("x")).await.error.unwrap().code(), "BUDGET_EXHAUSTED");

    let secret = Budget::new(
        scripted("m", GOOD),
        Ledger::new(Limits { tokens: None, dollars: Some(9.0) }),
        Cost::Unknown,
    );
    let error = ask(&secret, ask_for("x")).await.error.unwrap();
    assert!(error.to_string().contains("the price of m is not known"), "{error}");
    let tokens = Ledger::new(Limits { tokens: Some(500), dollars: None });
    let unlimited = Budget::new(scripted("m", GOOD), tokens, Cost::Unknown);
    assert!(ask(&unlimited, ask_for("x")).await.error.is_none(), "tokens are counted at any price");
}

#[tokio::test]
async fn a_silent_server_is_not_free_and_a_failed_request_is() {
    let ledger = Ledger::new(Limits::default());
    let silent = "[[reply]]\ntext = \"12345678\"\n";
    ask(&Budget::new(scripted("m", silent), Arc::clone(&ledger), Cost::Free), ask_for("1234")).await;
    assert_eq!(ledger.spent().usage, Usage { input: 1, output: 2, ..Usage::default() });
    ask(&Budget::new(scripted("m", BUSY), Arc::clone(&ledger), Cost::Free), ask_for("1234")).await;
    assert_eq!(ledger.spent().usage.total(), 3);
    ask(&Budget::new(scripted("m", CUT_LATE), Arc::clone(&ledger), Cost::Free), ask_for("1234")).await;
    assert_eq!(ledger.spent().usage.total(), 5, "what was read before the cut counts");
}

#[tokio::test]
async fn a_recorded_conversation_plays_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cassette.jsonl");
    let script = "[[reply]]\ntext = \"one\"\nthinking = \"hm\"\n[[reply]]\ntext = \"two\"\n[[reply]]\ncalls = [{ name = \"read\", args = { path = \"a\" } }]\n[[reply]]\ntext = \"x\"\nfault = { kind = \"drop\" }\n";
    let recorder = Recorder::new(scripted("m", script), &path).unwrap();
    let mut live = Vec::new();
    for task in ["same", "same", "other"] {
        let mut stream = recorder.stream(ask_for(task)).await.unwrap();
        while let Some(event) = stream.next().await {
            live.push(event.unwrap());
        }
    }
    ask(&recorder, ask_for("broken")).await;

    let replayer = Replayer::load("m", &path).unwrap();
    let mut played = Vec::new();
    for task in ["same", "same", "other"] {
        let mut stream = replayer.stream(ask_for(task)).await.unwrap();
        while let Some(event) = stream.next().await {
            played.push(event.unwrap());
        }
    }
    assert_eq!(played, live);
    for unknown in ["same", "broken", "never asked"] {
        let error = ask(&replayer, ask_for(unknown)).await.error.unwrap();
        assert!(error.to_string().contains("has no (further) reply"), "{error}");
    }
    std::fs::write(&path, "{}\n").unwrap();
    assert!(Replayer::load("m", &path).err().unwrap().to_string().contains("line 1"));
}
