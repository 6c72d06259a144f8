//! What each wire sends, and that a conversation only ever grows at its end.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;

use gimlet::message::{Message, Thinking, ToolCall};
use gimlet::model::{Request, Sampling};
use gimlet::tool::{Manner, ToolSpec};
use gimlet_models::wire::{Caching, Extra, Extras, LengthField, Quirks, Reasoning, Think, Wire, WireOptions};
use proptest::prelude::*;
use serde_json::{Value, json};

fn tools() -> Arc<[Arc<ToolSpec>]> {
    let tool = |name: &str| {
        Arc::new(ToolSpec {
            name: name.into(),
            description: format!("Does {name}."),
            input: json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}),
            output: None,
            manner: Manner::default(),
        })
    };
    Arc::new([tool("read_file"), tool("git_status")])
}

fn conversation() -> Request {
    let call = |id: &str, args: Value| ToolCall { id: id.into(), name: "read_file".into(), args };
    let result = |id: &str, text: &str, ok| Message::Tool {
        id: id.into(),
        name: "read_file".into(),
        text: text.into(),
        ok,
    };
    let messages = vec![
        Message::system("Be brief."),
        Message::user("What is in a.rs and b.rs?"),
        Message::Assistant {
            text: "Let me look. ".into(),
            thinking: vec![
                Thinking { text: "Two files.".into(), signature: Some("c2ln".into()) },
                Thinking { text: String::new(), signature: Some("redacted:ZGF0YQ".into()) },
                Thinking { text: "unsigned".into(), signature: None },
            ],
            calls: vec![call("call_1", json!({"path": "a.rs"})), call("call_2", json!("{\"path\": \"b"))],
        },
        result("call_1", "fn main() {}", true),
        result("call_2", "{\"error\":\"VALIDATION_FAILED\"}", false),
        Message::user("Go on."),
        Message::Assistant { text: String::new(), thinking: Vec::new(), calls: Vec::new() },
        Message::user("Well?"),
    ];
    Request {
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: tools(),
        sampling: Sampling {
            temperature: Some(0.25),
            max_tokens: Some(512),
            seed: Some(7),
            stop: vec!["Observation:".into()],
            schema: Some(Arc::new(json!({"type": "object"}))),
        },
    }
}

fn body(wire: Wire, request: &Request, options: &WireOptions) -> Value {
    serde_json::from_slice(&wire.encode(request, options).unwrap()).unwrap()
}

fn rich() -> WireOptions {
    WireOptions {
        keep_alive: Some("10m".into()),
        think: Think::Medium,
        caching: Caching::Marked,
        quirks: Quirks { reasoning: Reasoning::Return, ..Quirks::default() },
        ..WireOptions::new("the-model")
    }
}

#[test]
fn bodies_are_what_the_providers_document() {
    for (name, wire) in [("ollama", Wire::Ollama), ("openai", Wire::OpenAi), ("anthropic", Wire::Anthropic)] {
        insta::assert_json_snapshot!(format!("{name}__rich"), body(wire, &conversation(), &rich()));
        let plain = Request { messages: vec![Arc::new(Message::user("Hi"))], ..Request::default() };
        insta::assert_json_snapshot!(
            format!("{name}__plain"),
            body(wire, &plain, &WireOptions::new("the-model"))
        );
    }
}

#[test]
fn refused_fields_are_left_out() {
    let mut options = rich();
    options.quirks.without = Extra::ALL.into_iter().fold(Extras::default(), Extras::with);
    options.quirks.length = LengthField::MaxCompletionTokens;
    for wire in [Wire::Ollama, Wire::OpenAi, Wire::Anthropic] {
        let text = body(wire, &conversation(), &options).to_string();
        for field in
            ["tool_choice", "stop", "stream_options", "temperature", "seed", "format", "cache_control"]
        {
            assert!(!text.contains(&format!("\"{field}")), "{wire:?} still sends {field}: {text}");
        }
    }
    assert_eq!(body(Wire::OpenAi, &conversation(), &options)["max_completion_tokens"], 512);
    assert!(body(Wire::OpenAi, &conversation(), &options).get("max_tokens").is_none());
}

#[test]
fn the_window_is_always_sent_and_never_silently_cut() {
    let body =
        body(Wire::Ollama, &Request::default(), &WireOptions { context: 12_345, ..WireOptions::new("m") });
    assert_eq!(body["options"]["num_ctx"], 12_345);
    assert_eq!((&body["truncate"], &body["shift"]), (&json!(false), &json!(false)));
}

#[test]
fn keep_alive_is_a_number_where_it_is_one() {
    for (given, sent) in [("5m", json!("5m")), ("-1", json!(-1)), ("300", json!(300))] {
        let options = WireOptions { keep_alive: Some(given.into()), ..WireOptions::new("m") };
        assert_eq!(body(Wire::Ollama, &Request::default(), &options)["keep_alive"], sent);
    }
}

