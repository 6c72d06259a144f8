//! What a real small model prints, and what becomes of it: Qwen2.5-Coder-1.5B behind llama.cpp, on both of its wires.
//!
//! The same questions go to the real server, whose address is in `GIMLET_TEST_QWEN`, and to tapes of what it once said.
//! `GIMLET_RECORD=1` with the real server makes the tapes anew.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "the counts are worth reading in the log of a real run")]

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::effect::Effect;
use gimlet::event::{ActionFormat, Dialect};
use gimlet::message::{Message, ToolCall};
use gimlet::model::{Model, Request, Sampling};
use gimlet::parse::{Intent, parse};
use gimlet::prompt::{stops, system_prompt};
use gimlet::run::{Invocation, invoke};
use gimlet::tool::{Manner, Tool, ToolCx, ToolError, ToolOutput, ToolSpec};
use gimlet::{Agent, Env, constrain};
use gimlet_models::catalog::{Families, Server};
use gimlet_models::transport::{Timeouts, Transport};
use gimlet_models::wire::{Wire, WireOptions};
use gimlet_models::{HttpModel, Script, ScriptedModel};
use gimlet_testkit::TapeServer;
use serde_json::{Value, json};

/// What people ask about a repository; the repository itself plays no part, only the first step counts.
const QUESTIONS: [&str; 20] = [
    "What does calc.py do?",
    "Which files are in this repository?",
    "Where is the function add defined?",
    "Do the tests pass? Run `sh test.sh`.",
    "Read README.md and summarise it.",
    "How many lines has calc.py?",
    "Is there a TODO anywhere?",
    "Which functions does src/shop.py define?",
    "Show me the first lines of Makefile.",
    "Find every use of `parse_args`.",
    "Are there any Python files below tests?",
    "Run pytest and tell me what fails.",
    "Why does `add(1, 2)` return -1?",
    "What version is in Cargo.toml?",
    "List all Markdown files.",
    "Search for the word deprecated.",
    "Read lines from 40 on of src/main.rs.",
    "Is there a licence?",
    "Which file mentions the port 8080?",
    "Run the tests with `make test`.",
];

/// A tool that is there to be named; it does nothing.
struct Named(Arc<ToolSpec>);

impl Tool for Named {
    fn spec(&self) -> Arc<ToolSpec> {
        self.0.clone()
    }

    fn effects(&self, _args: &Value) -> Result<Vec<Effect>, ToolError> {
        Ok(Vec::new())
    }

    fn call<'a>(
        &'a self,
        _call: &'a ToolCall,
        _cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        std::future::ready(Ok(ToolOutput::new(json!("done")))).boxed()
    }
}

fn tools() -> Vec<Arc<dyn Tool>> {
    let spec = |name: &str, description: &str, properties: Value, required: Value| {
        let input = json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false
        });
        let (name, description) = (name.to_owned(), description.to_owned());
        Arc::new(Named(Arc::new(ToolSpec {
            name,
            description,
            input,
            output: None,
            manner: Manner::default(),
        }))) as Arc<dyn Tool>
    };
    vec![
        spec(
            "list_files",
            "List files whose path matches a glob.",
            json!({"glob": {"type": "string", "default": "**/*"}}),
            json!([]),
        ),
        spec(
            "read_file",
            "Read lines of a file.",
            json!({"path": {"type": "string"}, "start_line": {"type": "integer", "default": 1, "minimum": 1}}),
            json!(["path"]),
        ),
        spec(
            "search_code",
            "Search the files for a text.",
            json!({"pattern": {"type": "string"}, "path": {"type": ["string", "null"], "default": null}}),
            json!(["pattern"]),
        ),
        spec("run_tests", "Run the tests.", json!({"test_cmd": {"type": "string"}}), json!(["test_cmd"])),
    ]
}

/// An agent that has the tools; its model is never asked.
fn agent() -> Arc<Agent> {
    let nobody = Arc::new(ScriptedModel::new("nobody", Script::default()));
    Agent::builder(nobody).tools(tools()).dialect(Dialect::Text).build().unwrap()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    Free,
    ToSchema,
}

async fn first_reply(base: &str, wire: Wire, question: &str, held: Held) -> String {
    let base = base.parse().unwrap();
    let transport = Transport::new(&base, Timeouts::LOCAL, None, None).unwrap();
    let options = WireOptions { max_tokens: 200, temperature: Some(0.0), ..WireOptions::new("qwen") };
    let model: Arc<dyn Model> = Arc::new(HttpModel::new("qwen", wire, &base, transport, options));
    let agent = agent();
    let specs = agent.toolbox().specs();
    let system = system_prompt(ActionFormat::Tools, Dialect::Text, specs, "").unwrap();
    let schema = (held == Held::ToSchema).then(|| Arc::new(constrain::schema(ActionFormat::Tools, specs)));
    let stop = stops(ActionFormat::Tools, Dialect::Text);
    let request = Request {
        messages: vec![Arc::new(Message::system(system)), Arc::new(Message::user(question))],
        sampling: Sampling { schema, stop, ..Sampling::default() },
        ..Request::default()
    };
    model.complete(request).await.unwrap().text
}

