//! The wires against a real llama.cpp server, whose address is in `GIMLET_TEST_LLAMA_CPP`.
//!
//! Any instruction-tuned model will do; a window of about 2048 tokens keeps the last test short.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;

use gimlet::message::{Finish, Message};
use gimlet::model::{Model, Reply, Request, Sampling};
use gimlet::tool::{Manner, ToolSpec};
use gimlet_models::catalog::Server;
use gimlet_models::transport::{Timeouts, Transport};
use gimlet_models::wire::{Caching, Wire, WireOptions};
use gimlet_models::{HttpModel, transport};
use serde_json::{Value, json};

fn base() -> reqwest::Url {
    std::env::var("GIMLET_TEST_LLAMA_CPP").unwrap().parse().unwrap()
}

fn model(wire: Wire, options: WireOptions) -> Arc<dyn Model> {
    let transport = Transport::new(&base(), Timeouts::LOCAL, None, None).unwrap();
    assert!(transport::is_loopback(&base()));
    Arc::new(HttpModel::new("real", wire, &base(), transport, options))
}

fn options() -> WireOptions {
    WireOptions {
        max_tokens: 48,
        temperature: Some(0.0),
        caching: Caching::Marked,
        ..WireOptions::new("default")
    }
}

fn request(messages: impl IntoIterator<Item = Message>) -> Request {
    Request { messages: messages.into_iter().map(Arc::new).collect(), ..Request::default() }
}

async fn ask(wire: Wire, request: Request) -> Reply {
    model(wire, options()).complete(request).await.unwrap()
}

const BOTH: [Wire; 2] = [Wire::OpenAi, Wire::Anthropic];

#[tokio::test]
#[ignore = "needs a llama.cpp server, its address in GIMLET_TEST_LLAMA_CPP"]
async fn a_chat_streams_and_its_prefix_is_cached() {
    for wire in BOTH {
        let long = "You are a careful assistant who answers in one short sentence. ".repeat(8);
        let mut request = request([Message::system(long), Message::user("What colour is the sky?")]);
        let first = ask(wire, request.clone()).await;
        assert!(!first.text.is_empty() && first.usage.output > 0, "{first:?}");
        request.messages.push(Arc::new(Message::Assistant {
            text: first.text,
            thinking: vec![],
            calls: vec![],
        }));
        request.messages.push(Arc::new(Message::user("And the grass?")));
        let second = ask(wire, request).await;
        assert!(
            second.usage.cached >= first.usage.input * 9 / 10,
            "{wire:?}: {:?} then {:?}",
            first.usage,
            second.usage
        );
    }
}

#[tokio::test]
#[ignore = "needs a llama.cpp server, its address in GIMLET_TEST_LLAMA_CPP"]
async fn a_schema_binds_even_a_tiny_model() {
    let schema = json!({
        "type": "object",
        "properties": {"tool": {"enum": ["read_file", "git_status"]}, "line": {"type": "integer", "maximum": 99}},
        "required": ["tool", "line"],
        "additionalProperties": false
    });
    let sampling = Sampling { schema: Some(Arc::new(schema)), ..Sampling::default() };
    let request = Request { sampling, ..request([Message::user("Which tool reads a file?")]) };
    let reply = ask(Wire::OpenAi, request).await;
    let action: Value = serde_json::from_str(&reply.text).unwrap();
    assert!(["read_file", "git_status"].contains(&action["tool"].as_str().unwrap()), "{action}");
}

#[tokio::test]
#[ignore = "needs a llama.cpp server, its address in GIMLET_TEST_LLAMA_CPP"]
async fn a_grammar_binds_too() {
    let options = WireOptions { grammar: Some(r#"root ::= "yes" | "no""#.into()), ..options() };
    let reply =
        model(Wire::OpenAi, options).complete(request([Message::user("Is water wet?")])).await.unwrap();
    assert!(["yes", "no"].contains(&reply.text.as_str()), "{reply:?}");
}

#[tokio::test]
#[ignore = "needs a llama.cpp server, its address in GIMLET_TEST_LLAMA_CPP"]
async fn tools_and_their_results_are_accepted() {
    let tool = ToolSpec {
        name: "read_file".into(),
        description: "Reads a file.".into(),
        input: json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}),
        output: None,
        manner: Manner::default(),
    };
    for wire in BOTH {
        let call = gimlet::message::ToolCall {
            id: "call_1".into(),
            name: "read_file".into(),
            args: json!({"path": "a"}),
        };
        let mut request = request([
            Message::user("What is in a?"),
            Message::Assistant { text: String::new(), thinking: vec![], calls: vec![call] },
            Message::Tool {
                id: "call_1".into(),
                name: "read_file".into(),
                text: "the number 7".into(),
                ok: true,
            },
        ]);
        request.tools = Arc::new([Arc::new(tool.clone())]);
        let reply = ask(wire, request).await;
        assert!(reply.usage.output > 0, "{wire:?}: {reply:?}");
    }
}

#[tokio::test]
#[ignore = "needs a llama.cpp server, its address in GIMLET_TEST_LLAMA_CPP"]
async fn the_window_is_read_and_its_end_is_said() {
    let transport = Transport::new(&base(), Timeouts::LOCAL, None, None).unwrap();
    let models = Server::new(Wire::OpenAi, base(), transport).list().await.unwrap();
    let window = models[0].set_context.unwrap();
    assert!(window >= 512, "{models:?}");
    for wire in BOTH {
        let long = request([Message::user("word ".repeat(window as usize * 2))]);
        let error = model(wire, options()).complete(long).await.unwrap_err();
        assert_eq!(error.code(), "CONTEXT_LENGTH", "{wire:?}: {error}");
        let cut = Request {
            sampling: Sampling { max_tokens: Some(2), ..Sampling::default() },
            ..request([Message::user("Count to one hundred.")])
        };
        assert_eq!(ask(wire, cut).await.finish, Finish::Length, "{wire:?}");
    }
}
