//! A model that says what it is told, tools that do what a test needs, and a log to look at afterwards.
#![allow(dead_code, reason = "each test program uses its own part")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use gimlet::approval::{ApprovalRequest, Approver, Decision};
use gimlet::context::Window;
use gimlet::effect::Effect;
use gimlet::event::{Event, EventKind};
use gimlet::journal::Observer;
use gimlet::message::{Finish, Message, ToolCall, Usage};
use gimlet::model::{Model, ModelError, ModelEvent, ModelStream, Request};
use gimlet::store::MemoryStore;
use gimlet::tool::{Manner, ToolCx, ToolError, TypedTool};
use gimlet::{Agent, Ending, Env, Run};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// One reply of the pretended model.
#[derive(Clone)]
pub(crate) enum Say {
    Text(&'static str),
    Calls(Vec<(&'static str, &'static str, Value)>),
    Cut(&'static str),
    Fail(ModelError),
    /// Says something, then breaks off.
    BreakOff(&'static str, ModelError),
    Hang,
}

pub(crate) fn call(name: &'static str, args: Value) -> Say {
    Say::Calls(vec![("", name, args)])
}

pub(crate) struct Pretend {
    replies: Mutex<std::collections::VecDeque<Say>>,
    pub(crate) requests: Mutex<Vec<Request>>,
    window: Option<Window>,
    /// What its server says a request cost.
    count: fn(&Request) -> u64,
}

impl Pretend {
    pub(crate) fn new(replies: impl IntoIterator<Item = Say>) -> Arc<Self> {
        Self::with_window(replies, None, |_| 10)
    }

    /// A model with a window, whose server counts tokens in its own way.
    pub(crate) fn with_window(
        replies: impl IntoIterator<Item = Say>,
        window: Option<Window>,
        count: fn(&Request) -> u64,
    ) -> Arc<Self> {
        let replies = Mutex::new(replies.into_iter().collect());
        Arc::new(Pretend { replies, requests: Mutex::default(), window, count })
    }
}

impl Model for Pretend {
    fn id(&self) -> &str {
        "pretend"
    }

    fn window(&self) -> Option<Window> {
        self.window
    }

    fn stream(&self, request: Request) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        let input = (self.count)(&request);
        self.requests.lock().unwrap().push(request.clone());
        let sums_up = matches!(request.messages.get(1).map(AsRef::as_ref),
            Some(Message::User { text }) if text.starts_with("Sum up this run"));
        // A summary is no turn of the conversation.
        let say = match sums_up {
            true => Some(Say::Text("Goal:\n- to do it\nDecisions:\n- it was looked at")),
            false => self.replies.lock().unwrap().pop_front(),
        };
        async move {
            let usage = ModelEvent::Usage(Usage { input, output: 5, ..Usage::default() });
            let events = match say {
                None => return Err(ModelError::Script("no reply left".into())),
                Some(Say::Fail(error)) => return Err(error),
                Some(Say::BreakOff(text, error)) => {
                    return Ok(stream::iter([Ok(ModelEvent::Text(text.into())), Err(error)]).boxed());
                }
                Some(Say::Hang) => return Ok(stream::pending().boxed()),
                Some(Say::Text(text)) => {
                    vec![ModelEvent::Text(text.into()), usage, ModelEvent::Done(Finish::Stop)]
                }
                Some(Say::Cut(text)) => {
                    vec![ModelEvent::Text(text.into()), usage, ModelEvent::Done(Finish::Length)]
                }
                Some(Say::Calls(calls)) => calls
                    .into_iter()
                    .map(|(id, name, args)| {
                        ModelEvent::Call(ToolCall { id: id.into(), name: name.into(), args })
                    })
                    .chain([usage, ModelEvent::Done(Finish::ToolCalls)])
                    .collect(),
            };
            Ok(stream::iter(events.into_iter().map(Ok)).boxed())
        }
        .boxed()
    }
}

/// Echo a text after a while.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct EchoInput {
    /// What to say.
    pub(crate) text: String,
    /// How long to think about it, in milliseconds.
    #[serde(default)]
    pub(crate) wait: u64,
}

pub(crate) struct Echo;

impl TypedTool for Echo {
    const NAME: &'static str = "echo";
    type Input = EchoInput;
    type Output = Value;