fn read(text: &str) -> Intent {
    let agent = agent();
    let known: Vec<&str> = agent.toolbox().specs().iter().map(|spec| spec.name.as_str()).collect();
    parse(text, ActionFormat::Tools, &known).intent
}

/// Whether a call names a tool that exists and gives it arguments it takes.
async fn is_good(name: &str, args: &Value) -> bool {
    let call = ToolCall { id: "q".into(), name: name.to_owned(), args: args.clone() };
    matches!(invoke(&agent(), Env::default(), call).await, Invocation::Done(_))
}

/// Held to the schema, every reply is an action, and nearly every one a good call.
async fn held_to_the_schema(base: &str) {
    let (mut parsed, mut good) = (0, 0);
    for question in QUESTIONS {
        let text = first_reply(base, Wire::OpenAi, question, Held::ToSchema).await;
        match read(&text) {
            Intent::Calls(calls) => {
                parsed += 1;
                good += usize::from(is_good(&calls[0].name, &calls[0].args).await);
            }
            // `final_answer` is an action too, if not a call of a tool.
            Intent::Answer(_) if serde_json::from_str::<Value>(&text).is_ok() => parsed += 1,
            other => eprintln!("{question}: {other:?} in {text}"),
        }
    }
    eprintln!("held to the schema: {parsed} of {} parse, {good} are good calls", QUESTIONS.len());
    assert_eq!(parsed, QUESTIONS.len());
    assert!(good >= 16, "{good} good calls");
}

/// Left free, the model mixes words, fences and JSON; whatever call it writes is found.
async fn left_free(base: &str, wire: Wire, questions: usize) {
    let (mut calls, mut announced, mut answers) = (0, 0, 0);
    for question in QUESTIONS.iter().take(questions) {
        let text = first_reply(base, wire, question, Held::Free).await;
        match read(&text) {
            Intent::Calls(found) => {
                assert!(is_good(&found[0].name, &found[0].args).await, "{question}: {found:?} in {text}");
                calls += 1;
            }
            Intent::Answer(_) => {
                assert!(!text.contains("\"arguments\""), "{question}: a call was missed in {text}");
                let names = ["list_files", "read_file", "search_code", "run_tests"];
                if names.iter().any(|name| text.contains(name)) { announced += 1 } else { answers += 1 }
            }
            other => panic!("{question}: {other:?} in {text}"),
        }
    }
    eprintln!(
        "{wire:?}, left free: {calls} calls, {announced} announced, {answers} answered without looking"
    );
    assert!(calls > 0, "it knows how to call");
}

/// The server tells its true window, and its family is known by the name of its file.
async fn told_by_the_server(base: &str) {
    let base: reqwest::Url = base.parse().unwrap();
    let transport = Transport::new(&base, Timeouts::LOCAL, None, None).unwrap();
    let models = Server::new(Wire::OpenAi, base, transport).list().await.unwrap();
    let profile = Families::built_in().unwrap().profile(&models[0]);
    assert_eq!(models[0].set_context, Some(4096), "{models:?}");
    assert_eq!((profile.family.as_deref(), profile.window.tokens), (Some("qwen2.5-coder"), 4096));
    assert_eq!(profile.constrain, constrain::Constrain::Always);
    assert!(models[0].digest.is_some(), "a probe of it can be remembered");
}

fn tape(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/tapes").join(format!("{name}.jsonl"))
}

/// Asks the real server, through a recorder.
async fn live(name: &str, scenario: impl AsyncFnOnce(&str)) {
    let address = std::env::var("GIMLET_TEST_QWEN").unwrap_or_else(|_| panic!("GIMLET_TEST_QWEN is not set"));
    let recorder = TapeServer::record(&address);
    scenario(&recorder.url()).await;
    if std::env::var_os("GIMLET_RECORD").is_some() {
        recorder.save(&tape(name));
    }
}

async fn played(name: &str, scenario: impl AsyncFnOnce(&str)) {
    let player = TapeServer::play(&tape(name));
    scenario(&player.url()).await;
    assert_eq!(player.left(), 0, "everything on the tape was asked for");
}

macro_rules! scenarios {
    ($($name:ident: $scenario:expr;)*) => {
        mod real {
            use super::*;
            $(
                #[tokio::test]
                #[ignore = "needs llama.cpp with Qwen2.5-Coder-1.5B, its address in GIMLET_TEST_QWEN"]
                async fn $name() {
                    live(stringify!($name), $scenario).await;
                }
            )*
        }
        mod taped {
            use super::*;
            $(
                #[tokio::test]
                async fn $name() {
                    played(stringify!($name), $scenario).await;
                }
            )*
        }
    };
}

scenarios! {
    described: async |base: &str| told_by_the_server(base).await;
    held: async |base: &str| held_to_the_schema(base).await;
    free_openai: async |base: &str| left_free(base, Wire::OpenAi, 8).await;
    free_anthropic: async |base: &str| left_free(base, Wire::Anthropic, 5).await;
}