#[test]
fn ollama_gets_levels_of_thinking_only_where_it_has_them() {
    for (model, think, sent) in [
        ("qwen3:8b", Think::Low, json!(true)),
        ("qwen3:8b", Think::Off, json!(false)),
        ("gpt-oss:20b", Think::Low, json!("low")),
    ] {
        let options = WireOptions { think, ..WireOptions::new(model) };
        assert_eq!(body(Wire::Ollama, &Request::default(), &options)["think"], sent, "{model}");
    }
}

#[test]
fn a_signature_goes_back_only_to_who_gave_it() {
    let call = |id: &str| ToolCall { id: id.into(), name: "read_file".into(), args: json!({}) };
    let answer = Message::Assistant {
        text: String::new(),
        thinking: vec![Thinking { text: String::new(), signature: Some("google:c2ln".into()) }],
        calls: vec![call("1"), call("2")],
    };
    let request = Request { messages: vec![Arc::new(answer)], ..Request::default() };
    let calls = &body(Wire::OpenAi, &request, &WireOptions::new("m"))["messages"][0]["tool_calls"];
    assert_eq!(calls[0]["extra_content"], json!({"google": {"thought_signature": "c2ln"}}));
    assert!(calls[1].get("extra_content").is_none());
    for other in [Wire::Anthropic, Wire::Ollama] {
        assert!(!body(other, &request, &WireOptions::new("m")).to_string().contains("c2ln"), "{other:?}");
    }
    let signed = &body(Wire::OpenAi, &conversation(), &rich()).to_string();
    assert!(!signed.contains("c2ln") && !signed.contains("ZGF0YQ"), "{signed}");
}

#[test]
fn a_grammar_is_sent_unless_there_is_a_schema() {
    let options = WireOptions { grammar: Some("root ::= \"yes\"".into()), ..WireOptions::new("m") };
    assert_eq!(body(Wire::OpenAi, &Request::default(), &options)["grammar"], "root ::= \"yes\"");
    assert!(body(Wire::OpenAi, &conversation(), &options).get("grammar").is_none());
}

/// The bytes of the message array without its closing bracket.
fn array(wire: Wire, request: &Request, options: &WireOptions) -> Vec<u8> {
    let body = wire.encode(request, options).unwrap();
    let start = find(&body, b"\"messages\":[").unwrap() + b"\"messages\":".len();
    let mut stream =
        serde_json::Deserializer::from_slice(&body[start..]).into_iter::<serde::de::IgnoredAny>();
    stream.next().unwrap().unwrap();
    body[start..start + stream.byte_offset() - 1].to_vec()
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

fn without_marks(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap().replace(r#","cache_control":{"type":"ephemeral"}"#, "")
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[ -~äß🦀\n\"\\\\]{0,30}"]
}

fn answer() -> impl Strategy<Value = Message> {
    let args = prop_oneof![text().prop_map(Value::String), text().prop_map(|text| json!({"path": text}))];
    let calls = proptest::collection::vec((text(), args), 0..3);
    (text(), proptest::option::of(text()), calls).prop_map(|(text, thought, calls)| Message::Assistant {
        text,
        thinking: thought.map(|text| Thinking { signature: Some(text.clone()), text }).into_iter().collect(),
        calls: calls.into_iter().map(|(id, args)| ToolCall { id, name: "read_file".into(), args }).collect(),
    })
}

fn observation() -> impl Strategy<Value = Message> {
    prop_oneof![
        text().prop_map(|text| Message::User { text }),
        (text(), text(), any::<bool>()).prop_map(|(id, text, ok)| Message::Tool {
            id,
            name: "read_file".into(),
            text,
            ok
        }),
    ]
}

/// A step as the loop makes it: a reply, then what came of it.
fn step() -> impl Strategy<Value = Vec<Message>> {
    (answer(), proptest::collection::vec(observation(), 1..4)).prop_map(|(answer, mut rest)| {
        rest.insert(0, answer);
        rest
    })
}

proptest! {
    #[test]
    fn each_request_begins_the_next(
        start in proptest::collection::vec(observation(), 1..3),
        steps in proptest::collection::vec(step(), 1..5),
        rich_options in any::<bool>(),
    ) {
        let options = if rich_options { rich() } else { WireOptions::new("m") };
        for wire in [Wire::Ollama, Wire::OpenAi, Wire::Anthropic] {
            let mut request = Request { tools: tools(), ..Request::default() };
            request.messages.push(Arc::new(Message::system("Be brief.")));
            request.messages.extend(start.iter().cloned().map(Arc::new));
            let mut before = without_marks(array(wire, &request, &options));
            for step in &steps {
                request.messages.extend(step.iter().cloned().map(Arc::new));
                let now = without_marks(array(wire, &request, &options));
                prop_assert!(now.starts_with(&before), "{wire:?}\n{before}\n{now}");
                before = now;
            }
        }
    }
}