    async fn run(&self, input: EchoInput, _cx: &ToolCx) -> Result<Value, ToolError> {
        tokio::time::sleep(Duration::from_millis(input.wait)).await;
        match input.text.as_str() {
            "fail" => Err(ToolError::failed("ECHO_FAILED", "there was no echo")),
            "panic" => panic!("no echo at all"),
            text => Ok(json!({ "echo": text })),
        }
    }
}

/// Write a file.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct WriteInput {
    /// Where.
    pub(crate) path: String,
}

/// Changes the world; remembers how often.
#[derive(Clone, Default)]
pub(crate) struct Write(pub(crate) Arc<Mutex<Vec<String>>>);

impl TypedTool for Write {
    const NAME: &'static str = "write";
    type Input = WriteInput;
    type Output = Value;

    fn manner(&self) -> Manner {
        Manner { timeout: Duration::from_secs(5), ..Manner::default() }
    }

    fn effects(&self, input: &WriteInput) -> Result<Vec<Effect>, ToolError> {
        Ok(vec![Effect::Write { path: input.path.clone().into(), digest: None }])
    }

    fn preview(&self, input: &WriteInput) -> Option<String> {
        Some(format!("+ {}", input.path))
    }

    async fn run(&self, input: WriteInput, cx: &ToolCx) -> Result<Value, ToolError> {
        if input.path == "slow" {
            cx.cancel.cancelled().await;
            tokio::time::sleep(Duration::from_secs(3600)).await;
        }
        self.0.lock().unwrap().push(input.path);
        Ok(json!({ "ok": true }))
    }
}

/// Answers questions with given decisions, then defers.
#[derive(Default)]
pub(crate) struct Decisions(pub(crate) Mutex<Vec<Decision>>, pub(crate) Mutex<Vec<ApprovalRequest>>);

impl Decisions {
    pub(crate) fn new(decisions: impl IntoIterator<Item = Decision>) -> Arc<Self> {
        Arc::new(Decisions(Mutex::new(decisions.into_iter().collect()), Mutex::default()))
    }
}

impl Approver for Decisions {
    fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, Decision> {
        self.1.lock().unwrap().push(request);
        let mut decisions = self.0.lock().unwrap();
        let decision = if decisions.is_empty() { Decision::Defer } else { decisions.remove(0) };
        std::future::ready(decision).boxed()
    }
}

/// Keeps every event.
#[derive(Default)]
pub(crate) struct Log(Mutex<Vec<Event>>);

impl Observer for Log {
    fn observe(&self, event: &Event) {
        self.0.lock().unwrap().push(event.clone());
    }
}

impl Log {
    pub(crate) fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn kinds(&self) -> Vec<String> {
        self.events().iter().map(type_of).collect()
    }

    pub(crate) fn finished_tools(&self) -> Vec<gimlet::event::ToolFinished> {
        let finished = self.events().into_iter().filter_map(|event| match event.kind {
            EventKind::ToolFinished(finished) => Some(finished),
            _ => None,
        });
        finished.collect()
    }
}

pub(crate) fn type_of(event: &Event) -> String {
    serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned()
}

/// An environment whose events a test can look at.
pub(crate) fn env() -> (Env, Arc<Log>) {
    let log = Arc::new(Log::default());
    let env = Env { observers: vec![log.clone()], store: Arc::new(MemoryStore::default()), ..Env::default() };
    (env, log)
}

pub(crate) async fn run(agent: &Arc<Agent>, env: Env) -> (gimlet::ids::RunId, Ending) {
    let run = Run::start(agent.clone(), "do it", env).await.unwrap();
    (run.id().clone(), run.drive().await.unwrap())
}

/// The answer of a run that is over.
pub(crate) fn answer(ending: &Ending) -> &str {
    match ending {
        Ending::Finished(finished) => &finished.answer,
        other => panic!("not finished: {other:?}"),
    }
}

/// The texts of what the model was last sent.
pub(crate) fn last_messages(model: &Pretend) -> Vec<String> {
    let requests = model.requests.lock().unwrap();
    let texts = requests.last().unwrap().messages.iter().map(|message| match message.as_ref() {
        Message::System { text } => format!("system: {text}"),
        Message::User { text } => format!("user: {text}"),
        Message::Assistant { text, calls, .. } => format!("assistant: {text} {}", calls.len()),
        Message::Tool { id, text, .. } => format!("tool {id}: {text}"),
    });
    texts.collect()
}
